"""The same statements said to a SQL session of a node, and to PostgreSQL.

    session = Talk(node)          session.say("CREATE TABLE t (a int)")   Said("CREATE TABLE")
    postgres = Oracle(server)     postgres.say(...)                       the same, if all is well

A script is some lines, one statement each. Before a statement may stand:

    0A000: ...     said to Tenure only, which answers with this SQLSTATE
    ours: ...      said to Tenure only; it must not fail
    theirs: ...    said to PostgreSQL only
    like: ...      said to both; only SQLSTATE, tag and rows are compared, not the words
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import psycopg
from psycopg import pq
from psycopg.pq import DiagnosticField, ExecStatus

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tenure.sql.session.answers import Answer
from tests.postgres_server import Server

ROLE = f"role_{os.getpid()}_"
"""What the names of roles begin with; scripts say `role_`."""

_MARK = re.compile(r"(ours|theirs|like|[0-9][0-9A-Z]{4}): (.*)", re.DOTALL)


class Said(NamedTuple):
    tag: str = ""
    rows: tuple[tuple[str | None, ...], ...] = ()
    columns: tuple[str, ...] = ()
    sqlstate: str = ""
    message: str = ""
    detail: str = ""
    hint: str = ""
    notices: tuple[tuple[str, str, str], ...] = ()
    """SQLSTATE, message and detail of each."""

    @property
    def gist(self) -> "Said":
        """Without words."""
        return Said(self.tag, self.rows, self.columns, self.sqlstate)


@contextmanager
def running(directory: Path) -> Iterator[Node]:
    node = Node(NodeOptions(f"sqlite:{directory}/store.db", listen=Listen(port=0)), SystemEnv())
    try:
        yield node
    finally:
        node.stop()


class Talk:
    """A session of a node, without a socket."""

    def __init__(self, node: Node, database: str = "defaultdb", user: str = "root") -> None:
        assert node.front is not None
        self.session = node.front.sessions.open(user=user, database=database, options={})

    def say(self, text: str) -> Said:
        session = self.session
        session.notices.clear()
        try:
            prepared = session.prepare("", text, ())
            session.bind("", "", ())
            answer = session.execute("", ends=True)
            assert isinstance(answer, Answer)
            rows, tag = list(answer.rows), answer.tag
            while not answer.is_done:
                more = session.execute("", ends=True)
                assert isinstance(more, Answer)
                answer = more
                rows += answer.rows
            session.sync()
        except TenureError as error:
            session.failed()
            return Said(
                sqlstate=error.sqlstate,
                message=str(error),
                detail=error.detail,
                hint=getattr(error, "hint", ""),
                notices=self._notices(),
            )
        columns = prepared.columns or ()
        texts = tuple(
            tuple(
                None if value is None else column.type.render(value)
                for column, value in zip(columns, row, strict=True)
            )
            for row in rows
        )
        counted = f"{tag} {len(rows)}" if answer.counts else tag
        return Said(counted, texts, tuple(each.name for each in columns), notices=self._notices())

    def _notices(self) -> tuple[tuple[str, str, str], ...]:
        return tuple((each.sqlstate, each.message, each.detail) for each in self.session.notices)

    def close(self) -> None:
        self.session.close()


class Saying(Thread):
    """A statement on its way in another thread."""

    def __init__(self, talk: Talk, statement: str) -> None:
        super().__init__()
        self._talk, self._statement = talk, statement
        self.said: Said | None = None
        self.start()

    def run(self) -> None:
        self.said = self._talk.say(self._statement)

    def result(self) -> Said:
        self.join(60)
        assert self.said is not None, f"{self._statement} did not end"
        return self.said


class Oracle:
    """PostgreSQL, in an empty schema `public` of a database for these scripts."""

    def __init__(self, server: Server) -> None:
        name = f"defining_{os.getpid()}"  # several processes may run these tests
        with psycopg.connect(server.dsn, autocommit=True) as first:
            first.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            first.execute(f"CREATE DATABASE {name}")
        self.connection = psycopg.connect(f"{server.dsn} dbname={name}", autocommit=True)
        self._told: list[tuple[str, str, str]] = []
        self.connection.pgconn.notice_handler = self._hear

    def _hear(self, result: "pq.abc.PGresult") -> None:
        self._told.append(
            (
                _field(result, DiagnosticField.SQLSTATE),
                _field(result, DiagnosticField.MESSAGE_PRIMARY),
                _field(result, DiagnosticField.MESSAGE_DETAIL),
            )
        )

    def start_over(self) -> None:
        self.say("ROLLBACK")
        self.say("DROP SCHEMA public CASCADE")
        for name in self.say("SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_)'").rows:
            self.say(f'DROP SCHEMA "{name[0]}" CASCADE')
        self.say("CREATE SCHEMA public")
        self.say("RESET ALL")
        for name in self.say(f"SELECT rolname FROM pg_roles WHERE rolname ~ '^{ROLE}'").rows:
            self.say(f"DROP ROLE {name[0]}")

    def say(self, text: str) -> Said:
        self._told = []
        result = self.connection.pgconn.exec_(text.encode())
        if result.status == ExecStatus.FATAL_ERROR:
            return Said(
                sqlstate=_field(result, DiagnosticField.SQLSTATE),
                message=_field(result, DiagnosticField.MESSAGE_PRIMARY),
                detail=_field(result, DiagnosticField.MESSAGE_DETAIL),
                hint=_field(result, DiagnosticField.MESSAGE_HINT),
                notices=tuple(self._told),
            )
        rows = tuple(
            tuple(_text(result.get_value(row, at)) for at in range(result.nfields))
            for row in range(result.ntuples)
        )
        columns = tuple((result.fname(at) or b"").decode() for at in range(result.nfields))
        return Said((result.command_status or b"").decode(), rows, columns, notices=tuple(self._told))


def _field(result: "pq.abc.PGresult", field: DiagnosticField) -> str:
    return (result.error_field(field) or b"").decode()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


_numbers = count(1)


def compare(node: Node, oracle: Oracle, script: str) -> None:
    """Says a script to both; each statement must be answered alike."""
    name = f"script_{next(_numbers)}"
    first = Talk(node)
    assert first.say(f"CREATE DATABASE {name}").sqlstate == ""
    first.close()
    oracle.start_over()
    talk = Talk(node, name)
    try:
        for line in statements_of(script):
            _compare_one(talk, oracle, line)
    finally:
        talk.close()


def _compare_one(talk: Talk, oracle: Oracle, line: str) -> None:
    mark = _MARK.fullmatch(line)
    how, text = mark.groups() if mark is not None else ("", line)
    text = text.replace("role_", ROLE)
    if how == "theirs":
        _require(text, oracle.say(text).sqlstate, "")
    elif how == "ours":
        said = talk.say(text)
        _require(text, (said.sqlstate, said.message), ("", ""))
    elif how == "like":
        _require(text, talk.say(text).gist, oracle.say(text).gist)
    elif how:
        _require(text, talk.say(text).sqlstate, how)
    else:
        _require(text, talk.say(text), oracle.say(text))


def _require(text: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise AssertionError(f"{text}\n  answered {ours}\n  expected {theirs}")


def statements_of(script: str) -> Sequence[str]:
    """One a line; a line that begins with a blank goes on with the one before."""
    found: list[str] = []
    for line in script.strip("\n").splitlines():
        if line.startswith(" ") and found:
            found[-1] += f"\n{line}"
        elif line.strip() and not line.startswith("--"):
            found.append(line)
    return found
