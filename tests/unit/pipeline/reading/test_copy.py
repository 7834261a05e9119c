"""COPY's text format against PostgreSQL's COPY; INSERTs of constants."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenure.base.errors import BadInput
from tenure.pipeline.reading import FileLimits
from tenure.pipeline.reading.tasks import CopyText, Inserts
from tests.postgres_server import Server
from tests.unit.pipeline.reading.files import Read, memory, read_all, read_file, task


@pytest.fixture(scope="module")
def connection(postgres: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        yield connection


def theirs(
    connection: psycopg.Connection[Any], data: bytes, width: int
) -> list[tuple[Any, ...]] | tuple[str, int]:
    """The rows; or the SQLSTATE and the line of the first error."""
    names = ", ".join("abcdefgh"[:width])
    connection.execute("DROP TABLE IF EXISTS pg_temp.copied")
    connection.execute(f"CREATE TEMP TABLE copied ({names.replace(',', ' text,')} text, n serial)")
    try:
        with connection.cursor().copy(f"COPY copied ({names}) FROM STDIN") as copy:
            copy.write(data)
    except psycopg.Error as error:
        digits = (error.diag.context or "").partition("line ")[2].partition(",")[0].partition(":")[0]
        return error.sqlstate or "", int(digits or 0)
    return connection.execute(f"SELECT {names} FROM copied ORDER BY n").fetchall()


def copied(data: bytes, *types: str, **more: Any) -> Read:
    return read_file(data, *types, format=CopyText(), rejects_max=1000, **more)


LINE = st.lists(
    st.sampled_from(
        ["a", "é", "\\N", "\\\\", "\\t", "\\x41", "\\101", "\t", "\t", "\\\t", "N", '"', "\\q", ""]
    )
).map("".join)


@pytest.mark.invariant("copy-text")
@settings(max_examples=300)
@given(st.lists(LINE.filter(lambda each: each != "\\."), max_size=5), st.integers(1, 3))
@example(["\\N", "\\\\N", "a\\N", "N", ""], 1)
@example(["a\tb", "a\\\tb\tc", "\t", "\\N\t\\N"], 2)
@example(["\\xff", "\\303\\251", "\\0"], 1)
@example(["a\tb\tc", "a"], 2)
def test_any_rows_give_what_copy_gives(
    connection: psycopg.Connection[Any], lines: list[str], width: int
) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    said = theirs(connection, data, width)
    rows, places, rejects = copied(data, *["text"] * width)
    if isinstance(said, list):
        assert (rows, rejects) == (said, [])
        assert places == list(range(1, len(rows) + 1))
    else:
        assert (rejects[0].sqlstate, rejects[0].line) == said


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_rows_are_the_same_however_they_are_read(most: int) -> None:
    data = b"1\ta\\nb\n\\N\t\\N\n3\tx\\\\y\n4\tb\xc3\xa9\n"
    found = copied(data, "int8", "text", most=most)
    assert found.rows == [(1, "a\nb"), (None, None), (3, "x\\y"), (4, "bé")]
    assert found.lines == [1, 2, 3, 4]


def test_a_refused_row_has_its_line_column_and_reason() -> None:
    data = b"1\ta\nx\tb\n3\n4\td\te\n5\t\xff\n6\tf\rg\n7\th\\\n"
    found = copied(data, "int8", "text", line=100)
    assert found.rows == [(1, "a")]
    assert [(each.line, each.column, each.sqlstate, each.reason) for each in found.rejects] == [
        (101, "a", "22P02", 'invalid input syntax for type bigint: "x"'),
        (102, "", "22P04", 'missing data for column "b"'),
        (103, "", "22P04", "extra data after last expected column"),
        (104, "", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
        (105, "", "22P04", "literal carriage return found in data"),
        (106, "b", "22P04", "a backslash stands before the end of the line"),
    ]


def test_a_range_of_a_file_is_read() -> None:
    data = b"no\n1\n2\n\\.\nno\n"
    found = read_all([task(data, "int8", format=CopyText(), start=3, end=7, line=2)], memory(f=data))
    assert (found.rows, found.lines) == ([(1,), (2,)], [2, 3])


def test_a_row_that_never_ends_is_given_up() -> None:
    limits = FileLimits(row_bytes_max=1000)
    with pytest.raises(BadInput, match="longer than 1000"):
        copied(b"x" * 5000, "text", limits=limits, most=100)


def inserted(text: str, *types: str, generated: tuple[int, ...] = ()) -> Read:
    data = text.encode()
    return read_file(data, *types, format=Inserts(generated), rejects_max=100, end=len(data))


def test_constants_are_read_by_the_types_of_their_columns() -> None:
    found = inserted(
        "INSERT INTO t VALUES (1, 'it''s;\n(2, NULL)', NULL);\n"
        "INSERT INTO t VALUES\n\t(-2, '', true),\n\t(3, '\\n', false);",
        *("int8", "text", "bool"),
    )
    assert found.rows == [(1, "it's;\n(2, NULL)", None), (-2, "", True), (3, "\\n", False)]
    assert found.lines == [1, 4, 5]


def test_default_stands_for_generated_columns_alone() -> None:
    text = "INSERT INTO t VALUES (1, DEFAULT, 'a');\nINSERT INTO t VALUES (DEFAULT, DEFAULT, 'b');\n"
    found = inserted(text + "INSERT INTO t VALUES (1, 2, 'c');", "int8", "text", generated=(1,))
    assert found.rows == [(1, "a")]
    assert [(each.line, each.sqlstate) for each in found.rejects] == [(2, "0A000"), (3, "0A000")]


def test_a_row_of_constants_has_as_many_as_there_are_columns() -> None:
    text = "INSERT INTO t VALUES (1, 'a', 2);\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES ('x', 'a');"
    found = inserted(text, "int8", "text")
    assert [(each.line, each.column, each.sqlstate) for each in found.rejects] == [
        (1, "", "42601"),
        (2, "", "22P04"),
        (3, "a", "22P02"),
    ]


def test_a_file_that_has_changed_meanwhile_is_given_up() -> None:
    with pytest.raises(BadInput, match="changed"):
        inserted("INSERT INTO t VALUES (pg_sleep(1));", "int8")
