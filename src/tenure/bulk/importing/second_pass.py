"""The second pass of an import: runs become files of each index, and foreign keys are checked.

Rows that turn out bad only here, because of duplicate keys or missing references, are refused if the
statement tolerates them; and the pass starts over without them.

Walk: `importing.job` -> `SecondPass.run` -> `pipeline.merge.merge` for the indexes of each table ->
`references.check_references` per range of keys.
"""

from collections.abc import Iterator, Mapping, Sequence

from tenure.base.errors import ForeignKeyViolation
from tenure.base.timestamp import Timestamp
from tenure.bulk.importing.clashes import RefusedRow, decided
from tenure.bulk.importing.duplicate_keys import ImportRules
from tenure.bulk.importing.first_pass import SurveyedInput
from tenure.bulk.importing.passes import MERGING, REFERRING, ImportTable, Pass
from tenure.bulk.importing.rejects import reject_of
from tenure.bulk.ingest import references
from tenure.bulk.ingest.origins import write_names, write_refused
from tenure.bulk.ingest.references import FindTask, MissingKey, ReferenceTask
from tenure.bulk.ingest.run_chunks import SortedReference, SortedSplits
from tenure.bulk.phases import Part, part_of
from tenure.kv.snapshot import Snapshot
from tenure.pipeline.merge import MergedIndex, MergeRequest, merge
from tenure.pipeline.merge_inputs import MergeInputs, Origin
from tenure.pipeline.reading.tasks import Reject
from tenure.retention.protections.protection_records import Targets, record_key
from tenure.table.lake.manifests import Manifest, no_base


class SecondPass:
    """Adds refused rows to `rejects`."""

    def __init__(self, common: Pass, input: SurveyedInput, rejects: list[Reject]) -> None:
        self._common = common
        self._lake = common.lake
        self._input = input
        self._rejects = rejects
        self._origins: set[Origin] = set()
        """Of the rows that were refused for their keys."""
        self._refused = ""
        self._names = common.scratch("names.json")
        """Files for tasks: see `ingest.origins`."""
        write_names(common.lake.files, self._names, input.files)

    def run(self, snapshot: Snapshot) -> list[MergedIndex]:
        """Merges as of the time at which the tables went offline."""
        while True:
            merged: list[MergedIndex] = []
            for table, results, number in self._each():
                part = part_of(MERGING, number, len(self._input.tables))
                merged += self._merge(snapshot, table, results, part)
            bad = decided(clash for each in merged for clash in each.clashes) or self._dangling()
            if not bad:
                return merged
            self._refuse(bad)

    def delete_scratch(self) -> None:
        self._lake.files.delete([self._names, *filter(None, [self._refused])])

    def _each(self) -> Iterator[tuple[ImportTable, list[SortedSplits], int]]:
        tables = self._input.tables
        return zip(tables, self._input.found, range(len(tables)), strict=True)

    def _refuse(self, bad: Mapping[Origin, RefusedRow]) -> None:
        self._rejects += [reject_of(origin, refused, self._input.files) for origin, refused in bad.items()]
        self._common.tolerate(self._rejects)
        self._origins |= bad.keys()
        self._lake.files.delete([self._refused] if self._refused else [])
        self._refused = self._common.scratch("refused.json")
        write_refused(self._lake.files, self._refused, self._origins)

    # ── indexes ────────────────────────────────────────────────────────────────────────────────

    def _merge(
        self, snapshot: Snapshot, table: ImportTable, results: Sequence[SortedSplits], part: Part
    ) -> list[MergedIndex]:
        if not any(result.rows for result in results):
            return []
        rules = ImportRules(self._names, self._refused, self._common.tolerated(table))
        now = self._lake.store.snapshot()  # the claims keep the manifests, their history may be gone
        requests = [
            MergeRequest(
                table.version,
                self._manifest(now, table.version.table.id, index),
                snapshot.at,
                MergeInputs(tuple(run for result in results for run in result.indexes[index]), rules),
            )
            for index in table.layout.indexes
        ]
        return merge(
            self._lake.store,
            self._lake.place,
            requests,
            lambda kernel, tasks: self._common.phases.do(kernel, tasks, part, "merging"),
            task_bytes=self._common.phases.task_bytes,
        )

    def _manifest(self, snapshot: Snapshot, table: int, index: int) -> Manifest:
        return self._lake.manifests.get(snapshot, table, index) or no_base(table, index)

    # ── foreign keys ───────────────────────────────────────────────────────────────────────────

    def _dangling(self) -> dict[Origin, RefusedRow]:
        """Rows with missing references, if some are tolerated."""
        bad: dict[Origin, RefusedRow] = {}
        snapshot = self._lake.store.snapshot()
        protection = self._protect(snapshot.at)
        for table, results, number in self._each():
            part = part_of(REFERRING, number, len(self._input.tables))
            tasks = list(self._reference_tasks(snapshot, protection, table, results))
            if not tasks:
                continue
            checked = self._common.phases.do(
                references.check_references, tasks, part, "checking foreign keys"
            )
            for reference in table.references:
                pairs = zip(tasks, checked, strict=True)
                missing = [each for task, told in pairs if task.reference is reference for each in told]
                if missing:
                    bad |= self._referring(table, results, reference, missing)
        return bad

    def _protect(self, at: Timestamp) -> bytes:
        """Keeps the indexes that are referred to as of a time, until the job has ended; the record's key.

        By spans: a table of the import may refer to one that is offline, too.
        """
        lake = self._lake
        keyspace, job = lake.store.keyspace, self._common.run.job
        references = [each for table in self._input.tables for each in table.references]
        if not references:
            return b""
        indexes = sorted({(each.target.id, each.target_index) for each in references})
        targets = Targets(spans=tuple(keyspace.index_span(*each) for each in indexes))
        id = self._common.run.transact(
            lambda txn: lake.protections.exchange(txn, job.id, at, targets, role=job.owner)
        )
        return record_key(keyspace, id)

    def _reference_tasks(
        self,
        snapshot: Snapshot,
        protection: bytes,
        table: ImportTable,
        results: Sequence[SortedSplits],
    ) -> Iterator[ReferenceTask]:
        """As of now: no row that existed when the table went offline can have been deleted."""
        for reference in table.references:
            target, index = reference.target.id, reference.target_index
            runs = [run for result in results for run in result.references[reference.constraint.id]]
            own = [
                run
                for other, of_other, _ in self._each()
                if other.version.table.id == target
                for result in of_other
                for run in result.indexes[index]
            ]
            manifest = self._manifest(snapshot, target, index)
            yield from references.tasks_of(
                *(self._lake.place, table.version, reference, manifest, snapshot.at, runs, own),
                *(self._names, self._refused, self._common.tolerated(table), protection),
            )

    def _referring(
        self,
        table: ImportTable,
        results: Sequence[SortedSplits],
        reference: SortedReference,
        missing: list[MissingKey],
    ) -> dict[Origin, RefusedRow]:
        """All rows that refer to these keys: the first pass kept only one for each key."""
        tolerated = self._common.tolerated(table)
        tasks = [
            FindTask(self._lake.place, reference, run, tuple(missing), self._refused, tolerated)
            for result in results
            for run in result.indexes[table.layout.primary.id]
        ]
        found = self._common.phases.do(references.find_referring, tasks, REFERRING, "looking for bad rows")
        sqlstate = ForeignKeyViolation.sqlstate
        return {origin: RefusedRow(sqlstate, said) for of_run in found for origin, said in of_run}
