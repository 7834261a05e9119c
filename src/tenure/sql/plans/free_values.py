"""The free values of a plan: outer values, and the rounds of recursive queries that it reads.

    SELECT (SELECT max(c) FROM u WHERE u.b = t.b) FROM t      the subquery needs t.b: a ContextValue
    WITH RECURSIVE r AS (... (WITH w AS (SELECT ... FROM r) ...)) ...     w needs the last round of r

A WITH query may be read in many places, and may read others. The free values of each are computed once, so
the cost grows with the size of the plan and not with the number of paths through it.

Walk: `sql.rows.runner` makes one per compiled query; `sql.duck` and `sql.explain.plan_text` ask as well.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tenure.expr.tree.expressions import Nested, nodes
from tenure.sql.plans.plan import (
    Join,
    Plan,
    Query,
    Recursive,
    Shared,
    Working,
    access_nodes,
    expressions,
    inputs,
)
from tenure.sql.plans.trees import givens


class Needs(NamedTuple):
    givens: frozenset[int] = frozenset()
    """Numbers of the values that must be set from outside, parameters included."""
    workings: frozenset[int] = frozenset()
    """Numbers of the recursive queries around it whose rows of the last round it reads."""


NOTHING = Needs()


class FreeValues:
    """Answers for the plans of one query, and remembers what its subqueries and WITH queries need."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._parameters = frozenset(range(len(query.parameters)))
        self._of_nested: dict[int, Needs] = {}
        self._of_shared: dict[int, Needs] = {}

    def givens(self, plan: Plan) -> frozenset[int]:
        """Beyond the statement's parameters."""
        return self._needs(plan).givens - self._parameters

    def workings(self, plan: Plan) -> frozenset[int]:
        return self._needs(plan).workings

    def _needs(self, plan: Plan) -> Needs:
        trees = (*expressions(plan), *access_nodes(plan))
        found = [Needs(frozenset(givens(trees))), *(self._nested(number) for number in nested_in(plan))]
        if isinstance(plan, Shared):
            found.append(self._shared(plan.number))
        elif isinstance(plan, Working):
            found.append(Needs(workings=frozenset((plan.number,))))
        below = [self._needs(each) for each in inputs(plan)]
        if isinstance(plan, Join):
            filled = frozenset(number for number, _ in plan.lateral)
            below[1] = below[1]._replace(givens=below[1].givens - filled)
        whole = _together([*found, *below])
        if isinstance(plan, Recursive):
            whole = whole._replace(workings=whole.workings - {plan.number})
        return whole

    def _nested(self, number: int) -> Needs:
        outer_needs = self._of_nested.get(number)
        if outer_needs is None:
            inner = self._query.nested[number]
            needs = self._needs(inner.plan)
            outer_needs = needs._replace(givens=needs.givens - frozenset(inner.takes))
            self._of_nested[number] = outer_needs
        return outer_needs

    def _shared(self, number: int) -> Needs:
        needs = self._of_shared.get(number)
        if needs is None:
            needs = self._of_shared[number] = self._needs(self._query.shared[number])
        return needs


def nested_in(plan: Plan) -> Iterator[int]:
    """The numbers of the subqueries in a node's own expressions."""
    return (
        node.number
        for tree in (*expressions(plan), *access_nodes(plan))
        for node in nodes(tree)
        if isinstance(node, Nested)
    )


def _together(all_needs: Iterable[Needs]) -> Needs:
    all_needs = [each for each in all_needs if each != NOTHING]
    if len(all_needs) < 2:
        return all_needs[0] if all_needs else NOTHING
    return Needs(
        frozenset().union(*(each.givens for each in all_needs)),
        frozenset().union(*(each.workings for each in all_needs)),
    )
