"""Files in memory, and tasks that read them."""

import io
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

from tenure.pipeline.reading import (
    Csv,
    ReadTask,
    Reject,
    TargetColumn,
    TaskInput,
    pieces,
    read,
    read_tasks,
    survey,
)
from tenure.pipeline.reading.tasks import Format, OpenInput
from tests.unit.expr.oracle import named

CSV = Csv()


class Read(NamedTuple):
    rows: list[tuple[Any, ...]]
    lines: list[int]
    rejects: list[Reject]


class Slow(io.BytesIO):
    """Gives few bytes at a time, so that blocks are small."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._most if size is None or size < 0 else min(size, self._most))


def memory(most: int = 1 << 30, **files: bytes) -> OpenInput:
    def open_input(name: str) -> IO[bytes]:
        return Slow(files[name], most)

    return open_input


def targets(*types: str) -> tuple[TargetColumn, ...]:
    return tuple(TargetColumn("abcdefgh"[at], at + 1, named(type)) for at, type in enumerate(types))


def task(data: bytes, *types: str, format: Format = CSV, **more: Any) -> ReadTask:
    return ReadTask(TaskInput("f", len(data)), format, targets(*types), **more)


def read_file(data: bytes, *types: str, most: int = 0, **more: Any) -> Read:
    """The whole file as one task; as a range, if few bytes shall come at a time."""
    whole = task(data, *types, **more)
    return read_all([whole.but(end=len(data)) if most else whole], memory(most or 1 << 30, f=data))


def read_split(data: bytes, *types: str, split_bytes: int, most: int = 1 << 30, **more: Any) -> Read:
    """The same, cut into ranges of so many bytes."""
    files, open_input = [task(data, *types, **more)], memory(most, f=data)
    cut = pieces(files, open_input, split_bytes=split_bytes)
    surveys = [[survey(each, open_input) for each in found] for found in cut]
    return read_all(read_tasks(files, surveys), open_input)


def read_all(tasks: Sequence[ReadTask], open_input: Callable[[str], IO[bytes]]) -> Read:
    found = Read([], [], [])
    for each in tasks:
        for batch in read(each, open_input):
            batch.table.validate(full=True)
            columns = [column.to_pylist() for column in batch.table.columns]
            found.rows.extend(zip(*columns, strict=True))
            found.lines.extend(batch.lines.tolist())
            found.rejects.extend(batch.rejects)
    return found
