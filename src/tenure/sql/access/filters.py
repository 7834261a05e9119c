"""Conditions are pushed down to the scans and joins.

    Filter(#1 = #3 AND #0 > 5 AND #4 = 'x')         Join(#1 = #3)
      Join                                   ──►      Scan(a, condition #0 > 5)
        Scan(a)                                       Scan(b, condition #2 = 'x')
        Scan(b)

A condition passes a node if the node treats each row independently of the others: it passes no Limit, and
does not enter the nullable side of an outer join. A volatile condition passes nothing. A condition passes a
projection if it reads plain columns only, so nothing is computed twice.

Walk: `sql.access.planner` calls `pushed` first.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tenure.expr.function_table import function_with_id
from tenure.expr.tree.expressions import Call, Cast, ColumnRef, Node, columns
from tenure.expr.tree.rewrite import shifted
from tenure.sql.access.disjunctions import factored, implied
from tenure.sql.access.equalities import follows
from tenure.sql.plans.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Lock,
    Plan,
    Project,
    ProjectSet,
    Scan,
    SetOperation,
    Sort,
    Virtual,
    inputs,
    with_inputs,
)
from tenure.sql.plans.trees import conjoined, conjuncts, is_volatile, moved


def pushed(plan: Plan, conditions: Sequence[Node] = ()) -> Plan:
    """The plan with only the rows for which all the conditions, over its outputs, are true."""
    if isinstance(plan, Filter):
        return pushed(plan.input, [*_conditions(plan.condition), *conditions])
    staying = [each for each in conditions if is_volatile(each)]
    moving = [each for each in conditions if not is_volatile(each)]
    match plan:
        case Scan() | Virtual():
            done: Plan = replace(plan, condition=conjoined([*conjuncts(plan.condition), *moving]))
        case Join():
            done, left_over = _into_join(_without_padding(plan, moving), moving)
            staying += left_over
        case Aggregate() if not plan.keys or plan.sets is not None:
            # A grouping set without keys gives a row for no input, and sets leave keys NULL: no condition may
            # pass.
            done = replace(plan, input=pushed(plan.input))
            staying = list(conditions)
        case Project() | Aggregate() | ProjectSet():
            places = _places(plan)
            through = [each for each in moving if columns(each) <= places.keys()]
            staying += [each for each in moving if each not in through]
            done = replace(plan, input=pushed(plan.input, [moved(each, places) for each in through]))
        case Sort() | Lock():
            done = replace(plan, input=pushed(plan.input, moving))
        case Distinct() if plan.on is None:
            done = replace(plan, input=pushed(plan.input, moving))
        case SetOperation():
            done = replace(plan, left=pushed(plan.left, moving), right=pushed(plan.right, moving))
        case _:
            done = with_inputs(plan, [pushed(each) for each in inputs(plan)])
            staying = list(conditions)
    rest = conjoined(staying)
    return done if rest is None else Filter(done, rest)


def _conditions(tree: Node | None) -> list[Node]:
    return [part for each in conjuncts(tree) for part in factored(each)]


def _places(plan: Project | Aggregate | ProjectSet) -> dict[int, int]:
    """Which of its columns are columns of its input."""
    match plan:
        case Project():
            expressions: Sequence[Node] = plan.expressions
        case Aggregate():
            expressions = plan.keys
        case ProjectSet():
            return {place: place for place in range(len(plan.input.outputs))}
    return {place: node.column for place, node in enumerate(expressions) if isinstance(node, ColumnRef)}


def _into_join(plan: Join, conditions: Sequence[Node]) -> tuple[Join, list[Node]]:
    """The join with the conditions that can go into it, and those that must stay above."""
    width = len(plan.left.outputs)
    own = _conditions(plan.condition)
    if plan.kind is JoinKind.INNER:
        own, conditions = [*own, *conditions], ()
        own += follows(own)
    left = [each for each in conditions if _is_left(each, width) and plan.kind in _KEEPS_LEFT]
    right = [each for each in conditions if _is_right(each, width) and plan.kind is JoinKind.RIGHT]
    above = [each for each in conditions if each not in left and each not in right]
    down_left = [each for each in own if _is_left(each, width) and plan.kind in _FILTERS_LEFT]
    down_right = [each for each in own if _is_right(each, width) and plan.kind in _FILTERS_RIGHT]
    staying = [each for each in own if each not in down_left and each not in down_right]
    if plan.kind in _FILTERS_LEFT:
        down_left += _implied(staying, lambda part: _is_left(part, width))
    if plan.kind in _FILTERS_RIGHT:
        down_right += _implied(staying, lambda part: _is_right(part, width))
    joined = replace(
        plan,
        left=pushed(plan.left, [*left, *down_left]),
        right=pushed(plan.right, [shifted(each, -width) for each in (*right, *down_right)]),
        condition=conjoined(staying),
    )
    return joined, above


def _without_padding(plan: Join, conditions: Sequence[Node]) -> Join:
    """A LEFT join whose rows without a match fail a condition is an INNER one."""
    width = len(plan.left.outputs)
    if plan.kind is JoinKind.LEFT and any(_rejects_nulls(each, width) for each in conditions):
        return replace(plan, kind=JoinKind.INNER)
    return plan


def _rejects_nulls(tree: Node, width: int) -> bool:
    """Whether it is NULL if all columns from `width` on are."""
    match tree:
        case ColumnRef():
            return tree.column >= width
        case Call():
            is_strict = function_with_id(tree.function).is_strict
            return is_strict and any(_rejects_nulls(each, width) for each in tree.arguments)
        case Cast():
            return _rejects_nulls(tree.operand, width)
    return False


def _implied(conditions: Sequence[Node], is_of_side: Callable[[Node], bool]) -> list[Node]:
    found = [implied(each, is_of_side) for each in conditions]
    return [each for each in found if each is not None]


_KEEPS_LEFT = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
"""Left rows appear as they are: a condition on them may come before the join."""
_FILTERS_LEFT = (JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT)
"""A left row that fails a part of the join's own condition has no place in the result."""
_FILTERS_RIGHT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


def _is_left(tree: Node, width: int) -> bool:
    used = columns(tree)
    return bool(used) and max(used) < width and not is_volatile(tree)


def _is_right(tree: Node, width: int) -> bool:
    used = columns(tree)
    return bool(used) and min(used) >= width and not is_volatile(tree)
