"""Where in the statement's text an error stands, as PostgreSQL's parser has it.

Walk: every `sql.bind_*` module marks its errors with `at`.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from tenure.base.errors import UserError
from tenure.expr.tree.build import Typed
from tenure.sql.text.parse import Tree, kind, unwrap


@contextmanager
def at(location: int) -> Iterator[None]:
    """Gives errors without a position this one; `location` is the parse tree's, counted from 0."""
    try:
        yield
    except UserError as error:
        if not error.position and location >= 0:
            error.position = location + 1
        raise


def location_of(tree: Tree) -> int:
    """As PostgreSQL's exprLocation has it: where the leftmost part of an expression stands."""
    tree = unwrap(tree)
    own = getattr(tree, "location", -1)
    match kind(tree):
        case "A_Expr" if tree.HasField("lexpr"):
            return _leftmost(own, location_of(tree.lexpr))
        case "TypeCast":
            return _leftmost(own, _leftmost(location_of(tree.arg), tree.type_name.location))
        case "A_Indirection" | "NullTest" | "BooleanTest" | "CollateClause":
            return _leftmost(own, location_of(tree.arg))
        case "SubLink" if tree.HasField("testexpr"):
            return _leftmost(own, location_of(tree.testexpr))
        case "BoolExpr" | "FuncCall" if len(tree.args):
            return _leftmost(own, min((location_of(each) for each in tree.args), default=-1))
        case _:
            return own


def _leftmost(first: int, second: int) -> int:
    if first < 0 or second < 0:
        return max(first, second)
    return min(first, second)


def odd_one(trees: Iterable[Tree], operands: Sequence[Typed]) -> int:
    """Where the first alternative stands that is of another category than the first that has a type."""
    located = list(trees)
    first = ""
    for tree, operand in zip(located, operands, strict=True):
        if operand.type.family == "unknown":
            continue
        first = first or operand.type.category
        if operand.type.category != first:
            return location_of(tree)
    return location_of(located[0])
