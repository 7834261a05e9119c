"""The job of an import.

    take the tables offline ──► T                                or make new ones, of a dump
    read, check, sort          a task per split of the input      `importing.sorting`
    merge                      a task per range of each index     `importing.merging`
    foreign keys               a task per range of keys           `importing.references`
        rows that are bad here, if they are tolerated: refused, and once more from "merge" on without them
    publish                    all indexes, and the tables public again, in one commit

A run that is interrupted leaves files that nobody names; the next starts over, with the tables offline as
they are. What was published is published with the job's progress, so no run does it twice. Should it fail,
or be canceled, the tables come back as they were. What a dump makes is nowhere but in the job until then.

Invariant (I40): a failed import leaves no row behind, and one that is taken up again brings each row once.

Walk: `sql.statements.importing` -> `start`; `cluster.runner` -> `_Import.run`, or `revert`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.base.errors import RetryError, TenureError, UserError
from tenure.base.settings import SPARK_MIN_ROWS
from tenure.bulk.importing.new_tables import NewTables
from tenure.bulk.importing.records import INSERTS, KIND, Payload, Saved, Summary, TableInput
from tenure.bulk.importing.taking_offline import Offline
from tenure.bulk.lakes import Lake, label
from tenure.bulk.sealing import sealed, unsealed
from tenure.catalog.descriptors import Sequence as SequenceDescriptor
from tenure.catalog.descriptors import Table
from tenure.catalog.publisher import Publisher
from tenure.cluster.jobs import Job
from tenure.cluster.runs import Kind, Run
from tenure.kv.records import pack, unpack
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.pipeline.places import Version
from tenure.pipeline.tasks import SPARK, Kernel, attempt_name, status
from tenure.storage.locations import Locations
from tenure.table.lake.manifests import Manifest, no_base
from tenure.table.lake.publishing import Replaced, publish

if TYPE_CHECKING:
    from tenure.bulk.importing.clashes import Clash, Origin, Refused
    from tenure.bulk.importing.inputs import Source, Unpacked
    from tenure.bulk.importing.merging import RunsMerged
    from tenure.bulk.importing.references import Missing, ReferenceTask
    from tenure.bulk.importing.rejects import RejectsFile
    from tenure.bulk.importing.sorting import Reference, Sorted
    from tenure.pipeline.reading.tasks import Reject
    from tenure.table.rows import Layout

ROW_BYTES = 64
"""About how long a row of a text file is, to guess how many there are; of a compressed one a quarter."""

NUMBERS_MAX = 1 << 43
"""Row ids that one import can give: see `importing.defaults`."""

PUBLISH_ATTEMPTS = 5
RUNS_MAX = 6
"""So often in a row an import may find somebody in the way, each time for so many attempts to publish: its
tables have been offline for half a minute more by then. After that it fails, and they come back."""

SAVE_SECONDS = 1.0
"""Between two reports of how far it is."""


class TooLate(UserError):
    """Somebody wanted to cancel an import that was public already."""

    sqlstate = "55000"


class TooLarge(UserError):
    sqlstate = "54000"


def start(txn: Transaction, lake: Lake, payload: Payload, *, rows: int, description: str) -> Job:
    """Makes the job of an import of about so many rows."""
    id = lake.jobs.fresh_id(txn)
    return lake.jobs.create(
        txn,
        kind=KIND,
        id=id,
        payload=pack(payload.with_locations(partial(sealed, txn, lake.store.keyspace, id))),
        owner=payload.user,
        description=description,
        needs=(SPARK,) if rows > lake.settings()[SPARK_MIN_ROWS] else (),
    )


def guessed_rows(sources: "Sequence[Source]") -> int:
    return sum(source.bytes * (4 if source.compression else 1) for source in sources) // ROW_BYTES


def summary_of(data: bytes) -> Summary:
    """What a job's progress says of an import that has ended well."""
    return unpack(data, Saved).summary


def import_kind(lake: Lake, publisher: Publisher, locations: Locations) -> Kind:
    def run(run: Run) -> None:
        if not run.progress.data:
            _Import(lake, publisher, locations, run).run()

    def revert(run: Run) -> None:
        if run.progress.data:
            raise TooLate("the rows were public before the import could be taken back; it is complete")
        payload = unpack(run.job.payload, Payload)
        _targets(lake, publisher, run, payload).give_up()
        if payload.rejects:
            _rejects_file(lake, locations, run).delete()

    return Kind(run, revert, attempts_max=RUNS_MAX)


def _targets(lake: Lake, publisher: Publisher, run: Run, payload: Payload) -> Offline | NewTables:
    if payload.made:
        return NewTables(lake, publisher, run, payload)
    return Offline(lake, publisher, run, [each.table for each in payload.tables])


def _rejects_file(lake: Lake, locations: Locations, run: Run) -> "RejectsFile":
    from tenure.bulk.importing.rejects import RejectsFile

    kept = unpack(run.job.payload, Payload).rejects
    location = unsealed(lake.store.snapshot(), lake.store.keyspace, run.job.id, kept)
    return RejectsFile(locations, location, run.job.id)


class _Table(NamedTuple):
    """A table of the import, as of the time it is offline."""

    input: TableInput
    version: Version
    layout: "Layout"
    references: "tuple[Reference, ...]"
    sequences: tuple[SequenceDescriptor, ...]


class _Merged(NamedTuple):
    began_with: Manifest
    replaced: Replaced
    added: int
    """New rows of the index."""


class _Import:
    def __init__(self, lake: Lake, publisher: Publisher, locations: Locations, run: Run) -> None:
        self._lake = lake
        self._locations = locations
        self._run = run
        opened = partial(unsealed, lake.store.snapshot(), lake.store.keyspace, run.job.id)
        self._payload = unpack(run.job.payload, Payload).with_locations(opened)
        self._targets = _targets(lake, publisher, run, self._payload)
        self._tasks = lake.tasks_for(run)
        self._saved_at = -SAVE_SECONDS
        self._files: tuple[str, ...] = ()
        self._names = self._refused = ""
        """Scratch files for tasks: see `importing.names`."""
        self._origins: set[Origin] = set()
        """Of the rows that were refused for their keys."""
        self._unpacked: Unpacked | None = None

    def run(self) -> None:
        snapshot = self._targets.take()
        tables = [self._table(snapshot, input) for input in self._payload.tables]
        found = [self._read(table, share) for table, share in zip(tables, _shares(len(tables)), strict=True)]
        rejects = [each for of_table in found for result in of_table for each in result.rejects]
        self._tolerate(rejects)
        self._write_names()
        merged = self._merge_all(snapshot, tables, found, rejects)
        file = _rejects_file(self._lake, self._locations, self._run)
        with file.written(rejects, lambda: self._lake.is_given_up(self._run)):
            self._publish(merged, self._summary(tables, found, merged, len(rejects)))
        self._delete_scratch(found)

    def _table(self, snapshot: Snapshot, input: TableInput) -> _Table:
        from tenure.bulk.importing.references import references_of
        from tenure.table.rows import Layouts

        version = self._targets.version(snapshot, input.table)
        enums = {enum.id: enum for enum in version.enums}
        layout = Layouts(self._lake.store.keyspace).of(version.table, enums.__getitem__)
        get = self._targets.descriptor
        targets = {each.target: get(snapshot, each.target) for each in version.table.foreign_keys}
        known = {id: target for id, target in targets.items() if isinstance(target, Table)}
        called = {id for column in version.table.columns if column.default for id in column.default.sequences}
        sequences = [get(snapshot, id) for id in sorted(called)]
        kept = tuple(each for each in sequences if isinstance(each, SequenceDescriptor))
        return _Table(input, version, layout, references_of(layout, known), kept)

    # ── the first pass ─────────────────────────────────────────────────────────────────────────

    def _read(self, table: _Table, share: "_Share") -> "list[Sorted]":
        from tenure.bulk.importing.inputs import Facts, groups, sources_of, splits_of, survey_piece
        from tenure.bulk.importing.sorting import SortTask, sort_split

        sources = sources_of(self._locations, table.input)
        numbers = range(len(self._files), len(self._files) + len(sources))
        self._files = (*self._files, *(source.shown for source in sources))
        splits = splits_of(
            self._payload,
            table.input,
            table.layout,
            sources,
            numbers,
            lambda pieces: self._do(survey_piece, pieces, "looking at files", share.part(0.0, 0.05)),
            self._unpack(sources[0]) if table.input.is_compressed else None,
        )
        grouped = list(groups(splits))
        firsts = list(accumulate((sum(each.rows_max for each in group) for group in grouped), initial=0))
        if firsts[-1] > NUMBERS_MAX and _has_row_ids(table):
            raise TooLarge("the files are too large for one import into a table without a primary key")
        payload = self._payload
        facts = Facts(payload.user, payload.database, payload.now_micros, payload.zone)
        tasks = [
            SortTask(
                self._lake.place,
                table.version,
                facts,
                group,
                table.references,
                table.sequences,
                first,
                payload.bad_rows_max,
            )
            for group, first in zip(grouped, firsts, strict=False)
        ]
        found: list[Sorted] = self._do(sort_split, tasks, "reading", share.part(0.05, 0.6))
        return found

    def _unpack(self, source: "Source") -> "Unpacked":
        """Decompresses a dump, for all of its tables."""
        from tenure.bulk.importing.inputs import Unpacked, unpack

        if self._unpacked is None:
            name = self._scratch("dump")
            self._run.checkpoint(fraction=0.0, status="decompressing")
            unpack(self._lake.files, name, source, self._run.check)
            self._unpacked = Unpacked(self._lake.place, name)
        return self._unpacked

    def _tolerate(self, rejects: "list[Reject]") -> None:
        from tenure.bulk.importing.rejects import too_many

        if len(rejects) > self._payload.bad_rows_max:
            raise too_many(rejects, self._payload.bad_rows_max)

    def _write_names(self) -> None:
        from tenure.bulk.importing.names import write_names

        self._names = self._scratch("names.json")
        write_names(self._lake.files, self._names, self._files)

    def _scratch(self, what: str) -> str:
        attempt = attempt_name(label(self._run), self._lake.store.env)
        return f"{self._lake.place.tenant}/scratch/{attempt}-{what}"

    # ── the second pass ────────────────────────────────────────────────────────────────────────

    def _merge_all(
        self,
        snapshot: Snapshot,
        tables: Sequence[_Table],
        found: "Sequence[list[Sorted]]",
        rejects: "list[Reject]",
    ) -> list[_Merged]:
        """Merges, and checks foreign keys; again without the rows that turned out bad, while they are few."""
        while True:
            merged: list[_Merged] = []
            clashes: list[Clash] = []
            for table, results in zip(tables, found, strict=True):
                merged += self._merge(snapshot, table, results, clashes)
            bad = self._clashing(clashes) or self._dangling(tables, found)
            if not bad:
                return merged
            self._refuse(bad, rejects)

    def _refuse(self, bad: "Mapping[Origin, Refused]", rejects: "list[Reject]") -> None:
        from tenure.bulk.importing.names import write_refused
        from tenure.bulk.importing.rejects import reject_of

        rejects += [reject_of(origin, refused, self._files) for origin, refused in bad.items()]
        self._tolerate(rejects)
        self._origins |= bad.keys()
        self._lake.files.delete([self._refused] if self._refused else [])
        self._refused = self._scratch("refused.json")
        write_refused(self._lake.files, self._refused, self._origins)

    def _clashing(self, clashes: "Sequence[Clash]") -> "dict[Origin, Refused]":
        if not clashes:
            return {}
        from tenure.bulk.importing.clashes import decided

        return decided(clashes)

    def _merge(
        self, snapshot: Snapshot, table: _Table, results: "list[Sorted]", clashes: "list[Clash]"
    ) -> Iterator[_Merged]:
        from tenure.bulk.importing.merging import merge_runs, tasks_of
        from tenure.pipeline.merge import replaced

        if not any(result.rows for result in results):
            return
        begun, tasks = [], []
        for index in table.layout.indexes:
            manifest = self._manifest(snapshot, table.version.table.id, index)
            runs = [run for result in results for run in result.indexes[index]]
            made = tasks_of(
                *(self._lake.place, table.version, manifest, self._lake.store, snapshot.at, runs),
                *(self._names, self._refused, self._tolerated(table)),
            )
            begun.append((manifest, len(made)))
            tasks += made
        merged: list[RunsMerged] = self._do(merge_runs, tasks, "merging", (0.6, 0.9))
        clashes += [clash for each in merged for clash in each.clashes]
        rest = iter(merged)
        for manifest, count in begun:
            ranges = list(islice(rest, count))
            added = sum(each.added for each in ranges)
            yield _Merged(manifest, replaced([each.range for each in ranges]), added)

    def _tolerated(self, table: _Table) -> int:
        # Several rows of an INSERT may stand on one line, which then does not tell them apart.
        return 0 if table.input.format == INSERTS else self._payload.bad_rows_max

    def _manifest(self, snapshot: Snapshot, table: int, index: int) -> Manifest:
        return self._lake.manifests.get(snapshot, table, index) or no_base(table, index)

    def _dangling(self, tables: Sequence[_Table], found: "Sequence[list[Sorted]]") -> "dict[Origin, Refused]":
        """Rows that refer to nothing, if some are tolerated."""
        from tenure.bulk.importing.references import check_references

        bad: dict[Origin, Refused] = {}
        for table, results in zip(tables, found, strict=True):
            tasks = list(self._reference_tasks(table, results, tables, found))
            if not tasks:
                continue
            checked = self._do(check_references, tasks, "checking foreign keys", (0.9, 0.95))
            for reference in table.references:
                pairs = zip(tasks, checked, strict=True)
                missing = [each for task, told in pairs if task.reference is reference for each in told]
                if missing:
                    bad |= self._referring(table, results, reference, missing)
        return bad

    def _reference_tasks(
        self,
        table: _Table,
        results: "list[Sorted]",
        tables: Sequence[_Table],
        found: "Sequence[list[Sorted]]",
    ) -> "Iterator[ReferenceTask]":
        """As of now: nothing of what was there when the table went offline can have been deleted."""
        from tenure.bulk.importing.references import tasks_of

        snapshot = self._lake.store.snapshot()
        for reference in table.references:
            target, index = reference.target.id, reference.target_index
            runs = [run for result in results for run in result.references[reference.constraint.id]]
            own = [
                run
                for other, of_other in zip(tables, found, strict=True)
                if other.version.table.id == target
                for result in of_other
                for run in result.indexes[index]
            ]
            manifest = self._manifest(snapshot, target, index)
            yield from tasks_of(
                *(self._lake.place, table.version, reference, manifest, snapshot.at, runs, own),
                *(self._names, self._refused, self._tolerated(table)),
            )

    def _referring(
        self, table: _Table, results: "list[Sorted]", reference: "Reference", missing: "list[Missing]"
    ) -> "dict[Origin, Refused]":
        """All rows that refer to these keys: of each the first pass kept only one."""
        from tenure.bulk.importing.clashes import Refused
        from tenure.bulk.importing.references import FindTask, find_referring
        from tenure.table.errors import ForeignKeyViolation

        tolerated = self._tolerated(table)
        tasks = [
            FindTask(self._lake.place, reference, run, tuple(missing), self._refused, tolerated)
            for result in results
            for run in result.indexes[table.layout.primary.id]
        ]
        found = self._do(find_referring, tasks, "looking for bad rows", (0.9, 0.95))
        sqlstate = ForeignKeyViolation.sqlstate
        return {origin: Refused(sqlstate, said) for of_run in found for origin, said in of_run}

    # ── the end ────────────────────────────────────────────────────────────────────────────────

    def _summary(
        self,
        tables: Sequence[_Table],
        found: "Sequence[list[Sorted]]",
        merged: Sequence[_Merged],
        rejected: int,
    ) -> Summary:
        primary = {(table.version.table.id, table.layout.primary.id) for table in tables}
        rows = entries = 0
        for each in merged:
            if (each.began_with.table, each.began_with.index) in primary:
                rows += each.added
            else:
                entries += each.added
        sorted = [result for results in found for result in results]
        size = sum(run.size for result in sorted for runs in result.indexes.values() for run in runs)
        return Summary(rows, entries, size, rejected)

    def _publish(self, merged: Sequence[_Merged], summary: Summary) -> None:
        """Starts over if a database of the new tables was changed meanwhile, or its leases were."""
        for left in reversed(range(PUBLISH_ATTEMPTS)):
            try:
                return self._try_publishing(merged, summary)
            except RetryError:
                if not left:
                    raise

    def _try_publishing(self, merged: Sequence[_Merged], summary: Summary) -> None:
        settled = self._targets.settled()
        lake = self._lake

        def work(txn: Transaction) -> None:
            for each in merged:
                publish(txn, lake.store.keyspace, lake.manifests, each.began_with, each.replaced, None)
            self._targets.bring_back(txn, settled)
            text = f"{self._tasks.engine}: {summary.rows} rows"
            self._run.save(txn, fraction=1.0, status=text, data=pack(Saved(summary)))

        self._run.transact(work)
        self._know_bases(merged)

    def _know_bases(self, merged: Sequence[_Merged]) -> None:
        """At once: the first who writes here need not be refused to learn that there is a base."""
        keyspace = self._lake.store.keyspace
        with suppress(TenureError):  # what was published is published
            for each in merged:
                self._lake.bases.newer(keyspace.head(each.began_with.table, each.began_with.index), None)

    def _delete_scratch(self, found: "Sequence[list[Sorted]]") -> None:
        """Early, and only to have it done: what is left, `bulk.upkeep` deletes."""
        names = [
            run.name
            for results in found
            for result in results
            for runs in (*result.indexes.values(), *result.references.values())
            for run in runs
        ]
        if self._unpacked is not None:
            names.append(self._unpacked.name)
        names += filter(None, [self._names, self._refused])
        self._lake.files.delete(names)

    def _do(
        self, kernel: "Kernel[Any, Any]", tasks: Sequence[Any], what: str, part: tuple[float, float]
    ) -> Any:
        start, end = part

        def on_done(done: int, total: int) -> None:
            now = self._lake.store.env.monotonic()
            if now - self._saved_at < SAVE_SECONDS and done < total:
                return
            self._saved_at = now
            fraction = start + (end - start) * done / max(1, total)
            self._run.checkpoint(fraction=fraction, status=f"{what}, {status(self._tasks, done, total)}")

        return self._tasks.run(kernel, tasks, on_done=on_done, check=self._run.check, label=label(self._run))


class _Share(NamedTuple):
    """A part of the work, from 0 to 1."""

    start: float
    end: float

    def part(self, start: float, end: float) -> tuple[float, float]:
        return self.start * 0.6 + (self.end - self.start) * start, self.start * 0.6 + (
            self.end - self.start
        ) * end


def _shares(count: int) -> list[_Share]:
    return [_Share(number / count, (number + 1) / count) for number in range(count)]


def _has_row_ids(table: _Table) -> bool:
    return any(column.is_hidden for column in table.version.table.columns)
