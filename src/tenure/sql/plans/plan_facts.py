"""Properties of a plan: how much it may read, and whether it is volatile.

    is_bounded          every table in it is read by a key or a prefix of one
    is_point_query      at most a few rows of one table, by key
    is_volatile_plan    it may give another result when it runs again

Walk: `sql.access` and `sql.rows` ask these; `statements.dml.queries` asks `is_bounded` to choose who runs a
plan.
"""

from collections.abc import Iterator

from tenure.sql.plans.free_values import nested_in
from tenure.sql.plans.plan import (
    Filter,
    Limit,
    Lock,
    Plan,
    Project,
    Query,
    Recursive,
    Scan,
    Shared,
    Sort,
    expressions,
    walk,
)
from tenure.sql.plans.trees import is_volatile


def everything(plan: Plan, query: Query) -> Iterator[Plan]:
    """The nodes of a plan, of the subqueries in it and of the WITH queries that they read."""
    return _everything(plan, query, set())


def _everything(plan: Plan, query: Query, seen: set[tuple[str, int]]) -> Iterator[Plan]:
    for node in walk(plan):
        yield node
        inner = {("nested", number) for number in nested_in(node)}
        if isinstance(node, Shared):
            inner.add(("shared", node.number))
        for kind, number in sorted(inner - seen):
            seen.add((kind, number))
            below = query.nested[number].plan if kind == "nested" else query.shared[number]
            yield from _everything(below, query, seen)


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
