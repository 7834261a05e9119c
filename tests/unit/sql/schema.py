"""A small schema, here and in PostgreSQL: what the tests of the binder name in their statements."""

from collections.abc import Sequence

from tenure.base.errors import UndefinedTable
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    Column,
    DescriptorState,
    EnumMember,
    EnumType,
    Index,
    KeyPart,
    Table,
    TypeRef,
)
from tenure.expr import parse_type_name
from tenure.expr.tree.build import Typed, const
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.relations import Relation, ViewQuery, VirtualTable, missing_type
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.text.parse import one

DDL = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL, age int, city varchar(20), mood mood,
    born date, tags text[], data jsonb, raw json, score numeric(10, 2), seen timestamptz);
CREATE TABLE orders (id int PRIMARY KEY, person bigint, amount numeric(10, 2), note text, at timestamp);
CREATE TABLE pairs (a int, b int, c text, PRIMARY KEY (a, b));
CREATE TABLE t (a int, b text, c float8);
CREATE TABLE u (a bigint, d bool, e char(3));
CREATE VIEW adults AS SELECT id, name AS called, age FROM people WHERE age >= 18;
"""

MOOD = EnumType(
    7, 1, ZERO_AT, "mood", "root", DescriptorState.PUBLIC, (), (), 100, 101,
    tuple(EnumMember(label, bytes([at])) for at, label in enumerate(("sad", "ok", "happy"), 1)),
)  # fmt: skip


def table(id: int, name: str, columns: str, key: Sequence[str]) -> Table:
    made = []
    for at, each in enumerate(columns.split(";"), 1):
        title, kind = each.strip().split(" ", 1)
        ref = TypeRef("mood", enum=7) if kind == "mood" else parse_type_name(kind)
        made.append(Column(at, title, ref))
    if not key:
        made.append(Column(len(made) + 1, "rowid", TypeRef("int8"), is_hidden=True))
    by_name = {each.name: each.id for each in made}
    parts = tuple(KeyPart(by_name[each]) for each in key or ["rowid"])
    return Table(
        id, 1, ZERO_AT, name, "root", DescriptorState.PUBLIC, (), (), 100, 101, tuple(made), 1,
        (Index(1, f"{name}_pkey", parts, is_unique=True, primary=1),),
    )  # fmt: skip


TABLES = {
    each.name: each
    for each in (
        table(
            201, "people",
            "id bigint; name text; age int; city varchar(20); mood mood; born date; tags text[]; data jsonb;"
            "raw json; score numeric(10,2); seen timestamptz", ["id"],
        ),
        table(202, "orders", "id int; person bigint; amount numeric(10,2); note text; at timestamp", ["id"]),
        table(203, "pairs", "a int; b int; c text", ["a", "b"]),
        table(204, "t", "a int; b text; c float8", []),
        table(205, "u", "a bigint; d bool; e char(3)", []),
    )
}  # fmt: skip


class KnownNames:
    """The names of the schema above."""

    def check_size(self, levels: int) -> None:
        pass

    def relation(self, name: Sequence[str], position: int) -> Relation:
        if name[-1] in TABLES and list(name[:-1]) in ([], ["bound"]):
            return TABLES[name[-1]]
        if list(name) == ["adults"]:
            found = one("SELECT id, name AS called, age FROM people WHERE age >= 18")
            assert found is not None
            return ViewQuery("adults", found.tree, self)
        if name[-1] == "nodes" and list(name[:-1]) in ([], ["system"]):
            return VirtualTable("nodes", (OutputColumn("id", type_of(TypeRef("int8"))),), "nodes")
        raise UndefinedTable(f'relation "{".".join(name)}" does not exist', position=position)

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        if list(name) in (["mood"], ["bound", "mood"]):
            return type_of(TypeRef("mood", is_array=is_array, enum=7), self.enum)
        raise missing_type(name)

    def enum(self, id: int) -> EnumType:
        assert id == MOOD.id
        return MOOD

    def require(self, id: int, privilege: int, column: int = 0) -> None:
        pass

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        if name[-1] in ("current_user", "current_schema", "session_user") and not arguments:
            return const("root", type_of(TypeRef("text")))
        return None
