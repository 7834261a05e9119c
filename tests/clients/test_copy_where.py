"""COPY ... FROM STDIN WHERE with a real client, compared with PostgreSQL."""

from typing import Any

import psycopg
import pytest

from tenure.node import Node
from tests.postgres_server import Server

TABLE = """
CREATE TEMPORARY TABLE t (
    id int PRIMARY KEY, a text, g int GENERATED ALWAYS AS (id * 2) STORED, d int DEFAULT 7, n serial
)
"""
LINES = b"1\tx\n2\t\\N\n3\tz\n4\tx\n"


def outcome(address: str, text: str, data: bytes) -> object:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(TABLE)
        cursor = connection.cursor()
        try:
            with cursor.copy(text) as copy:
                copy.write(data)
        except psycopg.Error as error:
            return error.sqlstate, error.diag.message_primary, error.diag.message_detail
        return cursor.statusmessage, rows(connection)


def rows(connection: "psycopg.Connection[Any]") -> list[tuple[Any, ...]]:
    return connection.execute("SELECT id, a, g, d FROM t ORDER BY id").fetchall()


@pytest.mark.parametrize(
    "where",
    [
        *(
            "id > 2",
            "a = 'x' AND id > 1",
            "a IS NULL",
            "d = 7 AND t.id < 3",
            "d > 7",
            "n > 0",
            "a",
            "nope > 1",
        ),
        *(
            "g > 1",
            "id > (SELECT 1)",
            "count(*) > 1",
            "generate_series(1, 2) > 1",
            "row_number() OVER () > 1",
        ),
        *("true", "NULL", "length(a) = 1", "id IN (1, 4)", "1 / (id - 2) > 0"),
    ],
)
def test_rows_are_chosen_as_in_postgresql(lone: Node, postgres: Server, where: str) -> None:
    assert lone.front is not None
    ours = f"host={lone.front.host} port={lone.front.port} user=root dbname=defaultdb"
    text = f"COPY t (id, a) FROM STDIN WHERE {where}"
    assert outcome(ours, text, LINES) == outcome(postgres.dsn, text, LINES)


def test_a_row_that_is_left_out_breaks_no_constraint(lone: Node, postgres: Server) -> None:
    assert lone.front is not None
    ours = f"host={lone.front.host} port={lone.front.port} user=root dbname=defaultdb"
    text = "COPY t (id, a) FROM STDIN (FORMAT csv) WHERE a <> 'twice'"
    data = b"1,x\n1,twice\n2,y\n"
    assert outcome(ours, text, data) == outcome(postgres.dsn, text, data)
