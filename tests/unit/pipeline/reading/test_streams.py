"""Compressed files: read a piece at a time, and refused when they grow too much."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import pyarrow as pa
import pytest

from tenure.pipeline.reading import BadInput, Limits
from tests.unit.pipeline.reading.files import read_file

DATA = b"".join(b"%d,%x\n" % (each, each * each) for each in range(5000))
HALF = len(DATA) // 2


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}


@pytest.mark.parametrize("compression", COMPRESSED)
def test_a_compressed_file_gives_what_the_plain_one_gives(compression: str) -> None:
    data = COMPRESSED[compression](DATA)
    found = read_file(data, "int8", "text", compression=compression, most=1000)
    assert found == read_file(DATA, "int8", "text")


@pytest.mark.parametrize("compression", COMPRESSED)
def test_several_streams_one_behind_the_other_are_one_file(compression: str) -> None:
    make = COMPRESSED[compression]
    data = make(DATA[:HALF]) + make(DATA[HALF:])
    assert read_file(data, "int8", "text", compression=compression) == read_file(DATA, "int8", "text")


@pytest.mark.parametrize("compression", COMPRESSED)
def test_a_bomb_is_refused_while_it_grows(compression: str) -> None:
    bomb = COMPRESSED[compression](b"1,2\n" * 3_000_000)
    limits = Limits(ratio_max=100, ratio_free_bytes=1 << 20)
    with pytest.raises(BadInput, match="grows more than 100 times") as found:
        read_file(bomb, "int8", "int8", compression=compression, limits=limits)
    assert found.value.sqlstate == "54000"
    with pytest.raises(BadInput, match="grows beyond 2000000 bytes"):
        read_file(bomb, "int8", "int8", compression=compression, limits=Limits(file_bytes_max=2_000_000))


@pytest.mark.parametrize("compression", COMPRESSED)
def test_a_file_that_is_damaged_or_cut_off_is_refused(compression: str) -> None:
    data = COMPRESSED[compression](DATA)
    for bad in (b"no such thing", data[: len(data) // 2]):
        with pytest.raises(BadInput, match="cannot be uncompressed") as found:
            read_file(bad, "int8", "text", compression=compression)
        assert found.value.where == 'file "f"'


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(BadInput, match='compression "rar" is not supported'):
        read_file(b"", "int8", compression="rar")
