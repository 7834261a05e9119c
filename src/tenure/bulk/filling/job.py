"""Filling an index of many rows, as a part of the schema change's job.

    claim       the index is not flushed from here on, until the job has ended
    B           a time after every writer keeps the index up to date; protected until it is published
    project     rows at B ──► entries ──► sorted runs         a task per range of the primary index
    fill        runs ──► no key twice? ──► files              a task per range of the new index
    publish     the base of the index, F = B, in one commit under the run's fence
    settle      for a unique index: rows whose entry in the base is hidden by a newer one

Writers between B and the commit did not see the base. Their entries lie on top of it, and are right except in
one case: if of two rows that are equal in a unique index one is in the base and one is newer, the newer entry
hides the other; and if its row is deleted again, the entry of both is gone. So the rows of all hidden entries
are checked once more, each in a transaction that reads it: a missing entry is put back, and an entry of
another row proves that the two are equal. After the commit writers see the base, and a transaction that
looked before is refused (`lake.publishing`). Together with the merge, which has seen all keys as of B, that
proves the index unique; no further proof is needed.

A run that is interrupted leaves files that no manifest names, and the next one starts over. A change that is
reversed gives up the base in one write, because it was never read: as long as the job claims the index, its
base is of that kind.

Invariant (fill-whole): after the last step the index is as if it had always existed, regardless of concurrent
writes and of how often it was begun.

Walk: `schema_change.walk` calls `fill` for each index to be filled and `discard` before one is emptied;
`composition.job_layer` hands it in.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tenure.base.settings import SPARK_MIN_ROWS
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.bulk.lakes import Lake
from tenure.bulk.phases import Phases, Tell
from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.jobs.runs import Lacking, Run
from tenure.expr.functions.function import Context
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.pipeline.tasks import SPARK
from tenure.retention.protections.protection_records import Targets
from tenure.table.backfill import BATCH_ROWS, Pace, refill_index
from tenure.table.lake.manifests import Manifest, WrittenFile, no_base
from tenure.table.lake.publishing import ManifestEdit, publish, publish_filled
from tenure.table.rows import IndexEntry, Layout, Layouts

if TYPE_CHECKING:
    from tenure.pipeline.merge import MergedIndex
    from tenure.pipeline.remote_handles import TableVersion
    from tenure.pipeline.runs import SortedRun

LOOK_SECONDS = 0.1
"""The pause between two looks at an index that is being flushed."""

EMPTIED_ROWS_MAX = 10_000
"""The entries of a dropped index that are deleted, in a second; if there are more, they are left."""

PAGE_KEYS = 5_000
"""Keys of the delta that are looked up in the base at a time."""

READING, MERGING = (0.0, 0.6), (0.6, 0.95)
"""The job's fraction at the end of each phase."""


class SparkIndexFill:
    def __init__(self, lake: Lake, layouts: Layouts, context: Callable[[], Context]) -> None:
        self._lake = lake
        self._layouts = layouts
        self._context = context

    def fill(self, run: Run, table: Table, index: int, tell: Tell) -> bool:
        """Fills an index by a merge and proves it unique; False if batches of transactions should do it."""
        if not self._is_large(table, index):
            return False
        if SPARK not in run.needs:
            raise Lacking(SPARK)
        _Fill(self._lake, self._layouts, self._context, run, table, index, tell).run()
        return True

    def discard(self, run: Run, table: int, index: int) -> bool:
        """Removes the base of an index that this job has filled, and that was never read.

        True if the base is not this job's: readers of the past may need it, and neither files nor entries are
        touched. Nor are the entries of an index that has many: deleting them would only add to the store. The
        garbage collector removes what is left of a dropped index, as of a dropped table.
        """
        lake = self._lake
        span = lake.store.keyspace.index_span(table, index)
        has_many = lake.store.engine.spread(span.lo, span.hi, ZERO_AT, 1 << 40).keys > EMPTIED_ROWS_MAX

        def work(txn: Transaction) -> tuple[bool, bool]:
            manifest = lake.manifests.get(txn, table, index)
            if lake.merges.holder(txn, table, index) != run.job.id:
                return False, manifest is not None and bool(manifest.files)
            lake.merges.release(txn, table, index, run.job.id)
            if manifest is None:
                return False, False
            # The manifest stays, without files: the store alone is not the whole index any more.
            gone = ManifestEdit(tuple(file.name for file in manifest.files))
            publish(txn, lake.store.keyspace, lake.manifests, manifest, gone, manifest.flushed_at)
            return True, False

        is_discarded, is_kept = run.transact(work)
        if is_discarded:
            lake.bases.newer(lake.store.keyspace.head(table, index), None)
        return is_kept or has_many

    def _is_large(self, table: Table, index: int) -> bool:
        """Whether there is much to do. Changes with a new primary index are left to transactions."""
        if index == table.primary or table.index(index).primary != table.primary:
            return False
        store = self._lake.store
        span = store.keyspace.index_span(table.id, table.primary)
        base = self._lake.manifests.get(store.snapshot(), table.id, table.primary)
        base = base or no_base(table.id, table.primary)
        newer = store.engine.spread(span.lo, span.hi, base.flushed_at, 1 << 40).keys
        return base.rows + newer > self._lake.settings()[SPARK_MIN_ROWS]


class _Fill:
    """One index, one run."""

    def __init__(
        self,
        lake: Lake,
        layouts: Layouts,
        context: Callable[[], Context],
        run: Run,
        table: Table,
        index: int,
        tell: Tell,
    ) -> None:
        self._lake = lake
        self._layouts = layouts
        self._context = context
        self._run = run
        self._table = table
        self._index = index
        self._tell = tell
        self._phases = Phases(lake, run, tell)
        self._head = lake.store.keyspace.head(table.id, index)

    def run(self) -> None:
        while not self._run.transact(self._claim):
            self._run.sleep(LOOK_SECONDS)
        snapshot = self._lake.store.snapshot()
        self._run.transact(lambda txn: self._protect(txn, snapshot.at))
        version = self._lake.version(snapshot, self._table.id)
        assert version is not None, "a table that a job is at work on is not dropped"
        enums = {enum.id: enum for enum in version.enums}
        layout = self._layouts.of(version.table, enums.__getitem__)
        began_with = self._manifest(snapshot)
        runs = self._project(version, layout, snapshot.at)
        live = self._merge(version, snapshot.at, runs).edit.live
        self._publish(began_with, live, snapshot.at)
        self._run.transact(lambda txn: self._lake.protections.release_all(txn, self._run.job.id))
        self._lake.files.delete([run.name for run in runs])
        if layout.indexes[self._index].is_unique:
            self._settle(layout)
        rows = sum(written.file.rows for written in live)
        self._tell(1.0, f"{self._phases.engine}: {len(live)} files, {rows} entries")

    def _protect(self, txn: Transaction, at: Timestamp) -> None:
        """Keeps the rows as of B until they are read; what an earlier run has protected is not needed."""
        job, targets = self._run.job, Targets((self._table.id,))
        self._lake.protections.exchange(txn, job.id, at, targets, role=job.owner)

    def _claim(self, txn: Transaction) -> bool:
        merges, mine = self._lake.merges, self._run.job.id
        holder = merges.holder(txn, self._table.id, self._index)
        if holder != mine and self._lake.jobs.is_open(txn, holder):
            return False
        merges.claim(txn, self._table.id, self._index, mine)
        return True

    def _manifest(self, snapshot: Snapshot) -> Manifest:
        found = self._lake.manifests.get(snapshot, self._table.id, self._index)
        return found or no_base(self._table.id, self._index)

    def _project(self, version: "TableVersion", layout: Layout, at: Timestamp) -> "list[SortedRun]":
        # Arrow is imported when the first merge needs it: a node that never does one is smaller.
        from tenure.bulk.filling.entries import ProjectTask, columns_of, project_range
        from tenure.pipeline.scan import bounds, tasks

        lake = self._lake
        primary = version.table.primary
        cut = bounds(lake.store, lake.bases.checked, version.table.id, primary, at).keys
        protected = lake.protections.reads(lake.store.snapshot(), self._run.job.id)
        columns = columns_of(layout, self._index)
        scans = tasks(lake.place, version, at, cut, columns=columns, protected=protected)
        projects = [ProjectTask(scan, self._index) for scan in scans]
        projected = self._phases.do(project_range, projects, READING, "reading")
        return [run for each in projected for run in each]

    def _merge(self, version: "TableVersion", at: Timestamp, runs: "Sequence[SortedRun]") -> "MergedIndex":
        """The entries alone make the new base: they are complete as of the time of reading."""
        from tenure.bulk.filling.entries import FillRules
        from tenure.pipeline.merge import MergeRequest, merge
        from tenure.pipeline.merge_inputs import MergeInputs

        nothing = Manifest(self._table.id, self._index, at)
        request = MergeRequest(version, nothing, at, MergeInputs(tuple(runs), FillRules(at)))
        (merged,) = merge(
            self._lake.store,
            self._lake.place,
            [request],
            lambda kernel, tasks: self._phases.do(kernel, tasks, MERGING, "merging"),
            task_bytes=self._phases.task_bytes,
        )
        return merged

    def _publish(self, began_with: Manifest, live: Sequence[WrittenFile], at: Timestamp) -> None:
        lake = self._lake

        def work(txn: Transaction) -> None:
            publish_filled(txn, lake.store.keyspace, lake.manifests, began_with, live, at)

        self._run.transact(work)

    # ── concurrent writes ───────────────────────────────────────────────────────────────────────────

    def _settle(self, layout: Layout) -> None:
        pace = Pace()
        hidden: list[bytes] = []
        for keys in self._hidden(layout):
            self._run.check()
            hidden += keys
            while len(hidden) >= BATCH_ROWS:
                hidden = self._refilled(layout, hidden, pace)
        while hidden:
            hidden = self._refilled(layout, hidden, pace)

    def _refilled(self, layout: Layout, keys: list[bytes], pace: Pace) -> list[bytes]:
        """Checks some of these rows; returns those that are left."""
        now, later = keys[: pace.rows], keys[pace.rows :]
        refill_index(pace.paced(self._run.transact), layout, self._index, self._context(), now)
        return later

    def _hidden(self, layout: Layout) -> Iterator[list[bytes]]:
        """The primary keys of rows whose entries in the base are hidden by newer ones."""
        store, keyed = self._lake.store, layout.indexes[self._index]
        base = self._lake.bases.newer(self._head, None)
        snapshot = store.snapshot()
        span = store.keyspace.head_span(self._head)
        for page in snapshot.stored(span, PAGE_KEYS, since_at=base.flushed_at):
            newest = {revision.key: revision.value for revision in page}
            there = {key: base.get(key, base.flushed_at) for key in newest}
            yield [
                layout.primary_key(keyed, IndexEntry(key, value))
                for key, value in there.items()
                if value is not None and value != newest[key]
            ]
