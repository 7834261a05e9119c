"""Blocks of whole records, with the end and the line number of each record.

A record ends with a line, unless a quote is open there. As in PostgreSQL, a quote opens and closes at any
position, and the escape counts only inside: so, where escape and quote are the same character, a position is
inside exactly if the number of quotes before it is odd.

Lines end as the first one does: with LF, CR LF, or CR.

Walk: `reading.csv_rows` and `reading.ndjson_rows` read `blocks`; `reading.splits` calls `marks`.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tenure.base.errors import BadInput
from tenure.pipeline.reading.streams import Stream
from tenure.pipeline.reading.tasks import MiB
from tenure.table.arrays import Bools, Int64s

BLOCK_BYTES = 4 * MiB
"""Bytes read at a time: large enough for array operations to pay, small enough for ten copies."""


class Signs(NamedTuple):
    """The characters by which a file's records are found."""

    newline: bytes = b"\n"
    """The last byte of a line's end."""
    quote: bytes = b""
    """Empty: newlines are never quoted."""
    escape: bytes = b""


class RecordBlock:
    """Whole records; the last one may lack its newline."""

    def __init__(self, data: bytes, signs: Signs, *, line: int = 1, at: int = 0) -> None:
        self.data = data
        self.signs = signs
        self.line = line
        self.at = at
        """Its position in the stream."""

    @cached_property
    def newlines(self) -> int:
        return count(self.data, self.signs.newline)

    @property
    def is_whole(self) -> bool:
        """Whether the last record has its newline."""
        return self.data.endswith(self.signs.newline)

    @cached_property
    def records(self) -> int:
        if not self.signs.quote or self.signs.quote not in self.data:
            return self.newlines + (not self.is_whole)
        return len(self.ends)

    @property
    def terminated(self) -> int:
        """How many records have their newline."""
        return self.records - (not self.is_whole)

    @cached_property
    def ends(self) -> Int64s:
        """Where each record ends: at its newline, or at the end of the data."""
        return self._ends_and_lines[0]

    @cached_property
    def lines(self) -> Int64s:
        """On which line each record starts."""
        return self._ends_and_lines[1]

    @cached_property
    def _ends_and_lines(self) -> tuple[Int64s, Int64s]:
        places = marks(self.data, self.signs.newline)
        is_outside = ~inside(self.data, self.signs, places)
        ends, ordinals = places[is_outside], np.flatnonzero(is_outside)
        lines = np.concatenate([[0], ordinals + 1]) + self.line
        if self.is_whole:
            return ends, lines[:-1]
        return np.append(ends, len(self.data)), lines

    def since(self, row: int) -> "RecordBlock":
        """Without the records before this one."""
        start = int(self.ends[row - 1]) + 1
        return RecordBlock(self.data[start:], self.signs, line=int(self.lines[row]), at=self.at + start)

    def record(self, row: int, length_max: int | None = None) -> bytes:
        start = 0 if row == 0 else int(self.ends[row - 1]) + 1
        end = int(self.ends[row])
        return self.data[start : end if length_max is None else min(end, start + length_max)]


def blocks(
    stream: Stream, signs: Signs, *, file: str, line: int, row_bytes_max: int, first: bytes = b""
) -> Iterator[RecordBlock]:
    """`first` was read before. Raises BadInput if a record is too long, or a quote is open at the end."""
    at, kept, piece = 0, b"", first or stream.read(BLOCK_BYTES)
    while piece:
        data = kept + piece
        end = _end_of_records(data, signs)
        if end:
            block = RecordBlock(data[:end], signs, line=line, at=at)
            yield block
            line, at = line + block.newlines, at + end
        kept = data[end:]
        if len(kept) > row_bytes_max:
            reason = f"a row is longer than {row_bytes_max} bytes: is a quote left open?"
            raise BadInput(reason, file=file, line=line, sqlstate="54000")
        piece = stream.read(BLOCK_BYTES)
    if kept:
        if inside(kept, signs, np.array([len(kept)]))[0]:
            raise BadInput("unterminated CSV quoted field", file=file, line=line)
        yield RecordBlock(kept, signs, line=line, at=at)


def _end_of_records(data: bytes, signs: Signs) -> int:
    """The position after the last newline that ends a record; 0 if there is none."""
    if not signs.quote or signs.quote not in data:
        return data.rfind(signs.newline) + 1
    places = marks(data, signs.newline)
    outside = places[~inside(data, signs, places)]
    return int(outside[-1]) + 1 if len(outside) else 0


def marks(data: bytes, sign: bytes) -> Int64s:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == sign[0])


def count(data: bytes, sign: bytes) -> int:
    """As `bytes.count`, three times as fast where a character is frequent."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == sign[0]))


def inside(data: bytes, signs: Signs, places: Int64s) -> Bools:
    """Which of these positions, in their order, lie between quotes."""
    if not signs.quote or signs.quote not in data:
        return np.zeros(len(places), bool)
    if signs.escape != signs.quote and signs.escape in data:
        edges = np.array(_edges(data, signs), np.int64)
    else:
        edges = marks(data, signs.quote)
    is_inside: Bools = np.searchsorted(edges, places, side="left") % 2 == 1
    return is_inside


def _edges(data: bytes, signs: Signs) -> list[int]:
    """The quotes that open and close, where the escape is a character of its own."""
    quote, escape = re.escape(signs.quote), re.escape(signs.escape)
    run = re.compile(b"%b(?:[^%b%b]|%b.)*+%b?+(%b)?" % (quote, quote, escape, escape, escape, quote), re.S)
    edges: list[int] = []
    for found in run.finditer(data):
        edges.append(found.start())
        if found[1]:
            edges.append(found.end() - 1)
    return edges


def line_ending(data: bytes, signs: Signs, *, is_all: bool) -> bytes:
    """The first line's ending: LF, CR LF or CR; empty if that cannot be seen yet."""
    places = np.sort(np.concatenate([marks(data, b"\n"), marks(data, b"\r")]))
    outside = places[~inside(data, signs, places)]
    if not len(outside):
        return b"\n" if is_all else b""
    at = int(outside[0])
    if data[at : at + 1] == b"\n":
        return b"\n"
    if at + 1 == len(data) and not is_all:
        return b""
    return b"\r\n" if data[at + 1 : at + 2] == b"\n" else b"\r"
