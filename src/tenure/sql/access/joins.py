"""Joins: in which order, and by index where one side is small.

    users WHERE email = 'x'  ⋈  orders ON orders.user_id = users.id

    Join(lateral: given 0 is #0 of the left row)
      Scan(users by users_email_key)
      Scan(orders by orders_user_id_idx: prefix given 0)

INNER joins are reordered: they begin with a table that is read by key, and each next table has a join
condition with those before it. If the left rows are few and an index of the right table begins with the
joined columns, the right rows are looked up for each left row, by a lateral join.

Walk: `sql.access.planner` calls `arranged` when the conditions are where they belong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from tenure.expr.tree.expressions import Cast, ColumnRef, Const, ContextValue, Nested, Node, columns
from tenure.expr.tree.rewrite import rewrite, shifted
from tenure.sql.access.indexes import best_access, best_lookup
from tenure.sql.plans.plan import (
    Aggregate,
    FunctionScan,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Scan,
    Shared,
    Virtual,
    inputs,
    with_inputs,
)
from tenure.sql.plans.trees import (
    comparison,
    conjoined,
    conjuncts,
    equated,
    has_nested,
    is_volatile,
    moved,
)


class Planning(Protocol):
    """The state of planning one query."""

    def new_value_number(self) -> int: ...

    def array(self, tree: Nested) -> Node | None:
        """See `access_indexes.Arrays`."""
        ...


def arranged(plan: Plan, planning: Planning) -> Plan:
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER and not plan.lateral:
        return _cluster(plan, planning)
    done = with_inputs(plan, [arranged(each, planning) for each in inputs(plan)])
    if isinstance(done, Scan | Virtual):
        return _with_best_access(done, planning)
    if isinstance(done, Join):
        return looked_up(done, planning)
    return done


def _with_best_access(source: Scan | Virtual, planning: Planning) -> Scan | Virtual:
    if isinstance(source, Virtual):
        return replace(source, lookup=best_lookup(source, planning.array))
    return replace(source, access=best_access(source, planning.array))


def looked_up(join: Join, planning: Planning) -> Join:
    """The join with its right side read by index for each left row, if the left rows are few."""
    if join.lateral or join.kind in (JoinKind.RIGHT, JoinKind.FULL) or not is_small(join.left):
        return join
    if not isinstance(join.right, Scan | Virtual):
        return join
    width = len(join.left.outputs)
    conditions = conjuncts(join.condition)
    usable = [part for part in conditions if _is_lookup_equality(part, width)]
    places = sorted({place for part in usable for place in columns(part) if place < width})
    lateral = tuple((planning.new_value_number(), place) for place in places)
    context_values = {
        place: ContextValue(number, join.left.outputs[place].type.ref) for number, place in lateral
    }
    added = [_with_value(part, width, context_values) for part in usable]
    scan = replace(join.right, condition=conjoined([*conjuncts(join.right.condition), *added]))
    source = _with_best_access(scan, planning)
    if _fixed_columns(source) <= _fixed_columns(join.right):
        return join
    rest = conjoined([part for part in conditions if part not in usable])
    return replace(join, right=source, condition=rest, lateral=lateral)


def _fixed_columns(source: Scan | Virtual) -> int:
    """How many columns of its key an access fixes."""
    if isinstance(source, Virtual):
        return int(source.lookup is not None)
    return 0 if source.access is None else len(source.access.prefix)


def _is_lookup_equality(tree: Node, width: int) -> bool:
    """Whether it is an equality whose left side can be evaluated before the right rows are read."""
    return equated(tree, width) is not None and not has_nested(tree) and not is_volatile(tree)


def _with_value(tree: Node, width: int, context_values: Mapping[int, ContextValue]) -> Node:
    """The equality as a condition on the right rows alone."""

    def change(node: Node) -> Node | None:
        if isinstance(node, ColumnRef):
            return context_values[node.column] if node.column < width else ColumnRef(node.column - width)
        return None

    return rewrite(tree, change)


def is_small(plan: Plan) -> bool:
    """Whether it is expected to give few rows: it is read by a key or by a prefix of one."""
    match plan:
        case Scan():
            return plan.access is not None and bool(plan.access.prefix)
        case Limit() if isinstance(plan.count, Const | Cast):
            return True
        case Aggregate() if not plan.keys:
            return True
        case FunctionScan():
            return all(call.function.startswith("unnest(") for call in plan.calls)
        case Virtual():
            return plan.lookup is not None
        case Shared():
            return False
        case _:
            return all(map(is_small, inputs(plan)))


# ── the order of inner joins ───────────────────────────────────────────────────────────────────


def _cluster(plan: Join, planning: Planning) -> Plan:
    """Tables and conditions of nested INNER joins, put together anew."""
    tables, conditions = _flattened(plan)
    arranged_tables = [arranged(each, planning) for each in tables]
    order = _order(arranged_tables, conditions)
    starts = _starts(tables)
    # Where each column of the whole stands once the tables are in their order.
    places: dict[int, int] = {}
    for number in order:
        for place in range(len(tables[number].outputs)):
            places[starts[number] + place] = len(places)
    left: Conditions = [moved(each, places) for each in conditions]
    joined = arranged_tables[order[0]]
    for number in order[1:]:
        width = len(joined.outputs) + len(tables[number].outputs)
        here = [each for each in left if not columns(each) or max(columns(each)) < width]
        left = [each for each in left if each not in here]
        join = Join(JoinKind.INNER, joined, arranged_tables[number], conjoined(here))
        joined = looked_up(join, planning)
    if order == sorted(order):
        return joined
    back = tuple(ColumnRef(places[place]) for place in range(len(places)))
    return Project(plan.outputs, joined, back)


Conditions = list[Node]


def _flattened(plan: Plan) -> tuple[list[Plan], Conditions]:
    if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER and not plan.lateral):
        return [plan], []
    left, left_conditions = _flattened(plan.left)
    right, right_conditions = _flattened(plan.right)
    width = len(plan.left.outputs)
    moved_right = [shifted(each, width) for each in right_conditions]
    return [*left, *right], [*left_conditions, *moved_right, *conjuncts(plan.condition)]


def _starts(tables: Sequence[Plan]) -> list[int]:
    starts = [0]
    for each in tables:
        starts.append(starts[-1] + len(each.outputs))
    return starts


def _order(tables: Sequence[Plan], conditions: Conditions) -> list[int]:
    """The written order, but beginning with a small table, and each next one joined to those before it."""
    starts = _starts(tables)
    ties = [_tables_of(each, starts) for each in conditions if _is_equality(each)]
    left = list(range(len(tables)))
    first = next((number for number in left if is_small(tables[number])), 0)
    order = [first]
    left.remove(first)
    while left:
        members = set(order)
        tied = [number for number in left if any(number in tie and tie <= members | {number} for tie in ties)]
        order.append(tied[0] if tied else left[0])
        left.remove(order[-1])
    return order


def _is_equality(tree: Node) -> bool:
    found = comparison(tree)
    return found is not None and found.sign == "="


def _tables_of(tree: Node, starts: Sequence[int]) -> set[int]:
    return {
        number
        for number in range(len(starts) - 1)
        for place in columns(tree)
        if starts[number] <= place < starts[number + 1]
    }
