"""Expressions for tests: what defaults, checks and predicates need here."""

from itertools import count
from uuid import UUID

from tenure.catalog.descriptors.definitions import Expression, TypeRef
from tenure.expr.functions.function import Context
from tenure.expr.tree.build import Typed, call, column, const
from tenure.expr.tree.expressions import to_stored
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import type_of

INT = type_of(TypeRef("int8"))

_numbers = count(1_000)

CONTEXT = Context(0, 0, lambda: UUID(int=next(_numbers)), lambda: next(_numbers))


def constant(value: Datum, type: str = "int8") -> Expression:
    return _stored(const(value, type_of(TypeRef(type))))


def column_value(id: int) -> Expression:
    """The value of another column, a whole number."""
    return _stored(column(id, INT))


def above(id: int, value: int) -> Expression:
    """That a column is greater than a number."""
    return _stored(call(">", column(id, INT), const(value, INT)))


def row_id() -> Expression:
    """Another number for each row."""
    return _stored(call("unique_rowid"))


def _stored(tree: Typed) -> Expression:
    return to_stored(tree.node, "")
