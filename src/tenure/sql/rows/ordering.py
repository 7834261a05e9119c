"""Values by PostgreSQL's order and equality: sort keys, and keys for hashing.

    ORDER BY a DESC NULLS LAST, b       sorted by b, then, keeping that order, by a
    GROUP BY x, DISTINCT, joins         rows with equal `Type.comparable`s are equal; NULL equals NULL

Sorting is one stable pass per key, the last one first: each pass is a plain comparison of Python
values, with the NULLs set aside.

Walk: `sql.rows.order`, `sql.rows.groups`, `sql.rows.joins` and `sql.rows.windows` compare with these.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from tenure.base.errors import UndefinedFunction
from tenure.expr.functions.function import Context
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.expressions import ColumnRef, Node
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import SortKey
from tenure.sql.rows.run import Compiler, Tuple

KeyOf: TypeAlias = Callable[[Tuple, Context], Any]
"""A hashable key of a row; equal rows have equal keys."""

Sorter: TypeAlias = Callable[[list[Tuple], Context], list[Tuple]]


def sorter(keys: Sequence[SortKey], types: Mapping[int, Type], compiler: Compiler) -> Sorter:
    """Sorts rows; equal ones stay as they were."""
    passes = [
        (*_sort_value(key.node, types, compiler), key.is_descending, key.nulls_first)
        for key in reversed(keys)
    ]

    def sort(rows: list[Tuple], context: Context) -> list[Tuple]:
        for evaluate, comparable, is_descending, nulls_first in passes:
            values = [evaluate(row, context) for row in rows]
            rows = _ordered(rows, values, comparable, is_descending, nulls_first)
        return rows

    return sort


def _ordered(
    rows: list[Tuple],
    values: list[Any],
    comparable: Callable[[Any], Any] | None,
    is_descending: bool,
    nulls_first: bool,
) -> list[Tuple]:
    nulls = [row for row, value in zip(rows, values, strict=True) if value is None]
    if nulls:
        rows = [row for row, value in zip(rows, values, strict=True) if value is not None]
        values = [value for value in values if value is not None]
    if comparable is not None:
        values = list(map(comparable, values))
    order = sorted(range(len(rows)), key=values.__getitem__, reverse=is_descending)
    ordered = [rows[position] for position in order]
    return nulls + ordered if nulls_first else ordered + nulls


def _sort_value(
    node: Node, types: Mapping[int, Type], compiler: Compiler
) -> tuple[Evaluate, Callable[[Any], Any] | None]:
    kind = compiler.type_of(node, types)
    require_order(kind)
    return compiler.evaluate(node, types), None if kind.compares_natively else kind.comparable


def require_order(kind: Type) -> None:
    if not kind.has_order and kind.family != "unknown":
        raise UndefinedFunction(
            f"could not identify an ordering operator for type {kind.sql_name}",
            hint="Use an explicit ordering operator or modify the query.",
        )


def require_equality(kind: Type) -> None:
    if not kind.has_order and kind.family != "unknown":
        raise UndefinedFunction(f"could not identify an equality operator for type {kind.sql_name}")


def comparable_of(kind: Type) -> Callable[[Any], Any] | None:
    """The function that makes a value hashable by SQL's equality, NULL included; None if it is already."""
    if kind.compares_natively:
        return None
    of = kind.comparable
    return lambda value: None if value is None else of(value)


def key_of(nodes: Sequence[Node], types: Mapping[int, Type], compiler: Compiler) -> KeyOf:
    """A tuple for several expressions; the value itself for one."""
    kinds = [compiler.type_of(node, types) for node in nodes]
    for kind in kinds:
        require_equality(kind)
    plain = [comparable_of(kind) is None for kind in kinds]
    if all(plain) and all(isinstance(node, ColumnRef) for node in nodes) and nodes:
        get = itemgetter(*(node.column for node in nodes if isinstance(node, ColumnRef)))
        return lambda row, context: get(row)
    evaluates = [
        _hashable(compiler.evaluate(node, types), comparable_of(kind))
        for node, kind in zip(nodes, kinds, strict=True)
    ]
    if len(evaluates) == 1:
        return evaluates[0]
    return lambda row, context: tuple([each(row, context) for each in evaluates])


def _hashable(evaluate: Evaluate, comparable: Callable[[Any], Any] | None) -> KeyOf:
    if comparable is None:
        return evaluate
    return lambda row, context: comparable(evaluate(row, context))


def row_key(types: Iterable[Type]) -> Callable[[Tuple], Any]:
    """The key of a whole row, for DISTINCT and set operations."""
    kinds = list(types)
    for kind in kinds:
        require_equality(kind)
    comparables = [comparable_of(kind) for kind in kinds]
    if all(each is None for each in comparables):
        return lambda row: row
    wanted = [(position, each) for position, each in enumerate(comparables) if each is not None]

    def key(row: Tuple) -> Any:
        values = list(row)
        for position, comparable in wanted:
            values[position] = comparable(values[position])
        return tuple(values)

    return key


EXACT = frozenset((int, str, bool, bytes, type(None)))


def exactly(values: Iterable[Any]) -> Tuple:
    """Values such that equal ones are the same to the last digit: 1.0 is not 1.00 here."""
    return tuple([value if type(value) in EXACT else repr(value) for value in values])
