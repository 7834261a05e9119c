"""scan: an index's rows at a time, or the changes between two times, a range of keys per task.

    bounds    live files and the spread of the delta ──► ranges of about so many rows ──► tasks
    task      `lake.scanning` over its range ──► record batches, one after the other
    results   `scanned` in this process; `frame` a DataFrame, one partition per task

All tasks read at one time, which is fixed when they are made; so it does not matter when each of them runs,
nor how often. A task reads the lake's manifest from the store: an old plan costs balance, never rows. The
columns of a batch are described at `lake.scanning`.

Simplification: opaque values (arrays, jsonb, intervals, numeric without a precision) stay packed; callers
that need them in another form convert them, as an export does.

Walk: `bulk.exporting.job` -> `bounds`, `tasks` -> `Tasks.run` with a kernel that calls `scan_range`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa

from tenure.base.errors import BaseMoved
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import ElementState
from tenure.kv.keys import Span
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.records import Record
from tenure.kv.store import Store
from tenure.pipeline.remote_handles import OpenHandles, StoreHandle, TableVersion, opened
from tenure.pipeline.tasks import Attempt
from tenure.storage.engine import HEAD_BYTES
from tenure.table.arrays import Rows
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.manifests import File, Manifests, no_base
from tenure.table.lake.scanning import Scanner, ScanRequest
from tenure.table.rows import Layouts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tenure.pipeline.spark_tasks import SparkTasks

TASK_ROWS = 250_000
"""Rows per task: about a second's work, so that progress moves and a lost task costs little."""

CUT_ROWS = 50_000
"""The granularity of the delta for that."""


class ScanTask(Record, frozen=True):
    place: StoreHandle
    version: TableVersion
    index: int
    columns: tuple[int, ...]
    at: Timestamp
    since_at: Timestamp | None
    is_all: bool
    lo: bytes
    hi: bytes
    protected: tuple[tuple[Timestamp, bytes], ...] = ()
    """Times of protections that cover the index, with the keys of their records: see `kv.protected_reads`."""


class Bounds(NamedTuple):
    """The bounds of tasks: whole keys, one more than there are tasks."""

    keys: tuple[bytes, ...]
    rows: int
    """About the total number."""


def bounds(store: Store, files: CheckedFiles, table: int, index: int, at: Timestamp) -> Bounds:
    """Cuts an index so that tasks have about equally many rows: small files share one."""
    span = store.keyspace.index_span(table, index)
    weights = _weights(store, files, table, index, at)
    return Bounds((span.lo, *_cuts(weights), span.hi), sum(rows for _, rows in weights))


def tasks(
    place: StoreHandle,
    version: TableVersion,
    at: Timestamp,
    bounds: Sequence[bytes],
    *,
    index: int | None = None,
    columns: Sequence[int] | None = None,
    since_at: Timestamp | None = None,
    revisions: Literal["newest", "all"] = "newest",
    protected: Sequence[ProtectedRead] = (),
) -> list[ScanTask]:
    """A scan's tasks; without `columns` all that the version shows.

    The tasks read in the name of those protections that cover the index.
    """
    table = version.table
    if columns is None:
        columns = [column.id for column in table.columns if column.state is ElementState.PUBLIC]
    head = bounds[0][:HEAD_BYTES]
    records = tuple((each.at, each.record_key) for each in protected if each.covers(head))
    is_all, columns = revisions == "all", tuple(columns)
    return [
        ScanTask(place, version, index or table.primary, columns, at, since_at, is_all, lo, hi, records)
        for lo, hi in pairwise(bounds)
    ]


def _weights(
    store: Store, files: CheckedFiles, table: int, index: int, at: Timestamp
) -> list[tuple[bytes, int]]:
    """The distribution of rows: about so many from each key on."""
    span = store.keyspace.index_span(table, index)
    head = span.lo[:HEAD_BYTES]
    manifest = Manifests(store.keyspace).get(store.snapshot(), table, index) or no_base(table, index)
    based = [file for file in manifest.live if file.first_at <= at]
    based += [file for file in manifest.past if file.first_at <= at < file.until]
    weights = [(head + key, rows) for file in based for key, rows in _groups(files, file)]
    spread = store.engine.spread(span.lo, span.hi, manifest.flushed_at, CUT_ROWS)
    cuts = [span.lo, *spread.cuts]
    weights += [(key, spread.keys // len(cuts)) for key in cuts]
    return sorted(weights)


def _groups(files: CheckedFiles, file: File) -> list[tuple[bytes, int]]:
    """A file that is too large for a task, by its row groups; one that was deleted meanwhile as a whole."""
    if file.rows <= TASK_ROWS:
        return [(file.first, file.rows)]
    try:
        footer = files.footer(file)
    except BaseMoved:
        return [(file.first, file.rows)]
    return [(first, footer.metadata.row_group(number).num_rows) for number, first in enumerate(footer.firsts)]


def _cuts(weights: Sequence[tuple[bytes, int]]) -> list[bytes]:
    """Keys between which there are about so many rows."""
    cuts: list[bytes] = []
    size = 0
    for key, rows in weights:
        if size and size + rows > TASK_ROWS and key > (cuts[-1] if cuts else weights[0][0]):
            cuts.append(key)
            size = 0
        size += rows
    return cuts


# ── in a task ──────────────────────────────────────────────────────────────────────────────────


def scan_range(task: ScanTask, attempt: Attempt) -> Iterator[pa.RecordBatch]:
    """The kernel: the record batches of one range."""
    yield from batches(opened(task.place), task)


def batches(place: OpenHandles, task: ScanTask) -> Iterator[Rows]:
    request = asked_for(place.store, task)
    for table in Scanner(place.store, place.checked, request, Span(task.lo, task.hi)).tables():
        yield from table.combine_chunks().to_batches()


def asked_for(store: Store, task: ScanTask) -> ScanRequest:
    enums = {enum.id: enum for enum in task.version.enums}
    layout = Layouts(store.keyspace).of(task.version.table, enums.__getitem__)
    store.snapshot(task.at)  # not above the store's clock: later commits are later
    protected = tuple(ProtectedRead(at, key, lambda head: True) for at, key in task.protected)
    return ScanRequest(layout, task.index, task.columns, task.at, task.since_at, task.is_all, protected)


# ── results ─────────────────────────────────────────────────────────────────────────────────────


def scanned(tasks: Sequence[ScanTask]) -> Iterator[Rows]:
    """All batches, one after the other, in key order."""
    for task in tasks:
        yield from scan_range(task, Attempt(""))


def frame(spark: "SparkTasks", tasks: Sequence[ScanTask], *, label: str = "scan") -> "DataFrame":
    """The same on Spark; a task's rows are a partition, in key order."""
    from pyspark.sql.pandas.types import from_arrow_schema

    first = tasks[0]
    schema = from_arrow_schema(asked_for(opened(first.place).store, first).schema)
    return spark.frame(scan_range, tasks, schema, label=label)
