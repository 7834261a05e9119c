"""Compressed files are read as one stream, and refused when they grow too much."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import pyarrow as pa
import pytest

from tenure.base.errors import BadFile, LimitExceeded
from tenure.pipeline.reading import FileLimits
from tenure.storage import decompression
from tests.unit.pipeline.reading.files import read_file, read_split

DATA = b"".join(b"%d,%x\n" % (each, each * each) for each in range(5000))


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}


@pytest.mark.parametrize("compression", COMPRESSED)
def test_a_compressed_file_gives_what_the_plain_one_gives_and_is_never_cut(compression: str) -> None:
    data, plain = COMPRESSED[compression](DATA), read_file(DATA, "int8", "text")
    assert read_file(data, "int8", "text") == plain
    assert read_split(data, "int8", "text", split_bytes=1000) == plain


@pytest.mark.parametrize("compression", COMPRESSED)
def test_a_bomb_is_refused_while_it_grows(compression: str) -> None:
    bomb = COMPRESSED[compression](b"1,2\n" * 3_000_000)
    with pytest.raises(LimitExceeded):
        read_file(bomb, "int8", "int8")
    wide = FileLimits(decompression=decompression.DecompressionLimits(bytes_max=2_000_000, ratio_max=10**6))
    with pytest.raises(LimitExceeded, match="more than 2000000 bytes"):
        read_file(bomb, "int8", "int8", limits=wide)


def test_a_compressed_file_that_is_cut_off_is_refused() -> None:
    data = gzip.compress(DATA)
    with pytest.raises(BadFile, match="ends in the middle"):
        read_file(data[: len(data) // 2], "int8", "text")
