"""Expressions that a statement evaluates while it writes: compiled once, their constants worked out first.

Walk: `statements.dml.writes`, `statements.dml.on_conflict` and `statements.dml.returning` call these.
"""

from collections.abc import Sequence

from tenure.base.errors import NotSupported
from tenure.catalog.descriptors.definitions import Column
from tenure.expr.tree import build
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.compiled import compile
from tenure.expr.tree.expressions import Nested, Node, decode, nodes
from tenure.expr.tree.folding import Fold, folds
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.parameters import PARAMETERS_MAX
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.execution.planner import Planner


def compiled_over(planner: Planner, level: QueryLevel, node: Node) -> Evaluate:
    """Over the row of a level."""
    return compile(node, dict(enumerate(level.row)), planner.names.enum)


def folds_of(planner: Planner, trees: Sequence[Node]) -> tuple[Fold, ...]:
    """Without subqueries, all context values are parameters."""
    return folds(trees, PARAMETERS_MAX, planner.names.enum)


def value_or_default(planner: Planner, column: Column, node: Node | None) -> Node:
    if node is not None:
        return node
    if column.default is None:
        return build.const(None, type_of(column.type, planner.names.enum)).node
    return decode(column.default.tree)


def refuse_nested(trees: Sequence[Node]) -> None:
    if any(isinstance(each, Nested) for tree in trees for each in nodes(tree)):
        raise NotSupported("a subquery in ON CONFLICT or RETURNING is not supported")
