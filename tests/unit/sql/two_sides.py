"""The same tables and rows here and in PostgreSQL, and the same statements asked of both.

An answer is the rows as text, or a SQLSTATE. Here a statement is run twice: as it was bound, and with
indexes chosen and conditions moved; both have to answer what PostgreSQL answers.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import psycopg

from tenure.base.errors import UndefinedTable, UserError
from tenure.catalog.descriptors.definitions import Column, Table, TypeRef
from tenure.expr import parse_type_name
from tenure.expr.tree.build import Typed, call, column, const
from tenure.expr.tree.expressions import to_stored
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.type_names import type_of
from tenure.kv.store import Store
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.bind.relations import Relation, missing_type
from tenure.sql.plans.plan import Query
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tests.postgres_server import Server
from tests.unit.sql.plans import Desk
from tests.unit.table.tables import index, table

INT4 = type_of(TypeRef("int4"))


def columns(text: str) -> list[Column]:
    found = []
    for number, each in enumerate(text.split(";"), 1):
        name, kind = each.strip().split(" ", 1)
        is_nullable = not kind.endswith(" NOT NULL")
        found.append(
            Column(number, name, parse_type_name(kind.removesuffix(" NOT NULL")), is_nullable=is_nullable)
        )
    return found


def above(id: int, value: int) -> Any:
    return to_stored(call(">", column(id, INT4), const(value, INT4)).node, "")


TABLES: dict[str, Table] = {
    each.name: each
    for each in (
        table(
            index(2, "a_x", 2),
            index(3, "a_x_y", 2, 3, descending=(3,)),
            index(4, "a_s", 4, unique=True),
            index(5, "a_partial", 6, predicate=above(2, 3)),
            index(6, "a_n", 5, 1),
            index(7, "a_flag", 8),
            id=301,
            name="a",
            columns=columns(
                "id bigint NOT NULL; x int; y bigint; s text; n numeric; d date; f float8; flag bool"
            ),
        ),
        table(
            index(2, "b_a", 2),
            index(3, "b_v", 3),
            index(4, "b_c", 4),
            id=302,
            name="b",
            columns=columns("id int NOT NULL; a_id bigint; v varchar(5); c char(4); w int[]"),
        ),
        table(
            id=303,
            name="p",
            columns=columns("k text NOT NULL; m int NOT NULL; t text"),
            key=(1, 2),
        ),
        table(id=304, name="e", columns=columns("id int NOT NULL; z int")),
    )
}


def rows_of(name: str) -> Iterator[tuple[Datum, ...]]:
    random = Random(name)

    def maybe(value: Any) -> Any:
        return None if random.random() < 0.15 else value

    match name:
        case "a":
            for id in range(1, 61):
                number = Decimal(random.randrange(0, 60)) / Decimal(random.choice(["10", "10.0", "4", "1"]))
                yield (
                    id,
                    maybe(random.randrange(8)),
                    maybe(random.randrange(5)),
                    maybe(f"s{id:02}"),
                    maybe(number),
                    maybe(date(2024, 1, 1) + timedelta(days=random.randrange(40))),
                    maybe(random.choice([0.5, -1.25, float("nan"), float("inf"), 2.0, -0.0, 0.0])),
                    maybe(random.random() < 0.5),
                )
        case "b":
            for id in range(1, 41):
                yield (
                    id,
                    maybe(random.randrange(1, 70)),
                    maybe(random.choice(["aa", "ab", "b", "ccc"])),
                    maybe(random.choice(["x   ", "xy  ", "zzzz"])),
                    maybe(tuple(random.randrange(3) for _ in range(random.randrange(3)))),
                )
        case "p":
            for key in ("k1", "k2", "k3"):
                for member in range(random.randrange(2, 7)):
                    yield key, member, maybe(f"{key}{member % 2}")


class TwoSides:
    def __init__(self, store: Store, server: Server) -> None:
        self.desk = Desk(store, *TABLES.values())
        self.connection = psycopg.connect(server.dsn)
        self.connection.execute("SET TimeZone = 'UTC'")
        for each in TABLES.values():
            self.connection.execute(_ddl(each))
            for row in rows_of(each.name):
                self.desk.insert(*row, id=each.id)
                self._copy(each, row)

    def close(self) -> None:
        self.connection.rollback()
        self.connection.close()

    def _copy(self, table: Table, row: Sequence[Datum]) -> None:
        kinds = [type_of(each.type) for each in table.columns]
        texts = [
            None if value is None else kind.render(value) for kind, value in zip(kinds, row, strict=True)
        ]
        marks = ", ".join(f"%s::text::{kind.sql_name}" for kind in kinds)
        self.connection.execute(f"INSERT INTO pg_temp.{table.name} VALUES ({marks})", texts)

    def theirs(self, text: str) -> Any:
        with self.connection.cursor() as cursor:
            try:
                with self.connection.transaction():
                    cursor.execute(text)
            except psycopg.Error as error:
                return error.sqlstate
            result = cursor.pgresult
            assert result is not None
            return [
                tuple(result.get_value(row, place) for place in range(result.nfields))
                for row in range(result.ntuples)
            ]

    def query(self, text: str) -> Query:
        parsed = one(text)
        assert parsed is not None
        return bind_query(parsed.tree, Names(), Parameters(), text=text)

    def ours(self, text: str, *, is_planned: bool) -> Any:
        try:
            query = self.query(text)
            query = with_access(query) if is_planned else query
            rows = list(compile(query).rows(self.desk.run()))
        except UserError as error:
            return error.sqlstate
        kinds = [output.type for output in query.outputs]
        return [tuple(map(_text, kinds, row)) for row in rows]


def _text(kind: Type, value: Datum) -> bytes | None:
    return None if value is None else kind.render(value).encode()


def _ddl(table: Table) -> str:
    parts = []
    for each in table.columns:
        kind = type_of(each.type)
        collation = ' COLLATE "C"' if kind.category == "S" else ""
        parts.append(f"{each.name} {kind.sql_name}{collation}")
    return f"CREATE TEMP TABLE {table.name} ({', '.join(parts)})"


class Names:
    def check_size(self, levels: int) -> None:
        pass

    def relation(self, name: Sequence[str], position: int) -> Relation:
        if len(name) == 1 and name[0] in TABLES:
            return TABLES[name[0]]
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist', position=position)

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        raise missing_type(name)

    def enum(self, id: int) -> Any:
        raise AssertionError("no enums here")

    def require(self, id: int, privilege: int, column: int = 0) -> None:
        pass

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        return None
