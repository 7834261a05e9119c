"""The kernels of a backfill: rows of the primary index become the entries of another, sorted, in files.

    project   a range of the primary index at B ──► entries ──► sorted runs
    fill      the runs of a range of the new index ──► no key twice? ──► live files, every entry as of B

Runs are those of an import (`importing.runs`): from their first keys ranges are cut, so that all entries of
one key meet in one task. Two rows that are equal in a unique index are found there.

Walk: `filling.job` runs `project_range` and `fill_range` as kernels.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tenure.base.env import SystemEnv
from tenure.base.timestamp import Timestamp
from tenure.bulk.importing.defaults import random_uuid
from tenure.bulk.importing.merging import values_of
from tenure.bulk.importing.rows import RowBatch, rest_of
from tenure.bulk.importing.runs import (
    SortedRun,
    cuts,
    evened,
    in_order,
    keys_of,
    read_runs,
    rows_per_range,
    within,
    write_run,
)
from tenure.bulk.importing.sorting import CHUNK_BYTES, entries_of, layout_of, within_index
from tenure.expr.functions.function import Context
from tenure.kv.records import Record
from tenure.pipeline.remote_handles import StoreHandle, TableVersion, opened
from tenure.pipeline.scan import ScanTask, batches
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES
from tenure.table.backfill import duplicated
from tenure.table.compiled_index import CompiledIndex
from tenure.table.key_arrays import too_long
from tenure.table.key_order import doubled, plain
from tenure.table.lake.file_names import stem_of
from tenure.table.lake.format import KEY, name_of
from tenure.table.lake.manifests import FileShape, Written
from tenure.table.lake.merging import write_all
from tenure.table.lake.revision_tables import ODD
from tenure.table.lake.tables import entries_table
from tenure.table.rows import IndexEntry, Layout, Row, check_length, key_values

RANGE_ROWS, RANGE_BYTES = 1 << 19, 64 << 20
"""Entries per task of the second pass: sorting holds them about three times."""


class ProjectTask(Record, frozen=True):
    scan: ScanTask
    """Of the primary index: the columns that `columns_of` says."""
    index: int
    """Whose entries are made."""


class FillTask(Record, frozen=True):
    place: StoreHandle
    version: TableVersion
    index: int
    at: Timestamp
    """When the rows were read: entries count as of then."""
    lo: bytes
    hi: bytes | None
    runs: tuple[SortedRun, ...]


def columns_of(layout: Layout, index: int) -> tuple[int, ...]:
    """What of a row must be known to make its entry."""
    keyed = layout.indexes[index]
    predicate = keyed.index.predicate
    wanted = {*keyed.columns, *layout.indexes[keyed.primary].columns}
    return tuple(sorted(wanted | set(predicate.columns if predicate else ())))


# ── the first pass ─────────────────────────────────────────────────────────────────────────────────


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


def _entries(layout: Layout, index: CompiledIndex, scanned: Any) -> Any:
    columns = {id: scanned.column(name_of(id)) for id in columns_of(layout, index.id)}
    batch = RowBatch(columns, rest_of(scanned, ODD), np.zeros(len(scanned), np.int64))
    made = pa.table(entries_of(layout, index, within_index(layout, index, batch, _context())))
    for place in too_long(keys_of(made)).tolist():
        check_length(index, IndexEntry(bytes(HEAD_BYTES) + made.column(KEY)[place].as_py(), b""))
    return made


def _context() -> Context:
    """For predicates, which depend on the row alone."""
    return Context(0, 0, random_uuid(SystemEnv()), lambda: 0)


def _chunks(tables: Iterator[Any]) -> Iterator[Any]:
    """As many rows together as are sorted at a time; none if there are none."""
    gathered: list[Any] = []
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


# ── the second pass ────────────────────────────────────────────────────────────────────────────────


def fill_tasks(
    place: StoreHandle, version: TableVersion, index: int, at: Timestamp, runs: Sequence[SortedRun]
) -> list[FillTask]:
    between = cuts(runs, rows_per_range(runs, rows_max=RANGE_ROWS, bytes_max=RANGE_BYTES))
    bounds: list[bytes | None] = [b"", *between, None]
    return [
        FillTask(place, version, index, at, lo or b"", hi, within(runs, lo or b"", hi))
        for lo, hi in pairwise(bounds)
    ]


def fill_range(task: FillTask, attempt: Attempt) -> tuple[Written, ...]:
    """The kernel: writes the entries of one range."""
    place = opened(task.place)
    made = read_runs(place.lake, task.runs, task.lo, task.hi)
    if made is None:
        return ()
    made = in_order(made)
    _refuse_doubles(layout_of(place, task.version), task.index, keys_of(made))
    rows = entries_table(
        plain(made.column(KEY)), pa.repeat(pa.scalar(task.at, pa.int64()), len(made)), values_of(made)
    )
    stem = stem_of(task.place.tenant, task.version.table.id, task.index, f"{attempt.name}-live")
    return tuple(write_all(place.lake, stem, FileShape((), is_entries=True), rows))


def _refuse_doubles(layout: Layout, index: int, keys: Any) -> None:
    again = doubled(keys)
    if len(again):
        keyed = layout.indexes[index]
        raise duplicated(layout, keyed, Row(b"", key_values(keyed, keys[int(again[0])].as_py())))
