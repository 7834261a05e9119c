"""The peer of collections: a history table in PostgreSQL, where a row says until when it was the newest.

Walk: `bench.gc.collection` and `bench.gc.files` fill one, then `delete` and `vacuum`.
"""

from typing import Any

import psycopg

from bench.gc.places import NOTE

REVISIONS = 100
"""Older ones of each row."""

HISTORY = (
    "CREATE TABLE {} (id bigint, at bigint, until bigint, version bigint NOT NULL, note text NOT NULL,"
    " PRIMARY KEY (id, at)) WITH (autovacuum_enabled = off)"
)
FILL = (
    "INSERT INTO {} SELECT id, at, CASE WHEN at < {} THEN at + 1 END, at, '{}'"
    " FROM generate_series(0, {}) id, generate_series(0, {}) at"
)

Client = psycopg.Connection[tuple[Any, ...]]


def fill(client: Client, name: str, rows: int) -> None:
    client.execute(HISTORY.format(name).encode())
    client.execute(FILL.format(name, REVISIONS, NOTE, rows - 1, REVISIONS).encode())
    client.execute(f"VACUUM ANALYZE {name}".encode())
    client.execute("CHECKPOINT")


def delete(client: Client, name: str) -> None:
    client.execute(f"DELETE FROM {name} WHERE until <= {REVISIONS}".encode())


def vacuum(client: Client, name: str) -> None:
    client.execute(f"VACUUM {name}".encode())


def rows_left(client: Client, name: str) -> int:
    """Rows that take space: the visible ones, and dead ones that VACUUM had to leave."""
    client.execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")
    row = client.execute("SELECT tuple_count + dead_tuple_count FROM pgstattuple(%s)", (name,)).fetchone()
    assert row is not None
    return int(row[0])
