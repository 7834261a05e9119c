"""What a statement is, by the binder and by PostgreSQL: its columns and parameters, or its error."""

import os
from typing import NamedTuple

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus

from tenure.base.errors import UserError
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.text.parse import one
from tests.postgres_server import Server
from tests.unit.sql.schema import DDL, KnownNames


class Described(NamedTuple):
    columns: tuple[tuple[str, str], ...]
    parameters: tuple[str, ...] = ()


class Fault(NamedTuple):
    sqlstate: str
    message: str
    position: int
    hint: str = ""


def ours(text: str) -> Described | Fault:
    try:
        statement = one(text)
        assert statement is not None
        query = bind_query(statement.tree, KnownNames(), Parameters(), text=text)
    except UserError as error:
        return Fault(error.sqlstate, str(error), error.position, error.hint)
    columns = tuple((each.name, each.type.sql_name) for each in query.outputs)
    return Described(columns, tuple(each.sql_name for each in query.parameters))


class Describer:
    """PostgreSQL, asked to describe statements over the same schema."""

    def __init__(self, server: Server) -> None:
        # The server is shared by all processes that run tests: each has a database of its own.
        name = f"described_{os.getpid()}"
        with psycopg.connect(server.dsn, autocommit=True) as first:
            first.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            first.execute(f"CREATE DATABASE {name}")
        self.connection = psycopg.connect(f"{server.dsn} dbname={name}", autocommit=True)
        self.connection.execute("CREATE SCHEMA bound")
        self.connection.execute("SET search_path = bound, public")
        self.connection.execute(DDL)
        self.names: dict[tuple[int, int], str] = {}

    def theirs(self, text: str) -> Described | Fault:
        connection = self.connection.pgconn
        prepared = connection.prepare(b"", text.encode())
        if prepared.status != ExecStatus.COMMAND_OK:
            return Fault(
                (prepared.error_field(DiagnosticField.SQLSTATE) or b"").decode(),
                (prepared.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"").decode(),
                int(prepared.error_field(DiagnosticField.STATEMENT_POSITION) or b"0"),
                (prepared.error_field(DiagnosticField.MESSAGE_HINT) or b"").decode(),
            )
        found = connection.describe_prepared(b"")
        columns = tuple(
            ((found.fname(at) or b"").decode(), self._type(found.ftype(at), found.fmod(at)))
            for at in range(found.nfields)
        )
        return Described(columns, tuple(self._type(found.param_type(at), -1) for at in range(found.nparams)))

    def _type(self, oid: int, modifier: int) -> str:
        if (oid, modifier) not in self.names:
            row = self.connection.execute("SELECT format_type(%s, %s)", [oid, modifier]).fetchone()
            assert row is not None
            self.names[oid, modifier] = row[0]
        return self.names[oid, modifier]
