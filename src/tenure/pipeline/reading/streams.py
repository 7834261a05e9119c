"""Files as streams of bytes, of which never more is read than was asked for.

    plain       from a start to an end
    gz bz2 zst  uncompressed by Arrow, a piece at a time
    xz          uncompressed by Python, with a limit on its dictionary

A file that grows too much by being uncompressed is refused while it does: see `Limits`.

Walk: `reading.blocks` reads from what `opened` gives.
"""

import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

import pyarrow as pa

from tenure.pipeline.reading.tasks import BadInput, Input, Limits, MiB, OpenInput

_CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_XZ_MEMORY_MAX = 128 * MiB
"""xz -9 needs 65 MB."""
_PIECE_BYTES = 1 << 16


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextmanager
def opened(
    input: Input, open_input: OpenInput, limits: Limits, start: int = 0, end: int | None = None
) -> Iterator[Stream]:
    with open_input(input.name) as file:
        if input.compression:
            yield _Bounded(input, _Counted(file), limits)
        else:
            if start:
                file.seek(start)
            yield file if end is None else _Range(input, file, end - start)


class _Range:
    def __init__(self, input: Input, file: IO[bytes], left: int) -> None:
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


class _Counted:
    """What Arrow asks of a file, and how much of it was read."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.taken = 0

    def read(self, size: int = _PIECE_BYTES) -> bytes:
        data = self._file.read(min(size, _PIECE_BYTES))
        self.taken += len(data)
        return data

    def tell(self) -> int:
        return self.taken

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Whoever opened the file closes it."""


class _Bounded:
    def __init__(self, input: Input, source: _Counted, limits: Limits) -> None:
        self._input = input
        self._source = source
        self._limits = limits
        self._given = 0
        self._stream: Stream = _uncompressed(input, source)

    def read(self, size: int) -> bytes:
        """As much as was asked for, but at the end."""
        pieces = []
        while size > 0:
            piece = self._piece(min(size, MiB))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        try:
            piece = self._stream.read(size)
        except (OSError, EOFError, pa.ArrowException, lzma.LZMAError) as error:
            raise self._refused(f"it is no {self._input.compression} file, or is cut off: {error}") from error
        self._given += len(piece)
        limits = self._limits
        if self._given > max(limits.ratio_free_bytes, self._source.taken * limits.ratio_max):
            raise self._refused(f"it grows more than {limits.ratio_max} times", sqlstate="54000")
        if self._given > limits.file_bytes_max:
            raise self._refused(f"it grows beyond {limits.file_bytes_max} bytes", sqlstate="54000")
        return piece

    def _refused(self, why: str, sqlstate: str = "22P04") -> BadInput:
        name = self._input.name
        return BadInput(f'file "{name}" cannot be uncompressed: {why}', file=name, sqlstate=sqlstate)


def _uncompressed(input: Input, source: _Counted) -> Stream:
    if input.compression == "xz":
        return _Xz(source)
    if input.compression not in _CODECS:
        reason = f'compression "{input.compression}" is not supported'
        raise BadInput(reason, file=input.name, sqlstate="0A000")
    stream: Any = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), _CODECS[input.compression])
    return stream  # type: ignore[no-any-return]


class _Xz:
    def __init__(self, source: _Counted) -> None:
        self._source = source
        self._decompressor = self._fresh()

    def _fresh(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY_MAX)

    def read(self, size: int) -> bytes:
        while True:
            if self._decompressor.eof:
                more = self._decompressor.unused_data or self._source.read()
                if not more.strip(b"\0"):  # padding between streams, or the end
                    return b""
                self._decompressor = self._fresh()
            else:
                more = self._source.read() if self._decompressor.needs_input else b""
                if not more and self._decompressor.needs_input:
                    raise EOFError("the data ends too early")
            data = self._decompressor.decompress(more, size)
            if data:
                return data
