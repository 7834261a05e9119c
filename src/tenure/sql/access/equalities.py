"""Conditions that follow from others because columns are equal.

    a.id = b.id AND a.id = 5         b.id = 5
    a.id = b.id AND a.id IN (1, 2)   b.id IN (1, 2)

Both tables of a join can then be read by a key. Only equalities of one type with itself count: these are
transitive.

Walk: `sql.access.filters` asks for what `follows` before it moves the conditions of an inner join down.
"""

from collections.abc import Iterator, Sequence

from tenure.expr.function_table import function_with_id
from tenure.expr.tree.expressions import Call, ColumnRef, InList, Node, Quantified, columns
from tenure.sql.plans.trees import has_nested, is_volatile


def follows(conditions: Sequence[Node]) -> list[Node]:
    """The conditions on further columns, without those that are there."""
    found: dict[Node, None] = {}
    pairs = [pair for each in conditions if (pair := _equal_columns(each)) is not None]
    for each in conditions if pairs else ():
        fixed = _fixed_column(each)
        if fixed is not None:
            found.update(dict.fromkeys(_of_others(each, *fixed, pairs)))
    return [each for each in found if each not in conditions]


Pair = tuple[str, int, int]
"""The equality, by id, and two columns."""


def _equal_columns(tree: Node) -> Pair | None:
    match tree:
        case Call(arguments=(ColumnRef(), ColumnRef())) if _is_equality(tree.function):
            left, right = tree.arguments
            assert isinstance(left, ColumnRef) and isinstance(right, ColumnRef)
            return tree.function, left.column, right.column
    return None


def _fixed_column(tree: Node) -> tuple[str, int] | None:
    """The equality and the column of a condition that says what values the column may have."""
    if has_nested(tree) or is_volatile(tree):
        return None
    match tree:
        case Call(arguments=(ColumnRef(), value)) if _is_equality(tree.function) and not columns(value):
            operand, equality = tree.arguments[0], tree.function
        case InList(is_negated=False) if not any(columns(each) for each in tree.items):
            operand, equality = tree.operand, tree.equality
        case Quantified(is_all=False) if not columns(tree.array):
            operand, equality = tree.operand, tree.function
        case _:
            return None
    is_usable = isinstance(operand, ColumnRef) and _is_equality(equality)
    return (equality, operand.column) if is_usable and isinstance(operand, ColumnRef) else None


def _of_others(tree: Node, equality: str, column: int, pairs: Sequence[Pair]) -> Iterator[Node]:
    reached, left = {column}, [column]
    while left:
        at = left.pop()
        for function, one, other in pairs:
            if function == equality and at in (one, other):
                next_one = other if at == one else one
                if next_one not in reached:
                    reached.add(next_one)
                    left.append(next_one)
                    yield _about(tree, ColumnRef(next_one))


def _about(tree: Node, column: ColumnRef) -> Node:
    match tree:
        case Call():
            return Call(tree.function, (column, *tree.arguments[1:]))
        case InList():
            return InList(tree.equality, column, tree.items)
        case Quantified():
            return Quantified(tree.function, column, tree.array)
    raise AssertionError("a condition that fixes a column")


def _is_equality(id: str) -> bool:
    function = function_with_id(id)
    return function.name == "=" and function.arguments[0] == function.arguments[-1]
