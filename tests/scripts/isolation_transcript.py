"""Plays transcripts of SQL sessions that are in each other's way, on a node and on PostgreSQL.

    == a case begins with its name
    given: CREATE TABLE t (id int)       a session apart
    a: BEGIN                             the name before the colon says who acts
    a: SELECT * FROM t -> (1) (2)        rows, or the command's tag, or an error by its SQLSTATE
    b: UPDATE t SET id = 3 -> waits      it waits for another session
    b: -> UPDATE 2                       what came of it then
    b: COMMIT -> 23505 | COMMIT          where PostgreSQL answers otherwise, its answer stands behind the bar
    b: -> - | 23505                      the statement was done before

A session that waits is seen in pg_locks, by its number.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from tests.scripts.transcript import Case

_LINE = re.compile(r"(?P<who>\w+): (?P<command>.*?)(?: ?-> (?P<result>.*))?")
_LOOKS, _LOOK_SECONDS = 2_000, 0.01
"""How often it is looked whether a statement is done or waits: 20 s in all."""

Connect = Callable[[], "psycopg.Connection[Any]"]


class Actor:
    def __init__(self, connection: "psycopg.Connection[Any]", thread: ThreadPoolExecutor) -> None:
        self.connection = connection
        self._thread = thread
        self.pending: Future[str] | None = None

    def start(self, statement: str) -> None:
        assert self.pending is None, "it still waits"
        self.pending = self._thread.submit(_result, self.connection, statement)


@contextmanager
def _players(connect: Connect, schema: str) -> Iterator[Callable[[str], Actor]]:
    actors: dict[str, Actor] = {}
    with ExitStack() as stack:

        def actor(name: str) -> Actor:
            if name not in actors:
                thread = stack.enter_context(ThreadPoolExecutor(1))
                connection = stack.enter_context(connect())
                connection.execute(f"SET search_path = {schema}".encode())
                connection.execute("SET default_transaction_isolation = 'read committed'")
                actors[name] = Actor(connection, thread)
            return actors[name]

        yield actor


def play(case: Case, connect: Connect, *, schema: str, is_postgres: bool) -> list[str]:
    """Runs a case; returns its lines with what came of each command."""
    with connect() as looking:
        looking.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
        looking.execute(f"CREATE SCHEMA {schema}".encode())
        with _players(connect, schema) as actor:
            played = [_played(line, actor, looking, is_postgres=is_postgres) for line in case.lines]
        looking.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    return played


def _played(
    line: str, actor: Callable[[str], Actor], looking: "psycopg.Connection[Any]", *, is_postgres: bool
) -> str:
    if not line or line.startswith("#"):
        return line
    match = _LINE.fullmatch(line)
    assert match is not None, f"not a line of a transcript: {line}"
    acting = actor(match["who"])
    if match["command"]:
        acting.start(match["command"])
    expected = (match["result"] or "waits").split(" | ")
    own = expected[-1 if is_postgres else 0]
    result = _awaited(acting, looking, may_wait=own == "waits") if acting.pending else "-"
    if len(expected) == 2:
        result = " | ".join([expected[0], result] if is_postgres else [result, expected[1]])
    return f"{match['who']}: {match['command']}{' ' if match['command'] else ''}-> {result}"


def _awaited(acting: Actor, looking: "psycopg.Connection[Any]", *, may_wait: bool) -> str:
    """What comes of the statement, or that it waits for another session: PostgreSQL finds a deadlock only
    after a while."""
    pending = acting.pending
    assert pending is not None
    pid = acting.connection.info.backend_pid
    for _ in range(_LOOKS):
        try:
            result = pending.result(timeout=_LOOK_SECONDS)
        except TimeoutError:
            waiting = looking.execute(
                "SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", [pid]
            ).fetchone()
            if waiting != (0,) and may_wait:
                return "waits"
        else:
            acting.pending = None
            return result
    raise AssertionError("a statement neither ends nor waits for another session")


def _result(connection: "psycopg.Connection[Any]", statement: str) -> str:
    try:
        cursor = connection.execute(statement.encode())
        if cursor.description is None:
            return cursor.statusmessage or ""
        rows = sorted(cursor.fetchall(), key=repr)
        return " ".join(f"({', '.join(map(str, row))})" for row in rows) or "nothing"
    except psycopg.Error as error:
        return error.sqlstate or repr(error)
