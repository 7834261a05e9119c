"""COPY's FORCE options of CSV, for named columns and for all of them: as PostgreSQL takes them."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.unit.sql.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(Path(tmp_path_factory.mktemp("force"))) as served:
        served.tag("CREATE TABLE t (id int PRIMARY KEY, a text, b text)")
        yield served


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", (None, "")),
        ("FORCE_NULL *", (None, None)),
        ("FORCE_NULL (b)", (None, None)),
        ("FORCE_NULL (a)", (None, "")),
        ("FORCE_NOT_NULL *", ("", "")),
        ("FORCE_NOT_NULL (a)", ("", "")),
        ("FORCE_NOT_NULL (a), FORCE_NULL (b)", ("", None)),
        ("FORCE_NOT_NULL *, FORCE_NULL *", ("", None)),
    ],
)
def test_fields_that_look_like_null(served: Served, options: str, expected: tuple[str | None, ...]) -> None:
    """The first field is empty, the second an empty text in quotes."""
    served.tag("DELETE FROM t")
    with (
        served.root.cursor() as cursor,
        cursor.copy(f"COPY t FROM STDIN (FORMAT csv{', ' * bool(options)}{options})".encode()) as copy,
    ):
        copy.write(b'1,,""\n')
    assert served.rows("SELECT a, b FROM t") == [expected]


def test_force_quote_of_all_columns(served: Served) -> None:
    served.tag("DELETE FROM t")
    served.tag("INSERT INTO t VALUES (1, 'x', NULL)")
    with served.root.cursor() as cursor, cursor.copy("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE *)") as copy:
        assert b"".join(bytes(each) for each in copy) == b'"1","x",\n'


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("COPY t FROM STDIN (FORCE_NULL *)", ("0A000", "COPY FORCE_NULL requires CSV mode")),
        ("COPY t FROM STDIN (FORMAT binary, QUOTE 'x')", ("0A000", "COPY QUOTE requires CSV mode")),
        ("COPY t TO STDOUT (FORCE_QUOTE *)", ("0A000", "COPY FORCE_QUOTE requires CSV mode")),
        (
            "COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE *)",
            ("0A000", "COPY FORCE_QUOTE cannot be used with COPY FROM"),
        ),
        (
            "COPY t TO STDOUT (FORMAT csv, FORCE_NOT_NULL (a))",
            ("22023", "COPY FORCE_NOT_NULL cannot be used with COPY TO"),
        ),
        (
            "COPY t FROM STDIN (FORMAT csv, FORCE_NULL (a, a))",
            ("42701", 'column "a" specified more than once'),
        ),
    ],
)
def test_they_are_refused_where_they_mean_nothing(
    served: Served, statement: str, refused: tuple[str, str]
) -> None:
    with (
        pytest.raises(psycopg.Error) as caught,
        served.root.cursor() as cursor,
        cursor.copy(statement.encode()),
    ):
        pass
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == refused
