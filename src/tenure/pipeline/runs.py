"""Sorted runs: a task's rows, sorted by key, in a file of which later tasks read parts.

    run      [ a .. c | c .. g | g .. k ]     batches of so many rows; `firsts` are their first keys
    ranges   ..d        d..h       h..         each task of the next pass reads the batches it needs

Runs are cut into ranges when all of them exist: the first keys of their batches tell nearly exactly how many
rows lie where, for any order of the input. So no sample is taken, and no skew makes a range too large for a
task. All rows of one key are in one range.

Files are Arrow's own (IPC), under names of the attempt; they are not needed once the job is over.

Walk: `bulk.ingest.run_chunks` and `bulk.filling.entries` write runs; `pipeline.merge_tasks` and
`bulk.ingest.references` read ranges of them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import pyarrow as pa

from tenure.kv.records import Record, replace
from tenure.storage.files import Files
from tenure.table.arrays import Keys, Rows
from tenure.table.key_order import argsort, argsort_numbers, bounds_within, even, plain, reordered
from tenure.table.lake.format import KEY, name_of

SOURCE, LINE = "source", "line"
"""The origin of a row: the number of its file, and its line there."""

PRIMARY_KEY = "primary"
"""The primary key of an entry of a unique index."""

BATCH_ROWS = 4_096
"""Few enough that a task reads little more of a run than its range, enough to be read at full speed."""


class SortedRun(Record, frozen=True):
    name: str
    firsts: tuple[bytes, ...]
    last: bytes
    rows: int
    size: int
    """In memory, in bytes."""
    passed: int = 0
    """Batches of the file before the first of these."""


def evened(rows: Rows) -> Rows:
    """The same rows; their keys as values of fixed size, if all have one length."""
    return rows.set_column(0, KEY, even(keys_of(rows)))


def joined(tables: Sequence[Rows]) -> Rows:
    """The rows of all; `rest` may have the null type in some of them."""
    return pa.concat_tables(tables, promote_options="default")


def in_order(rows: Rows, number: int | None = None) -> Rows:
    """Rows by key, stable. `number` is the index's `number_column`."""
    rows = rows.combine_chunks()
    order = (
        argsort(keys_of(rows)) if number is None else argsort_numbers(rows.column(name_of(number)).chunk(0))
    )
    if (order[1:] > order[:-1]).all():
        return rows
    return pa.table([reordered(column.chunk(0), order) for column in rows.columns], schema=rows.schema)


def keys_of(rows: Rows) -> Keys:
    """The keys of rows as one array."""
    column = rows.column(KEY)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def write_run(files: Files, name: str, rows: Rows) -> SortedRun:
    """`rows` are sorted by key, and there is at least one."""
    batches = rows.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_file(stream, rows.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    with files.create_scratch(name) as output:
        output.write(stream.getvalue())
    firsts = tuple(batch.column(KEY)[0].as_py() for batch in batches)
    keys = rows.column(KEY)
    return SortedRun(name, firsts, keys[len(keys) - 1].as_py(), len(rows), rows.nbytes)


def read_runs(files: Files, runs: Iterable[SortedRun], lo: bytes, hi: bytes | None) -> Rows | None:
    """The rows from a key to below another (None: to the end), run by run; None if there are none."""
    batches = [batch for run in runs for batch in _read(files, run, lo, hi) if len(batch)]
    if not batches:
        return None
    if any(batch.schema.field(KEY) != batches[0].schema.field(KEY) for batch in batches):
        # In some runs keys differ in length.
        batches = [batch.set_column(0, KEY, plain(batch.column(KEY))) for batch in batches]
    return joined([pa.Table.from_batches([batch]) for batch in batches])


def _read(files: Files, run: SortedRun, lo: bytes, hi: bytes | None) -> list[pa.RecordBatch]:
    start, end = _batches(run, lo, hi)
    if start >= end or run.last < lo:
        return []
    with files.reading(run.name), files.arrow.open_input_file(run.name) as source:
        reader = pa.ipc.open_file(source)
        batches = [reader.get_batch(run.passed + number) for number in range(start, end)]
    for number in {0, len(batches) - 1}:  # those between lie within
        batch = batches[number]
        batches[number] = batch.slice(*bounds_within(batch.column(KEY), lo, hi))
    return batches


def _batches(run: SortedRun, lo: bytes, hi: bytes | None) -> tuple[int, int]:
    """The batches that may have rows of a range: first and end."""
    # Rows with the first key of a batch may begin in the one before.
    start = max(0, bisect_left(run.firsts, lo) - 1)
    return start, len(run.firsts) if hi is None else bisect_left(run.firsts, hi)


def within(runs: Iterable[SortedRun], lo: bytes, hi: bytes | None) -> tuple[SortedRun, ...]:
    """The parts of runs that a task of a range needs: no more than the batches that it reads."""
    pieces = []
    for run in runs:
        start, end = _batches(run, lo, hi)
        if start < end and run.last >= lo:
            pieces.append(replace(run, firsts=run.firsts[start:end], passed=run.passed + start))
    return tuple(pieces)


def cuts(runs: Sequence[SortedRun], rows_per_range: int) -> list[bytes]:
    """Keys between which about so many rows lie."""
    weights = [
        (first, min(BATCH_ROWS, run.rows - number * BATCH_ROWS))
        for run in runs
        for number, first in enumerate(run.firsts)
    ]
    weights.sort()
    bounds: list[bytes] = []
    rows = 0
    for first, weight in weights:
        if rows + weight > rows_per_range and rows and first not in bounds[-1:]:
            bounds.append(first)
            rows = 0
        rows += weight
    return bounds


def rows_per_range(runs: Sequence[SortedRun], *, rows_max: int, bytes_max: int) -> int:
    """As many as a task can hold."""
    rows, size = sum(run.rows for run in runs), sum(run.size for run in runs)
    return rows_max if not size else max(BATCH_ROWS, min(rows_max, bytes_max * rows // size))
