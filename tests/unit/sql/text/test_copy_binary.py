"""COPY's binary format as it comes in: pieces of any length, and lengths that lie."""

import pytest

from tenure.base.errors import BadFile
from tenure.sql.text.copy_binary import SIGNATURE, BinaryReader
from tenure.sql.text.copy_text import FIELD_BYTES_MAX, CopyReader, Format

HEAD = SIGNATURE + bytes(8)
END = b"\xff\xff"


def row(*fields: bytes | None) -> bytes:
    written = [
        b"\xff\xff\xff\xff" if each is None else len(each).to_bytes(4, "big") + each for each in fields
    ]
    return len(fields).to_bytes(2, "big") + b"".join(written)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_rows_are_the_same_however_they_are_cut(size: int) -> None:
    data = HEAD + row(b"one", None) + row(b"", b"x" * 50) + row() + END
    reader = BinaryReader()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    rows = [each for piece in pieces for each in reader.rows(piece)]
    reader.end()
    assert rows == [[b"one", None], [b"", b"x" * 50], []]


def test_an_extension_of_the_header_is_passed_over_and_not_kept() -> None:
    reader = BinaryReader()
    assert list(reader.rows(SIGNATURE + bytes(4) + (1000).to_bytes(4, "big"))) == []
    assert list(reader.rows(bytes(600))) == []
    assert reader.kept_bytes == 0
    assert list(reader.rows(bytes(400) + row(b"a") + END)) == [[b"a"]]
    reader.end()


@pytest.mark.parametrize(
    ("size", "message"),
    [(FIELD_BYTES_MAX + 1, "a row is longer"), (2**31 - 1, "a row is longer"), (-2, "invalid field size")],
)
def test_a_length_that_cannot_be_is_refused_before_anything_is_waited_for(size: int, message: str) -> None:
    reader = BinaryReader()
    data = HEAD + (1).to_bytes(2, "big") + size.to_bytes(4, "big", signed=True)
    with pytest.raises(BadFile, match=message):
        list(reader.rows(data))


def test_fields_of_one_row_are_bounded_together() -> None:
    reader = BinaryReader()
    half = FIELD_BYTES_MAX // 2 + 1
    first = HEAD + (2).to_bytes(2, "big") + half.to_bytes(4, "big") + bytes(half)
    assert list(reader.rows(first)) == []
    with pytest.raises(BadFile, match="a row is longer"):
        list(reader.rows(half.to_bytes(4, "big")))


def test_what_is_kept_goes_with_its_row() -> None:
    reader = BinaryReader()
    whole = row(b"x" * 10_000)
    assert list(reader.rows(HEAD + whole[:5_000])) == []
    assert reader.kept_bytes == 5_000
    assert len(list(reader.rows(whole[5_000:]))) == 1
    assert reader.kept_bytes == 0


def test_an_end_in_the_middle_is_an_error() -> None:
    reader = BinaryReader()
    list(reader.rows(HEAD + row(b"abc")[:-1]))
    with pytest.raises(BadFile, match="unexpected EOF"):
        reader.end()


@pytest.mark.parametrize("is_csv", [False, True])
def test_a_long_row_of_text_is_looked_at_once(is_csv: bool) -> None:
    reader = CopyReader(Format(is_csv=is_csv, delimiter=",", null=""))
    for _ in range(100):
        assert list(reader.rows(b"x" * 1_000)) == []
    assert reader._sought == reader.kept_bytes == 100_000
    assert list(reader.rows(b",y\nz\n")) == [["x" * 100_000, "y"], ["z"]]
    assert reader.kept_bytes == 0
