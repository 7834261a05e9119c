"""Which expressions of a query have constants to be folded: found in the plan as it was bound.

    SELECT 1 / s.z FROM (SELECT 0 AS z) s WHERE false

Before PostgreSQL folds constants, it replaces the columns of a plain subquery by their expressions, so unused
ones are not folded. `constants` does the same through projections, conditions and inner joins, but not
through nodes that group, sort or limit, nor through the nullable side of an outer join. A WITH query that is
not read is left out.

    SELECT x FROM (SELECT 1 AS x, id FROM a UNION ALL SELECT 0, id FROM b) s WHERE id < 0 AND 1 / x > 0

Of any other subquery, unused columns are left out (except those of a set operation, DISTINCT, or a branch of
UNION ALL without a condition). The conditions on it are folded once more with its expressions in the place of
its columns, unless it has a LIMIT, window functions, set-returning functions or EXCEPT.

Walk: `sql.bind.binding` calls `constants` for each query; `expr.tree.folding` folds what it finds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.expressions import And, ColumnRef, Const, ContextValue, Nested, Node, nodes
from tenure.expr.tree.folding import has_constants
from tenure.expr.tree.rewrite import rewrite, shifted
from tenure.sql.plans.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Lock,
    Plan,
    Project,
    ProjectSet,
    Scan,
    SetKind,
    SetOperation,
    Shared,
    Sort,
    Subquery,
    Values,
    Window,
    expressions,
    inputs,
)
from tenure.sql.plans.trees import conjoined, conjuncts, has_nested

Columns = frozenset[int]

VARYING = ContextValue(1 << 62, TypeRef("unknown"))
"""Replaces a value that is read from a table, of any type."""

NODES_MAX = 100
"""Larger expressions do not replace columns: they might grow with each level of subqueries."""


def constants(
    plan: Plan, nested: Sequence[Subquery], shared: Sequence[Plan], parameters: int
) -> tuple[Node, ...]:
    """The expressions with something to fold; `parameters` is how many parameters the statement has."""
    search = _ConstantSearch(nested, shared, parameters)
    search.follow_whole(plan)
    return tuple(search.found)


@dataclass
class _ConstantSearch:
    nested: Sequence[Subquery]
    shared: Sequence[Plan]
    parameters: int
    found: list[Node] = field(default_factory=list)
    followed: set[int] = field(default_factory=set)
    """The ids of plans that were followed: a WITH query may be read several times."""
    column_trees: dict[int, list[Node]] = field(default_factory=dict)
    """By the id of a plan: the expression of each of its columns."""

    def follow_whole(self, plan: Plan) -> None:
        self.note(self.follow(plan, _all(plan)))

    def follow(self, plan: Plan, used: Columns) -> list[Node]:
        """The expression of each column, VARYING if it depends on rows; other expressions with constants are
        noted."""
        needed = _needed_columns(plan, used)
        below = [self.follow(each, columns) for each, columns in zip(inputs(plan), needed, strict=True)]
        trees = self.column_trees[id(plan)] = self._columns_of(plan, used, below)
        return trees

    def _columns_of(self, plan: Plan, used: Columns, below: list[list[Node]]) -> list[Node]:
        column_trees = [each for side in below for each in side]
        trees = [_filled(each, column_trees) for each in expressions(_without_unused(plan, used))]
        if isinstance(plan, Project):
            return self._projected(plan, used, trees)
        if isinstance(plan, Values) and len(plan.rows) == 1:
            return [self._kept(each) for each in trees]
        self.note(trees)
        if isinstance(plan, Filter | Join):
            for each, guard in zip(expressions(plan), trees, strict=True):
                self._push_each(plan, each, guard)
        if isinstance(plan, Filter | Lock):
            return column_trees
        if isinstance(plan, Join):
            return self._joined(plan, *below)
        if isinstance(plan, Shared):
            self._follow_once(self.shared[plan.number])
        self.note(column_trees)
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
            self.follow_whole(plan)

    def _projected(self, plan: Project, used: Columns, trees: Sequence[Node]) -> list[Node]:
        wanted = [each if at in used else VARYING for at, each in enumerate(trees)]
        if not _is_at_head(plan):
            return [self._kept(each) for each in wanted]
        self.note(wanted)
        return [VARYING] * len(wanted)

    def _kept(self, tree: Node) -> Node:
        is_constant = isinstance(tree, Const) or (
            isinstance(tree, ContextValue) and tree.number < self.parameters
        )
        if is_constant:
            return tree
        if _is_large(tree) or has_nested(tree) or not has_constants(tree, self.parameters):
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

    # Conditions that are pushed into subqueries

    def _push_each(self, plan: Filter | Join, condition: Node, guard: Node) -> None:
        """`guard` is the condition as it is folded at its own place: if it is false there, nothing is
        pushed."""
        conditions = [each for each in conjuncts(condition) if _columns([each]) and not has_nested(each)]
        if isinstance(plan, Filter):
            self._push(plan.input, conjoined(conditions), guard)
        else:
            self._push_to_sides(plan, conditions, guard, is_join_condition=True)

    def _push(self, plan: Plan, condition: Node | None, guard: Node) -> None:
        if condition is None or _is_large(condition):
            return
        match plan:
            case Project():
                inner = _filled(condition, plan.expressions)
                if has_nested(inner) or _numbers_rows(plan):
                    return
                pushed = _filled(inner, self.column_trees[id(plan.input)])
                self.note([And((guard, *self._conditions_of(plan.input), pushed))])
                self._push(plan.input, inner, guard)
            case Filter() | Sort() | Lock() | Distinct(on=None):
                self._push(plan.input, condition, guard)
            case SetOperation() if plan.kind is not SetKind.EXCEPT:
                self._push(plan.left, condition, guard)
                self._push(plan.right, condition, guard)
            case Join():
                self._push_to_sides(plan, conjuncts(condition), guard, is_join_condition=False)

    def _push_to_sides(
        self, join: Join, conditions: list[Node], guard: Node, *, is_join_condition: bool
    ) -> None:
        """A join's own conditions go to its nullable side, conditions from above to the other one."""
        width = len(join.left.outputs)
        to_left = (JoinKind.RIGHT,) if is_join_condition else (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
        to_right = (JoinKind.LEFT,) if is_join_condition else (JoinKind.RIGHT,)
        if join.kind in (JoinKind.INNER, *to_left):
            left = [each for each in conditions if max(_columns([each]), default=width) < width]
            self._push(join.left, conjoined(left), guard)
        if join.kind in (JoinKind.INNER, *to_right):
            right = [
                shifted(each, -width) for each in conditions if min(_columns([each]), default=-1) >= width
            ]
            self._push(join.right, conjoined(right), guard)

    def _conditions_of(self, plan: Plan) -> list[Node]:
        """The subquery's own conditions: if they are false, a pushed condition is not evaluated."""
        found: list[Node] = []
        while isinstance(plan, Filter):
            found.insert(0, _filled(plan.condition, self.column_trees[id(plan.input)]))
            plan = plan.input
        return found


def _needed_columns(plan: Plan, used: Columns) -> list[Columns]:
    """For each input, the columns that the `used` columns of the plan need."""
    match plan:
        case Project():
            return [_columns([plan.expressions[at] for at in used])]
        case Filter() | Lock() | Sort() | Limit():
            keys = frozenset(plan.key) if isinstance(plan, Lock) else frozenset()
            return [used | keys | _columns(expressions(plan))]
        case Join():
            width = len(plan.left.outputs)
            columns = used | _columns(expressions(plan)) | {at for _, at in plan.lateral}
            left = frozenset(each for each in columns if each < width)
            return [left, frozenset(each - width for each in columns if each >= width)]
        case SetOperation() if _is_append(plan):
            return [_all(each) if _is_pulled_up(each) else used for each in (plan.left, plan.right)]
        case Aggregate():
            return [_columns(expressions(_without_unused(plan, used)))]
        case _:
            return [_all(each) for each in inputs(plan)]


def _without_unused(plan: Plan, used: Columns) -> Plan:
    """A grouping without its unused aggregates; any other plan unchanged."""
    if not isinstance(plan, Aggregate):
        return plan
    width = len(plan.keys)
    return replace(plan, calls=tuple(call for at, call in enumerate(plan.calls) if width + at in used))


def _is_append(plan: Plan) -> bool:
    """Whether it is a UNION ALL of nothing but UNION ALLs."""
    if not isinstance(plan, SetOperation):
        return True
    return plan.kind is SetKind.UNION and plan.is_all and _is_append(plan.left) and _is_append(plan.right)


def _is_pulled_up(branch: Plan) -> bool:
    """Whether a branch of UNION ALL is no more than a select list over one table, or over none."""
    return isinstance(branch, Project) and isinstance(branch.input, Scan | Values)


def _is_at_head(plan: Project) -> bool:
    """Whether it is the select list of a query that groups, or has window or set-returning functions."""
    return isinstance(_below_filters(plan), Aggregate | Window | ProjectSet)


def _numbers_rows(plan: Project) -> bool:
    return isinstance(_below_filters(plan), Window | ProjectSet)


def _below_filters(plan: Project) -> Plan:
    inner = plan.input
    while isinstance(inner, Filter):
        inner = inner.input
    return inner


def _is_large(tree: Node) -> bool:
    return len([*islice(nodes(tree), NODES_MAX)]) == NODES_MAX


def _columns(trees: Iterable[Node]) -> Columns:
    return frozenset(each.column for tree in trees for each in nodes(tree) if isinstance(each, ColumnRef))


def _all(plan: Plan) -> Columns:
    return frozenset(range(len(plan.outputs)))


def _filled(tree: Node, column_trees: Sequence[Node]) -> Node:
    return rewrite(tree, lambda node: column_trees[node.column] if isinstance(node, ColumnRef) else None)
