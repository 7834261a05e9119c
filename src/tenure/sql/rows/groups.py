"""Groups: GROUP BY with aggregates, DISTINCT, and the operations on sets.

    row ──► key of its group ──► the state of each aggregate there, one step on

An aggregate with DISTINCT or ORDER BY keeps the arguments of its rows, and takes its steps at the
end. GROUPING SETS are as many tables of groups, filled in one pass.

Invariant (group-null): NULLs are one group; so are values that are equal, by the first of them.

Walk: `sql.rows.runner` makes these; `expr.aggregates.aggregate_table` has the steps.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tenure.base.memory import Holding
from tenure.base.sizes import size_of, size_of_rows
from tenure.expr.aggregates.aggregate import AggregateFunction as ExprAggregate
from tenure.expr.aggregates.aggregate_table import aggregate_with_id
from tenure.expr.functions.function import Context
from tenure.expr.tree.expressions import ColumnRef
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import Aggregate, AggregateCall, Distinct, SetKind, SetOperation, SortKey
from tenure.sql.rows.ordering import key_of, row_key, sorter
from tenure.sql.rows.run import Compiler, QueryRun, RowNode, Rows, Tuple, batches, types_of
from tenure.sql.rows.steps import make_tuple

Step: TypeAlias = Callable[[Any, Tuple], Any]
"""step(state, row) returns the state."""

GROUP_BYTES = 200
"""Bytes of a group besides its key: its table entries and its states."""

VALUE_BYTES = 64
"""Bytes of a kept value besides itself: its list entry and the tuple around it."""

JSON_BYTES = 240
"""Further bytes of a value that becomes a member of a JSON value and is written."""

COLLECTING = ("array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg")


def collects(aggregate: ExprAggregate) -> bool:
    """Whether its state is all the values it has seen."""
    return aggregate.name.removesuffix("_strict") in COLLECTING


class CompiledCall:
    """An aggregate: how its state begins, moves on with a row, and ends."""

    def __init__(self, call: AggregateCall, types: Mapping[int, Type], compiler: Compiler) -> None:
        self._aggregate = aggregate = aggregate_with_id(call.function)
        self._types = [compiler.type_of(node, types) for node in call.arguments]
        self._condition = None if call.condition is None else compiler.evaluate(call.condition, types)
        evaluates = [compiler.evaluate(node, types) for node in call.arguments]
        self._direct = evaluates[: aggregate.direct_count]
        self._arguments = evaluates[aggregate.direct_count :]
        own = self._types[aggregate.direct_count :]
        self._is_held = call.is_distinct or bool(call.order)
        self._is_collecting = collects(aggregate) or aggregate.is_ordered_set
        self._value_bytes = VALUE_BYTES + (JSON_BYTES if "json" in aggregate.name else 0)
        self._key = row_key(own) if call.is_distinct else None
        if self._is_held:
            self._hold(call, own, types, compiler)

    def _hold(
        self, call: AggregateCall, own: list[Type], types: Mapping[int, Type], compiler: Compiler
    ) -> None:
        """The kept values are the arguments followed by the ORDER BY values."""
        ordered = [compiler.type_of(key.node, types) for key in call.order]
        self._ordered = [compiler.evaluate(key.node, types) for key in call.order]
        keys = [
            SortKey(ColumnRef(len(own) + place), key.is_descending, key.nulls_first)
            for place, key in enumerate(call.order)
        ]
        if call.is_distinct:
            keys += [SortKey(ColumnRef(place)) for place in range(len(own))]
        self._sort = sorter(keys, dict(enumerate([*own, *ordered])), compiler)

    def started(
        self, context: Context, holding: Holding
    ) -> tuple[Callable[[], Any], Step, Callable[[Any, Tuple], Any]]:
        """For one run: start(), step(state, row), finish(state, a row of the group)."""
        start, step, finish = self._aggregate.steps(self._types, context)
        if self._is_collecting and not self._is_held:
            step = _counted(step, holding, self._value_bytes)
        direct = self._direct

        def finished(state: Any, row: Tuple) -> Any:
            return finish(state, *[evaluate(row, context) for evaluate in direct])

        if not self._is_held:
            return start, self._filtered(self._plain(step, context), context), finished

        def finish_kept_rows(held: list[Tuple], row: Tuple) -> Any:
            state = start()
            for values in self._in_order(held, context):
                state = step(state, *values)
            return finished(state, row)

        return list, self._filtered(self._holding(context, holding), context), finish_kept_rows

    def _plain(self, step: Callable[..., Any], context: Context) -> Step:
        arguments, is_strict = self._arguments, self._aggregate.is_strict
        if not arguments:
            return lambda state, row: step(state)
        if len(arguments) == 1 and is_strict:
            (only,) = arguments

            def of_one(state: Any, row: Tuple) -> Any:
                value = only(row, context)
                return state if value is None else step(state, value)

            return of_one

        def of_many(state: Any, row: Tuple) -> Any:
            values = [evaluate(row, context) for evaluate in arguments]
            return state if is_strict and None in values else step(state, *values)

        return of_many

    def _holding(self, context: Context, holding: Holding) -> Step:
        arguments, ordered, is_strict = self._arguments, self._ordered, self._aggregate.is_strict
        value_bytes = self._value_bytes

        def hold(held: list[Tuple], row: Tuple) -> list[Tuple]:
            values = [evaluate(row, context) for evaluate in arguments]
            if not (is_strict and None in values):
                held.append((*values, *[evaluate(row, context) for evaluate in ordered]))
                _count(holding, held[-1], value_bytes)
            return held

        return hold

    def _in_order(self, held: list[Tuple], context: Context) -> Iterator[Tuple]:
        count, seen = len(self._arguments), set()
        for row in self._sort(held, context):
            values = row[:count]
            if self._key is not None:
                key = self._key(values)
                if key in seen:
                    continue
                seen.add(key)
            yield values

    def _filtered(self, step: Step, context: Context) -> Step:
        condition = self._condition
        if condition is None:
            return step
        return lambda state, row: step(state, row) if condition(row, context) is True else state


def _counted(step: Callable[..., Any], holding: Holding, value_bytes: int) -> Callable[..., Any]:
    def counted(state: Any, *values: Any) -> Any:
        _count(holding, values, value_bytes)
        return step(state, *values)

    return counted


def _count(holding: Holding, values: Sequence[Any], value_bytes: int) -> None:
    holding.add_bytes(value_bytes + sum(map(size_of, values)))


class AggregateRows(RowNode):
    def __init__(self, plan: Aggregate, compiler: Compiler) -> None:
        self.plan: Aggregate = plan
        self._input = compiler.node(plan.input)
        types = types_of(plan.input.outputs)
        self._calls = [CompiledCall(call, types, compiler) for call in plan.calls]
        self._sets = (tuple(range(len(plan.keys))),) if plan.sets is None else plan.sets
        self._values = make_tuple(plan.keys, types, compiler)
        self._keys = [_set_key(plan, each, types, compiler) for each in self._sets]

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        with run.memory.holding("its groups") as holding:
            calls = [call.started(run.context, holding) for call in self._calls]
            tables = self._groups(run, calls, holding)
            for grouped, table in zip(self._sets, tables, strict=True):
                if not table and not grouped:
                    table[None] = ((), [start() for start, _, _ in calls])
                yield from self._finished(run, grouped, table, calls)

    def _groups(self, run: QueryRun, calls: Sequence[Any], holding: Holding) -> list[dict[Any, Any]]:
        """For each set of keys: the first row and the states of each group."""
        starts = [start for start, _, _ in calls]
        steps = [(place, step) for place, (_, step, _) in enumerate(calls)]
        tables: list[dict[Any, Any]] = [{} for _ in self._sets]
        context, first_rows = run.context, list[Tuple]()
        pairs = list(zip(self._keys, tables, strict=True))
        for batch in batches(run, self._input.start(run)):
            for key_of_set, table in pairs:
                for row in batch:
                    key = key_of_set(row, context)
                    group = table.get(key)
                    if group is None:
                        group = table[key] = (row, [start() for start in starts])
                        first_rows.append(row)
                    states = group[1]
                    for place, step in steps:
                        states[place] = step(states[place], row)
            if first_rows:
                holding.hold_bytes(len(first_rows) * GROUP_BYTES + size_of_rows(first_rows))
                first_rows.clear()
        return tables

    def _finished(
        self, run: QueryRun, grouped: tuple[int, ...], table: dict[Any, Any], calls: Sequence[Any]
    ) -> Rows:
        finishes = [finish for _, _, finish in calls]
        groupings = tuple(_grouping(places, grouped) for places in self.plan.groupings)
        context, make, kept = run.context, self._values, set(grouped)
        is_whole = len(kept) == len(self.plan.keys)
        nothing = (None,) * len(self.plan.keys)
        for first, states in table.values():
            values = make(first, context) if kept else nothing
            if not is_whole:
                values = tuple([value if place in kept else None for place, value in enumerate(values)])
            results = [finish(state, first) for finish, state in zip(finishes, states, strict=True)]
            yield (*values, *results, *groupings)


def _set_key(
    plan: Aggregate, grouped: tuple[int, ...], types: Mapping[int, Type], compiler: Compiler
) -> Callable[[Tuple, Context], Any]:
    if not grouped:
        return lambda row, context: None
    return key_of([plan.keys[place] for place in grouped], types, compiler)


def _grouping(places: tuple[int, ...], grouped: tuple[int, ...]) -> int:
    """GROUPING(a, b): a bit for each, 1 if it is not among the set's keys; the first is the highest."""
    number = 0
    for place in places:
        number = number * 2 + (place not in grouped)
    return number


class DistinctRows(RowNode):
    def __init__(self, plan: Distinct, compiler: Compiler) -> None:
        self.plan: Distinct = plan
        self._input = compiler.node(plan.input)
        types = types_of(plan.input.outputs)
        self._on = None if plan.on is None else key_of(plan.on, types, compiler)
        self._row_key = row_key(types.values()) if plan.on is None else None

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        context, on, row_key = run.context, self._on, self._row_key
        with run.memory.holding("the rows it has seen") as holding:
            seen: set[Any] = set()
            for row in self._input.start(run):
                key = row_key(row) if row_key is not None else on(row, context) if on is not None else ()
                if key not in seen:
                    seen.add(key)
                    holding.add(row)
                    yield row


class SetOperationRows(RowNode):
    def __init__(self, plan: SetOperation, compiler: Compiler) -> None:
        self.plan: SetOperation = plan
        self._left, self._right = compiler.node(plan.left), compiler.node(plan.right)
        is_plain = plan.kind is SetKind.UNION and plan.is_all
        self._key = None if is_plain else row_key([output.type for output in plan.outputs])

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        if self._key is None:
            return self._both(run, wanted)
        if self.plan.kind is SetKind.UNION:
            return self._union(run, self._key)
        return self._compared(run, self._key)

    def _both(self, run: QueryRun, wanted: int | None) -> Rows:
        yield from self._left.start(run, wanted)
        yield from self._right.start(run, wanted)

    def _union(self, run: QueryRun, key_of_row: Callable[[Tuple], Any]) -> Rows:
        with run.memory.holding("the rows it has seen") as holding:
            seen: set[Any] = set()
            for row in self._both(run, None):
                key = key_of_row(row)
                if key not in seen:
                    seen.add(key)
                    holding.add(row)
                    yield row

    def _compared(self, run: QueryRun, key_of_row: Callable[[Tuple], Any]) -> Rows:
        is_intersection, is_all = self.plan.kind is SetKind.INTERSECT, self.plan.is_all
        with run.memory.holding("the rows it compares with") as holding:
            counts: Counter[Any] = Counter()
            for batch in batches(run, self._right.start(run)):
                counts.update(map(key_of_row, batch))
                holding.hold(batch)
            emitted_rows: set[Any] = set()
            for row in self._left.start(run):
                key = key_of_row(row)
                if not is_all:
                    if (key in counts) is is_intersection and key not in emitted_rows:
                        emitted_rows.add(key)
                        holding.add(row)
                        yield row
                    continue
                is_there = counts[key] > 0
                if is_there:
                    counts[key] -= 1
                if is_there is is_intersection:
                    yield row
