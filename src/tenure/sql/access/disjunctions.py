"""Conditions that follow from an OR of ANDs and can be checked before it.

    (a = b AND x) OR (a = b AND y)                    a = b AND (x OR y): the join has its equality
    (l.n = 1 AND r.m = 2) OR (l.n = 3 AND r.m = 4)    implies l.n = 1 OR l.n = 3, of the left rows alone

Both hold with NULLs, too: a row for which the whole is true makes true what it implies.

Walk: `sql.access.filters` asks while it moves conditions down.
"""

from collections.abc import Callable, Sequence

from tenure.expr.tree.expressions import Node, Or
from tenure.sql.plans.trees import conjoined, conjuncts, has_nested, is_volatile


def factored(tree: Node) -> list[Node]:
    """Conditions that together mean the same: what all alternatives share stands by itself."""
    if not isinstance(tree, Or) or is_volatile(tree):
        return [tree]
    alternatives = [conjuncts(each) for each in tree.operands]
    shared = [part for part in alternatives[0] if all(part in each for each in alternatives[1:])]
    if not shared:
        return [tree]
    rest = [[part for part in each if part not in shared] for each in alternatives]
    return [*shared, *([_either(rest)] if all(rest) else [])]


def implied(tree: Node, is_of_side: Callable[[Node], bool]) -> Node | None:
    """The condition that a disjunction implies for one side of a join; None if an alternative implies
    none."""
    if not isinstance(tree, Or) or has_nested(tree) or is_volatile(tree):
        return None
    alternatives = [[part for part in conjuncts(each) if is_of_side(part)] for each in tree.operands]
    return _either(alternatives) if all(alternatives) else None


def _either(alternatives: Sequence[Sequence[Node]]) -> Node:
    either: list[Node] = []
    for conjunction in alternatives:
        both = conjoined(conjunction)
        assert both is not None
        either.append(both)
    return Or(tuple(either))
