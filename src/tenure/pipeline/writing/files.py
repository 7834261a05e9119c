"""The files of one task of an export: rows go in, files of so many rows come out.

    t-7-0.0.csv   t-7-0.1.csv   t-7-1.0.csv       table, job, task and number within the task

A file appears when it is complete, and not before: see `storage.tree`. Where the same rows go into the same
file in every attempt, the second attempt finds it there and leaves it: after an attempt that died when it had
written a file, or beside a twin that was quicker.

Walk: `bulk.exporting.job`'s kernel -> `OutputFiles.write` per batch -> `close`.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from tenure.base.errors import FileExists
from tenure.expr.types.zones import zone_named
from tenure.pipeline.writing.cells import Cells
from tenure.pipeline.writing.csv_rows import csv_bytes, csv_header
from tenure.pipeline.writing.formats import CSV, PARQUET, ExportedFile, Writing
from tenure.pipeline.writing.ndjson_rows import ndjson_bytes
from tenure.pipeline.writing.parquet_rows import parquet_schema, parquet_table
from tenure.storage.locations import Location
from tenure.storage.tree import OutputStream
from tenure.table.arrays import Buffer

ROWS_AT_ONCE = 65_536
BYTES_AT_ONCE = 64 << 20
"""A batch of texts is made whole in memory: with long ones, fewer rows at once."""


class OutputFiles:
    def __init__(
        self, location: Location, name: Callable[[int], str], writing: Writing, *, is_same: bool
    ) -> None:
        """`is_same`: every attempt that writes a file of these names writes the same rows."""
        self._location = location
        self._name = name
        self._writing = writing
        self._is_same = is_same
        self._files: list[ExportedFile] = []
        self._open: _File | None = None
        self.rows = 0

    def write(self, columns: Sequence[Cells], rows: int) -> None:
        start = 0
        while start < rows:
            if self._open is None:
                self._open = self._begun()
            count = min(rows - start, self._writing.chunk_rows - self._open.rows, ROWS_AT_ONCE)
            for part, size in _bounded([cells.slice(start, count) for cells in columns], count):
                self._open.write(part, size)
            start += count
            self.rows += count
            if self._open.rows >= self._writing.chunk_rows:
                self._finish()

    def close(self, *, at_least_one: bool) -> list[ExportedFile]:
        if at_least_one and not self._files and self._open is None:
            self._open = self._begun()
        if self._open is not None:
            self._finish()
        return self._files

    def abort(self) -> None:
        """Discards the open file; and finished ones, unless other attempts would write the same."""
        if not self._is_same:
            self._location.delete([file.name for file in self._files])
        if self._open is not None and self._open.output is not None:
            self._open.output.abort()
        self._open = None

    def _begun(self) -> "_File":
        name = self._name(len(self._files))
        try:
            output = self._location.create(name)
        except FileExists:
            if not self._is_same:
                raise
            output = None
        return _File(name, output, self._writing)

    def _finish(self) -> None:
        assert self._open is not None
        file, self._open = self._open, None
        try:
            file.finish()
        except FileExists:
            if not self._is_same:
                raise
        self._files.append(ExportedFile(file.name, file.rows, self._location.size(file.name)))


def _bounded(columns: Sequence[Cells], rows: int) -> list[tuple[Sequence[Cells], int]]:
    """In slices that are not too large; the size of Python values is not known."""
    size = sum(cells.array.nbytes for cells in columns if cells.array is not None)
    if size <= BYTES_AT_ONCE or rows <= 1:
        return [(columns, rows)]
    half = rows // 2
    left = [cells.slice(0, half) for cells in columns]
    right = [cells.slice(half, rows - half) for cells in columns]
    return [*_bounded(left, half), *_bounded(right, rows - half)]


class _File:
    """A file that is being written; without an output the rows are only counted."""

    def __init__(self, name: str, output: OutputStream | None, writing: Writing) -> None:
        self.name = name
        self.output = output
        self.rows = 0
        self._body: _Body | None = None
        if output is not None:
            self._body = (
                _ParquetBody(output, writing) if writing.format == PARQUET else _LineBody(output, writing)
            )

    def write(self, columns: Sequence[Cells], rows: int) -> None:
        if self._body is not None:
            self._body.write(columns, rows)
        self.rows += rows

    def finish(self) -> None:
        if self._body is not None and self.output is not None:
            self._body.finish()
            self.output.close()


class _Body(Protocol):
    def write(self, columns: Sequence[Cells], rows: int) -> None: ...

    def finish(self) -> None: ...


class _LineBody:
    def __init__(self, output: OutputStream, writing: Writing) -> None:
        self._writing = writing
        self._zone: tzinfo = UTC if writing.zone == "UTC" else zone_named(writing.zone)
        self._names = [column.name for column in writing.columns]
        self._sink: Any = _UnclosedOutput(output)
        if writing.compression != "none":
            self._sink = pa.CompressedOutputStream(pa.PythonFile(self._sink, "w"), writing.compression)
        if writing.format == CSV and writing.csv.has_header:
            self._sink.write(csv_header(self._names, writing.csv))

    def write(self, columns: Sequence[Cells], rows: int) -> None:
        if self._writing.format == CSV:
            self._sink.write(csv_bytes(columns, rows, self._writing.csv, self._zone))
        else:
            self._sink.write(ndjson_bytes(self._names, columns, rows, self._zone))

    def finish(self) -> None:
        self._sink.close()


class _ParquetBody:
    def __init__(self, output: OutputStream, writing: Writing) -> None:
        self._schema = parquet_schema(writing.columns, writing.kinds)
        compression = "snappy" if writing.compression == "none" else writing.compression
        self._writer = pq.ParquetWriter(
            pa.PythonFile(_UnclosedOutput(output), "w"), self._schema, compression=compression
        )

    def write(self, columns: Sequence[Cells], rows: int) -> None:
        self._writer.write_table(parquet_table(self._schema, columns))

    def finish(self) -> None:
        self._writer.close()


class _UnclosedOutput:
    """An output that Arrow's writers cannot close, and so not publish: they close when dropped."""

    def __init__(self, output: OutputStream) -> None:
        self._output = output
        self.closed = False

    def write(self, data: Buffer) -> int:
        if self._output.closed:
            return len(data)  # discarded: a writer's output when it is dropped is ignored
        return self._output.write(data)

    def tell(self) -> int:
        return self._output.tell()

    def flush(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
