"""EXISTS, IN, ANY and ALL in a filter become semi-joins and anti-joins.

    EXISTS (SELECT ... FROM b WHERE b.x = a.x)        Join(semi: b.x = a.x)
    (a.x, a.y) IN (SELECT x, y FROM b)                Join(semi: a.x = b.x AND a.y = b.y)
    a.x NOT IN (SELECT x FROM b WHERE b.k = a.k)      Join(anti: b.k = a.k AND (a.x = b.x) IS NOT FALSE)
    a.x < ALL (SELECT x FROM b WHERE b.k = a.k)       Join(anti: b.k = a.k AND (a.x < b.x) IS NOT TRUE)

Both executors join by hash where there is an equality. This is done where the inner query uses outer values
in its conditions only. A subquery that takes nothing from the outer row is answered once and then asked
(`sql.rows.quantified`), with one exception: (a, b) IN (...), which DuckDB answers as a join only.

A condition keeps a row only if it is true. So a NULL of IN counts as false here, that of NOT IN as a match.

Walk: `sql.access.planner` calls `exists_joined` before conditions move down.
"""

from typing import NamedTuple

from tenure.expr.tree.expressions import ColumnRef, ContextValue, IsTruth, Nested, Node, Not
from tenure.expr.tree.rewrite import rewrite, shifted
from tenure.sql.plans.plan import (
    Distinct,
    Filter,
    Join,
    JoinKind,
    Lock,
    NestedKind,
    Plan,
    Project,
    Query,
    Sort,
    Subquery,
    expressions,
    inputs,
    walk,
    with_inputs,
)
from tenure.sql.plans.trees import (
    conjoined,
    conjuncts,
    givens,
    has_nested,
    is_volatile,
    rows_compared,
    substituted,
)


def exists_joined(plan: Plan, query: Query) -> Plan:
    """Turns such conditions of filters into joins."""
    plan = with_inputs(plan, [exists_joined(each, query) for each in inputs(plan)])
    if not isinstance(plan, Filter):
        return plan
    below, staying = plan.input, []
    for each in conjuncts(plan.condition):
        joined = _joined(below, each, query)
        if joined is None:
            staying.append(each)
        else:
            below = joined
    rest = conjoined(staying)
    return below if rest is None else Filter(below, rest)


def _joined(plan: Plan, tree: Node, query: Query) -> Join | None:
    is_negated = isinstance(tree, Not)
    tested = tree.operand if isinstance(tree, Not) else tree
    if not isinstance(tested, Nested):
        return None
    subquery = query.nested[tested.number]
    if not _is_for_a_join(subquery, is_negated=is_negated):
        return None
    if any(has_nested(each) or is_volatile(each) for each in tested.arguments):
        return None
    inner = _without_outer(subquery, query)
    if inner is None:
        return None
    width, operands = len(plan.outputs), len(subquery.functions)
    outer = dict(zip(subquery.takes, tested.arguments[operands:], strict=True))
    ties = [_with_outer(each, width, outer) for each in inner.ties]
    if subquery.kind is NestedKind.EXISTS:
        return Join(JoinKind.ANTI if is_negated else JoinKind.SEMI, plan, inner.plan, conjoined(ties))
    rights = [shifted(each, width) for each in inner.values]
    compared = rows_compared(subquery.functions, tested.arguments[:operands], rights)
    kind, test = _kept(subquery.kind, compared, is_negated=is_negated)
    return Join(kind, plan, inner.plan, conjoined([*ties, *conjuncts(test)]))


def _is_for_a_join(subquery: Subquery, *, is_negated: bool) -> bool:
    if subquery.kind not in (NestedKind.EXISTS, NestedKind.IN, NestedKind.ALL):
        return False
    if subquery.takes:
        return True
    is_row = len(subquery.functions) > 1 and subquery.functions[0].startswith("=(")
    return is_row and subquery.kind is NestedKind.IN and not is_negated


def _kept(kind: NestedKind, compared: Node, *, is_negated: bool) -> tuple[JoinKind, Node]:
    """The right rows that decide whether a left row is kept."""
    if kind is NestedKind.IN:
        if is_negated:
            return JoinKind.ANTI, IsTruth(compared, False, is_negated=True)
        return JoinKind.SEMI, compared
    if is_negated:
        return JoinKind.SEMI, IsTruth(compared, False)
    return JoinKind.ANTI, IsTruth(compared, True, is_negated=True)


class _Inner(NamedTuple):
    """A subquery without its conditions on outer values."""

    plan: Plan
    ties: list[Node]
    """The conditions on outer values that were taken out."""
    values: list[Node]
    """The selected expressions, over the plan's rows."""


def _without_outer(subquery: Subquery, query: Query) -> _Inner | None:
    plan = exists_joined(subquery.plan, query)
    values: list[Node] = [ColumnRef(place) for place in range(len(plan.outputs))]
    while isinstance(plan, Project | Sort) or (isinstance(plan, Distinct) and plan.on is None):
        if isinstance(plan, Project):
            selected = dict(enumerate(plan.expressions))
            values = [substituted(each, selected) for each in values]
        plan = plan.input
    conditions: list[Node] = []
    while isinstance(plan, Filter):
        conditions = [*conjuncts(plan.condition), *conditions]
        plan = plan.input
    takes = set(subquery.takes)
    ties = [each for each in conditions if takes & set(givens([each]))]
    compared = values if subquery.functions else []
    if any(has_nested(each) or is_volatile(each) for each in (*conditions, *compared)):
        return None
    inside = [tree for node in walk(plan) for tree in expressions(node)]
    if takes & set(givens((*inside, *compared))) or any(has_nested(each) for each in inside):
        return None
    if any(isinstance(node, Lock) for node in walk(plan)):
        return None  # it locks the rows that it returns
    rest = conjoined([each for each in conditions if each not in ties])
    return _Inner(plan if rest is None else Filter(plan, rest), ties, values)


def _with_outer(tree: Node, width: int, outer: dict[int, Node]) -> Node:
    """A condition of the inner query as one of the join."""

    def change(node: Node) -> Node | None:
        if isinstance(node, ContextValue) and node.number in outer:
            return outer[node.number]
        return ColumnRef(node.column + width) if isinstance(node, ColumnRef) else None

    return rewrite(tree, change)
