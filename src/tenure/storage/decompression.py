"""Compressed input, read as a stream with limits: a small file may hold a very large one.

The codec is detected by a file's first bytes; a name that contradicts them is an error rather than a guess.
Two limits hold: on the output bytes, and on the output bytes for each input byte, beyond a first megabyte
(short files of little content are no attack). Output that is itself compressed or an archive is refused, and
so are archives themselves.

Invariant (S26): no input yields more bytes, or more bytes for each of its own, than its limits allow.

Walk: `locations.Location.open_decompressed` calls `decompressed`; import reads from it.
"""

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable
from typing import IO, Any, NamedTuple, Protocol

from tenure.base.errors import BadFile, LimitExceeded

CHUNK_BYTES = 256 * 1024
HEAD_BYTES = 512
"""Enough bytes to detect the codec: tar's mark is at 257."""

XZ_MEMORY_BYTES = 128 * 1024 * 1024
"""Twice what `xz -9` needs; a file may request gigabytes."""


class DecompressionLimits(NamedTuple):
    bytes_max: int = 1 << 36
    """64 GB: far above the files that people import one by one."""
    ratio_max: int = 200
    """CSV and JSON expand 5 to 30 times, columns of one value 100 times; gzip reaches at most 1032."""
    ratio_from_bytes: int = 1 << 20


DEFAULT_LIMITS = DecompressionLimits()


class Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


MAGIC = (
    ("gzip", re.compile(rb"\x1f\x8b\x08")),
    ("bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")),  # a text may well begin with BZh
    ("xz", re.compile(rb"\xfd7zXZ\x00")),
    ("zstd", re.compile(rb"\x28\xb5\x2f\xfd")),
)
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd"}
ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07")


def decompressed(source: IO[bytes], name: str, limits: DecompressionLimits = DEFAULT_LIMITS) -> IO[bytes]:
    """The content of a file, whether it is compressed or not; closing it closes the source."""
    head = _Head(source)
    codec = codec_of(head.first, name)
    raw: io.RawIOBase
    if codec == "":
        raw = head
    elif codec == "zstd":
        raw = _zstd(head, name)
    else:
        raw = _Decoded(head, name, DECODERS[codec])
    return io.BufferedReader(_Limited(raw, head, name, limits, is_compressed=codec != ""), CHUNK_BYTES)


def codec_of(first: bytes, name: str) -> str:
    """gzip, bzip2, xz, zstd, or nothing; archives are refused."""
    _refuse_archive(first, name)
    codec = _magic(first)
    said = next((codec for suffix, codec in SUFFIXES.items() if name.lower().endswith(suffix)), "")
    if said and said != codec:
        raise BadFile(f'file "{name}" is not compressed with {said}, as its name says')
    return codec


class _Head(io.RawIOBase):
    """A source whose first bytes were read already; counts the bytes that were read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.first = source.read(HEAD_BYTES)
        self._pending = self.first
        self.bytes = 0

    def readinto(self, buffer: Any) -> int:
        data = self._pending[: len(buffer)] or self._source.read(len(buffer))
        self._pending = self._pending[len(data) :]
        self.bytes += len(data)
        buffer[: len(data)] = data
        return len(data)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._source.close()
        super().close()


class _Decoded(io.RawIOBase):
    """gzip, bzip2 and xz: reads concatenated streams, as their own tools do."""

    def __init__(self, source: _Head, name: str, make: Callable[[], Decoder]) -> None:
        self._source = source
        self._name = name
        self._make = make
        self._decoder = make()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            if self._decoder.eof and not self._next_stream():
                return 0
            chunk = b""
            if self._decoder.needs_input:
                chunk, self._rest = self._rest or self._source.read(CHUNK_BYTES) or b"", b""
                if not chunk:
                    raise BadFile(f'file "{self._name}" ends in the middle of its compressed data')
            try:
                data = self._decoder.decompress(chunk, len(buffer))
            except (OSError, EOFError, ValueError, MemoryError, zlib.error, lzma.LZMAError) as error:
                raise BadFile(f'the compressed data of file "{self._name}" is damaged') from error
        buffer[: len(data)] = data
        return len(data)

    def _next_stream(self) -> bool:
        """False at the end; zeros after a stream are padding."""
        self._rest = self._decoder.unused_data.lstrip(b"\0")
        while not self._rest:
            chunk = self._source.read(CHUNK_BYTES)
            if not chunk:
                return False
            self._rest = chunk.lstrip(b"\0")
        self._decoder = self._make()
        return True


class _Gzip:
    """zlib's object with the interface of the other two."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = 0) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": _Gzip,
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES),
}


class _Zstd(io.RawIOBase):
    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except (OSError, ValueError, MemoryError) as error:
            raise BadFile(f'the compressed data of file "{self._name}" is damaged or cut off') from error
        buffer[: len(data)] = data
        return len(data)


def _zstd(source: _Head, name: str) -> io.RawIOBase:
    """Python has zstd only from 3.14 on; pyarrow always has it."""
    import pyarrow as pa

    return _Zstd(pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd"), name)


class _Limited(io.RawIOBase):
    def __init__(
        self,
        content: io.RawIOBase,
        head: _Head,
        name: str,
        limits: DecompressionLimits,
        *,
        is_compressed: bool,
    ) -> None:
        self._content = content
        self._head = head
        self._name = name
        self._limits = limits
        self._is_compressed = is_compressed
        self._first = b""
        self._bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._content.readinto(buffer) or 0
        if self._is_compressed and len(self._first) < HEAD_BYTES:
            self._first += bytes(memoryview(buffer)[: min(size, HEAD_BYTES - len(self._first))])
            _refuse_archive(self._first, self._name)
            if _magic(self._first):
                raise BadFile(f'file "{self._name}" is compressed twice')
        self._bytes += size
        self._check()
        return size

    def _check(self) -> None:
        if self._bytes > self._limits.bytes_max:
            raise LimitExceeded(f'file "{self._name}" holds more than {self._limits.bytes_max} bytes')
        allowed = max(self._limits.ratio_from_bytes, self._limits.ratio_max * self._head.bytes)
        if self._is_compressed and self._bytes > allowed:
            raise LimitExceeded(
                f'file "{self._name}" holds more than {self._limits.ratio_max} times its own size',
                hint="Decompress the file before it is read.",
            )

    def close(self) -> None:
        self._head.close()
        super().close()


def _magic(first: bytes) -> str:
    return next((codec for codec, magic in MAGIC if magic.match(first)), "")


def _refuse_archive(first: bytes, name: str) -> None:
    if first.startswith(ARCHIVES) or first[257:262] == b"ustar":
        raise BadFile(
            f'file "{name}" is an archive',
            hint="Unpack it: files are read one by one, gz, bz2, xz or zst at most.",
        )
