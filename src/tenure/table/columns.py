"""Columns and constraints of a table version, compiled: their types and expressions as functions.

A `CompiledColumn` knows how its values are packed into rows and into keys, the value of rows that were
written before it existed (`filled`), and the value that a writer gives it by default.

Walk: `table.rows` compiles them once per table version; `table.write` evaluates them per row.
"""

import builtins
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tenure.catalog.descriptors.definitions import Check, Column, ElementState, Expression, Goal, Table
from tenure.expr.functions.function import Context
from tenure.expr.tree.compiled import Evaluate, compile
from tenure.expr.tree.expressions import Call, decode
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.type_names import EnumLookup, type_of
from tenure.kv.encoding import Descending, KeyValue
from tenure.table.packing import pack, unpack

Values: TypeAlias = Mapping[int, Datum]
"""By column id."""

Compile: TypeAlias = Callable[[Expression], Evaluate]

_ROW_ID = Call("unique_rowid()", ())

TEXT_LENGTH_MAX = 64
"""How much of a value an error shows, as in PostgreSQL."""


class CompiledColumn:
    """A column's encoding in rows and keys."""

    __slots__ = (
        "column",
        "computed",
        "default",
        "filled",
        "generated",
        "id",
        "is_enforced",
        "is_filled_once",
        "is_public",
        "is_row_id",
        "is_written",
        "name",
        "omits_null",
        "pack",
        "type",
    )

    def __init__(self, column: Column, type: Type, compiled: Compile) -> None:
        self.column = column
        self.id = column.id
        self.name = column.name
        self.type = type
        self.is_public = column.state is ElementState.PUBLIC
        self.is_written = column.state is not ElementState.DELETE_ONLY
        # A column on its way out cannot be given a value, so none is required.
        is_leaving = not self.is_public and column.goal is Goal.ABSENT
        self.is_enforced = self.is_written and not column.is_nullable and not is_leaving
        self.filled: Datum = None if column.filled is None else self.type.unpack(unpack(column.filled))
        # Without a filled value, a missing value reads as NULL. Until public, "no value" may mean "not yet".
        self.omits_null = self.is_public and self.filled is None
        self.pack = None if builtins.type(type)._pack is Type._pack else type._pack
        """Makes a non-NULL value packable; None if it is packed unchanged."""
        self.default = None if column.default is None else compiled(column.default)
        self.is_row_id = column.default is not None and decode(column.default.tree) == _ROW_ID
        """Whether each row gets a row id by default."""
        self.generated = None if column.generated is None else compiled(column.generated)
        # Once public it has a value of its own.
        self.computed = None if column.computed is None or self.is_public else compiled(column.computed)
        # A default that differs from row to row, as of a sequence: no later write of the row changes it.
        self.is_filled_once = column.computed is not None and not column.computed.columns

    def key_maker(self, is_descending: bool) -> Callable[[Datum], KeyValue] | None:
        """Makes the key element of a value; None if that is the value itself."""
        key = self.type.key
        if is_descending:
            return lambda value: Descending(key(value))
        is_plain = self.type.has_order and type(self.type)._key is Type._key
        return None if is_plain else key

    def from_key(self, element: KeyValue) -> Datum:
        return self.type.from_key(element.value if isinstance(element, Descending) else element)

    def text(self, value: Datum) -> str:
        return "null" if value is None else self.type.render(value)


class CompiledCheck:
    __slots__ = ("check", "holds", "is_enforced", "name", "not_null")

    def __init__(self, check: Check, compiled: Compile) -> None:
        self.check = check
        self.name = check.name
        self.not_null = check.not_null
        self.is_enforced = check.state is not ElementState.DELETE_ONLY
        self.holds = None if check.not_null else compiled(check.expression)

    def is_broken_by(self, values: Values, context: Context) -> bool:
        """A check that is neither true nor false holds."""
        if self.holds is None:
            return values[self.not_null] is None
        return self.holds(values, context) is False


def types_of(table: Table, enums: EnumLookup | None) -> dict[int, Type]:
    return {column.id: type_of(column.type, enums) for column in table.columns}


def compiler(types: Mapping[int, Type], enums: EnumLookup | None) -> Compile:
    return lambda expression: compile(decode(expression.tree), types, enums)


def filled_with(type: Type, value: Datum) -> bytes:
    """Makes a column's `filled`: the value of rows that were written before it existed."""
    return pack(type.pack(value))


def key_text(columns: Mapping[int, CompiledColumn], ids: tuple[int, ...], values: Values) -> str:
    """As in PostgreSQL's details: (a, b)=(1, null)."""
    names = ", ".join(columns[id].name for id in ids)
    texts = ", ".join(columns[id].text(values[id]) for id in ids)
    return f"({names})=({texts})"


def row_text(table: Table, columns: Mapping[int, CompiledColumn], values: Values) -> str:
    """The row as PostgreSQL shows a failing one: the columns that readers see."""
    texts = (
        columns[column.id].text(values[column.id])
        for column in table.columns
        if column.state is ElementState.PUBLIC and not column.is_hidden
    )
    return f"({', '.join(map(_cut, texts))})"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH_MAX else text[:TEXT_LENGTH_MAX] + "..."
