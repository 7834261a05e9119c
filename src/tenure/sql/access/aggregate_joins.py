"""Aggregates of correlated subqueries, computed once for all outer rows: a join with groups.

    WHERE l.quantity < (SELECT 0.2 * avg(m.quantity) FROM lines m WHERE m.part = l.part)

    Filter(l.quantity < 0.2 * avg)
      Join(left: l.part = m.part)
        Scan(l)
        Aggregate(m.part; avg(m.quantity))

Run for each outer row, such a subquery reads its table each time. So it becomes a join if no index leads to
the rows of one group. If an index does, lookups are better for few outer rows: in a select list, which a
LIMIT may cut, and in a filter whose own rows are read by key. In a filter over many rows it becomes a join,
too.

An outer row without a group gets NULL, or 0 for a count, as from an aggregate over no rows. Groups without an
outer row are computed as well, so only aggregates that cannot fail are moved.

Walk: `sql.access.planner` calls `aggregates_joined` before it moves conditions.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tenure.catalog.descriptors.definitions import TypeRef, visible
from tenure.expr.tree.build import const
from tenure.expr.tree.expressions import Coalesce, ColumnRef, ContextValue, Nested, Node, columns, nodes
from tenure.expr.tree.rewrite import rewrite
from tenure.expr.types.type_names import type_of
from tenure.sql.plans.plan import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    JoinKind,
    NestedKind,
    OutputColumn,
    Plan,
    Project,
    Query,
    Scan,
    Subquery,
    expressions,
    inputs,
    walk,
    with_inputs,
)
from tenure.sql.plans.trees import (
    compares_as_is,
    comparison,
    conjoined,
    conjuncts,
    givens,
    has_nested,
    is_volatile,
)

INT8 = type_of(TypeRef("int8"))
COUNT = "count"
CANNOT_FAIL = (COUNT, "min", "max", "bool_and", "bool_or", "every", "any_value")
"""Aggregates that cannot fail, for arguments of any type. Sums and averages cannot for the types of
`WIDE`."""

WIDE = ("int2", "int4", "int8", "numeric")
"""Types whose sums are wider than they are."""


def aggregates_joined(plan: Plan, query: Query, is_few: Callable[[Plan], bool]) -> Plan:
    """Turns scalar subqueries of filters and select lists that aggregate by outer values into joins.

    `is_few` estimates whether a plan gives few rows.
    """
    plan = with_inputs(plan, [aggregates_joined(each, query, is_few) for each in inputs(plan)])
    if not isinstance(plan, Filter | Project):
        return plan
    below: Plan = plan.input
    instead: list[tuple[Nested, Node]] = []
    for nested in _distinct(plan):
        grouped = _grouped(query.nested[nested.number], nested, len(below.outputs))
        if grouped is not None and grouped.is_indexed and (isinstance(plan, Project) or is_few(plan)):
            continue
        if grouped is not None:
            below = Join(JoinKind.LEFT, below, grouped.plan, grouped.condition)
            instead.append((nested, grouped.value))
    if not instead:
        return plan

    def change(node: Node) -> Node | None:
        return next((value for nested, value in instead if nested == node), None)

    if isinstance(plan, Project):
        changed = tuple(rewrite(each, change) for each in plan.expressions)
        return replace(plan, input=below, expressions=changed)
    kept = tuple(ColumnRef(at) for at in range(len(plan.outputs)))
    return Project(plan.outputs, Filter(below, rewrite(plan.condition, change)), kept)


def _distinct(plan: Plan) -> list[Nested]:
    """Each node once. They are compared, not hashed: nodes with array constants have no hash."""
    found: list[Nested] = []
    for node in (node for tree in expressions(plan) for node in nodes(tree)):
        if isinstance(node, Nested) and node not in found:
            found.append(node)
    return found


class _Grouped(NamedTuple):
    plan: Aggregate
    condition: Node
    """The join's condition, over the outer row followed by the group's row."""
    value: Node
    """The subquery's value, over both rows."""
    is_indexed: bool
    """Whether an index leads to the rows of one group."""


def _grouped(subquery: Subquery, nested: Nested, width: int) -> _Grouped | None:
    aggregate = subquery.plan.input if isinstance(subquery.plan, Project) else subquery.plan
    if subquery.kind is not NestedKind.SCALAR or not subquery.takes or not isinstance(aggregate, Aggregate):
        return None
    if aggregate.keys or aggregate.sets is not None or aggregate.groupings:
        return None
    if not all(_cannot_fail(call, aggregate.input) for call in aggregate.calls):
        return None
    if any(
        has_nested(each) or is_volatile(each) for each in (*nested.arguments, *expressions(subquery.plan))
    ):
        return None
    inner = _inner(aggregate.input, set(subquery.takes))
    return None if inner is None else _joined(subquery, nested, aggregate, inner, width)


class _Inner(NamedTuple):
    """The input of the aggregate, without its conditions on the outer row."""

    source: Plan
    ties: list[Node]
    keys: list[ColumnRef]
    """The column that each of these conditions fixes."""


def _inner(plan: Plan, takes: set[int]) -> _Inner | None:
    source, conditions = _unfiltered(plan)
    ties = [each for each in conditions if takes & set(givens([each]))]
    rest = [each for each in conditions if each not in ties]
    inside = [*rest, *(tree for node in walk(source) for tree in expressions(node))]
    if takes & set(givens(inside)) or any(has_nested(each) or is_volatile(each) for each in inside):
        return None
    keys = [key for each in ties if (key := _key(each, takes)) is not None]
    if not ties or len(keys) < len(ties):
        return None
    filtered = conjoined(rest)
    return _Inner(source if filtered is None else Filter(source, filtered), ties, keys)


def _joined(subquery: Subquery, nested: Nested, aggregate: Aggregate, inner: _Inner, width: int) -> _Grouped:
    source, ties, keys = inner
    outputs = (*(source.outputs[key.column] for key in keys), *aggregate.outputs)
    grouped = Aggregate(outputs, source, tuple(keys), aggregate.calls)
    outer = dict(zip(subquery.takes, nested.arguments, strict=True))
    tied = [
        _moved(tie, outer, {key.column: ColumnRef(width + at)})
        for at, (tie, key) in enumerate(zip(ties, keys, strict=True))
    ]
    results = {
        at: _or_zero(call, ColumnRef(width + len(keys) + at)) for at, call in enumerate(aggregate.calls)
    }
    top = subquery.plan.expressions[0] if isinstance(subquery.plan, Project) else ColumnRef(0)
    condition = conjoined(tied)
    assert condition is not None
    is_indexed = any(_is_indexed(key, source) for key in keys)
    return _Grouped(grouped, condition, _moved(top, outer, results), is_indexed)


def _unfiltered(plan: Plan) -> tuple[Plan, list[Node]]:
    conditions: list[Node] = []
    while isinstance(plan, Filter):
        conditions = [*conjuncts(plan.condition), *conditions]
        plan = plan.input
    return plan, conditions


def _key(tie: Node, takes: set[int]) -> ColumnRef | None:
    """The inner column that a condition equates with outer values; None if it is something else."""
    found = comparison(tie)
    if found is None or found.sign != "=" or not compares_as_is(found.families):
        return None
    for each in (found, found.turned):
        is_outer = not columns(each.right) and bool(takes & set(givens([each.right])))
        if isinstance(each.left, ColumnRef) and is_outer and not has_nested(each.right):
            return each.left
    return None


def _is_indexed(key: ColumnRef, source: Plan) -> bool:
    """Whether an index of its table begins with the column."""
    output: OutputColumn = source.outputs[key.column]
    return any(
        index.parts[0].column == output.number
        for node in walk(source)
        if isinstance(node, Scan) and node.table.id == output.table
        for index in visible(node.table.indexes)
    )


def _cannot_fail(call: AggregateCall, source: Plan) -> bool:
    name = call.function.partition("(")[0]
    if not all(isinstance(each, ColumnRef) for each in call.arguments) or call.condition is not None:
        return False
    types = [source.outputs[each.column].type for each in call.arguments if isinstance(each, ColumnRef)]
    return name in CANNOT_FAIL or (name in ("sum", "avg") and types[0].family in WIDE)


def _or_zero(call: AggregateCall, result: ColumnRef) -> Node:
    is_count = call.function.partition("(")[0] == COUNT
    return Coalesce((result, const(0, INT8).node)) if is_count else result


def _moved(tree: Node, outer: dict[int, Node], places: dict[int, Node]) -> Node:
    """An expression of the subquery over the joined row."""

    def change(node: Node) -> Node | None:
        if isinstance(node, ContextValue) and node.number in outer:
            return outer[node.number]
        return places[node.column] if isinstance(node, ColumnRef) else None

    return rewrite(tree, change)
