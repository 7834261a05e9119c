"""CSV against PostgreSQL's COPY, and what is said about files that it would not take."""

import pickle
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenure.base.errors import BadInput
from tenure.pipeline.reading import Csv, FileLimits
from tenure.table.packing import unpack_columns
from tests.postgres_server import Server
from tests.unit.pipeline.reading.files import Read, memory, read_all, read_file, read_split, task


class Copy:
    """COPY into a table of texts in a PostgreSQL."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def rows(self, data: bytes, width: int, format: Csv) -> list[tuple[Any, ...]] | tuple[str, int]:
        """The rows; or the SQLSTATE and the line of the first error."""
        columns = ", ".join(f"{name} text" for name in "abcdefgh"[:width])
        self.connection.execute("DROP TABLE IF EXISTS pg_temp.copied")
        self.connection.execute(f"CREATE TEMP TABLE copied ({columns}, n serial)")
        names = ", ".join("abcdefgh"[:width])
        options = (
            f"FORMAT csv, DELIMITER '{format.delimiter}', NULL '{format.null}', HEADER {bool(format.skip)}"
        )
        quote, escape = (each.replace("'", "''") for each in (format.quote, format.escape))
        options += f", QUOTE '{quote}', ESCAPE '{escape}'"
        try:
            with self.connection.cursor().copy(f"COPY copied ({names}) FROM STDIN ({options})") as copy:
                copy.write(data)
        except psycopg.Error as error:
            where = (error.diag.context or "").partition("line ")[2]
            digits = "".join(each if each.isdigit() else " " for each in where).split()
            return error.sqlstate or "", int(digits[0]) if digits else 0
        return self.connection.execute(f"SELECT {names} FROM copied ORDER BY n").fetchall()


@pytest.fixture(scope="module")
def copy(postgres: Server) -> Iterator[Copy]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield Copy(connection)


def outcome(data: bytes, *types: str, **more: Any) -> Read | BadInput:
    try:
        return read_file(data, *types, rejects_max=1000, **more)
    except BadInput as error:
        return error


def agree(copy: Copy, data: bytes, width: int, format: Csv) -> None:
    theirs = copy.rows(data, width, format)
    ours = outcome(data, *["text"] * width, format=format)
    if isinstance(ours, BadInput):
        # COPY does not look for the end of a quote in the header.
        assert (theirs == [] and format.skip) or theirs[0] == ours.sqlstate
        return
    rows, lines, rejects = ours
    if isinstance(theirs, list):
        assert rejects == []
        assert rows == theirs
        assert len(lines) == len(rows)
    else:
        assert rejects[0].sqlstate == theirs[0]
        if format.quote.encode() not in data:  # those between quotes it counts only sometimes
            assert rejects[0].line == theirs[1]


FIELD = st.text("ab,;\"\n\r\\'é€ 1", max_size=6)
PLAIN = st.text("abé€ 1", max_size=6)
QUOTED = FIELD.map(lambda each: '"' + each.replace('"', '""') + '"')
LINES = st.lists(
    st.lists(st.one_of(PLAIN, PLAIN, QUOTED, FIELD), min_size=1, max_size=3).map(",".join), max_size=6
)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])


@pytest.mark.invariant("csv-as-copy")
@settings(max_examples=200)
@given(
    LINES,
    ENDINGS,
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([",", ",", ";"]),
    st.sampled_from(['""', '""', "''", "'\\", '"\\', '"a']),
    st.sampled_from(["", "b"]),
    st.integers(0, 1),
)
@example(['a"b"c', '"x""y"', '""'], "\n", True, 1, ",", '""', "", 0)
@example(["\\.", "a"], "\n", True, 1, ",", '""', "", 0)
@example(["", "a", ""], "\n", True, 1, ",", '""', "", 0)
@example(['"a\r\nb",c', "d,e"], "\n", True, 2, ",", '""', "", 0)
@example(['"a\nb",c', "d,e"], "\r\n", False, 2, ",", '""', "", 0)
def test_any_file_gives_what_copy_gives(
    copy: Copy,
    lines: list[str],
    ending: str,
    is_whole: bool,
    width: int,
    delimiter: str,
    signs: str,
    null: str,
    skip: int,
) -> None:
    data = (ending.join(lines) + (ending if is_whole else "")).encode()
    agree(copy, data, width, Csv(delimiter, signs[0], signs[1], null, skip=skip))


@pytest.mark.invariant("csv-as-copy")
@settings(max_examples=200)
@given(LINES, ENDINGS, st.booleans(), st.integers(1, 9), st.integers(1, 12), st.integers(0, 2))
def test_a_file_gives_the_same_however_it_is_cut(
    lines: list[str], ending: str, is_whole: bool, most: int, split_bytes: int, skip: int
) -> None:
    data = (ending.join(lines) + (ending if is_whole else "")).encode()
    format = Csv(skip=skip)
    whole = outcome(data, "text", "int8", format=format)
    if isinstance(whole, BadInput):
        with pytest.raises(BadInput, match=str(whole)) as found:
            read_split(data, "text", "int8", split_bytes=split_bytes, format=format, rejects_max=100)
        assert found.value.where == whole.where
        return
    assert read_file(data, "text", "int8", most=most, format=format, rejects_max=100) == whole
    split = read_split(
        data, "text", "int8", most=most, split_bytes=split_bytes, format=format, rejects_max=100
    )
    assert split == whole


def test_a_refused_row_says_where_it_starts_and_what_was_wrong() -> None:
    data = b'a,1\n"b\nb",x\nc,2,3\nd\n"e\n\ne",5\nf,99999999999999999999\n'
    found = read_file(data, "text", "int8", rejects_max=9)
    assert found.rows == [("a", 1), ("e\n\ne", 5)]
    assert found.lines == [1, 6]
    assert [(each.line, each.column, each.sqlstate, each.reason, each.raw) for each in found.rejects] == [
        (2, "b", "22P02", 'invalid input syntax for type bigint: "x"', '"b\nb",x'),
        (4, "", "22P04", "extra data after last expected column", "c,2,3"),
        (5, "", "22P04", 'missing data for column "b"', "d"),
        (9, "b", "22003", 'value "99999999999999999999" is out of range for type bigint', _LAST),
    ]


_LAST = "f,99999999999999999999"


def test_one_row_too_many_ends_the_reading_with_its_own_error() -> None:
    with pytest.raises(BadInput, match="invalid input syntax for type bigint") as found:
        read_file(b"1\nx\n", "int8")
    assert found.value.sqlstate == "22P02"
    assert found.value.where == 'file "f", line 2, column a'
    with pytest.raises(BadInput, match='"z"') as found:
        read_file(b"x\ny\n1\nz\n", "int8", most=4, rejects_max=2)
    assert found.value.where == 'file "f", line 4, column a'


def test_the_row_that_is_too_many_is_the_first_of_those_whatever_its_column() -> None:
    data = b"1,x\n2,3\n" + b"y,4\n" * 5
    with pytest.raises(BadInput) as found:
        read_file(data, "int8", "int8")
    assert found.value.where == 'file "f", line 1, column b'
    with pytest.raises(BadInput) as found:
        read_file(data, "int8", "int8", rejects_max=3)
    assert found.value.where == 'file "f", line 5, column a'
    assert found.value.detail == "More than 3 rows of the file were refused."


def test_bytes_that_are_no_text_are_refused_with_their_line() -> None:
    found = read_file(b"a\nb\xffb\nc\0c\nd\n", "text", rejects_max=9)
    assert found.rows == [("a",), ("d",)]
    reason = 'invalid byte sequence for encoding "UTF8": 0x'
    assert [(each.line, each.sqlstate, each.reason) for each in found.rejects] == [
        (2, "22021", reason + "ff"),
        (3, "22021", reason + "00"),
    ]


def test_a_byte_order_mark_is_passed_over_at_the_start_alone() -> None:
    mark = "\ufeff"
    data = f"{mark}a\n{mark}b\n".encode()
    assert read_file(data, "text").rows == [("a",), (mark + "b",)]
    assert read_split(data, "text", split_bytes=4).rows == [("a",), (mark + "b",)]


def test_the_null_text_is_null_in_quotes_only_if_that_is_wanted() -> None:
    data = b'NA,"NA",""\n'
    assert read_file(data, "text", "text", "text", format=Csv(null="NA")).rows == [(None, "NA", "")]
    always = Csv(null="NA", is_quoted_null=True)
    assert read_file(data, "text", "text", "text", format=always).rows == [(None, None, "")]
    assert read_file(data + b"x\0,,\n", "text", "text", "text", format=always, rejects_max=1).rows == [
        (None, None, "")
    ]


def test_a_quote_that_is_never_closed_ends_the_reading_with_bounded_memory() -> None:
    data = b'a\n"b\n' + b"c\n" * 100_000
    with pytest.raises(BadInput, match="unterminated CSV quoted field") as found:
        read_file(data, "text", rejects_max=10**6)
    assert found.value.where == 'file "f", line 2'
    limits = FileLimits(row_bytes_max=1000)
    with pytest.raises(BadInput, match="longer than 1000 bytes: is a quote left open") as found:
        read_file(data, "text", most=512, limits=limits)
    assert (found.value.sqlstate, found.value.where) == ("54000", 'file "f", line 2')
    with pytest.raises(BadInput, match="longer than 1000 bytes"):
        read_file(b"x" * 10**7, "text", most=512, limits=limits)


def test_fields_and_rows_that_are_too_long_are_refused() -> None:
    limits = FileLimits(field_bytes_max=10, row_bytes_max=15)
    data = b"a,b\n" + b"x" * 11 + b",c\n" + b"y" * 8 + b"," + b"z" * 8 + b"\n"
    found = read_file(data, "text", "text", limits=limits, rejects_max=9)
    assert found.rows == [("a", "b")]
    assert [(each.line, each.column, each.sqlstate) for each in found.rejects] == [
        (2, "a", "54000"),
        (3, "", "54000"),
    ]


def test_more_rows_or_columns_than_allowed_end_the_reading() -> None:
    with pytest.raises(BadInput, match="more than 2 rows"):
        read_file(b"1\n2\n3\n", "int8", limits=FileLimits(rows_max=2))
    with pytest.raises(BadInput, match="into 2 columns"):
        read_file(b"1,2\n", "int8", "int8", limits=FileLimits(columns_max=1))


def test_a_record_of_very_many_fields_is_refused_without_cutting_them_all() -> None:
    many = b"," * 1_000_000
    found = read_file(b"1,2\n" + many + b'\n"3"' + many + b"\n", "int8", "int8", rejects_max=9)
    assert found.rows == [(1, 2)]
    assert [(each.line, each.reason) for each in found.rejects] == [
        (2, "extra data after last expected column"),
        (3, "extra data after last expected column"),
    ]


def test_a_file_that_becomes_shorter_is_not_read_as_if_that_were_all() -> None:
    whole = task(b"1\n2\n3\n", "int8")
    with pytest.raises(BadInput, match="became shorter") as found:
        read_all([whole.but(start=2, end=6)], memory(f=b"1\n2\n"))
    assert found.value.sqlstate == "58030"


def test_what_arrow_cannot_hold_is_in_the_rest() -> None:
    found = read_file(b"1,NaN\n2,1.5\n", "int8", "numeric(5,2)")
    assert found.rows[0][:2] == (1, None)
    assert unpack_columns(found.rows[0][2]) == {2: "NaN"}
    assert (found.rows[1][0], str(found.rows[1][1]), found.rows[1][2]) == (2, "1.50", None)


def test_the_raw_text_of_a_reject_is_bounded() -> None:
    (reject,) = read_file(b"x" * 5000 + b"\n", "int8", rejects_max=1).rejects
    assert reject.raw == "x" * 1024
    assert len(reject.reason) <= 1024


def test_a_task_can_be_sent_to_another_process() -> None:
    sent = task(b"", "numeric(5,2)", "timestamptz", zone=ZoneInfo("Europe/Berlin"))
    assert pickle.loads(pickle.dumps(sent)) == sent
