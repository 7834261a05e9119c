"""Trees changed in places: the same node where nothing below it has changed.

Walk: `sql` moves expressions from one row to another with this.
"""

from collections.abc import Callable

from tenure.catalog.descriptors.definitions import replace
from tenure.expr.tree.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Const,
    ContextValue,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    IsTruth,
    MakeArray,
    Nested,
    Node,
    Not,
    NullIf,
    Or,
    Quantified,
    children,
)


def rewrite(tree: Node, change: Callable[[Node], Node | None]) -> Node:
    """Asks `change` from the top down; where it has no answer, goes on with the children."""
    changed = change(tree)
    if changed is not None:
        return changed
    old_children = children(tree)
    new_children = tuple(rewrite(each, change) for each in old_children)
    if all(new is old for new, old in zip(new_children, old_children, strict=True)):
        return tree
    return with_children(tree, new_children)


def shifted(tree: Node, by: int) -> Node:
    """The same over a row that has as many more columns before its own; fewer if `by` is negative."""
    if not by:
        return tree
    return rewrite(tree, lambda node: ColumnRef(node.column + by) if isinstance(node, ColumnRef) else None)


def with_children(tree: Node, new_children: tuple[Node, ...]) -> Node:
    """The inverse of `children`."""
    match tree:
        case Const() | ColumnRef() | ContextValue():
            return tree
        case Call() | Nested():
            return replace(tree, arguments=new_children)
        case Cast() | Not() | IsNull() | IsTruth():
            return replace(tree, operand=new_children[0])
        case And() | Or() | Coalesce() | Extreme():
            return replace(tree, operands=new_children)
        case IsDistinct():
            return replace(tree, left=new_children[0], right=new_children[1])
        case NullIf():
            return replace(tree, left=new_children[0], right=new_children[1], result=new_children[2])
        case Case():
            pairs = tuple(zip(new_children[0::2], new_children[1::2], strict=False))[: len(tree.branches)]
            return replace(
                tree, branches=pairs, otherwise=None if tree.otherwise is None else new_children[-1]
            )
        case InList():
            return replace(tree, operand=new_children[0], items=new_children[1:])
        case Quantified():
            return replace(tree, operand=new_children[0], array=new_children[1])
        case MakeArray():
            return replace(tree, elements=new_children)
