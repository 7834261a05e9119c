"""PostgreSQL as the judge of values, types and SQLSTATEs: many expressions in one query.

An answer is (value as text, type), or a SQLSTATE. `Operand` is a value given as text with its type,
or as an untyped literal; `ours` and `theirs` ask both sides the same.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

from tenure.base.errors import UserError
from tenure.expr import Context, compile, parse_type_name, type_of
from tenure.expr.tree.build import Typed, call, cast, const, literal
from tenure.expr.types.datatype import Type
from tests.postgres_server import Server

UNKNOWN = "unknown"
CONTEXT = Context(0, 0, lambda: UUID(int=0), lambda: 0)

CASED = ("lower", "upper", "initcap", "~~*", "!~~*", "~", "~*", "!~", "!~*")
"""What depends on the collation in PostgreSQL: the one here has Unicode's letters, in C's order."""

_TRY = """
CREATE FUNCTION pg_temp.try(expression text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE answer text[];
BEGIN
    EXECUTE 'SELECT ARRAY[CASE WHEN x IS NULL THEN NULL ELSE concat(x) END, pg_typeof(x)::text] '
         || 'FROM (SELECT (' || expression || ') AS x OFFSET 0) AS asked' INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    RETURN ARRAY[SQLSTATE];
END $$
"""


class Value(NamedTuple):
    text: str | None
    type: str


class Failure(NamedTuple):
    sqlstate: str


Answer = Value | Failure


class Operand(NamedTuple):
    text: str | None
    type: str = UNKNOWN

    @property
    def sql(self) -> str:
        text = "NULL" if self.text is None else "'" + self.text.replace("'", "''") + "'"
        return text if self.type == UNKNOWN else f"{text}::{self.type}"

    @property
    def built(self) -> Typed:
        return literal(self.text) if self.type == UNKNOWN else cast(literal(self.text), named(self.type))


class Oracle:
    def __init__(self, server: Server) -> None:
        self.connection = psycopg.connect(server.dsn, autocommit=True)
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute(_TRY)

    def ask(self, expressions: Sequence[str]) -> list[Answer]:
        asked = "SELECT pg_temp.try(e) FROM unnest(%s::text[]) WITH ORDINALITY AS t(e, n) ORDER BY n"
        rows = self.connection.execute(asked, [list(expressions)]).fetchall()
        return [Failure(row[0]) if len(row) == 1 else Value(*row) for (row,) in rows]

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return self.connection.execute(query).fetchall()


def named(name: str) -> Type:
    return type_of(parse_type_name(name))


def sql_call(name: str, operands: Sequence[Operand]) -> str:
    parts = [each.sql for each in operands]
    if name in CASED and operands[0].type in ("text", "varchar", "char(5)"):
        parts[0] = f"({parts[0]} COLLATE pg_c_utf8)"
    if name[0].isalpha():
        return f'pg_catalog."{name}"({", ".join(parts)})'
    return f"{name} {parts[0]}" if len(parts) == 1 else f"{parts[0]} {name} {parts[1]}"


def our_call(name: str, operands: Sequence[Operand], context: Context = CONTEXT) -> Answer:
    return ours(lambda: call(name, *(each.built for each in operands)), context)


def ours(build: Callable[[], Typed], context: Context = CONTEXT) -> Answer:
    """What the expression gives here, in the words of the oracle."""
    try:
        typed = build()
        value = compile(typed.node, {})({}, context)
        text = None if value is None else typed.type.render_in(value, context.zone)
    except UserError as error:
        return Failure(error.sqlstate)
    return Value(text, shown(typed.type))


def shown(kind: Type) -> str:
    """The type's name as pg_typeof gives it: without modifiers."""
    return re.sub(r"\(.*?\)", "", kind.sql_name).replace("bpchar", "character")


def constant(value: object, type: str) -> Typed:
    return const(value, named(type))
