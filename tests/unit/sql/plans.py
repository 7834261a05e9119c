"""Plans for tests, in few words, and a desk to run them on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tenure.base.memory import lone_account
from tenure.catalog.descriptors.definitions import Table, visible
from tenure.expr.aggregates.aggregate_table import aggregate_type, resolve_aggregate
from tenure.expr.aggregates.window_functions import resolve_window, window_type
from tenure.expr.set_function_table import column_types, resolve_set
from tenure.expr.tree.build import Typed, call, coerce, const
from tenure.expr.tree.expressions import ColumnRef, Node
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import parse_type_name, type_of
from tenure.kv.store import Store
from tenure.sql.plans.plan import (
    Aggregate,
    AggregateCall,
    Filter,
    FunctionScan,
    OutputColumn,
    Plan,
    Project,
    Query,
    Scan,
    SetCall,
    SortKey,
    Values,
    Window,
    WindowCall,
)
from tenure.sql.rows.run import QueryRun
from tenure.sql.rows.runner import compile
from tests.unit.table.tables import Bench
from tests.unit.table.trees import CONTEXT


def named(name: str) -> Type:
    return type_of(parse_type_name(name))


INT, TEXT, NUMERIC = named("int8"), named("text"), named("numeric")


class Desk(Bench):
    """A store with tables, and queries over them."""

    def __init__(self, store: Store, *tables: Table) -> None:
        super().__init__(store, *tables)
        self.checks = 0
        self.system: dict[str, list[tuple[Any, ...]]] = {}

    def run(self, **more: Any) -> QueryRun:
        memory = more.pop("memory", lone_account(1 << 30))
        given = more.pop("given", ())
        return QueryRun(
            context=replace(CONTEXT, context_values=given),
            source=self.store.snapshot(),
            layouts=self.layouts.of,
            virtual=lambda key, sought: self.system[key],
            check=self._check,
            memory=memory,
            **more,
        )

    def _check(self) -> None:
        self.checks += 1

    def answer(self, plan: Plan | Query, **more: Any) -> list[tuple[Any, ...]]:
        query = plan if isinstance(plan, Query) else Query(plan)
        return list(compile(query).rows(self.run(**more)))


def without_tables() -> QueryRun:
    """A run that reads nothing: for plans over values."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a plan without tables")

    source: Any = None
    return QueryRun(CONTEXT, source, refuse, refuse, lambda: None, lone_account(1 << 30))


def scan(table: Table, *names: str, **more: Any) -> Scan:
    """All columns, or these."""
    columns = [each for each in visible(table.columns) if not names or each.name in names]
    outputs = tuple(OutputColumn(each.name, type_of(each.type), table.id, each.id) for each in columns)
    return Scan(outputs, table, tuple(each.id for each in columns), **more)


def values(types: Sequence[Type], *rows: Iterable[Any]) -> Values:
    outputs = tuple(OutputColumn(f"column{place}", kind) for place, kind in enumerate(types, 1))
    trees = tuple(
        tuple(const(each, kind).node for each, kind in zip(row, types, strict=True)) for row in rows
    )
    return Values(outputs, trees)


def ints(*rows: Sequence[int | None] | int | None) -> Values:
    """A column of numbers, or rows of them."""
    tuples = [tuple(row) if isinstance(row, Sequence) else (row,) for row in rows]
    return values([INT] * len(tuples[0]), *tuples)


def col(plan: Plan, place: int) -> Typed:
    return Typed(ColumnRef(place), plan.outputs[place].type)


def both(left: Plan, right: Plan, place: int) -> Typed:
    """A column of a join's row."""
    outputs = (*left.outputs, *right.outputs)
    return Typed(ColumnRef(place), outputs[place].type)


def number(value: int | None) -> Typed:
    return const(value, INT)


def where(plan: Plan, condition: Typed) -> Filter:
    return Filter(plan, condition.node)


def project(plan: Plan, *expressions: Typed) -> Project:
    outputs = tuple(OutputColumn("?column?", each.type) for each in expressions)
    return Project(outputs, plan, tuple(each.node for each in expressions))


def compare(sign: str, left: Typed, right: Typed) -> Node:
    return call(sign, left, right).node


def key(place: int, *, desc: bool = False, nulls_first: bool | None = None) -> SortKey:
    return SortKey(ColumnRef(place), desc, desc if nulls_first is None else nulls_first)


def aggregate_call(name: str, *arguments: Typed, **more: Any) -> AggregateCall:
    found, targets = resolve_aggregate(name, [each.type for each in arguments])
    given = [coerce(each, to) for each, to in zip(arguments, targets, strict=True)]
    kind = aggregate_type(found, [each.type for each in given])
    return AggregateCall(found.id, tuple(each.node for each in given), kind, **more)


def aggregate(plan: Plan, keys: Sequence[Typed], *calls: AggregateCall, **more: Any) -> Aggregate:
    outputs = [
        *(OutputColumn("key", each.type) for each in keys),
        *(OutputColumn("call", each.type) for each in calls),
    ]
    outputs += [OutputColumn("grouping", named("int4")) for _ in more.get("groupings", ())]
    return Aggregate(tuple(outputs), plan, tuple(each.node for each in keys), calls, **more)


def window_call(name: str, *arguments: Typed, **more: Any) -> WindowCall:
    if more.get("is_aggregate"):
        found = aggregate_call(name, *arguments)
        return WindowCall(found.function, found.arguments, found.type, **more)
    function, targets = resolve_window(name, [each.type for each in arguments])
    given = [coerce(each, to) for each, to in zip(arguments, targets, strict=True)]
    kind = window_type(function, [each.type for each in given])
    return WindowCall(function.id, tuple(each.node for each in given), kind, **more)


def window(plan: Plan, *calls: WindowCall) -> Window:
    return Window((*plan.outputs, *(OutputColumn("window", each.type) for each in calls)), plan, calls)


def set_call(name: str, *arguments: Typed) -> tuple[SetCall, tuple[Type, ...]]:
    function, targets = resolve_set(name, [each.type for each in arguments])
    given = [coerce(each, to) for each, to in zip(arguments, targets, strict=True)]
    kinds = column_types(function, [each.type for each in given])
    return SetCall(function.id, tuple(each.node for each in given), len(kinds)), kinds


def function_scan(*calls: tuple[SetCall, tuple[Type, ...]], ordinality: bool = False) -> FunctionScan:
    outputs = [OutputColumn("f", kind) for _, kinds in calls for kind in kinds]
    if ordinality:
        outputs.append(OutputColumn("ordinality", INT))
    return FunctionScan(tuple(outputs), tuple(each for each, _ in calls), ordinality)


def series(first: int, last: int) -> FunctionScan:
    return function_scan(set_call("generate_series", number(first), number(last)))
