"""Files of the lake, read with their checksums: damaged bytes are reported as an error, never returned as
rows.

    manifest ──► size and checksum of the tail ──► sums of chunks ──► bytes that are decoded

A chunk is checked when it is first read. The result is kept for as long as the process keeps the file's
footer, so reading it again costs nothing more. A reader that opens files by other means (DuckDB) has its
columns checked beforehand. A merge begins with a `CheckedFiles` of its own, without results: its bytes are
checked on their way into the decoder, even if they were read before.

Files of earlier versions have a checksum of the whole only. They are read and checked whole; the sums of
their chunks are then computed, and used as above.

A file that is missing or damaged is an error only if the newest manifest names it: otherwise the reader's
manifest is old, and it starts over. `damage` decides that.

Invariant (checked): no byte of a file is decoded before it was compared with the manifest.

Walk: `lake.groups`, `lake.scanning` and `pipeline.merge_tasks` read rows here; `table.columnar` calls `check`
for DuckDB.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from tenure.base.errors import FileMissing, InputOutput, TenureError
from tenure.storage.files import Files
from tenure.table.arrays import Buffer, Rows
from tenure.table.lake.chunk_sums import Chunks, chunks_in, chunks_of
from tenure.table.lake.format import Footer, checksum, footer_of, has_checksum
from tenure.table.lake.manifests import File

MISSING = "is missing"

FOOTERS_MAX = 10_000

GAP_BYTES = 128 << 10
READ_BYTES = 8 << 20
"""Chunks that are only checked are read together if no more than so much lies between them, up to so much at
once: that is cheaper than many small reads, above all of an object store.
"""


class Chunk(NamedTuple):
    """The damaged part of a file."""

    column: str
    group: int


class Damage(Protocol):
    def __call__(self, file: File, wrong: str, chunk: Chunk | None = None) -> TenureError:
        """The error to raise: the file is damaged, or the reader has to start over."""
        ...


class _CheckedFile(NamedTuple):
    """The footer of a file, and which of its chunks were checked."""

    footer: Footer
    is_checked: bytearray
    """By chunk number."""
    columns: set[str]
    """The columns all of whose chunks were checked."""

    def are_checked(self, numbers: Iterable[int]) -> bool:
        return all(self.is_checked[number] for number in numbers)


class CheckedFiles:
    """One per process, for all its threads; and one per task that merges."""

    def __init__(self, files: Files, damage: Damage) -> None:
        self._files = files
        self._damage = damage
        self._files_by_name: dict[str, _CheckedFile] = {}

    def footer(self, file: File) -> Footer:
        return self._look_at(file).footer

    def read_groups(self, file: File, groups: Sequence[int], columns: Sequence[str] | None = None) -> Rows:
        """Rows of some row groups, as a table; without `columns` with all that the file has."""
        checked = self._look_at(file)
        numbers = checked.footer.chunks.numbers(groups, columns)
        if checked.are_checked(numbers):
            try:
                with self._opened(file) as source:
                    return _decoded(source, checked.footer, groups, columns)
            except (pa.ArrowException, InputOutput):
                # It was right once and is not any more: checking it again reports the fault.
                self.forget(file)
                checked = self._look_at(file)
        with self._opened(file) as source:
            checking = _CheckingSource(source, file, checked.footer.chunks, self._damage)
            rows = _decoded(pa.PythonFile(checking, mode="r"), checked.footer, groups, columns)
        for number in checking.read_numbers:
            checked.is_checked[number] = True
        return rows

    def check(self, file: File, columns: Iterable[str], proceed: Callable[[], None] = lambda: None) -> None:
        """Checks all chunks of some columns; `proceed` is called between reads."""
        checked = self._look_at(file)
        unchecked = [name for name in columns if name not in checked.columns]
        if not unchecked:
            return
        chunks = checked.footer.chunks
        numbers = chunks.numbers(range(len(checked.footer.firsts)), unchecked)
        with self._opened(file) as source:
            for together in _together(chunks, [each for each in numbers if not checked.is_checked[each]]):
                proceed()
                self._check_some(file, chunks, source, together)
                for number in together:
                    checked.is_checked[number] = True
        checked.columns.update(unchecked)

    def forget(self, file: File | None = None) -> None:
        """Drops the results for a file, or for all."""
        if file is None:
            self._files_by_name.clear()
        else:
            self._files_by_name.pop(file.name, None)

    def _check_some(self, file: File, chunks: Chunks, source: pa.NativeFile, numbers: Sequence[int]) -> None:
        start = chunks.starts[numbers[0]]
        end = chunks.starts[numbers[-1]] + chunks.sizes[numbers[-1]]
        data = memoryview(source.read_at(end - start, start))
        for number in numbers:
            place = chunks.starts[number] - start
            _require_intact(file, chunks, number, data[place : place + chunks.sizes[number]], self._damage)

    def _look_at(self, file: File) -> _CheckedFile:
        found = self._files_by_name.get(file.name)
        if found is None:
            footer = self._read_footer(file)
            found = _CheckedFile(footer, bytearray(len(footer.chunks.sums)), set())
            if len(self._files_by_name) >= FOOTERS_MAX:
                self._files_by_name.clear()
            self._files_by_name[file.name] = found
        return found

    def _read_footer(self, file: File) -> Footer:
        with self._opened(file) as source:
            size = source.size()
            if size != file.size:
                raise self._damage(file, f"has {size} bytes, not {file.size}")
            if not file.tail_size:
                return self._read_older(file, source)
            tail = source.read_at(file.tail_size, file.size - file.tail_size)
        if checksum(tail) != file.tail_checksum:
            raise self._damage(file, "has another footer than was written")
        metadata = pq.read_metadata(pa.BufferReader(tail))
        chunks = chunks_of(metadata, tail)
        if chunks is None:
            raise self._damage(file, "has not as many checksums as chunks")
        return footer_of(file.name, metadata, chunks)

    def _read_older(self, file: File, source: pa.NativeFile) -> Footer:
        """Reads the whole of a file without sums of its own."""
        data = source.read_buffer(file.size)
        if not has_checksum(data, file.checksum):
            raise self._damage(file, "has other bytes than were written")
        metadata = pq.read_metadata(pa.BufferReader(data))
        return footer_of(file.name, metadata, chunks_in(metadata, data))

    @contextmanager
    def _opened(self, file: File) -> Iterator[pa.NativeFile]:
        """A file that is deleted while it is read counts as missing, for any error of the object store."""
        try:
            with self._files.reading(file.name), self._files.arrow.open_input_file(file.name) as source:
                yield source
        except FileMissing as error:
            raise self._damage(file, MISSING) from error
        except InputOutput as error:
            if self._files.exists(file.name):
                raise
            raise self._damage(file, MISSING) from error


class _CheckingSource:
    """A file for Arrow's reader: chunks are compared with their sums on the way."""

    closed = False

    def __init__(self, source: pa.NativeFile, file: File, chunks: Chunks, damage: Damage) -> None:
        self._source = source
        self._file = file
        self._chunks = chunks
        self._damage = damage
        self._position = 0
        self.read_numbers: list[int] = []

    def read(self, size: int = -1) -> Buffer:
        end = self._file.size if size < 0 else min(self._file.size, self._position + size)
        pieces = []
        while self._position < end:
            pieces.append(self._piece(end))
            self._position += len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _piece(self, end: int) -> Buffer:
        """From the position up to the end of a chunk: Arrow requests whole ones."""
        chunks = self._chunks
        number = chunks.at(self._position)
        start, size = chunks.starts[number], chunks.sizes[number]
        assert number >= 0 and self._position < start + size, "Arrow reads chunks, and nothing else"
        data = self._source.read_at(size, start)
        _require_intact(self._file, chunks, number, data, self._damage)
        self.read_numbers.append(number)
        return memoryview(data)[self._position - start : end - start]

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._file.size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _require_intact(file: File, chunks: Chunks, number: int, data: Buffer, damage: Damage) -> None:
    if not chunks.is_intact(number, data):
        raise damage(file, "has other bytes than were written", Chunk(*chunks.name(number)))


def _decoded(
    source: pa.NativeFile, footer: Footer, groups: Sequence[int], columns: Sequence[str] | None
) -> Rows:
    return pq.ParquetFile(source, metadata=footer.metadata).read_row_groups(
        groups, columns=columns, use_threads=False
    )


def _together(chunks: Chunks, numbers: Sequence[int]) -> Iterator[list[int]]:
    """Chunks that are read at once."""
    run: list[int] = []
    for number in numbers:
        end = chunks.starts[number] + chunks.sizes[number]
        if run and (
            chunks.starts[number] - chunks.starts[run[-1]] - chunks.sizes[run[-1]] > GAP_BYTES
            or end - chunks.starts[run[0]] > READ_BYTES
        ):
            yield run
            run = []
        run.append(number)
    if run:
        yield run
