"""The decompressed sizes of a Parquet file's pages, known before they are read.

    column chunk    [dictionary page]  page  page ...     each: a header (Thrift, compact), then its bytes

A reader of a page allocates as many bytes as its header says, at once. The footer has sums of these, but the
file's writer chose those, too. So the headers are read first, and pages count as all decompressed data: so
many bytes at most, and so many for each input byte. One page is bounded by itself as well.

Invariant (S26): no input yields more bytes, or more bytes for each of its own, than its limits allow.

Walk: `reading.parquet_rows` calls `PageSizes.check` before it reads a row group.
"""

from collections.abc import Iterator
from typing import IO, NamedTuple

import pyarrow.parquet as pq

from tenure.base.errors import BadInput
from tenure.pipeline.reading.tasks import MiB, ReadTask

PAGE_BYTES_MAX = 256 * MiB
"""Writers make pages of a megabyte; one row of the longest fields has more."""

HEADER_BYTES = 512
HEADER_BYTES_MAX = MiB
"""The header contains statistics, with the least and the greatest value."""

_UNCOMPRESSED, _COMPRESSED = 2, 3
"""The numbers of the fields in a header."""


class ParquetPage(NamedTuple):
    header_bytes: int
    compressed_bytes: int
    bytes: int


class PageSizes:
    """Adds up the decompressed pages of one task."""

    def __init__(self, task: ReadTask) -> None:
        self._name = task.input.name
        self._limits = task.limits.decompression
        self._read = 0
        self._bytes_read = 0

    def check(self, stream: IO[bytes], chunk: pq.ColumnChunkMetaData) -> None:
        """Raises BadInput (54000) if a column chunk, with those before it, becomes too large."""
        for page in self._pages(stream, chunk):
            self._read += page.header_bytes + page.compressed_bytes
            self._bytes_read += page.bytes
            if page.bytes > PAGE_BYTES_MAX:
                raise self._too_large(f"has a page of {page.bytes} bytes; {PAGE_BYTES_MAX} are allowed")
            if self._bytes_read > self._limits.bytes_max:
                raise self._too_large(f"has pages of more than {self._limits.bytes_max} bytes")
            if self._bytes_read > max(self._limits.ratio_from_bytes, self._limits.ratio_max * self._read):
                ratio = self._limits.ratio_max
                raise self._too_large(
                    f"has pages that become more than {ratio} times as large as they are stored"
                )

    def _too_large(self, reason: str) -> BadInput:
        return BadInput(f'file "{self._name}" {reason}', file=self._name, sqlstate="54000")

    def _pages(self, stream: IO[bytes], chunk: pq.ColumnChunkMetaData) -> Iterator[ParquetPage]:
        at = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < at:
            at = chunk.dictionary_page_offset
        end = at + chunk.total_compressed_size
        while at < end:
            page = self._page_at(stream, at)
            yield page
            at += page.header_bytes + page.compressed_bytes

    def _page_at(self, stream: IO[bytes], at: int) -> ParquetPage:
        size = HEADER_BYTES
        while size <= HEADER_BYTES_MAX:
            stream.seek(at)
            data = stream.read(size)
            try:
                return read_header(data)
            except IndexError:
                if len(data) < size:
                    break
                size *= 8
        raise ValueError(f"there is no page at byte {at}")


def read_header(data: bytes) -> ParquetPage:
    """Raises IndexError if more bytes are needed, ValueError if it is no header."""
    reader = _Compact(data)
    sizes = {_UNCOMPRESSED: -1, _COMPRESSED: -1}
    for field, kind in reader.fields():
        if field in sizes:
            if kind != _I32:
                raise ValueError("the size of a page is no number")
            sizes[field] = reader.number()
        else:
            reader.skip(kind)
    if min(sizes.values()) < 0:
        raise ValueError("a page has no size")
    return ParquetPage(reader.at, sizes[_COMPRESSED], sizes[_UNCOMPRESSED])


_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
DEPTH_MAX = 16


class _Compact:
    """Thrift's compact protocol, as far as needed to skip unused fields."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def fields(self, depth: int = 0) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a struct; the caller reads or skips its value."""
        if depth > DEPTH_MAX:
            raise ValueError("a header is nested too deeply")
        number = 0
        while (byte := self._byte()) != 0:
            number = number + (byte >> 4) if byte >> 4 else self.number()
            yield number, byte & 15

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def number(self) -> int:
        raw = self._unsigned()
        return (raw >> 1) ^ -(raw & 1)

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number is too long")

    def skip(self, kind: int, depth: int = 0) -> None:
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self._pass(1)
        elif kind in (_I16, _I32, _I64):
            self._unsigned()
        elif kind == _DOUBLE:
            self._pass(8)
        elif kind == _BINARY:
            self._pass(self._unsigned())
        elif kind == _STRUCT:
            for _, inner in self.fields(depth + 1):
                self.skip(inner, depth + 1)
        else:
            # Lists, sets and maps: the headers of pages have none.
            raise ValueError("a header has a field that no header has")

    def _pass(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError
