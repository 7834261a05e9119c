"""The closures that calls are made of: one for each common shape, built once, run for every row.

A strict function is NULL where an argument is, and is not run then. All its arguments are evaluated first, as
PostgreSQL does: one that fails fails, whether or not another is NULL.

Walk: `expr.tree.compiled` puts these together.
"""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Protocol, TypeAlias

from tenure.expr.functions.function import Context
from tenure.expr.types.arrays import flatten
from tenure.expr.types.datatype import Datum, Type


class Row(Protocol):
    """Values by column: a mapping by column id, or a tuple by position."""

    def __getitem__(self, column: int, /) -> Datum: ...


Evaluate: TypeAlias = Callable[[Row, Context], Datum]


def null(row: Row, context: Context) -> None:
    return None


def strict_of_two(run: Callable[..., Datum], left: Evaluate, right: Evaluate) -> Evaluate:
    def of_two(row: Row, context: Context) -> Datum:
        a = left(row, context)
        b = right(row, context)
        return None if a is None or b is None else run(a, b)

    return of_two


def strict(run: Callable[..., Datum], evaluates: list[Evaluate]) -> Evaluate:
    if len(evaluates) == 1:
        (only,) = evaluates
        return lambda row, context: None if (value := only(row, context)) is None else run(value)

    def of_many(row: Row, context: Context) -> Datum:
        values = [each(row, context) for each in evaluates]
        return None if None in values else run(*values)

    return of_many


def with_context(run: Callable[..., Datum], evaluates: list[Evaluate], *, is_strict: bool) -> Evaluate:
    if not evaluates:
        return lambda row, context: run(context)

    def of_context(row: Row, context: Context) -> Datum:
        values = [each(row, context) for each in evaluates]
        return None if is_strict and None in values else run(context, *values)

    return of_context


def with_zone(run: Callable[[Datum, tzinfo], Datum], operand: Evaluate) -> Evaluate:
    """A cast that depends on the session's time zone."""
    return lambda row, context: None if (value := operand(row, context)) is None else run(value, context.zone)


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


def three_valued(operands: Sequence[Evaluate], *, stop: bool) -> Evaluate:
    """AND stops at the first False, OR at the first True; NULL if neither came and one was NULL."""

    def logic(row: Row, context: Context) -> Datum:
        result: bool | None = not stop
        for each in operands:
            truth = each(row, context)
            if truth is stop:
                return stop
            if truth is None:
                result = None
        return result

    return logic


def first_true(branches: Sequence[tuple[Evaluate, Evaluate]], otherwise: Evaluate) -> Evaluate:
    def choose(row: Row, context: Context) -> Datum:
        for when, then in branches:
            if when(row, context) is True:
                return then(row, context)
        return otherwise(row, context)

    return choose


def over_members(run: Callable[..., Datum], operand: Evaluate, array: Evaluate, *, stop: bool) -> Evaluate:
    """op ANY stops at the first True, op ALL at the first False."""

    def quantified(row: Row, context: Context) -> Datum:
        value = operand(row, context)
        members = array(row, context)
        if members is None:
            return None
        result: bool | None = not stop
        for each in flatten(members):
            truth = None if value is None or each is None else run(value, each)
            if truth is stop:
                return stop
            if truth is None:
                result = None
        return result

    return quantified
