"""Which names are in sight: the levels of a query, and what FROM puts into each.

    SELECT a, (SELECT max(c) FROM u WHERE u.b = t.b) FROM t
    └── level: t ◄─────────────┐ parent
                └── level: u ──┘ takes t.b as a ContextValue

A level is one SELECT. Its FROM items stand side by side in one row, from left to right, and a column is a
position in that row. A name is looked up in the innermost level first. A column of an outer level becomes a
`ContextValue`, whose number belongs to the child of the level that has the column.

Walk: `sql.bind.from_clause` fills levels; `sql.bind.values` looks up column names; `sql.bind.subqueries`
asks for the origins of context values.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.base.errors import (
    AmbiguousAlias,
    AmbiguousColumn,
    InvalidColumnReference,
    NotSupported,
    SyntaxFault,
    UndefinedColumn,
    UndefinedTable,
    UserError,
)
from tenure.catalog.accounts.privileges import SELECT
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef, ContextValue, Node
from tenure.expr.tree.rewrite import rewrite
from tenure.expr.types.datatype import Type
from tenure.sql.bind.binding import Binding
from tenure.sql.bind.grouping import Calls
from tenure.sql.bind.relations import Names, Relation
from tenure.sql.plans.plan import OutputColumn


class Named(NamedTuple):
    """A column in sight."""

    name: str
    typed: Typed
    """Over the level's row: its position, or, of a column that USING merges, an expression."""
    origin: OutputColumn
    is_hidden: bool = False
    """Not part of *."""


@dataclass
class Item:
    """One entry of FROM; what PostgreSQL calls a ParseNamespaceItem."""

    name: str
    columns: Sequence[Named]
    path: tuple[str, ...] = ()
    """The table's own qualified name, if it has no alias: a column may be called by it too."""
    relation: Relation | None = None
    """The relation that its name means, if it is named."""
    table: Table | None = None
    start: int = 0
    """Where its columns begin in the level's row."""
    relation_name: str = ""
    has_name: bool = True
    has_columns: bool = True
    """Whether its columns may be called without its name: not inside a join that merges or hides them."""
    is_lateral_only: bool = False
    is_lateral_ok: bool = True
    is_target: bool = False
    """The table that UPDATE or DELETE changes: no item of FROM or USING may refer to it."""
    source: str = ""
    """Its kind, if it is no table: "a function", "a WITH query", "a join"."""
    is_nullable: bool = False
    """On the side of an outer join that may be missing."""

    def hide_from_laterals(self) -> None:
        """Until FROM is bound; `sql.bind.from_clause.bind` brings all its items in sight again."""
        self.is_target = True
        self.is_lateral_only, self.is_lateral_ok = True, False


class Locking(NamedTuple):
    """FOR UPDATE, FOR SHARE and the other row locks."""

    strength: str
    """As it is written: "FOR UPDATE"."""
    wait: str
    relations: tuple[str, ...]
    """OF these; none: of all."""
    location: int = -1

    @property
    def is_shared(self) -> bool:
        return self.strength in ("FOR SHARE", "FOR KEY SHARE")


@dataclass(eq=False)
class QueryLevel:
    """One SELECT while it is bound."""

    binding: Binding["QueryLevel"]
    names: Names
    parent: "QueryLevel | None" = None
    clause: str = ""
    """The clause that is being bound, as error messages call it."""
    items: list[Item] = field(default_factory=list)
    """In sight at the moment."""
    all_items: list[Item] = field(default_factory=list)
    row: list[Type] = field(default_factory=list)
    """The types of the columns of FROM."""
    outputs: list[OutputColumn] = field(default_factory=list)
    is_lateral: bool = False
    """A LATERAL item is being bound: the items to its left are visible."""
    outer_values: dict[int, int] = field(default_factory=dict)
    """The values it takes from the parent's row: the number of the context value, by position."""
    ctes: dict[str, object] = field(default_factory=dict)
    later_ctes: set[str] = field(default_factory=set)
    """Those of the WITH clause that are not in sight yet."""
    calls: Calls = field(default_factory=Calls)
    locations: dict[int, int] = field(default_factory=dict)
    """Where each column was first mentioned outside of aggregates."""
    reads_working: bool = False
    """It is in the recursive term of a WITH RECURSIVE, and reads the rows of the last round."""
    locks: tuple[Locking, ...] = ()
    windows: dict[str, object] = field(default_factory=dict)
    """The WINDOW clause: parse trees by name."""
    used_windows: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:

        self.calls = Calls()

    def bind(self, tree: object, clause: str) -> Typed:
        with self.binding_of(clause):
            return self.binding.expression(tree, self)

    @contextmanager
    def binding_of(self, clause: str) -> Iterator[None]:
        before, self.clause = self.clause, clause
        try:
            yield
        finally:
            self.clause = before

    def expression(self, tree: object) -> Typed:
        """As part of what is being bound."""
        return self.binding.expression(tree, self)

    def read(self, position: int) -> None:
        """The statement reads a column: running it needs SELECT on that."""
        origin = self.outputs[position] if position < len(self.outputs) else None
        if origin is not None and origin.table:
            self.names.require(origin.table, SELECT, origin.number)

    def mention(self, position: int, location: int) -> None:
        """Remembers where a column stands that GROUP BY may have to say something about."""
        self.read(position)
        if self.clause not in ("", "JOIN/ON", "WHERE", "GROUP BY"):
            self.locations.setdefault(position, location)

    def grow(self, levels: int) -> None:
        """The plan has so many more SELECTs."""
        self.binding.levels += levels
        self.names.check_size(self.binding.levels)

    def ancestors(self) -> Iterator["QueryLevel"]:
        level: QueryLevel | None = self
        while level is not None:
            yield level
            level = level.parent

    def locks_for(self, name: str) -> tuple[Locking, ...]:
        """The row locks that a subquery in FROM has to take for this level."""
        return tuple(
            each._replace(relations=()) for each in self.locks if not each.relations or name in each.relations
        )

    def type_at(self, position: int) -> Type:
        return self.row[position] if position < len(self.row) else self.calls.type_at(position)


@contextmanager
def refusing_sets(level: QueryLevel, what: str) -> Iterator[None]:
    """Functions that give sets may not stand inside."""
    before = len(level.calls.sets)
    yield
    if len(level.calls.sets) > before:
        raise NotSupported(
            f"set-returning functions are not allowed in {what}",
            hint="You might be able to move the set-returning function into a LATERAL FROM item.",
            position=level.calls.sets[before].location + 1,
        )


def column(level: QueryLevel, name: str, location: int) -> Typed | None:
    """A column by its bare name, innermost level first; None if there is none."""
    for owner in level.ancestors():
        found = [
            (item, each)
            for item in owner.items
            if item.has_columns and (owner.is_lateral or not item.is_lateral_only)
            for each in item.columns
            if each.name == name
        ]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=location + 1)
        if found:
            item, named = found[0]
            _check_lateral(item, location)
            return expression_in(level, owner, named.typed, location)
    return None


def qualified(level: QueryLevel, path: Sequence[str], location: int) -> tuple[QueryLevel, Item]:
    """A FROM item by its name. Raises UndefinedTable (42P01) if none is in sight."""
    if len(path) > 3:
        raise SyntaxFault(
            f"improper qualified name (too many dotted names): {'.'.join(path)}", position=location + 1
        )
    if (found := _sought(level, lambda item: _is_named(item, path), path, location)) is not None:
        return found
    relation = _relation_of(level, path) if len(path) > 1 else None
    if relation is not None:
        # The name is longer or shorter than the one in FROM: the relation that it means decides.
        found = _sought(level, lambda item: bool(item.path) and item.relation == relation, path, location)
        if found is not None:
            return found
    raise missing(level, path, location)


def _sought(
    level: QueryLevel, fits: Callable[[Item], bool], path: Sequence[str], location: int
) -> tuple[QueryLevel, Item] | None:
    for owner in level.ancestors():
        found = [
            item
            for item in owner.items
            if item.has_name and (owner.is_lateral or not item.is_lateral_only) and fits(item)
        ]
        if len(found) > 1:
            raise AmbiguousAlias(f'table reference "{path[-1]}" is ambiguous', position=location + 1)
        if found:
            _check_lateral(found[0], location)
            return owner, found[0]
    return None


def _is_named(item: Item, path: Sequence[str]) -> bool:
    return item.name == path[0] if len(path) == 1 else tuple(path) == item.path


def _relation_of(level: QueryLevel, path: Sequence[str]) -> Relation | None:
    try:
        return level.names.relation(path, 0)
    except UserError:
        return None


def column_of(level: QueryLevel, path: Sequence[str], name: str, location: int) -> Typed:
    owner, item = qualified(level, path, location)
    found = [each for each in item.columns if each.name == name]
    if not found:
        raise UndefinedColumn(f"column {path[-1]}.{name} does not exist", position=location + 1)
    if len(found) > 1:
        raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=location + 1)
    return expression_in(level, owner, found[0].typed, location)


def _check_lateral(item: Item, location: int) -> None:
    if item.is_lateral_only and not item.is_lateral_ok:
        error = InvalidColumnReference(
            f'invalid reference to FROM-clause entry for table "{item.name}"', position=location + 1
        )
        if item.is_target:
            error.hint = _out_of_sight(item)
        else:
            error.detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference."
        raise error


def _out_of_sight(item: Item) -> str:
    return (
        f'There is an entry for table "{item.name}", but it cannot be referenced from this part of the query.'
    )


def missing(level: QueryLevel, path: Sequence[str], location: int) -> UndefinedTable:
    name = path[-1]
    for owner in level.ancestors():
        for item in owner.all_items:
            if item.name == name:
                return UndefinedTable(
                    f'invalid reference to FROM-clause entry for table "{name}"',
                    detail=_out_of_sight(item),
                    hint=_lateral_hint(owner, item),
                    position=location + 1,
                )
            if item.relation_name == name and item.name != name:
                return UndefinedTable(
                    f'invalid reference to FROM-clause entry for table "{name}"',
                    hint=f'Perhaps you meant to reference the table alias "{item.name}".',
                    position=location + 1,
                )
    return UndefinedTable(f'missing FROM-clause entry for table "{name}"', position=location + 1)


def _lateral_hint(owner: QueryLevel, item: Item) -> str:
    if item in owner.items and item.is_lateral_only and item.is_lateral_ok:
        return "To reference that table, you must mark this subquery with LATERAL."
    return ""


def expression_in(level: QueryLevel, owner: QueryLevel, typed: Typed, location: int = -1) -> Typed:
    """An expression over `owner`'s row, for use in `level`: with context values, if that is an inner
    level."""
    if level is owner:
        if isinstance(typed.node, ColumnRef):
            owner.mention(typed.node.column, location)
        return typed
    child = next(each for each in level.ancestors() if each.parent is owner)

    def context_value(node: Node) -> Node | None:
        if not isinstance(node, ColumnRef):
            return None
        owner.mention(node.column, location)
        if node.column not in child.outer_values:
            child.outer_values[node.column] = level.binding.new_value_number(owner, node.column)
        return ContextValue(child.outer_values[node.column], owner.type_at(node.column).ref)

    return Typed(rewrite(typed.node, context_value), typed.type)
