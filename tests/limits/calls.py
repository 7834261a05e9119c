"""All calls of the surface: functions and operators, sets, aggregates, casts, and what types do with values.

They come from the tables of `tenure.expr`, so that a new function is tried as soon as it is listed there.

    surface()                     what can be called: an id, and the families of its arguments
    drawn(subject, size, n)       n calls of it, by seed

Walk: `tests.limits.run` and `tests.limits.test_limits` take the calls and measure them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice
from random import Random
from typing import Any
from uuid import UUID

from tenure.base.interruptible import check_now
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.aggregates.aggregate import AggregateFunction
from tenure.expr.aggregates.aggregate_table import AGGREGATES
from tenure.expr.function_table import FUNCTIONS
from tenure.expr.functions.function import Context, Function
from tenure.expr.functions.set_function import SetFunction
from tenure.expr.set_function_table import SET_FUNCTIONS
from tenure.expr.types.casts import EXPLICIT, asks_catalog, can_cast, cast_function
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tests.limits.values import pool

ANY = ("text", "numeric", "jsonb", "int4", "bytea")
"""What stands for any type."""

VARIADIC_COUNT = 3
AGGREGATED_ROWS = 8

_SETS = frozenset(each.name for each in SET_FUNCTIONS)
"""The catalog is asked for their rows: here it has none."""

_DAY_MICROS = int(datetime(2024, 2, 29, tzinfo=UTC).timestamp()) * 1_000_000


def context() -> Context:
    numbers = count(1)
    return Context(
        now_micros=_DAY_MICROS,
        statement_micros=_DAY_MICROS,
        uuid=lambda: UUID(int=next(numbers)),
        rowid=lambda: next(numbers),
        sleep=lambda seconds: None,
        sequences=_NoSequences(),
        ask=lambda name, values: () if name in _SETS else None,
    )


class _NoSequences:
    def next(self, id: int) -> int:
        return id

    current = next

    def last(self) -> int:
        return 0

    def set(self, id: int, value: int, is_called: bool) -> int:
        return value


@dataclass(frozen=True)
class Subject:
    id: str
    families: tuple[str, ...]
    bind: Callable[[Sequence[Type], Context], Callable[..., Any]]
    """Gives what runs, for arguments of these types."""


@dataclass(frozen=True)
class Call:
    subject: Subject
    names: tuple[str, ...]
    """Of the arguments: family and name in the pool."""
    run: Callable[[], Any]

    def __str__(self) -> str:
        return f"{self.subject.id} of ({', '.join(self.names)})"


def surface() -> Iterator[Subject]:
    for function in FUNCTIONS:
        yield from _typed(function.id, function.arguments, partial(_function, function), function.is_variadic)
    for each in SET_FUNCTIONS:
        yield from _typed(f"set {each.id}", each.arguments, partial(_set_function, each), each.is_variadic)
    for aggregate in AGGREGATES:
        yield from _typed(
            f"aggregate {aggregate.id}", aggregate.arguments, partial(_aggregate, aggregate), False
        )
    yield from _types()


def _typed(id: str, arguments: tuple[str, ...], bind: Any, is_variadic: bool) -> Iterator[Subject]:
    """One subject for each type that stands for any."""
    if is_variadic:
        arguments += arguments[-1:] * (VARIADIC_COUNT - 1)
    if not any(each.startswith("any") for each in arguments):
        if all(pool(each, 64) for each in arguments):
            yield Subject(id, arguments, bind)
        return
    if "anyenum" in arguments:
        return  # labels of at most 63 bytes, compared by their places
    for family in ANY:
        concrete = [
            f"{family}[]" if "array" in each and each != "anynonarray" else family for each in arguments
        ]
        families = [
            known if not known.startswith("any") else new
            for known, new in zip(arguments, concrete, strict=True)
        ]
        yield Subject(f"{id} {family}", tuple(families), bind)


def _function(function: Function, types: Sequence[Type], surroundings: Context) -> Callable[..., Any]:
    run: Callable[..., Any] = function.run(*types) if function.wants_types else function.run
    return partial(run, surroundings) if function.wants_context else run


def _set_function(function: SetFunction, types: Sequence[Type], surroundings: Context) -> Callable[..., Any]:
    def rows(*values: Any) -> None:
        for _ in islice(function.rows(types, surroundings, *values), SET_ROWS_MAX):
            check_now()

    return rows


SET_ROWS_MAX = 10_000
"""Whoever takes rows asks the check between them."""


def _aggregate(
    aggregate: AggregateFunction, types: Sequence[Type], surroundings: Context
) -> Callable[..., Any]:
    steps = aggregate.steps(types, surroundings)

    def run(*values: Any) -> Any:
        direct, row = values[: aggregate.direct_count], values[aggregate.direct_count :]
        state = steps.start()
        for _ in range(AGGREGATED_ROWS):
            state = steps.step(state, *row)
        return steps.finish(state, *direct)

    return run


# Types

FAMILIES = (
    *(
        "bool",
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "numeric",
        "text",
        "varchar",
        "char",
        "bytea",
        "uuid",
    ),
    *("date", "time", "timestamp", "timestamptz", "interval", "json", "jsonb", "oid", "name", '"char"'),
)
_ARRAY_FAMILIES = ("text[]", "int4[]", "numeric[]", "jsonb[]")


def kind_of(family: str) -> Type:
    return type_of(TypeRef(family.removesuffix("[]"), is_array=family.endswith("[]")))


def _types() -> Iterator[Subject]:
    kinds = [kind_of(each) for each in (*FAMILIES, *_ARRAY_FAMILIES)]
    for kind in kinds:
        yield Subject(f"read {kind.family}", ("text",), partial(_method, kind.parse))
        for name in ("render", "comparable", "accept", "pack", "key"):
            if name != "key" or kind.has_order:
                yield Subject(f"{name} {kind.family}", (kind.family,), partial(_method, getattr(kind, name)))
        yield Subject(f"unpack {kind.family}", (kind.family,), partial(_unpack, kind))
    for source in kinds:
        for target in kinds:
            if (
                can_cast(source, target, EXPLICIT)
                and not asks_catalog(source, target)
                and source is not target
            ):
                yield Subject(
                    f"cast {source.family} {target.family}", (source.family,), partial(_cast, target)
                )


def _method(method: Callable[..., Any], types: Sequence[Type], surroundings: Context) -> Callable[..., Any]:
    return method


def _unpack(kind: Type, types: Sequence[Type], surroundings: Context) -> Callable[..., Any]:
    return lambda value: kind.unpack(kind.pack(value))


def _cast(target: Type, types: Sequence[Type], surroundings: Context) -> Callable[..., Any]:
    return cast_function(types[0], target, EXPLICIT) or (lambda value: value)


# Drawing


def drawn(subject: Subject, size: int, number: int, seed: str = "") -> Iterator[Call]:
    """At most so many: all of them if there are fewer."""
    rng = Random(f"{seed}{subject.id}")
    seen: set[tuple[str, ...]] = set()
    pools = [pool(each, size) for each in subject.families]
    total = 1
    for each in pools:
        total *= len(each)
    for _ in range(4 * number):
        names = tuple(rng.choice(list(each)) for each in pools)
        if names not in seen:
            seen.add(names)
            yield _call(subject, names, size)
        if len(seen) == min(number, total):
            return


def named(subject: Subject, names: Sequence[str], size: int) -> Call:
    return _call(subject, tuple(names), size)


def _call(subject: Subject, names: tuple[str, ...], size: int) -> Call:
    values = [pool(family, size)[name] for family, name in zip(subject.families, names, strict=True)]
    types = [kind_of(each) for each in subject.families]

    def run() -> Any:
        return subject.bind(types, context())(*values)

    return Call(subject, names, run)
