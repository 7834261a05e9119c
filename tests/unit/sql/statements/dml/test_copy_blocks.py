"""COPY of tables in blocks, beside the row by row of a table with a partial index: nobody can tell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.sql.served import Served, serving

COLUMNS = "a int NOT NULL, b smallint, c char(4), v varchar(3), d text, n numeric(6, 2), at timestamptz"
MANY = "".join(f"{at}\t{at % 7}\tx\ty\tz\t1.5\t2020-01-01 00:00\n" for at in range(600))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(Path(tmp_path_factory.mktemp("blocks"))) as served:
        served.tag("SET timezone = 'Europe/Berlin'")
        yield served


def _told(
    served: Served, columns: str, data: bytes, options: str, size: int, *, by_rows: bool = False
) -> tuple[Any, ...]:
    """What a COPY of pieces of this size into an empty table says, and the rows afterwards.

    A partial index that no row is in makes it go row by row.
    """
    served.tag("DROP TABLE IF EXISTS t")
    served.tag(f"CREATE TABLE t ({columns})")
    if by_rows:
        served.tag("CREATE INDEX ON t (a) WHERE a = -99")
    told: tuple[Any, ...] = ()
    try:
        with served.root.cursor() as cursor:
            with cursor.copy(f"COPY t FROM STDIN {options}".encode()) as copy:
                for first in range(0, len(data), size):
                    copy.write(data[first : first + size])
            told = (cursor.statusmessage,)
    except psycopg.Error as error:
        told = error.sqlstate, error.diag.message_primary, error.diag.message_detail, error.diag.context
    return (*told, served.rows("SELECT * FROM t ORDER BY a, b, d"))


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (a, c)"])
@pytest.mark.parametrize(
    "data",
    [
        "",
        "1\t2\tab\tc\td\t1.234\t2020-06-01 12:00\n",
        "1\t2\tab\tc\td\t1.234\t2020-06-01 12:00",
        "1\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n2\t3\ta\\tb\tc\\\\\té\t0\tinfinity\n",
        " +1\t-2\tab  \tc     \t\t1e2\tepoch\n",
        "1\t2\tab\tc\td\t1\tepoch\r\n2\t2\tab\tc\td\t1\tepoch\r\n",
        MANY,
        MANY + "\\.\n" + MANY,
        MANY + "1\t2\tab\tc\td\t1\tepoch\n",
        MANY + "\\N\t2\tab\tc\td\t1\tepoch\n",
        MANY + "5000\t70000\tab\tc\td\t1\tepoch\n",
        MANY + "5000\tx\tab\tc\td\t1\tepoch\n" + MANY,
        MANY + "5000\t1\tabcde\tc\td\t1\tepoch\n",
        MANY + "5000\t1\tab\tcdef\td\t1\tepoch\n",
        MANY + "5000\t1\tab\tc\td\t99999\tepoch\n",
        MANY + "5000\t1\tab\tc\td\t1\tnever\n",
        MANY + "5000\t1\tab\n",
        MANY + "5000\t1\tab\tc\td\t1\tepoch\tmore\n",
        MANY + "5000\t1\tab\tc\td\0\t1\tepoch\n",
        "5000\t1\t" + "k" * 4 + "\tc\t" + "d" * 5_000 + "\t1\tepoch\n",
    ],
)
def test_blocks_and_rows_are_told_and_written_alike(served: Served, data: str, key: str) -> None:
    for options, size in (("", 1 << 20), ("(HEADER)", 5_003)):
        block = _told(served, COLUMNS + key, data.encode(), options, size)
        assert block == _told(served, COLUMNS + key, data.encode(), options, size, by_rows=True)


def test_another_text_for_null(served: Served) -> None:
    data = MANY.replace("x", "").encode()
    block = _told(served, COLUMNS, data, "(NULL '')", 1 << 20)
    assert block == _told(served, COLUMNS, data, "(NULL '')", 1 << 20, by_rows=True)
    assert block[-1][0][2] is None


def test_bytes_that_are_no_text_are_refused(served: Served) -> None:
    data = MANY.encode() + b"1\t2\tab\tc\td\xff\t1\tepoch\n"
    answer = _told(served, COLUMNS, data, "", 1 << 20)
    assert answer[:2] == ("22021", 'invalid byte sequence for encoding "UTF8": 0xff')


def test_the_limit_of_a_transaction_holds_for_blocks(served: Served) -> None:
    served.tag("SET CLUSTER SETTING kv.transaction.max_rows = 1000")
    try:
        answer = _told(served, COLUMNS, 2 * MANY.encode(), "", 1 << 20)
    finally:
        served.tag("RESET CLUSTER SETTING kv.transaction.max_rows")
    assert answer[0] == "54000" and answer[-1] == []


@pytest.mark.parametrize(
    "elements",
    [
        "CHECK (a < 500)",
        "CHECK (b < 90), CHECK (a + 0 / (a - 450) >= 0)",
        "UNIQUE (d)",
        "UNIQUE (c, b)",
        "PRIMARY KEY (a), UNIQUE (n), CHECK (d <> 'w')",
    ],
)
@pytest.mark.parametrize(
    "data",
    [
        MANY.replace("\tz\t", "\t\\N\t"),
        "".join(f"{at}\t1\tx{at % 90}\ty\tz{at}\t{at}\tepoch\n" for at in range(600)),
        "1\t1\tx\ty\t" + "long" * 800 + "\t1\tepoch\n",
        "1\t1\tx\ty\tw\t1\tepoch\n2\t95\tx\ty\tw\t1\tepoch\n",
    ],
)
def test_checks_and_unique_keys_hold_for_blocks_as_for_rows(served: Served, elements: str, data: str) -> None:
    columns = f"{COLUMNS}, {elements}"
    block = _told(served, columns, data.encode(), "", 1 << 20)
    assert block == _told(served, columns, data.encode(), "", 1 << 20, by_rows=True)
