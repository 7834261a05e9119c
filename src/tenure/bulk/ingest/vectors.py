"""Simple conditions over whole columns, as most CHECK constraints and index predicates are.

    price > 0 AND state IN ('new', 'paid')     compared by Arrow, a batch at a time
    all else                                   compiled, row by row

Only comparisons whose result in Arrow is certain to be PostgreSQL's are here: of whole numbers, dates, times,
texts, uuids, booleans, and numbers of fixed scale. Floats are excluded because of NaN.

Invariant (vectors-exact): a condition that is evaluated here has the result of its compiled form.

Walk: `ingest.rows` asks `truths` for each condition and batch.
"""

from collections.abc import Mapping
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.expressions import And, Call, Cast, ColumnRef, Const, InList, IsNull, Node, Not, Or
from tenure.expr.types.type_names import type_of
from tenure.table.arrays import Column
from tenure.table.arrow import Unrepresentable, array, is_opaque

_SIGNS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
Value: TypeAlias = pa.Array | pa.Scalar
"""Of each row, or one for all."""

_INTS = ("int2", "int4", "int8")
_SAME = ("text", "bytea", "uuid", "time", "date", "timestamp", "timestamptz", "numeric", "bool")
"""Families whose values are compared directly with their own kind."""

_LENGTHS = ("length(text)", "char_length(text)", "character_length(text)")


class NotSimple(Exception):
    """The condition has a node that is not supported here."""


def truths(tree: Node, columns: Mapping[int, Column], rows: int) -> Column | None:
    """A boolean array, NULL where unknown; None if the condition is not simple, or a value is odd."""
    try:
        answers = _array(_value(tree, columns), rows)
    except (NotSimple, Unrepresentable, pa.ArrowException):
        return None
    return answers if pa.types.is_boolean(answers.type) else None


def _array(value: Value, rows: int) -> Column:
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def _value(tree: Node, columns: Mapping[int, Column]) -> Value:
    match tree:
        case ColumnRef():
            return columns[tree.column]
        case Const():
            return _constant(tree)
        case And():
            return reduce(pc.and_kleene, [_value(each, columns) for each in tree.operands])
        case Or():
            return reduce(pc.or_kleene, [_value(each, columns) for each in tree.operands])
        case Not():
            return pc.invert(_value(tree.operand, columns))
        case IsNull():
            answer = pc.is_null(_value(tree.operand, columns))
            return pc.invert(answer) if tree.is_negated else answer
        case InList():
            sought = _value(tree.operand, columns)
            equal = [_compared(tree.equality, sought, _value(item, columns)) for item in tree.items]
            answer = reduce(pc.or_kleene, equal)
            return pc.invert(answer) if tree.is_negated else answer
        case Cast():
            return _widened(tree, columns)
        case Call():
            return _called(tree, columns)
    raise NotSimple


def _constant(tree: Const) -> Value:
    if tree.type.enum:
        raise NotSimple
    kind = type_of(tree.type)
    if tree.type.name == "numeric" and not tree.type.is_array:
        return pa.scalar(None if tree.packed is None else kind.unpack(tree.packed))
    if is_opaque(kind):
        raise NotSimple
    return array(kind, [tree.packed])[0]


def _widened(tree: Cast, columns: Mapping[int, Column]) -> Value:
    """A whole number as a larger one, and a text that keeps its length, are unchanged."""
    inner = _value(tree.operand, columns)
    if tree.type in (TypeRef("int4"), TypeRef("int8")) and pa.types.is_integer(inner.type):
        return inner.cast(pa.int32() if tree.type.name == "int4" else pa.int64())
    if (
        tree.type == TypeRef("text")
        and isinstance(tree.operand, ColumnRef)
        and pa.types.is_string(inner.type)
    ):
        return inner
    raise NotSimple


def _called(tree: Call, columns: Mapping[int, Column]) -> Value:
    if tree.function in _LENGTHS:
        return pc.utf8_length(_value(tree.arguments[0], columns))
    if len(tree.arguments) != 2:
        raise NotSimple
    left, right = (_value(each, columns) for each in tree.arguments)
    return _compared(tree.function, left, right)


def _compared(function: str, left: Value, right: Value) -> Column:
    name, _, families = function.rstrip(")").partition("(")
    one, _, other = families.partition(",")
    is_fit = (one in _INTS and other in _INTS) or (one == other and one in _SAME)
    if name not in _SIGNS or not is_fit or _is_float(left) or _is_float(right):
        raise NotSimple
    return _SIGNS[name](left, right)


def _is_float(value: Value) -> bool:
    return bool(pa.types.is_floating(value.type))
