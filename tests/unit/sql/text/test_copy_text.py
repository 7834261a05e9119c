"""COPY's text and CSV, cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import UserError
from tenure.sql.text.copy_text import CopyReader, Field, Format, csv_line, text_line

CSV = Format(delimiter=",", null="", is_csv=True)
BACKSLASHED = Format(delimiter=",", null="", is_csv=True, escape="\\")

fields = st.lists(
    st.one_of(st.none(), st.text(alphabet='a,"\\\n\r\t;é.x1', max_size=8)), min_size=1, max_size=4
)


def _read(data: bytes, format: Format, size: int = 3) -> list[list[Field]]:
    reader, rows = CopyReader(format), list[list[Field]]()
    for at in range(0, len(data), size):
        rows += reader.rows(data[at : at + size])
    return rows + list(reader.end())


@given(st.lists(fields, max_size=4), st.integers(1, 9))
def test_text_reads_back_what_was_written(rows: list[list[Field]], size: int) -> None:
    data = b"".join(text_line(row, Format()) for row in rows)
    assert _read(data, Format(), size) == rows


@given(st.lists(fields, max_size=4), st.integers(1, 9), st.sampled_from([CSV, BACKSLASHED]))
def test_csv_reads_back_what_was_written(rows: list[list[Field]], size: int, format: Format) -> None:
    data = b"".join(csv_line(row, format) for row in rows)
    assert _read(data, format, size) == rows


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"a\tb\n", [["a", "b"]]),
        (b"a\tb\r\n\\N\t\\\\N\n", [["a", "b"], [None, "\\N"]]),
        (b"\\303\\251\t\\xc3\\xa9\n", [["é", "é"]]),
        (b"\\101\\x41\\q\n", [["AAq"]]),
        (b"a\n\\.\nb\n", [["a"]]),
        (b"last", [["last"]]),
        (b"\n", [[""]]),
    ],
)
def test_text(data: bytes, rows: list[list[Field]]) -> None:
    assert _read(data, Format()) == rows


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b'a,"b,c",\n', [["a", "b,c", None]]),
        (b'"",\n', [["", None]]),
        (b'"a""b"\n', [['a"b']]),
        (b'"two\nlines",x\n', [["two\nlines", "x"]]),
        (b"\\.\n", [["\\."]]),
    ],
)
def test_csv(data: bytes, rows: list[list[Field]]) -> None:
    assert _read(data, CSV) == rows


@pytest.mark.parametrize(
    ("data", "format"), [(b'"open\n', CSV), (b"\xff\n", Format()), (b"\\377\n", Format())]
)
def test_what_is_broken_is_refused(data: bytes, format: Format) -> None:
    with pytest.raises(UserError):
        _read(data, format)
