"""The table of all set-returning functions, and which one a call means.

    generate_series(1, 3)     unnest('{a,b}')     jsonb_each('{"a": 1}')     string_to_table('a,b', ',')

Walk: `sql` binds a call in FROM or in a select list with `resolve_set`, and its executor takes the rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Any

from tenure.base.errors import InvalidParameter, NotSupported
from tenure.expr.functions import callback_functions, catalog_functions, json_sets
from tenure.expr.functions.arithmetic import SIZES, numeric_add
from tenure.expr.functions.array_functions import length_of, split
from tenure.expr.functions.callback_functions import asking
from tenure.expr.functions.function import Context
from tenure.expr.functions.set_function import SetFunction, one_column
from tenure.expr.functions.time_arithmetic import add_interval, add_interval_in
from tenure.expr.patterns import regex_functions
from tenure.expr.tree.overload_resolution import choose, type_named
from tenure.expr.types.arrays import flatten
from tenure.expr.types.catalog_types import VECTORS
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.interval import Interval
from tenure.expr.types.numbers import fits

_CHANGE_COLUMNS = (
    *(("changed_at", "numeric"), ("operation", "text")),
    *(("key", "jsonb"), ("before", "jsonb"), ("after", "jsonb")),
)


def resolve_set(name: str, argument_types: Sequence[Type]) -> tuple[SetFunction, tuple[Type, ...]]:
    """Returns the overload and the types its arguments have to be cast to."""
    return choose(name, _BY_NAME.get(name, []), argument_types)


def column_types(function: SetFunction, argument_types: Sequence[Type]) -> tuple[Type, ...]:
    """The types of the columns, for arguments of these types."""
    return tuple(type_named(family, function, argument_types) for _, family in function.results)


def is_set_function(name: str) -> bool:
    return name in _BY_NAME


def _functions() -> Iterator[SetFunction]:
    yield from _series()
    yield one_column("unnest", "anyarray -> anyelement", flatten)
    yield one_column("generate_subscripts", "anyarray, int4 -> int4", _subscripts)
    yield one_column("generate_subscripts", "anyarray, int4, bool -> int4", _subscripts)
    for vector in VECTORS:
        yield one_column("generate_subscripts", f"{vector}, int4 -> int4", _places)
    numbered = (("x", "anyelement"), ("n", "int4"))
    yield SetFunction(
        "_pg_expandarray", ("anyarray",), numbered, lambda array: zip(flatten(array), count(1), strict=False)
    )
    for time in ("text", "numeric"):
        yield SetFunction(
            *("table_changes", ("regclass", time, time), _CHANGE_COLUMNS),
            *(asking("table_changes"),),
            wants_context=True,
        )
    for arguments in (("text", "text"), ("text", "text", "text")):
        yield SetFunction(
            "string_to_table", arguments, (("string_to_table", "text"),), _string_rows, is_strict=False
        )


def _subscripts(array: Datum, dimension: int, is_reverse: bool = False) -> Sequence[int]:
    places = range(1, (length_of(array, dimension) or 0) + 1)
    return places[::-1] if is_reverse else places


def _places(vector: Datum, dimension: int) -> Sequence[int]:
    """The subscripts of a vector begin at 0."""
    return range(length_of(vector, dimension) or 0)


def _string_rows(*texts: str | None) -> Iterator[tuple[str | None]]:
    return ((each,) for each in split(*texts) or ())


# generate_series


def _series() -> Iterator[SetFunction]:
    for family in ("int4", "int8"):
        run = _int_series(SIZES[family])
        yield one_column("generate_series", f"{family}, {family} -> {family}", run)
        yield one_column("generate_series", f"{family}, {family}, {family} -> {family}", run)
    yield one_column("generate_series", "numeric, numeric -> numeric", _numeric_series)
    yield one_column("generate_series", "numeric, numeric, numeric -> numeric", _numeric_series)
    yield one_column("generate_series", "timestamp, timestamp, interval -> timestamp", _timestamps)
    column = (("generate_series", "timestamptz"),)
    pair = ("timestamptz", "timestamptz", "interval")
    yield SetFunction("generate_series", pair, column, _instants, wants_context=True)


def _int_series(size: int) -> Callable[..., Iterator[int]]:
    def run(first: int, last: int, step: int = 1) -> Iterator[int]:
        if step == 0:
            raise InvalidParameter("step size cannot equal zero")
        for value in range(first, last + (1 if step > 0 else -1), step):
            if not fits(value, size):
                return
            yield value

    return run


def _numeric_series(first: Decimal, last: Decimal, step: Decimal = Decimal(1)) -> Iterator[Decimal]:
    for value, name in ((first, "start"), (last, "stop"), (step, "step")):
        if not value.is_finite():
            shown = "NaN" if value.is_nan() else "infinity"
            raise InvalidParameter(f"{name} {'value' if name != 'step' else 'size'} cannot be {shown}")
    if not step:
        raise InvalidParameter("step size cannot equal zero")
    current = first
    while current <= last if step > 0 else current >= last:
        yield current
        current = numeric_add(current, step)


def _timestamps(first: datetime, last: datetime, step: Interval) -> Iterator[datetime]:
    return _steps(first, last, step, lambda at: add_interval(at, step))


def _instants(context: Context, first: datetime, last: datetime, step: Interval) -> Iterator[tuple[datetime]]:
    zone = context.zone
    return ((each,) for each in _steps(first, last, step, lambda at: add_interval_in(at, step, zone)))


def _steps(first: datetime, last: datetime, step: Interval, move: Callable[[Any], Any]) -> Iterator[datetime]:
    if not step.span:
        raise InvalidParameter("step size cannot equal zero")
    current = first
    while current <= last if step.span > 0 else current >= last:
        yield current
        try:
            current = move(current)
        except NotSupported:
            # The end of what a timestamp can be here; `last` is not beyond it.
            return


SET_FUNCTIONS: tuple[SetFunction, ...] = (
    *_functions(),
    *json_sets.set_functions(),
    *catalog_functions.set_functions(),
    *callback_functions.set_functions(),
    *regex_functions.set_functions(),
)
_BY_NAME: dict[str, list[SetFunction]] = defaultdict(list)
for each in SET_FUNCTIONS:
    _BY_NAME[each.name].append(each)
