"""The first pass of an import: each row of the input is read, checked and sorted into runs.

Walk: `importing.job` -> `FirstPass.run` -> `inputs.splits_of` -> `sorting.sort_split` per group of splits.
"""

from itertools import accumulate
from typing import NamedTuple

from tenure.base.errors import LimitExceeded
from tenure.bulk.importing.inputs import (
    InputFile,
    Split,
    UnpackedDump,
    groups,
    sources_of,
    splits_of,
    survey_piece,
    unpack,
)
from tenure.bulk.importing.passes import READING, ImportTable, Pass
from tenure.bulk.importing.records import TableInput
from tenure.bulk.importing.sorting import SortTask, sort_split
from tenure.bulk.ingest.references import references_of
from tenure.bulk.ingest.run_chunks import SortedSplits
from tenure.bulk.ingest.statement_facts import StatementFacts
from tenure.bulk.phases import Part, part_of
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.snapshot import Snapshot
from tenure.pipeline.reading.tasks import Reject
from tenure.table.rows import Layouts

SURVEY_SHARE = 0.1
"""The fractions of the job: where files can be cut."""

NUMBERS_MAX = 1 << 43
"""The most row ids of one import: see `ingest.defaults`."""


class SurveyedInput(NamedTuple):
    """What has been read."""

    tables: list[ImportTable]
    found: list[list[SortedSplits]]
    """For each table, the results of its tasks."""
    files: tuple[str, ...]
    """Their names, as users know them, by their numbers."""

    @property
    def rejects(self) -> list[Reject]:
        return [each for results in self.found for result in results for each in result.rejects]

    @property
    def runs(self) -> list[str]:
        """The files that were written for the second pass."""
        return [
            run.name
            for results in self.found
            for result in results
            for runs in (*result.indexes.values(), *result.references.values())
            for run in runs
        ]


class FirstPass:
    def __init__(self, common: Pass) -> None:
        self._common = common
        self._files: tuple[str, ...] = ()
        self._unpacked: UnpackedDump | None = None

    def run(self, snapshot: Snapshot) -> SurveyedInput:
        tables = [self._table(snapshot, input) for input in self._common.payload.tables]
        parts = [part_of(READING, number, len(tables)) for number in range(len(tables))]
        found = [self._read(table, part) for table, part in zip(tables, parts, strict=True)]
        return SurveyedInput(tables, found, self._files)

    def delete_scratch(self) -> None:
        if self._unpacked is not None:
            self._common.lake.files.delete([self._unpacked.name])

    def _table(self, snapshot: Snapshot, input: TableInput) -> ImportTable:
        targets = self._common.targets
        version = targets.version(snapshot, input.table)
        enums = {enum.id: enum for enum in version.enums}
        layout = Layouts(self._common.lake.store.keyspace).of(version.table, enums.__getitem__)
        referred = {
            key.target: targets.descriptor(snapshot, key.target) for key in version.table.foreign_keys
        }
        tables = {id: target for id, target in referred.items() if isinstance(target, Table)}
        called = {id for column in version.table.columns if column.default for id in column.default.sequences}
        sequences = [targets.descriptor(snapshot, id) for id in sorted(called)]
        kept = tuple(each for each in sequences if isinstance(each, SequenceDescriptor))
        return ImportTable(input, version, layout, references_of(layout, tables), kept)

    def _read(self, table: ImportTable, part: Part) -> list[SortedSplits]:
        start, end = part
        looked = start + SURVEY_SHARE * (end - start)
        grouped = list(groups(self._splits(table, (start, looked))))
        firsts = list(accumulate((sum(each.rows_max for each in group) for group in grouped), initial=0))
        if firsts[-1] > NUMBERS_MAX and any(column.is_hidden for column in table.version.table.columns):
            raise LimitExceeded("the files are too large for one import into a table without a primary key")
        payload = self._common.payload
        facts = StatementFacts(payload.user, payload.database, payload.now_micros, payload.zone)
        tasks = [
            SortTask(
                self._common.lake.place,
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
        return self._common.phases.do(sort_split, tasks, (looked, end), "reading")

    def _splits(self, table: ImportTable, part: Part) -> list[Split]:
        sources = sources_of(self._common.locations, table.input)
        numbers = range(len(self._files), len(self._files) + len(sources))
        self._files = (*self._files, *(source.shown for source in sources))
        return splits_of(
            self._common.payload,
            table.input,
            table.layout,
            sources,
            numbers,
            lambda pieces: self._common.phases.do(survey_piece, pieces, part, "looking at files"),
            self._unpack(sources[0]) if table.input.is_compressed else None,
        )

    def _unpack(self, source: InputFile) -> UnpackedDump:
        """Decompresses a dump, for all of its tables."""
        if self._unpacked is None:
            lake, run = self._common.lake, self._common.run
            name = self._common.scratch("dump")
            run.checkpoint(fraction=0.0, status="decompressing")
            unpack(lake.files, name, source, run.check)
            self._unpacked = UnpackedDump(lake.place, name)
        return self._unpacked
