"""Files as streams of bytes that never read ahead.

A whole file is decompressed if it is compressed, within its limits; a range is of a plain file.

Walk: `reading.csv_rows`, `ndjson_rows` and `splits` read from `opened`; `storage.decompression` decompresses.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

from tenure.base.errors import BadInput
from tenure.pipeline.reading.tasks import FileLimits, OpenInput, TaskInput
from tenure.storage.decompression import HEAD_BYTES, codec_of, decompressed


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextmanager
def opened(
    input: TaskInput, open_input: OpenInput, limits: FileLimits, start: int = 0, end: int | None = None
) -> Iterator[Stream]:
    with open_input(input.name) as file:
        if end is None:
            yield decompressed(file, input.name, limits.decompression)
        else:
            file.seek(start)
            yield _Range(input, file, end - start)


def is_compressed(input: TaskInput, open_input: OpenInput) -> bool:
    with open_input(input.name) as file:
        return bool(codec_of(file.read(HEAD_BYTES), input.name))


class _Range:
    def __init__(self, input: TaskInput, file: IO[bytes], left: int) -> None:
        self._input = input
        self._file = file
        self._left = left

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        if not data and self._left and size:
            name = self._input.name
            raise BadInput(f'file "{name}" became shorter while it was read', file=name, sqlstate="58030")
        return data
