"""Conditions and expressions as trees to be taken apart and put together again.

    conjuncts(a AND (b AND c))      a, b, c
    moved(#4 > 1, {4: 0})           #0 > 1
    equated(#0 = #5, 3)             an equality between the first three columns and the others

Walk: `sql.access.planner` moves conditions about with these; `sql.rows.joins` finds what it can hash by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tenure.expr.functions.function import Volatility
from tenure.expr.tree.compiled import volatility
from tenure.expr.tree.expressions import (
    And,
    Call,
    ColumnRef,
    Const,
    ContextValue,
    Nested,
    Node,
    Or,
    columns,
    nodes,
)
from tenure.expr.tree.rewrite import rewrite, shifted

COMPARISONS = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison that means the same with its sides swapped."""

NEGATIONS = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def conjuncts(tree: Node | None) -> list[Node]:
    """A conjunct that is constant false replaces all others, which are then not evaluated."""
    if tree is None:
        return []
    if isinstance(tree, And):
        conditions = [each for operand in tree.operands for each in conjuncts(operand)]
        false: list[Node] = [each for each in conditions if isinstance(each, Const) and each.packed is False]
        return false[:1] or conditions
    return [tree]


def conjoined(conditions: Sequence[Node]) -> Node | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return And(tuple(conditions))


def moved(tree: Node, places: Mapping[int, int]) -> Node:
    """The same with its columns at other positions."""
    return substituted(tree, {old: ColumnRef(new) for old, new in places.items()})


def substituted(tree: Node, instead: Mapping[int, Node]) -> Node:
    """The same with expressions in the place of its columns."""
    return rewrite(tree, lambda node: instead[node.column] if isinstance(node, ColumnRef) else None)


def is_volatile(tree: Node) -> bool:
    return volatility(tree) is Volatility.VOLATILE


def has_nested(tree: Node) -> bool:
    return any(isinstance(node, Nested) for node in nodes(tree))


def givens(trees: Iterable[Node]) -> Iterator[int]:
    return (node.number for tree in trees for node in nodes(tree) if isinstance(node, ContextValue))


class Comparison(NamedTuple):
    """`sign` with the types that it compares, by family: "=(int4,int8)"."""

    sign: str
    left: Node
    right: Node
    families: tuple[str, str]

    @property
    def turned(self) -> "Comparison":
        return Comparison(COMPARISONS[self.sign], self.right, self.left, self.families[::-1])


def comparison(tree: Node) -> Comparison | None:
    if not isinstance(tree, Call) or len(tree.arguments) != 2:
        return None
    sign, _, rest = tree.function.partition("(")
    if sign not in COMPARISONS:
        return None
    left, _, right = rest.removesuffix(")").partition(",")
    return Comparison(sign, *tree.arguments, (left, right))


def with_sign(function: str, sign: str) -> str:
    """Another comparison of the same types, by id."""
    return sign + function[function.index("(") :]


def rows_compared(functions: Sequence[str], lefts: Sequence[Node], rights: Sequence[Node]) -> Node:
    """The comparison of two rows whose members are compared by these functions, all of one sign."""
    sign = functions[0].partition("(")[0]
    triples = list(zip(functions, lefts, rights, strict=True))
    calls: list[Node] = [Call(function, (left, right)) for function, left, right in triples]
    if len(calls) == 1:
        return calls[0]
    if sign in ("=", "<>"):
        return And(tuple(calls)) if sign == "=" else Or(tuple(calls))
    decided = calls[-1]
    for function, left, right in reversed(triples[:-1]):
        equal = Call(with_sign(function, "="), (left, right))
        decided = Or((Call(with_sign(function, sign[0]), (left, right)), And((equal, decided))))
    return decided


_NUMBERS = (("int2", "int4", "int8"), ("float4", "float8"))


def compares_as_is(families: tuple[str, str]) -> bool:
    """Whether values of both types have one order and one equality in Python, and in keys."""
    return families[0] == families[1] or any(set(families) <= set(group) for group in _NUMBERS)


def equated(tree: Node, width: int) -> tuple[Node, Node] | None:
    """The sides of an equality between columns before `width` and columns after it; those as they stand
    in the right row. Both sides hash alike."""
    found = comparison(tree)
    if found is None or found.sign != "=" or not compares_as_is(found.families):
        return None
    for each in (found, found.turned):
        left, right = columns(each.left), columns(each.right)
        if left and right and max(left) < width <= min(right):
            return each.left, shifted(each.right, -width)
    return None
