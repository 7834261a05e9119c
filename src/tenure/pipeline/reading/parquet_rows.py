"""Parquet files as batches: columns by name, others are ignored.

Texts are read as dictionaries, so that a file in which one long text stands for many rows never becomes
larger here than a batch may be: batches are cut by the decoded length of their rows. The sizes of pages are
known before one is read (`reading.parquet_pages`).

Walk: `reading.rows` calls `read_parquet` for some row groups; `reading.splits` asks `row_groups`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import parquet

from tenure.base.errors import BadInput
from tenure.expr.types.datatype import Type
from tenure.pipeline.reading.arrow_columns import converted, is_taken
from tenure.pipeline.reading.batches import Batches
from tenure.pipeline.reading.convert import ConvertedColumn, Fault
from tenure.pipeline.reading.parquet_pages import PageSizes
from tenure.pipeline.reading.tasks import MiB, OpenInput, ReadBatch, ReadTask
from tenure.table.arrays import Column

BATCH_ROWS = 64_000
BATCH_BYTES = 16 * MiB


class RowGroup(NamedTuple):
    rows: int
    bytes: int


def row_groups(task: ReadTask, open_input: OpenInput) -> tuple[RowGroup, ...]:
    with _opened(task, open_input) as (file, _):
        groups = []
        for at in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(at)
            groups.append(RowGroup(group.num_rows, group.total_byte_size))
        return tuple(groups)


def read_parquet(task: ReadTask, open_input: OpenInput) -> Iterator[ReadBatch]:
    batches = Batches(task)
    line = task.line
    sizes = PageSizes(task)
    with _opened(task, open_input) as (file, stream):
        _check(task, file.schema_arrow)
        end = file.metadata.num_row_groups if task.end is None else task.end
        wanted = [target.name for target in task.targets]
        for group in range(task.start, end):
            for chunk in _chunks(file.metadata.row_group(group), set(wanted)):
                sizes.check(stream, chunk)
            size = _batch_rows(file.metadata.row_group(group))
            for batch in file.iter_batches(size, [group], wanted, use_threads=False):
                for start, count in _cuts(batch):
                    part = batch.slice(start, count)
                    yield _batch(batches, task, part, line)
                    line += count


@contextmanager
def _opened(task: ReadTask, open_input: OpenInput) -> Iterator[pq.ParquetFile]:
    """The file, and its bytes; the library's errors become BadInput."""
    name = task.input.name
    try:
        with open_input(name) as stream:
            plain = parquet.ParquetFile(stream)
            _check_size(task, plain.metadata)
            texts = _texts(plain.schema_arrow)
            yield parquet.ParquetFile(stream, metadata=plain.metadata, read_dictionary=texts), stream
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise BadInput(f'file "{name}" is no Parquet file, or is damaged: {error}', file=name) from error


def _check_size(task: ReadTask, metadata: pq.FileMetaData) -> None:
    limits, name = task.limits, task.input.name
    if metadata.num_rows > limits.rows_max:
        raise BadInput(f"there are more than {limits.rows_max} rows", file=name, sqlstate="54000")
    if metadata.num_columns > limits.columns_max:
        raise BadInput(f"there are more than {limits.columns_max} columns", file=name, sqlstate="54011")


def _texts(schema: pa.Schema) -> list[str]:
    return [each.name for each in schema if pa.types.is_string(each.type) or pa.types.is_binary(each.type)]


def _check(task: ReadTask, schema: pa.Schema) -> None:
    for target in task.targets:
        places = schema.get_all_field_indices(target.name)
        name = task.input.name
        if len(places) != 1:
            reason = f'column "{target.name}" is not in file "{name}"'
            raise BadInput(reason, file=name, sqlstate="42703")
        source = schema.field(places[0]).type
        if not is_taken(target.type, source):
            reason = f'column "{target.name}" is of type {target.type.sql_name} but the file has {source}'
            raise BadInput(reason, file=name, column=target.name, sqlstate="42804")


def _chunks(group: pq.RowGroupMetaData, wanted: set[str]) -> Iterator[pq.ColumnChunkMetaData]:
    """The chunks of columns that are read; a nested one has its name before the first dot."""
    for at in range(group.num_columns):
        chunk = group.column(at)
        if chunk.path_in_schema in wanted or chunk.path_in_schema.partition(".")[0] in wanted:
            yield chunk


def _batch_rows(group: pq.RowGroupMetaData) -> int:
    per_row = group.total_byte_size // max(group.num_rows, 1) + 1
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES // per_row)))


def _cuts(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Starts and lengths of slices whose texts fit into a batch; or of one row."""
    lengths = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths += pc.fill_null(_lengths(column), 0).to_numpy()
    parts = np.cumsum(lengths) // BATCH_BYTES
    starts = [*np.flatnonzero(np.diff(parts, prepend=-1)).tolist(), batch.num_rows]
    for start, end in pairwise(starts):
        yield start, end - start


def _lengths(column: Column) -> Column:
    """The lengths of a dictionary's texts, by row."""
    return pc.binary_length(column.dictionary).cast(pa.int64()).take(column.indices)


def _batch(batches: Batches, task: ReadTask, part: pa.RecordBatch, line: int) -> ReadBatch:
    columns = [_column(task, target.type, part.column(target.name)) for target in task.targets]
    lines = np.arange(line, line + part.num_rows)
    return batches.of(columns, lines, lambda row: b"")


def _column(task: ReadTask, kind: Type, source: Column) -> ConvertedColumn:
    longest = task.limits.field_bytes_max
    faults: dict[int, Fault] = {}
    if pa.types.is_dictionary(source.type):
        is_long = pc.fill_null(pc.greater(_lengths(source), longest), False)
        if pc.any(is_long).as_py():
            fault = Fault("54000", f"the field is longer than {longest} bytes")
            faults = dict.fromkeys(np.flatnonzero(is_long.to_numpy(zero_copy_only=False)).tolist(), fault)
            source = pc.if_else(is_long, pa.scalar(None, source.type), source)
        source = source.dictionary_decode()
    column = converted(kind, source, task.zone)
    return column._replace(faults={**column.faults, **faults})
