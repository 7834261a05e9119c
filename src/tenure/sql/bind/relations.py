"""The relations that a name in FROM can mean, and the interface by which the binder resolves names.

    table           a descriptor's `Table`; inside a view, with the column names the view knows
    view            a `ViewQuery`: the parse tree of its query and the names it was written against
    system table    a `VirtualTable`: columns, and the key of what makes its rows

Walk: `sql.bind.from_clause` asks the `Names` of a statement for relations; `sql.names.session_names` answers.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tenure.base.errors import UndefinedObject
from tenure.catalog.descriptors.definitions import EnumType, Table
from tenure.catalog.descriptors.role_records import WHOLE_OBJECT
from tenure.expr.tree.build import Typed
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import OutputColumn
from tenure.sql.text.parse import Tree


class VirtualTable(NamedTuple):
    name: str
    columns: tuple[OutputColumn, ...]
    key: str
    """The key of the function that makes its rows: `plan.Virtual.source`."""
    lookups: tuple[int, ...] = ()
    """The positions of the columns by which its rows are found: `plan.Virtual.keys`."""
    hidden: frozenset[int] = frozenset()
    """The positions of columns that are no part of *."""


class ViewQuery(NamedTuple):
    """A view, to be bound where it is used."""

    name: str
    tree: Tree
    """Its SelectStmt."""
    names: "Names"
    """Resolves the names in it as at its definition, for every user."""
    columns: tuple[str, ...] = ()
    """The names of its columns; further columns keep the query's names."""
    id: int = 0
    """The descriptor's."""
    shown: int | None = None
    """How many of its columns are visible; None: all."""


class NamedColumns(NamedTuple):
    """A table under names of its columns that may be older ones."""

    table: Table
    columns: tuple[tuple[str, int], ...]
    """Name and column id; others are not in sight."""


Relation: TypeAlias = Table | NamedColumns | VirtualTable | ViewQuery


class Names(Protocol):
    def relation(self, name: Sequence[str], position: int) -> Relation:
        """A table, view or system table by its qualified name. Raises UndefinedTable (42P01)."""
        ...

    def type_named(self, name: Sequence[str], modifiers: tuple[int, ...], *, is_array: bool) -> Type:
        """An enum, or what else is no built-in type. Raises UndefinedObject (42704)."""
        ...

    def enum(self, id: int) -> EnumType: ...

    def require(self, id: int, privilege: int, column: int = WHOLE_OBJECT) -> None:
        """The statement needs a privilege on a relation that it has named, or on a column of that."""
        ...

    def check_size(self, levels: int) -> None:
        """Called with the number of SELECTs so far. Raises if they are too many, or the statement was
        canceled."""
        ...

    def call(self, name: Sequence[str], arguments: Sequence[Typed]) -> Typed | None:
        """A function that reads the session: current_schema(), version(). None if there is no such
        function."""
        ...


def missing_type(name: Sequence[str]) -> UndefinedObject:
    return UndefinedObject(f'type "{".".join(name)}" does not exist')
