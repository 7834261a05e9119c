"""numeric in DuckDB: exact where a decimal of 38 digits holds the result, else not shared.

    a: DECIMAL(p,s), b: DECIMAL(q,t)    + -   max(p-s, q-t) + max(s,t) + 1 digits, max(s,t) after the point
                                        *     p + q digits, s + t after the point; where that is more
                                              than 38, the wider factor loses digits before the point, and
                                              a value that needs them is an error of DuckDB's

The digits after the point are those that PostgreSQL gives the same result. A quotient has as many as its
values ask for, so it is not shared.

Walk: `sql.duck.expressions` asks here for calls and casts on numeric.
"""

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal

from tenure.expr.types.datatype import Type
from tenure.expr.types.numbers import NumericType
from tenure.sql.duck.duck_types import DIGITS_MAX, DuckType, NotShared, Value, decimal

WHOLE_DIGITS_MIN = 12
"""The least digits before the point of a narrowed factor: with fewer, too many queries would fail."""

_INT_DIGITS = {"int2": 5, "int4": 10, "int8": 19}


_NUMBER = re.compile(r"CAST\('(-?[0-9]+(?:\.([0-9]+))?)' AS DECIMAL\([0-9,]+\)\)")


def cast_to(sql: str, shape: DuckType) -> str:
    """A number that keeps its digits is written in its new shape at once: DuckDB parses and folds less."""
    number = _NUMBER.fullmatch(sql)
    if number is not None and shape.precision and len(number[2] or "") <= shape.scale:
        return f"CAST('{number[1]}' AS {shape.sql})"
    return f"CAST({sql} AS {shape.sql})"


def _sum(sign: str) -> Callable[[Value, Value], tuple[str, DuckType]]:
    def make(a: Value, b: Value) -> tuple[str, DuckType]:
        scale = max(a.shape.scale, b.shape.scale)
        whole = max(a.shape.precision - a.shape.scale, b.shape.precision - b.shape.scale)
        shape = decimal(whole + scale + 1, scale)
        return f"({cast_to(a.sql, shape)} {sign} {cast_to(b.sql, shape)})", shape

    return make


def _product(a: Value, b: Value) -> tuple[str, DuckType]:
    if a.shape.precision >= b.shape.precision:
        a = _narrowed(a, DIGITS_MAX - b.shape.precision)
    else:
        b = _narrowed(b, DIGITS_MAX - a.shape.precision)
    shape = decimal(a.shape.precision + b.shape.precision, a.shape.scale + b.shape.scale)
    return cast_to(f"({a.sql} * {b.sql})", shape), shape


def _narrowed(value: Value, digits: int) -> Value:
    """With fewer digits before the point, if it has to be: values that have more make DuckDB fail.

    Columns are declared wider than what they hold. Where a value is that wide after all, the query is
    answered by rows, like any other that DuckDB cannot answer.
    """
    if value.shape.precision <= digits:
        return value
    if digits - value.shape.scale < WHOLE_DIGITS_MIN:
        raise NotShared("a product of more digits than a decimal has")
    shape = decimal(digits, value.shape.scale)
    return value._replace(sql=cast_to(value.sql, shape), shape=shape)


def _comparison(sign: str) -> Callable[[Value, Value], tuple[str, DuckType]]:
    def make(a: Value, b: Value) -> tuple[str, DuckType]:
        both = comparable_decimal(a.shape, b.shape)
        left, right = (each.sql if each.shape == both else cast_to(each.sql, both) for each in (a, b))
        return f"({left} {sign} {right})", DuckType("BOOLEAN")

    return make


def shortened(sign: str, constant: Decimal, scale: int) -> tuple[str, Decimal]:
    """The same comparison (not =) of numbers with `scale` digits after the point, by a constant with no more.

    x > 1.234 is x > 1.23, and x < 1.234 is x <= 1.23.
    """
    below = constant.quantize(Decimal(1).scaleb(-scale), ROUND_FLOOR, EXACT)
    if below == constant:
        return sign, below
    return (">" if sign[0] == ">" else "<="), below


EXACT = Context(prec=1_000)
"""More digits than any constant in a statement has."""


def comparable_decimal(a: DuckType, b: DuckType) -> DuckType:
    """A decimal that holds the values of both."""
    scale = max(a.scale, b.scale)
    return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)


NUMERIC: dict[str, Callable[..., tuple[str, DuckType]]] = {
    "+(numeric,numeric)": _sum("+"),
    "-(numeric,numeric)": _sum("-"),
    "*(numeric,numeric)": _product,
    "-(numeric)": lambda a: (f"(-{a.sql})", a.shape),
    "+(numeric)": lambda a: (a.sql, a.shape),
    "abs(numeric)": lambda a: (f"abs({a.sql})", a.shape),
    "@(numeric)": lambda a: (f"abs({a.sql})", a.shape),
    **{f"{sign}(numeric,numeric)": _comparison(sign) for sign in ("=", "<>", "<", "<=", ">", ">=")},
}
"""Calls on decimals by function id: SQL and shape of the result."""


def to_numeric(operand: Value, target: NumericType) -> tuple[str, DuckType]:
    """A cast to numeric, or to numeric(p,s): rounded half away from zero, as DuckDB rounds decimals."""
    if operand.type.family in _INT_DIGITS:
        shape = decimal(_INT_DIGITS[operand.type.family], 0)
        sql = cast_to(operand.sql, shape)
    elif operand.type.family == "numeric" and operand.shape.is_plain:
        sql, shape = operand.sql, operand.shape
    else:
        raise NotShared(f"a cast from {operand.type.sql_name} to numeric")
    if target.precision is None or shape == decimal(target.precision, target.scale):
        return sql, shape
    fitted = decimal(target.precision, target.scale)
    return cast_to(sql, fitted), fitted


def from_numeric(operand: Value, target: Type) -> tuple[str, DuckType]:
    shapes = {"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT"}
    if target.family not in shapes or not operand.shape.is_plain:
        raise NotShared(f"a cast from numeric to {target.sql_name}")
    shape = DuckType(shapes[target.family])
    return cast_to(operand.sql, shape), shape


def common_decimal(shapes: Sequence[DuckType]) -> DuckType:
    """One shape for alternatives: only if all have the same digits after the point, as each keeps its own."""
    scales = {shape.scale for shape in shapes}
    if len(scales) > 1 or not all(shape.is_plain for shape in shapes):
        raise NotShared("decimals with different digits after the point")
    return decimal(max(shape.precision for shape in shapes), scales.pop())
