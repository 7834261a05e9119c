"""Statements that define: what they have in common.

    statement ─► a copy of the transaction's draft ─► changes of `catalog` ─► the draft, if all went well

Nothing is stored before the commit, which hands the draft to the schema changer. Everything is looked up
when the statement runs, so one that was prepared earlier, or is run again, means the catalog of then.

Walk: `sql.planning` -> `Definition.run` -> a function that gets a `Definer` -> `catalog.*_changes`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import UserError
from tenure.catalog.descriptors import (
    AnyDescriptor,
    Expression,
    Place,
    Schema,
    State,
    Table,
    TypeRef,
    visible,
)
from tenure.catalog.drafts import Draft
from tenure.catalog.resolution import schemas_of
from tenure.catalog.uses import Use
from tenure.expr import build
from tenure.expr.build import Typed
from tenure.expr.compiled import require_immutable, volatility
from tenure.expr.datatype import Type
from tenure.expr.errors import DatatypeMismatch, InvalidDefinition, NotSupported
from tenure.expr.expressions import ColumnRef, Node, to_stored
from tenure.expr.function import Volatility
from tenure.expr.rewrite import rewrite
from tenure.expr.sql_text import render
from tenure.expr.types import type_of
from tenure.sql.answers import Column
from tenure.sql.bind import bind_scalar
from tenure.sql.bind_types import type_at
from tenure.sql.errors import UndefinedTable
from tenure.sql.execution import Execution
from tenure.sql.names import SessionNames
from tenure.sql.parse import Tree
from tenure.sql.plan import Output
from tenure.sql.quoting import quoted
from tenure.sql.statement import Result


class UndefinedSchema(UserError):
    sqlstate = "3F000"


class WrongObject(UserError):
    sqlstate = "42809"


class ReservedName(UserError):
    sqlstate = "42939"


@dataclass(frozen=True, slots=True)
class Definition:
    """A DDL statement: `apply` returns its tag if that depends on what it did."""

    tag: str
    tree: Tree
    apply: "Callable[[Definer, Tree], str | None]"
    not_in_block: bool = False
    columns: ClassVar[tuple[Column, ...] | None] = None
    parameters: ClassVar[tuple[Type, ...]] = ()
    is_short: ClassVar[bool] = False

    def run(self, execution: Execution) -> Result:
        execution.block.txn(self.tag)
        use = execution.block.use
        before, use.draft = use.draft, use.draft.copy()
        try:
            tag = self.apply(Definer(execution), self.tree)
        except BaseException:
            use.draft = before
            raise
        return Result(tag or self.tag)


class Definer:
    """What a DDL statement works with."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.session = execution.session
        self.names = SessionNames(execution.session, execution.block)

    @property
    def use(self) -> Use:
        return self.execution.block.use

    @property
    def draft(self) -> Draft:
        return self.use.draft

    @property
    def known(self) -> Use:
        """The catalog beside the draft."""
        return self.use

    @property
    def owner(self) -> str:
        return self.session.user

    def fresh_id(self) -> int:
        return self.session.parts.catalog.fresh_id(self.use.txn)

    def notice(self, message: str, sqlstate: str = "00000") -> None:
        self.session.notice(message, "NOTICE", sqlstate)

    # ── names ──────────────────────────────────────────────────────────────────────────────────

    def schema_for(self, qualifier: Sequence[str]) -> Schema:
        """Where a new object goes: the schema named, or the first of the search path that is there."""
        virtual = self.session.parts.virtual
        if qualifier and virtual.has_schema(qualifier[-1]):
            raise ReservedName(f'schema "{qualifier[-1]}" is a system schema')
        found = schemas_of(self.names, qualifier, self.session.path)
        if found:
            return found[0]
        if qualifier:
            raise UndefinedSchema(f'schema "{".".join(qualifier)}" does not exist')
        raise UndefinedSchema("no schema has been selected to create in")

    def object(self, name: Sequence[str]) -> AnyDescriptor | None:
        return self.names.object(name)

    def table(self, name: Sequence[str], position: int = 0) -> Table:
        found = self.object(name)
        if found is None:
            raise UndefinedTable(f'relation "{".".join(name)}" does not exist', position=position)
        if not isinstance(found, Table):
            raise WrongObject(f'"{name[-1]}" is not a table')
        return found

    def is_taken(self, schema: Schema, name: str) -> bool:
        """Whether something that can be used has the name."""
        id = self.use.id_at(Place(schema.database, schema.id, name))
        found = None if id is None else self.use.descriptor(id)
        return found is not None and found.state is not State.DROPPED

    def free_name(self, schema: Schema, *parts: str) -> str:
        """PostgreSQL's way to name what has no name: t_a_key, t_a_key1, ..."""
        base = "_".join(each for each in parts if each)
        for number in range(1_000):
            name = cut(base, f"{number or ''}")
            if not self.is_taken(schema, name):
                return name
        raise NotSupported(f'no free name like "{base}"')

    # ── types and expressions ──────────────────────────────────────────────────────────────────

    def type_ref(self, tree: Tree) -> TypeRef:
        return type_at(tree, self.names).ref

    def type_of(self, ref: TypeRef) -> Type:
        return type_of(ref, self.names.enum)

    def default(self, tree: Tree, column: str, ref: TypeRef) -> Expression:
        """A DEFAULT for a column of this type."""
        typed = bind_scalar(tree, (), self.names, what="DEFAULT")
        target = self.type_of(ref)
        try:
            assigned = build.assign(typed, target)
        except DatatypeMismatch as error:
            raise DatatypeMismatch(
                f'column "{column}" is of type {target.sql_name} but default expression is of type '
                f"{typed.type.sql_name}",
                hint="You will need to rewrite or cast the expression.",
            ) from error
        return self.stored(assigned.node, {})

    def over_table(self, tree: Tree, columns: Sequence[tuple[int, str, TypeRef]], what: str) -> Typed:
        """An expression over columns that are given by id, name and type."""
        outputs = [Output(name, self.type_of(ref)) for _, name, ref in columns]
        typed = bind_scalar(tree, outputs, self.names, what=what)
        ids = [id for id, _, _ in columns]

        def by_id(node: Node) -> Node | None:
            return ColumnRef(ids[node.column]) if isinstance(node, ColumnRef) else None

        return Typed(rewrite(typed.node, by_id), typed.type)

    def condition(self, tree: Tree, columns: Sequence[tuple[int, str, TypeRef]], what: str) -> Expression:
        """A CHECK or a predicate, which depends on its row alone."""
        typed = self.over_table(tree, columns, what)
        node = build.condition(typed, f"argument of {what}")
        require_immutable(node, "index predicate" if what == "WHERE" else "check constraint")
        return self.stored(node, {id: name for id, name, _ in columns})

    def generated(self, typed: Typed, ref: TypeRef, names: dict[int, str]) -> Expression:
        """GENERATED ALWAYS AS (...) STORED, which depends on its row alone."""
        node = build.assign(typed, self.type_of(ref)).node
        if volatility(node) is not Volatility.IMMUTABLE:
            raise InvalidDefinition("generation expression is not immutable")
        return self.stored(node, names)

    def constraint_name(self, schema: Schema, table: Table, *parts: str) -> str:
        """A name that no constraint or index of the table has yet."""
        base = "_".join((table.name, *parts[:-1]))
        taken = {each.name for each in (*table.indexes, *table.checks, *table.foreign_keys)}
        for number in range(1_000):
            name = cut(base, f"_{parts[-1]}{number or ''}")
            if name not in taken and not (parts[-1] == "key" and self.is_taken(schema, name)):
                return name
        raise NotSupported(f'no free name like "{base}"')

    def stored(self, node: Node, names: dict[int, str]) -> Expression:
        text = render(node, lambda id: quoted(names[id]), self.names.enum)
        return to_stored(node, text)


def columns_of(table: Table) -> list[tuple[int, str, TypeRef]]:
    return [(each.id, each.name, each.type) for each in visible(table.columns) if not each.is_hidden]


NAME_BYTES_MAX = 63


def cut(base: str, suffix: str) -> str:
    """A name that PostgreSQL's limit leaves room for."""
    room = NAME_BYTES_MAX - len(suffix.encode())
    return base.encode()[:room].decode(errors="ignore") + suffix
