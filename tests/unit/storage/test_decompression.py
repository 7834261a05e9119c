"""Compressed input: what comes out, and what is refused."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest

from tenure.base.errors import BadFile, InputOutput, LimitExceeded
from tenure.storage.decompression import DecompressionLimits, decompressed

TEXT = b"".join(b"%d,%x\n" % (n, n * 2654435761) for n in range(50_000))
MEGABYTE = 1 << 20


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}
EACH = pytest.mark.parametrize("suffix", COMPRESSED)


def content(data: bytes, name: str, limits: DecompressionLimits = DecompressionLimits()) -> bytes:  # noqa: B008 frozen
    with decompressed(io.BytesIO(data), name, limits) as file:
        return file.read()


def taken_before_refusal(data: bytes, name: str, limits: DecompressionLimits = DecompressionLimits()) -> int:  # noqa: B008 frozen
    """How many bytes came out before LimitExceeded did."""
    taken = 0
    with decompressed(io.BytesIO(data), name, limits) as file:
        try:
            while chunk := file.read(4096):
                taken += len(chunk)
        except LimitExceeded:
            return taken
    raise AssertionError(f"all {taken} bytes came out")


@EACH
def test_compressed_files_are_read(suffix: str) -> None:
    assert content(COMPRESSED[suffix](TEXT), f"a{suffix}") == TEXT


@EACH
def test_the_first_bytes_tell_what_a_file_is(suffix: str) -> None:
    assert content(COMPRESSED[suffix](TEXT), "a.csv") == TEXT


@EACH
def test_an_empty_content_is_empty(suffix: str) -> None:
    assert content(COMPRESSED[suffix](b""), "a.csv") == b""


@EACH
def test_streams_in_a_row_are_one_content(suffix: str) -> None:
    pieces = [TEXT[:1000], b"", TEXT[1000:]]
    assert content(b"".join(map(COMPRESSED[suffix], pieces)), f"a{suffix}") == TEXT


@pytest.mark.parametrize("data", [b"", b"a", b"a,b\n1,2\n", b"BZhours,x\n", b"PKs\n", TEXT])
def test_what_is_not_compressed_comes_out_as_it_is(data: bytes) -> None:
    assert content(data, "a.csv") == data


@EACH
def test_a_name_that_promises_what_is_not_there_is_refused(suffix: str) -> None:
    with pytest.raises(BadFile, match="as its name says"):
        content(b"a,b\n", f"a{suffix}")


@EACH
def test_a_file_that_was_cut_off_is_refused(suffix: str) -> None:
    with pytest.raises(BadFile) as caught:
        content(COMPRESSED[suffix](TEXT)[:-10], f"a{suffix}")
    assert caught.value.sqlstate == "22P04"


@EACH
def test_a_damaged_file_is_refused(suffix: str) -> None:
    data = bytearray(COMPRESSED[suffix](TEXT))
    data[len(data) // 2 : len(data) // 2 + 50] = bytes(50)
    with pytest.raises(BadFile):
        content(bytes(data), f"a{suffix}")


def test_garbage_after_the_end_is_refused_and_padding_is_not() -> None:
    assert content(gzip.compress(b"a") + bytes(1000), "a.gz") == b"a"
    with pytest.raises(BadFile):
        content(gzip.compress(b"a") + b"garbage", "a.gz")


@pytest.mark.invariant("S26")
@EACH
def test_a_bomb_is_stopped_by_its_ratio(suffix: str) -> None:
    bomb = COMPRESSED[suffix](bytes(64 * MEGABYTE))
    assert taken_before_refusal(bomb, f"a{suffix}") <= max(MEGABYTE, 200 * len(bomb))


@pytest.mark.invariant("S26")
def test_ten_megabytes_of_zeros_are_refused() -> None:
    assert taken_before_refusal(gzip.compress(bytes(10 * MEGABYTE)), "a.gz") <= 3 * MEGABYTE


@pytest.mark.invariant("S26")
def test_a_bomb_of_many_small_streams_is_stopped_too() -> None:
    assert taken_before_refusal(gzip.compress(bytes(MEGABYTE)) * 50, "a.gz") <= 12 * MEGABYTE


@pytest.mark.invariant("S26")
@pytest.mark.parametrize("suffix", [*COMPRESSED, ".csv"])
def test_more_bytes_than_allowed_are_refused(suffix: str) -> None:
    data = COMPRESSED.get(suffix, bytes)(TEXT)
    assert content(data, f"a{suffix}", DecompressionLimits(bytes_max=len(TEXT))) == TEXT
    assert taken_before_refusal(data, f"a{suffix}", DecompressionLimits(bytes_max=len(TEXT) - 1)) < len(TEXT)


def test_little_content_may_be_compressed_as_far_as_it_goes() -> None:
    assert content(gzip.compress(bytes(MEGABYTE // 2)), "a.gz") == bytes(MEGABYTE // 2)


def test_a_refusal_names_the_limit() -> None:
    with pytest.raises(LimitExceeded, match="more than 200 times its own size") as caught:
        content(gzip.compress(bytes(10 * MEGABYTE)), "a.gz")
    assert caught.value.sqlstate == "54000"


@EACH
def test_compressed_data_within_compressed_data_is_refused(suffix: str) -> None:
    with pytest.raises(BadFile, match="compressed twice"):
        content(gzip.compress(COMPRESSED[suffix](TEXT)), "a.gz")


def test_archives_are_refused() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for number in range(1000):
            file.writestr(f"{number}", b"")
    for name in ("a.zip", "a.csv"):
        with pytest.raises(BadFile, match="is an archive"):
            content(archive.getvalue(), name)
    with pytest.raises(BadFile, match="is an archive"):
        content(gzip.compress(archive.getvalue()), "a.gz")


def test_a_tar_is_refused_also_when_it_is_compressed() -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        file.addfile(tarfile.TarInfo("a"))
    for data, name in ((archive.getvalue(), "a.tar"), (gzip.compress(archive.getvalue()), "a.tgz")):
        with pytest.raises(BadFile, match="is an archive"):
            content(data, name)


def test_xz_gets_no_more_memory_than_its_limit() -> None:
    compressor = lzma.LZMACompressor(filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}])
    small = compressor.compress(TEXT) + compressor.flush()
    assert content(small, "a.xz") == TEXT
    with pytest.raises(BadFile):
        content(_with_dictionary(small, 1 << 30), "a.xz")


def _with_dictionary(data: bytes, size: int) -> bytes:
    """The same file, asking for a larger dictionary: the size is a byte of the block's header."""
    header_size = (data[12] + 1) * 4
    header = bytearray(data[12 : 12 + header_size])
    at = header.index(b"\x21\x01") + 2
    header[at] = (size.bit_length() - 1) * 2 - 24
    header[-4:] = zlib.crc32(bytes(header[:-4])).to_bytes(4, "little")
    return data[:12] + bytes(header) + data[12 + header_size :]


@EACH
def test_an_error_of_the_source_stays_what_it_is(suffix: str) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 1000:
                raise InputOutput("the disk is gone")
            return super().read(min(size or 1, 1000))

    with decompressed(Broken(COMPRESSED[suffix](TEXT)), f"a{suffix}") as file, pytest.raises(InputOutput):
        file.read()


def test_closing_closes_the_source() -> None:
    source = io.BytesIO(gzip.compress(TEXT))
    decompressed(source, "a.gz").close()
    assert source.closed
