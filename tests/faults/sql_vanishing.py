"""A client in a process of its own that gets somewhere, says so on standard output, and stays there.

    python -m tests.faults.sql_vanishing DSN WHERE NUMBER

Walk: `sql_clients` starts it and kills or stops it; WHERE is one of `PLACES`.
"""

import sys
import time
from typing import Any

import psycopg

ROWS = 5_000


def transaction(client: "psycopg.Connection[Any]", number: int) -> None:
    """In a transaction that has written and holds a lock."""
    client.execute("BEGIN")
    client.execute("SELECT * FROM things WHERE id = %s FOR UPDATE", (number,))
    client.execute("INSERT INTO things VALUES (%s, 'mine')", (1_000_000 + number,))


def copy(client: "psycopg.Connection[Any]", number: int) -> None:
    """In the middle of COPY FROM STDIN, in a transaction that holds a lock."""
    client.execute("BEGIN")
    client.execute("UPDATE things SET what = 'copying' WHERE id = %s", (number,))
    with client.cursor().copy("COPY things FROM STDIN") as stream:
        for row in range(ROWS):
            stream.write_row((2_000_000 + row, "copied"))
        client.pgconn.flush()
        _stay()


def result(client: "psycopg.Connection[Any]", number: int) -> None:
    """In the middle of a result that it does not read."""
    client.execute("BEGIN")
    client.execute("UPDATE things SET what = 'reading' WHERE id = %s", (number,))
    client.pgconn.send_query(b"SELECT repeat('x', 10000) FROM generate_series(1, 100000)")
    client.pgconn.flush()


def sleep(client: "psycopg.Connection[Any]", number: int) -> None:
    """Waiting for a statement that takes long, holding a lock."""
    client.execute("BEGIN")
    client.execute("UPDATE things SET what = 'sleeping' WHERE id = %s", (number,))
    client.pgconn.send_query(b"SELECT pg_sleep(20)")
    client.pgconn.flush()


def wait(client: "psycopg.Connection[Any]", number: int) -> None:
    """Waiting for a lock that somebody else has, holding one."""
    client.execute("BEGIN")
    client.execute("UPDATE things SET what = 'waiting' WHERE id = %s", (number,))
    client.pgconn.send_query(b"SELECT * FROM things WHERE id = 0 FOR UPDATE")
    client.pgconn.flush()


PLACES = {each.__name__: each for each in (transaction, copy, result, sleep, wait)}


def main() -> None:
    dsn, where, number = sys.argv[1:]
    client = psycopg.connect(dsn, autocommit=True)
    PLACES[where](client, int(number))
    _stay()


def _stay() -> None:
    print("there", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
