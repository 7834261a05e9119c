"""The table of all aggregates, and which one a call means.

    sum(int4) -> int8    sum(int8) -> numeric    avg(int4) -> numeric    count(*) -> int8

Result types, NULLs and the digits of averages are PostgreSQL's.

Walk: `sql` binds a call with `resolve_aggregate`; its executor runs the `Steps`; stored plans name
an aggregate by its id.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tenure.base.errors import UndefinedFunction
from tenure.expr.aggregates import collecting_aggregates, ordered_sets, regressions, sums
from tenure.expr.aggregates.aggregate import AggregateFunction, Steps, folding
from tenure.expr.tree.overload_resolution import choose, type_named
from tenure.expr.types.datatype import Datum, Type

_ORDERED = (
    *("int2", "int4", "int8", "float4", "float8", "numeric", "oid", "text", "char", "bytea", "date"),
    *("time", "timestamp", "timestamptz", "interval", "anyarray", "anyenum"),
)
"""The types that PostgreSQL has min and max for: bool, uuid and jsonb are not among them."""


def resolve_aggregate(
    name: str, argument_types: Sequence[Type]
) -> tuple[AggregateFunction, tuple[Type, ...]]:
    """Returns the overload and the types its arguments have to be cast to; count(*) has none."""
    return choose(name, aggregates_named(name), argument_types)


def aggregate_type(aggregate: AggregateFunction, argument_types: Sequence[Type]) -> Type:
    """The type of the result, for arguments of these types."""
    return type_named(aggregate.result, aggregate, argument_types)


def is_aggregate(name: str) -> bool:
    return name in _BY_NAME


def aggregates_named(name: str) -> list[AggregateFunction]:
    return _BY_NAME.get(name, [])


def aggregate_with_id(id: str) -> AggregateFunction:
    try:
        return _BY_ID[id]
    except KeyError:
        raise UndefinedFunction(f"aggregate {id} does not exist") from None


def _simple() -> Iterator[AggregateFunction]:
    yield AggregateFunction("count", (), "int8", lambda: _COUNT)
    yield AggregateFunction("count", ("any",), "int8", lambda kind: _COUNT)
    yield AggregateFunction(
        "any_value", ("anyelement",), "anyelement", lambda kind: folding(lambda first, _: first)
    )
    for family in _ORDERED:
        yield AggregateFunction("min", (family,), family, lambda kind: _extreme(kind, is_greatest=False))
        yield AggregateFunction("max", (family,), family, lambda kind: _extreme(kind, is_greatest=True))
    for name in ("bool_and", "every"):
        yield AggregateFunction(name, ("bool",), "bool", lambda kind: folding(lambda a, b: a and b))
    yield AggregateFunction("bool_or", ("bool",), "bool", lambda kind: folding(lambda a, b: a or b))
    for family in ("int2", "int4", "int8"):
        yield AggregateFunction("bit_and", (family,), family, lambda kind: folding(lambda a, b: a & b))
        yield AggregateFunction("bit_or", (family,), family, lambda kind: folding(lambda a, b: a | b))
        yield AggregateFunction("bit_xor", (family,), family, lambda kind: folding(lambda a, b: a ^ b))


_COUNT = Steps(lambda: 0, lambda state, *values: state + 1, lambda state: state)


def _extreme(kind: Type, *, is_greatest: bool) -> Steps:
    """Among equal values, max and min keep the last one, as PostgreSQL does."""
    of = kind.comparable

    def greater(a: Datum, b: Datum) -> Datum:
        return a if of(a) > of(b) else b

    def smaller(a: Datum, b: Datum) -> Datum:
        return a if of(a) < of(b) else b

    return folding(greater if is_greatest else smaller)


AGGREGATES: tuple[AggregateFunction, ...] = (
    *_simple(),
    *sums.aggregates(),
    *collecting_aggregates.aggregates(),
    *regressions.aggregates(),
    *ordered_sets.aggregates(),
)
_BY_ID = {each.id: each for each in AGGREGATES}
_BY_NAME: dict[str, list[AggregateFunction]] = defaultdict(list)
for each in AGGREGATES:
    _BY_NAME[each.name].append(each)
assert len(_BY_ID) == len(AGGREGATES), "two aggregates have the same id"
