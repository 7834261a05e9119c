"""Inputs as tasks: large files are cut into ranges that begin and end with whole records.

    pieces(inputs)   ranges of equal length, cut anywhere       driver, reads the head of each file
    survey(piece)    quotes and newlines in one of them         kernel, one pass of counting
    read_tasks(...)  the tasks: each a range of records            driver, adds up

Whether a newline ends a record depends on whether a quote is open there, which depends on all bytes before.
But a piece can be surveyed for both cases: where its first record would start in either, and whether it
changes the state of the quotes. Adding that up from the start of the file decides the case, and the line on
which each piece begins.

Simplifications: a CSV file whose escape is not its quote is one task, as is a compressed file.

Walk: the import's driver calls `pieces`, runs `survey` as a kernel, and calls `read_tasks`; kernels read its
tasks.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tenure.pipeline.reading.blocks import BLOCK_BYTES, Signs, count, inside, marks
from tenure.pipeline.reading.csv_rows import signs_of, start_of, without_head
from tenure.pipeline.reading.parquet_rows import RowGroup, row_groups
from tenure.pipeline.reading.streams import is_compressed, opened
from tenure.pipeline.reading.tasks import Csv, MiB, OpenInput, Parquet, ReadTask

SPLIT_BYTES = 32 * MiB
"""About a second's work: enough pieces to share, few enough to keep track of."""


class FilePiece(NamedTuple):
    """A range of a file that is to be surveyed."""

    task: ReadTask
    """The task for the whole file."""
    start: int
    end: int
    signs: Signs
    line: int = 1
    """For the file's first piece, where it starts."""


class Cut(NamedTuple):
    at: int
    newlines: int
    """From the start of the piece up to here."""


class Survey(NamedTuple):
    piece: FilePiece
    newlines: int = 0
    is_odd: bool = False
    """Whether it has an odd number of quotes."""
    outside: Cut | None = None
    """Where its first record starts, if it starts outside quotes."""
    inside: Cut | None = None
    groups: tuple[RowGroup, ...] = ()
    """Of a Parquet file."""


def pieces(
    files: Sequence[ReadTask], open_input: OpenInput, *, split_bytes: int = SPLIT_BYTES
) -> list[list[FilePiece]]:
    """For each file, given as the task to read all of it, its pieces to survey: none if it is not cut."""
    return [list(_pieces(each, open_input, split_bytes)) for each in files]


def _pieces(task: ReadTask, open_input: OpenInput, split_bytes: int) -> Iterator[FilePiece]:
    size = task.input.bytes
    if isinstance(task.format, Parquet):
        yield FilePiece(task, 0, size, Signs())
    elif size > split_bytes and not is_compressed(task.input, open_input):
        if not isinstance(task.format, Csv):
            start, line, signs = 0, 1, Signs()
        elif task.format.escape != task.format.quote:
            return
        else:
            start, line, ending = _head(task, task.format, open_input)
            signs = signs_of(task.format, ending)
            task = task.but(is_start=False, ending=ending)
        for at in range(start, size, split_bytes):
            yield FilePiece(task, at, min(at + split_bytes, size), signs, line)


def _head(task: ReadTask, format: Csv, open_input: OpenInput) -> tuple[int, int, bytes]:
    """After the skipped records: the position, the line, and the line ending."""
    with opened(task.input, open_input, task.limits) as stream:
        start = start_of(stream, format, task)
        if not format.skip:
            return start.passed, 1, start.ending
        for block in without_head(stream, format, task, start):
            return start.passed + block.at, block.line, start.ending
    return task.input.bytes, 1, start.ending


def survey(piece: FilePiece, open_input: OpenInput) -> Survey:
    """A kernel: reads the piece once."""
    task, signs = piece.task, piece.signs
    if isinstance(task.format, Parquet):
        return Survey(piece, groups=row_groups(task, open_input))
    cuts: dict[bool, Cut] = {}
    newlines, is_odd, at = 0, False, piece.start
    with opened(task.input, open_input, task.limits, piece.start, piece.end) as stream:
        while data := stream.read(BLOCK_BYTES):
            has_quotes = bool(signs.quote) and signs.quote in data
            if not cuts or (len(cuts) < 2 and (is_odd or has_quotes)):
                places = marks(data, signs.newline)
                are_inside = inside(data, signs, places) != is_odd
                for is_inside in (False, True):
                    for first in np.flatnonzero(are_inside == is_inside)[:1].tolist():
                        cuts.setdefault(is_inside, Cut(at + int(places[first]) + 1, newlines + first + 1))
            newlines += count(data, signs.newline)
            is_odd ^= has_quotes and bool(count(data, signs.quote) % 2)
            at += len(data)
    # A newline after an odd number of quotes ends a record if the piece starts inside quotes.
    return Survey(piece, newlines, is_odd, cuts.get(False), cuts.get(True))


def read_tasks(files: Sequence[ReadTask], surveys: Sequence[Sequence[Survey]]) -> list[ReadTask]:
    """The tasks, from the surveys of each file's pieces in their order."""
    tasks: list[ReadTask] = []
    for file, found in zip(files, surveys, strict=True):
        if not found:
            tasks.append(file)
        elif isinstance(file.format, Parquet):
            tasks += _of_groups(file, found[0].groups)
        else:
            tasks += _of_ranges(found)
    return tasks


def _of_ranges(surveys: Sequence[Survey]) -> list[ReadTask]:
    first = surveys[0].piece
    starts = [(first.start, first.line)]
    line, is_inside = first.line, False
    for each in surveys:
        cut = each.inside if is_inside else each.outside
        if each is not surveys[0] and cut is not None:
            starts.append((cut.at, line + cut.newlines))
        line += each.newlines
        is_inside ^= each.is_odd
    size = first.task.input.bytes
    ends = [*(at for at, _ in starts[1:]), size]
    return [
        first.task.but(start=at, end=end, line=line)
        for (at, line), end in zip(starts, ends, strict=True)
        if at < end
    ]


def _of_groups(file: ReadTask, groups: Sequence[RowGroup]) -> list[ReadTask]:
    """Neighbouring row groups, until they are as large as a split."""
    tasks: list[ReadTask] = []
    start, line, rows, size = 0, 1, 0, 0
    for at, group in enumerate(groups):
        rows, size = rows + group.rows, size + group.bytes
        if size >= SPLIT_BYTES or at + 1 == len(groups):
            tasks.append(file.but(start=start, end=at + 1, line=line))
            start, line, rows, size = at + 1, line + rows, 0, 0
    return tasks
