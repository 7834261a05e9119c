"""Entries of a new index: rows of the primary index become the entries of another, in sorted runs.

    project    a range of the primary index at B ──► entries ──► sorted runs
    merge      runs of a range of the new index ──► no key twice? ──► live files, every entry as of B

The merge cuts ranges by the runs' first keys, so all entries of one key meet in one task. Rows that are equal
in a unique index are found there.

Walk: `bulk.filling.job` runs `project_range` as a kernel, and merges with `FillRules`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tenure.base.env import SystemEnv
from tenure.base.timestamp import Timestamp
from tenure.bulk.ingest.defaults import random_uuid
from tenure.bulk.ingest.rows import RowBatch, rest_of
from tenure.bulk.ingest.run_chunks import CHUNK_BYTES, entries_of, layout_of, within_index
from tenure.expr.functions.function import Context
from tenure.kv.records import Record
from tenure.pipeline.merge_inputs import Clash
from tenure.pipeline.remote_handles import opened
from tenure.pipeline.runs import SortedRun, evened, in_order, keys_of, write_run
from tenure.pipeline.scan import ScanTask, batches
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.files import Files
from tenure.table.arrays import Rows
from tenure.table.backfill import duplicated
from tenure.table.compiled_index import CompiledIndex
from tenure.table.key_arrays import too_long
from tenure.table.key_order import doubled
from tenure.table.lake.format import KEY, name_of
from tenure.table.lake.revision_tables import ODD
from tenure.table.lake.tables import IndexFormat
from tenure.table.rows import IndexEntry, Layout, Row, check_length, key_values


class ProjectTask(Record, frozen=True):
    scan: ScanTask
    """The scan of the primary index, with the columns of `columns_of`."""
    index: int
    """The index whose entries are made."""


class FillRules(NamedTuple):
    """How entries become those of the new index."""

    at: Timestamp
    """When the rows were read: entries count as of then."""

    @property
    def replaces(self) -> bool:
        return False

    def admitted(self, lake: Files, rows: Rows) -> Rows:
        return rows

    def refuse(self, lake: Files, format: IndexFormat, added: Rows, live: Rows) -> tuple[Clash, ...]:
        keys = keys_of(added)
        values = key_values(format.index, keys[int(doubled(keys)[0])].as_py())
        raise duplicated(format.layout, format.index, Row(b"", values))


def columns_of(layout: Layout, index: int) -> tuple[int, ...]:
    """The columns of a row that its entry needs."""
    keyed = layout.indexes[index]
    predicate = keyed.index.predicate
    wanted = {*keyed.columns, *layout.indexes[keyed.primary].columns}
    return tuple(sorted(wanted | set(predicate.columns if predicate else ())))


def project_range(task: ProjectTask, attempt: Attempt) -> tuple[SortedRun, ...]:
    """The kernel: a range of rows as sorted runs of entries."""
    place = opened(task.scan.place)
    layout = layout_of(place, task.scan.version)
    stem = f"{task.scan.place.tenant}/scratch/{attempt.name}"
    read = batches(place, task.scan)
    chunks = _chunks(_entries(layout, layout.indexes[task.index], batch) for batch in read)
    return tuple(
        write_run(place.lake, f"{stem}-{number}.arrow", in_order(evened(chunk)))
        for number, chunk in enumerate(chunks)
    )


def _entries(layout: Layout, index: CompiledIndex, scanned: Rows) -> Rows:
    columns = {id: scanned.column(name_of(id)) for id in columns_of(layout, index.id)}
    batch = RowBatch(columns, rest_of(scanned, ODD), np.zeros(len(scanned), np.int64))
    entries = pa.table(entries_of(layout, index, within_index(layout, index, batch, _context())))
    for place in too_long(keys_of(entries)).tolist():
        check_length(index, IndexEntry(bytes(HEAD_BYTES) + entries.column(KEY)[place].as_py(), b""))
    return entries


def _context() -> Context:
    """For predicates, which depend on the row alone."""
    return Context(0, 0, random_uuid(SystemEnv()), lambda: 0)


def _chunks(tables: Iterator[Rows]) -> Iterator[Rows]:
    """As many rows together as are sorted at a time; none if there are none."""
    gathered: list[Rows] = []
    size = 0
    for table in tables:
        if len(table):
            gathered.append(table)
            size += table.nbytes
        if size >= CHUNK_BYTES:
            yield pa.concat_tables(gathered)
            gathered, size = [], 0
    if gathered:
        yield pa.concat_tables(gathered)
