"""The closures that calls are made of: one for each common shape, built once, run for every row.

A strict function is NULL where an argument is, and is not run then.

Walk: `expr.compiled` puts these together.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tenure.expr.datatype import Datum, Type
from tenure.expr.function import Context

Row: TypeAlias = Mapping[int, Datum]
Evaluate: TypeAlias = Callable[[Row, Context], Datum]


def null(row: Row, context: Context) -> None:
    return None


def strict_of_two(run: Callable[..., Datum], left: Evaluate, right: Evaluate) -> Evaluate:
    def of_two(row: Row, context: Context) -> Datum:
        a = left(row, context)
        if a is None:
            return None
        b = right(row, context)
        return None if b is None else run(a, b)

    return of_two


def strict(run: Callable[..., Datum], evaluates: list[Evaluate]) -> Evaluate:
    if len(evaluates) == 1:
        (only,) = evaluates
        return lambda row, context: None if (value := only(row, context)) is None else run(value)

    def of_many(row: Row, context: Context) -> Datum:
        values = [each(row, context) for each in evaluates]
        return None if None in values else run(*values)

    return of_many


def with_context(run: Callable[..., Datum], evaluates: list[Evaluate]) -> Evaluate:
    return lambda row, context: run(context, *[each(row, context) for each in evaluates])


def coalesce(operands: list[Evaluate]) -> Evaluate:
    def first(row: Row, context: Context) -> Datum:
        for each in operands:
            value = each(row, context)
            if value is not None:
                return value
        return None

    return first


def extreme(operands: list[Evaluate], kind: Type, choose: Callable[..., Datum]) -> Evaluate:
    def choose_one(row: Row, context: Context) -> Datum:
        values = [value for each in operands if (value := each(row, context)) is not None]
        return choose(values, key=kind.comparable) if values else None

    return choose_one
