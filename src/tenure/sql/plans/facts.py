"""What can be said of a plan by looking at it: what it needs from outside, and how much it may read.

    is_bounded          every table in it is read by a key or a prefix of one
    is_point_query      at most a few rows of one table, by key
    free_givens         the outer values it depends on, beyond the statement's parameters
    free_workings       the recursive queries whose last round it reads

Walk: `sql.access` and `sql.rows` ask these; `statements.queries` asks `is_bounded` to choose who runs a plan.
"""

from collections.abc import Iterator

from tenure.expr.expressions import Nested, nodes
from tenure.sql.plans.plan import (
    Filter,
    Join,
    Limit,
    Lock,
    Plan,
    Project,
    Query,
    Recursive,
    Scan,
    Shared,
    Sort,
    Working,
    access_nodes,
    expressions,
    inputs,
    walk,
)
from tenure.sql.plans.trees import givens, is_volatile


def everything(plan: Plan, query: Query) -> Iterator[Plan]:
    """The nodes of a plan, of the subqueries in it and of the WITH queries that they read."""
    return _everything(plan, query, set())


def _everything(plan: Plan, query: Query, seen: set[tuple[str, int]]) -> Iterator[Plan]:
    for node in walk(plan):
        yield node
        inner = {("nested", number) for number in _nested(node)}
        if isinstance(node, Shared):
            inner.add(("shared", node.number))
        for kind, number in sorted(inner - seen):
            seen.add((kind, number))
            below = query.nested[number].plan if kind == "nested" else query.shared[number]
            yield from _everything(below, query, seen)


def _nested(plan: Plan) -> Iterator[int]:
    return (
        node.number
        for tree in (*expressions(plan), *access_nodes(plan))
        for node in nodes(tree)
        if isinstance(node, Nested)
    )


def free_givens(plan: Plan, query: Query) -> set[int]:
    """The numbers of values that somebody outside has to fill, beyond the statement's parameters."""
    return _free(plan, query) - set(range(len(query.parameters)))


def _free(plan: Plan, query: Query) -> set[int]:
    found = set(givens((*expressions(plan), *access_nodes(plan))))
    for number in _nested(plan):
        inner = query.nested[number]
        found |= _free(inner.plan, query) - set(inner.takes)
    if isinstance(plan, Shared):
        found |= _free(query.shared[plan.number], query)
    if isinstance(plan, Join):
        filled = {number for number, _ in plan.lateral}
        return found | _free(plan.left, query) | (_free(plan.right, query) - filled)
    return found.union(*(_free(below, query) for below in inputs(plan)))


def free_workings(plan: Plan, query: Query) -> set[int]:
    """The numbers of the recursive queries around it whose rows of the last round it reads."""
    inside = list(everything(plan, query))
    ended = {node.number for node in inside if isinstance(node, Recursive)}
    return {node.number for node in inside if isinstance(node, Working)} - ended


def is_volatile_plan(plan: Plan, query: Query) -> bool:
    return any(is_volatile(tree) for node in everything(plan, query) for tree in expressions(node))


def is_bounded(plan: Plan, query: Query) -> bool:
    """Whether it reads tables by keys and prefixes only: then it is better not handed to DuckDB."""
    inside = list(everything(plan, query))
    return not any(isinstance(node, Recursive) for node in inside) and all(
        node.access is not None and bool(node.access.prefix) for node in inside if isinstance(node, Scan)
    )


def is_point_query(query: Query) -> bool:
    """Whether it is nothing but a lookup by key, and some work on what it finds."""
    plan = query.plan
    while isinstance(plan, Filter | Project | Sort | Limit | Lock):
        plan = plan.input
    is_point = isinstance(plan, Scan) and plan.access is not None and plan.access.is_point
    return is_point and not query.nested
