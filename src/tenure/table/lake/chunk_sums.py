"""Checksums of column chunks: which bytes of a file each one covers, and where they are stored.

    PAR1 │ group 0: key at c1 .. │ group 1: key at c1 .. │ ... │ sums │ footer │ its length │ PAR1
           └ a chunk ┘                                         └───────────── tail ─────────────┘

A column chunk is a file's data of one column in one row group. Its checksum covers every byte of it: page
headers, dictionary, levels and values. Four bytes a chunk lie between the last chunk and the footer, where
Parquet allows anything. The manifest has the length and the checksum of the tail. So a reader that trusts the
manifest can trust the tail, and then every chunk whose sum is in the tail.

The sum is a CRC-32: it finds every change of up to 32 consecutive bits, and computing it takes a quarter of a
second per gigabyte. It does not protect against deliberate changes.

Parquet's own checksums of pages are not enough: they do not cover page headers, and DuckDB does not verify
them.

Walk: `lake.format` writes with `with_sums`; `lake.checked_files` reads with `chunks_of`.
"""

import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tenure.table.arrays import Buffer

SUM_BYTES = 4
FOOTER_END_BYTES = 8
"""After the footer: its length, and Parquet's mark."""


class Chunks(NamedTuple):
    """The column chunks of a file, group after group, and in each group column after column.

    In compact arrays: a process keeps those of many files.
    """

    columns: tuple[str, ...]
    starts: Sequence[int]
    sizes: Sequence[int]
    sums: Sequence[int]

    def numbers(self, groups: Iterable[int], columns: Iterable[str] | None) -> list[int]:
        """The chunks of some groups and columns; without `columns` of all."""
        width = len(self.columns)
        wanted = range(width) if columns is None else _places(self.columns, columns)
        return [group * width + place for group in groups for place in wanted]

    def at(self, position: int) -> int:
        """The chunk that contains a byte of the file."""
        return bisect_right(self.starts, position) - 1

    def name(self, number: int) -> tuple[str, int]:
        """The column and the row group of a chunk."""
        group, place = divmod(number, len(self.columns))
        return self.columns[place], group

    def is_intact(self, number: int, data: Buffer) -> bool:
        return len(data) == self.sizes[number] and sum_of(data) == self.sums[number]


def _places(columns: Sequence[str], wanted: Iterable[str]) -> list[int]:
    names = frozenset(wanted)
    return [place for place, name in enumerate(columns) if name in names]


class SummedFile(NamedTuple):
    """A file's bytes in two parts, which are written one after the other."""

    body: Any
    tail: bytes


def with_sums(data: Buffer) -> SummedFile:
    """A Parquet file with the checksums of its chunks."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    view = memoryview(data)
    body = view[: len(view) - metadata.serialized_size - FOOTER_END_BYTES]
    sums = [sum_of(view[start : start + size]) for start, size in _bounds(metadata)]
    return SummedFile(body, struct.pack(f"<{len(sums)}I", *sums) + bytes(view[len(body) :]))


def chunks_of(metadata: pq.FileMetaData, tail: Buffer) -> Chunks | None:
    """The chunks according to the tail of a file; None if the tail has no room for all sums."""
    count = metadata.num_row_groups * metadata.num_columns
    if len(tail) != count * SUM_BYTES + metadata.serialized_size + FOOTER_END_BYTES:
        return None
    return _chunks(metadata, struct.unpack_from(f"<{count}I", tail))


def chunks_in(metadata: pq.FileMetaData, data: Buffer) -> Chunks:
    """The chunks of a whole file that was checked, but has no sums of its own."""
    view = memoryview(data)
    return _chunks(metadata, [sum_of(view[start : start + size]) for start, size in _bounds(metadata)])


def sum_of(data: Buffer) -> int:
    return zlib.crc32(data)


def _chunks(metadata: pq.FileMetaData, sums: Sequence[int]) -> Chunks:
    bounds = list(_bounds(metadata))
    schema = metadata.schema
    columns = tuple(schema.column(place).path for place in range(metadata.num_columns))
    starts, sizes = (array("q", each) for each in zip(*bounds, strict=True))
    return Chunks(columns, starts, sizes, array("L", sums))


def _bounds(metadata: pq.FileMetaData) -> Iterator[tuple[int, int]]:
    """Where chunks start, and how long they are."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(metadata.num_columns):
            chunk = group.column(place)
            dictionary = chunk.dictionary_page_offset
            yield dictionary or chunk.data_page_offset, chunk.total_compressed_size
