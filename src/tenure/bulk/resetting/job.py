"""The job of a reset: many rows of a table become what they were, by a merge.

    created                    the primary index of then is protected at the earlier time T
    close for writing, drain   reads go on; from here on nobody writes the table, or refers to its rows
    read at T, check, sort     a task per range of the index of then     `resetting.sorting`
    merge                      a task per range of each present index: rows that are the same stay, the others
                               end at the commit; new rows carry its time
    foreign keys               of the table, and of those that refer to it
    publish                    all indexes, and the table open for writing, in one commit

A run that is interrupted leaves files that no manifest names; the next starts over, with the table still
closed. The rows are published with the job's progress, so no run does it twice. If it fails, or is canceled,
the table is opened as it was. Its result is that of the transaction that resets few rows.

Invariant (reset-whole): after a reset each index has the rows of T, or nothing has changed; and every earlier
time reads as before.

Walk: `sql.statements.jobs.resetting` -> `start`; `composition.job_layer` hands `reset_kind` to the job
runner.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tenure.base.errors import RetryError, TenureError, WrongState
from tenure.base.settings import SPARK_MIN_ROWS
from tenure.base.timestamp import Timestamp, to_text
from tenure.bulk.creator_rights import relation, rights_of_creator
from tenure.bulk.ingest.existing_tables import ExistingTables
from tenure.bulk.lakes import Lake
from tenure.bulk.phases import Part, Phases, part_of
from tenure.bulk.resetting.former_columns import former_columns
from tenure.bulk.resetting.records import KIND, ResetPayload, ResetProgress
from tenure.catalog.changes.offline_tables import refuse_unwritable
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.jobs.attempts import BLOCKED_ATTEMPTS_MAX
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.keys import Span
from tenure.kv.records import pack, unpack
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.pipeline.remote_handles import TableVersion
from tenure.pipeline.tasks import SPARK
from tenure.retention.protections.protection_records import Mode, Targets, record_key
from tenure.retention.sweeping.versions import versions_of
from tenure.table.lake.manifests import Manifest, no_base
from tenure.table.lake.publishing import publish
from tenure.table.rows import Layout, Layouts

if TYPE_CHECKING:
    from tenure.bulk.ingest.references import ReferenceTask
    from tenure.bulk.ingest.run_chunks import SortedReference, SortedSplits
    from tenure.pipeline.merge import MergedIndex
    from tenure.pipeline.runs import SortedRun

READING, MERGING, REFERRING = (0.0, 0.5), (0.5, 0.85), (0.85, 0.95)
"""The job's fraction at the end of each phase."""

RUNS_MAX = 6
PUBLISH_ATTEMPTS = 5

ROW_NUMBERS = 1 << 24
"""Row ids that each task may give out; its ranges have far fewer rows."""


def start(
    txn: Transaction,
    lake: Lake,
    payload: ResetPayload,
    *,
    former_primary: int,
    name: str,
    rows: int,
    following: bytes | None = None,
) -> Job:
    """Creates the job, and protects what it reads; `following` is the protection of a snapshot."""
    id = lake.jobs.fresh_id(txn)
    span = lake.store.keyspace.index_span(payload.table, former_primary)
    targets = Targets(spans=(span,))
    lake.protections.protect(txn, id, payload.at, Mode.AT, targets, following=following, role=payload.user)
    return lake.jobs.create(
        txn,
        kind=KIND,
        id=id,
        payload=pack(payload),
        owner=payload.user,
        description=f'reset of table "{name}" to {to_text(payload.at)}',
        needs=(SPARK,) if rows > lake.settings()[SPARK_MIN_ROWS] else (),
    )


def reset_kind(lake: Lake, publisher: Publisher) -> JobKind:
    def run(run: Run) -> None:
        if not run.progress.data:
            table = relation(lake, unpack(run.job.payload, ResetPayload).table)
            if table is not None:
                rights_of_creator(lake, run).require_owner(table)
            _Reset(lake, publisher, run).run()

    def revert(run: Run) -> None:
        if run.progress.data:
            raise WrongState("the rows were public before the reset could be taken back; it is complete")
        _table(lake, publisher, run).give_up()
        lake.delete_scratch(run, below=run.fence.run + 1)

    return JobKind(run, revert, attempts_max=RUNS_MAX, blocked_attempts_max=BLOCKED_ATTEMPTS_MAX)


def _table(lake: Lake, publisher: Publisher, run: Run) -> ExistingTables:
    table = unpack(run.job.payload, ResetPayload).table
    return ExistingTables(lake, publisher, run, [table], stay_readable=True)


class _Reset:
    def __init__(self, lake: Lake, publisher: Publisher, run: Run) -> None:
        self._lake = lake
        self._run = run
        self._payload = unpack(run.job.payload, ResetPayload)
        self._closed = _table(lake, publisher, run)
        self._phases = Phases(lake, run)

    def run(self) -> None:
        self._lake.delete_scratch(self._run, below=self._run.fence.run)
        snapshot = self._closed.prepare()
        version = self._closed.version(snapshot, self._payload.table)
        self._check_neighbours(snapshot, version.table)
        layout = self._layout(version)
        references = self._references(snapshot, layout)
        sorted_ranges = self._sort(snapshot, version, references)
        merged = self._merge(snapshot, version, layout, sorted_ranges)
        self._check_references(version, layout, references, sorted_ranges, merged)
        self._publish(merged, layout)
        self._lake.delete_scratch(self._run, below=self._run.fence.run + 1)

    def _check_neighbours(self, snapshot: Snapshot, table: Table) -> None:
        """Another job that changes a table at the other end of a foreign key relies on this one's rows."""
        for found in self._referring(snapshot, table):
            refuse_unwritable(found)
        for each in table.foreign_keys:
            target = self._lake.catalog.get(snapshot, each.target)
            if isinstance(target, Table) and target.is_read_only and target.id != table.id:
                refuse_unwritable(target)

    def _referring(self, snapshot: Snapshot, table: Table) -> list[Table]:
        ids = sorted({each.table for each in table.inbound} - {table.id})
        found = [self._lake.catalog.get(snapshot, id) for id in ids]
        return [each for each in found if isinstance(each, Table)]

    def _layout(self, version: TableVersion) -> Layout:
        enums = {enum.id: enum for enum in version.enums}
        return Layouts(self._lake.store.keyspace).of(version.table, enums.__getitem__)

    # ── rows of then ───────────────────────────────────────────────────────────────────────────

    def _references(self, snapshot: Snapshot, layout: Layout) -> "tuple[SortedReference, ...]":
        # Arrow is imported when the first reset needs it: a node that never does one is smaller.
        from tenure.bulk.ingest.references import references_of

        targets = {
            each.target: self._lake.catalog.get(snapshot, each.target) for each in layout.table.foreign_keys
        }
        return references_of(layout, {id: each for id, each in targets.items() if isinstance(each, Table)})

    def _sort(
        self, snapshot: Snapshot, version: TableVersion, references: "tuple[SortedReference, ...]"
    ) -> "list[SortedSplits]":
        from tenure.bulk.ingest.statement_facts import StatementFacts
        from tenure.bulk.resetting.sorting import ResetTask, sort_range
        from tenure.pipeline.scan import bounds, tasks

        lake, payload = self._lake, self._payload
        then = lake.version(lake.store.snapshot(payload.at), payload.table)
        assert then is not None, "the protection keeps the catalog of that time"
        columns = former_columns(self._versions(snapshot), payload.at)
        # By the labels of today: those of a type may have been renamed.
        labels = {each.id: each for each in version.enums}
        then = then._replace(enums=tuple(labels.get(each.id, each) for each in then.enums))
        cut = bounds(lake.store, lake.bases.checked, payload.table, then.table.primary, payload.at)
        protected = lake.protections.reads(lake.store.snapshot(), self._run.job.id)
        scans = tasks(
            *(lake.place, then, payload.at, cut.keys),
            columns=sorted(set(columns.values())),
            protected=protected,
        )
        facts = StatementFacts(payload.user, payload.database, payload.now_micros, payload.zone)
        work = [
            ResetTask(
                *(scan, version, columns, facts, references),
                sequences=self._sequences(snapshot, version.table),
                first_row=number * ROW_NUMBERS,
            )
            for number, scan in enumerate(scans)
        ]
        return self._phases.do(sort_range, work, READING, "reading")

    def _versions(self, snapshot: Snapshot) -> list[Table]:
        """Those that the table has had from then on."""
        lake, (table, at) = self._lake, (self._payload.table, self._payload.at)
        found = versions_of(lake.store, lake.catalog, table, since_at=at, until_at=snapshot.at)
        return [each for each in found if isinstance(each, Table)]

    def _sequences(self, snapshot: Snapshot, table: Table) -> tuple[SequenceDescriptor, ...]:
        called = {id for column in table.columns if column.default for id in column.default.sequences}
        found = [self._lake.catalog.get(snapshot, id) for id in sorted(called)]
        return tuple(each for each in found if isinstance(each, SequenceDescriptor))

    # ── indexes ────────────────────────────────────────────────────────────────────────────────

    def _merge(
        self,
        snapshot: Snapshot,
        version: TableVersion,
        layout: Layout,
        sorted_ranges: "Sequence[SortedSplits]",
    ) -> "list[MergedIndex]":
        from tenure.bulk.resetting.sorting import ResetRules
        from tenure.pipeline.merge import MergeRequest, merge
        from tenure.pipeline.merge_inputs import MergeInputs

        requests = [
            MergeRequest(
                version,
                self._manifest(version.table.id, index),
                snapshot.at,
                MergeInputs(_runs_of(sorted_ranges, index), ResetRules()),
            )
            for index in layout.indexes
        ]
        return merge(
            self._lake.store,
            self._lake.place,
            requests,
            lambda kernel, tasks: self._phases.do(kernel, tasks, MERGING, "merging"),
            task_bytes=self._phases.task_bytes,
        )

    def _manifest(self, table: int, index: int) -> Manifest:
        return self._lake.manifests.get(self._lake.store.snapshot(), table, index) or no_base(table, index)

    # ── foreign keys ───────────────────────────────────────────────────────────────────────────

    def _check_references(
        self,
        version: TableVersion,
        layout: Layout,
        references: "tuple[SortedReference, ...]",
        sorted_ranges: "Sequence[SortedSplits]",
        merged: "Sequence[MergedIndex]",
    ) -> None:
        """As of now: rows that are referred to cannot have been deleted since the table was closed, nor can
        new rows refer to it.
        """
        from tenure.bulk.ingest.references import check_references

        now = self._lake.store.snapshot()
        removed = {each.base.index for each in merged if each.removed}
        inbound = list(self._inbound(now, layout, removed))
        spans = [
            self._lake.store.keyspace.index_span(each.target.id, each.target_index)
            for each in references
            if each.target.id != version.table.id
        ]
        spans += [
            self._lake.store.keyspace.index_span(other.table.id, other.table.primary) for other, _ in inbound
        ]
        protection = self._protect(now.at, spans)
        tasks: list[ReferenceTask] = []
        for each in references:
            runs = [run for each_range in sorted_ranges for run in each_range.references[each.constraint.id]]
            tasks += self._reference_tasks(version, each, now.at, runs, sorted_ranges, protection)
        for number, (other, each) in enumerate(inbound):
            part = part_of(REFERRING, number, len(inbound) + 1)
            runs = self._referring_keys(other, each, now.at, part)
            tasks += self._reference_tasks(other, each, now.at, runs, sorted_ranges, protection)
        if tasks:
            self._phases.do(check_references, tasks, (REFERRING[1], REFERRING[1]), "checking foreign keys")

    def _protect(self, at: Timestamp, spans: Sequence[Span]) -> bytes:
        if not spans:
            return b""
        lake, job = self._lake, self._run.job.id
        targets = Targets(spans=tuple(spans))
        id = self._run.transact(lambda txn: lake.protections.protect(txn, job, at, Mode.AT, targets))
        return record_key(lake.store.keyspace, id)

    def _inbound(
        self, snapshot: Snapshot, layout: Layout, removed: set[int]
    ) -> "Iterator[tuple[TableVersion, SortedReference]]":
        """Foreign keys of other tables that refer by an index some of whose keys have gone."""
        from tenure.bulk.ingest.references import references_of

        table = layout.table
        for other in self._referring(snapshot, table):
            version = self._lake.version(snapshot, other.id)
            assert version is not None, "it refers to this table"
            targets = {
                each.target: self._lake.catalog.get(snapshot, each.target) for each in other.foreign_keys
            }
            tables = {id: each for id, each in targets.items() if isinstance(each, Table)}
            for each in references_of(self._layout(version), tables):
                if each.target.id == table.id and each.target_index in removed:
                    yield version, each

    def _referring_keys(
        self, version: TableVersion, reference: "SortedReference", at: Timestamp, part: Part
    ) -> "list[SortedRun]":
        from tenure.bulk.resetting.sorting import ReferTask, refer_range
        from tenure.pipeline.scan import bounds, tasks

        lake, table = self._lake, version.table
        cut = bounds(lake.store, lake.bases.checked, table.id, table.primary, at)
        protected = lake.protections.reads(lake.store.snapshot(), self._run.job.id)
        columns = reference.constraint.columns
        scans = tasks(lake.place, version, at, cut.keys, columns=columns, protected=protected)
        referring = self._phases.do(
            refer_range, [ReferTask(scan, reference) for scan in scans], part, "reading"
        )
        return [run for each in referring for run in each]

    def _reference_tasks(
        self,
        version: TableVersion,
        reference: "SortedReference",
        at: Timestamp,
        runs: "Sequence[SortedRun]",
        sorted_ranges: "Sequence[SortedSplits]",
        protection: bytes,
    ) -> "list[ReferenceTask]":
        """What refers to the table itself is looked up among its rows of then."""
        from tenure.bulk.ingest.references import tasks_of

        target, index = reference.target.id, reference.target_index
        is_own = target == self._payload.table
        manifest = None if is_own else self._manifest(target, index)
        own = _runs_of(sorted_ranges, index) if is_own else ()
        return tasks_of(
            *(self._lake.place, version, reference, manifest, at, runs, own), *("", "", 0, protection)
        )

    # ── the end ────────────────────────────────────────────────────────────────────────────────

    def _publish(self, merged: "Sequence[MergedIndex]", layout: Layout) -> None:
        for left in reversed(range(PUBLISH_ATTEMPTS)):
            try:
                return self._try_publishing(merged, layout)
            except RetryError:
                if not left:
                    raise

    def _try_publishing(self, merged: "Sequence[MergedIndex]", layout: Layout) -> None:
        settled, lake = self._closed.settled(), self._lake
        rows = sum(each.added + each.removed for each in merged if each.base.index == layout.primary.id)

        def work(txn: Transaction) -> None:
            for each in merged:
                publish(txn, lake.store.keyspace, lake.manifests, each.base, each.edit, None)
            self._closed.bring_back(txn, settled)
            text = f"{self._phases.engine}: {rows} rows"
            self._run.save(txn, fraction=1.0, status=text, data=pack(ResetProgress(rows)))

        self._run.transact(work)
        with suppress(TenureError):  # it is published already
            for each in merged:
                lake.bases.newer(lake.store.keyspace.head(each.base.table, each.base.index), None)


def _runs_of(sorted_ranges: "Sequence[SortedSplits]", index: int) -> "tuple[SortedRun, ...]":
    return tuple(run for each in sorted_ranges for run in each.indexes[index])
