"""Which expressions of a query have constants to be folded: found in the plan as it was bound.

    SELECT 1 / s.z FROM (SELECT 0 AS z) s WHERE false

PostgreSQL puts a plain subquery's expressions in the place of its columns before it folds constants, so that
one nobody uses is not folded either. So does `constants`: through projections, conditions and inner joins,
but not through what groups, sorts or limits, nor through the side of an outer join that may be missing. A
WITH query that is not read is left out.

Walk: `sql.bind.binding` calls `constants` for each query; `expr.folding` folds what it finds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from tenure.catalog.descriptors import TypeRef
from tenure.expr.expressions import ColumnRef, Const, Given, Nested, Node, nodes
from tenure.expr.folding import has_constants
from tenure.expr.rewrite import rewrite
from tenure.sql.plans.plan import (
    Filter,
    Join,
    JoinKind,
    Lock,
    Plan,
    Project,
    Shared,
    Subquery,
    Values,
    expressions,
    inputs,
)

VARYING = Given(1 << 62, TypeRef("unknown"))
"""Stands for what is read from a table, whatever its type."""

NODES_MAX = 100
"""A larger expression is not put in the place of columns: it might grow with each level of subqueries."""


def constants(
    plan: Plan, nested: Sequence[Subquery], shared: Sequence[Plan], parameters: int
) -> tuple[Node, ...]:
    """The expressions with something to fold; `parameters` is how many parameters the statement has."""
    looking = _Looking(nested, shared, parameters)
    looking.note(looking.follow(plan))
    return tuple(looking.found)


@dataclass
class _Looking:
    nested: Sequence[Subquery]
    shared: Sequence[Plan]
    parameters: int
    found: list[Node] = field(default_factory=list)
    followed: set[int] = field(default_factory=set)
    """By the id of the plan: a WITH query may be read by several."""

    def follow(self, plan: Plan) -> list[Node]:
        """What each column of a row is made of, as far as it may be of constants; the rest is noted."""
        below = [self.follow(each) for each in inputs(plan)]
        known = [each for side in below for each in side]
        made = [_filled(each, known) for each in expressions(plan)]
        if isinstance(plan, Project) or (isinstance(plan, Values) and len(plan.rows) == 1):
            return [self._kept(each) for each in made]
        self.note(made)
        if isinstance(plan, Filter | Lock):
            return known
        if isinstance(plan, Join):
            return self._joined(plan, *below)
        if isinstance(plan, Shared):
            self._follow_once(self.shared[plan.number])
        self.note(known)
        return [VARYING] * len(plan.outputs)

    def note(self, trees: Sequence[Node]) -> None:
        for tree in trees:
            if has_constants(tree, self.parameters):
                self.found.append(tree)
            for each in nodes(tree):
                if isinstance(each, Nested):
                    self._follow_once(self.nested[each.number].plan)

    def _follow_once(self, plan: Plan) -> None:
        if id(plan) not in self.followed:
            self.followed.add(id(plan))
            self.note(self.follow(plan))

    def _kept(self, tree: Node) -> Node:
        is_known = isinstance(tree, Const) or (isinstance(tree, Given) and tree.number < self.parameters)
        if is_known:
            return tree
        is_large = len([*islice(nodes(tree), NODES_MAX)]) == NODES_MAX
        has_nested = any(isinstance(each, Nested) for each in nodes(tree))
        if is_large or has_nested or not has_constants(tree, self.parameters):
            self.note([tree])
            return VARYING
        return tree

    def _joined(self, join: Join, left: list[Node], right: list[Node]) -> list[Node]:
        if join.kind in (JoinKind.SEMI, JoinKind.ANTI):
            self.note(right)
            return left
        if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
            left = self._missing(left)
        if join.kind in (JoinKind.LEFT, JoinKind.FULL):
            right = self._missing(right)
        return [*left, *right]

    def _missing(self, side: list[Node]) -> list[Node]:
        self.note(side)
        return [VARYING] * len(side)


def _filled(tree: Node, known: Sequence[Node]) -> Node:
    return rewrite(tree, lambda node: known[node.column] if isinstance(node, ColumnRef) else None)
