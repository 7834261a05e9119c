"""GROUP BY, and where the stand-ins for aggregates and windows go.

Walk: `sql.bind_select`.
"""

from collections.abc import Callable

from tenure.expr.errors import NotSupported
from tenure.expr.expressions import Node
from tenure.sql.bind_targets import Target
from tenure.sql.parse import Tree
from tenure.sql.plan import Plan
from tenure.sql.scope import Level


class Groups:
    pass


def add_window(level: Level, tree: Tree) -> None:
    level.windows[tree.name] = tree


def bind(tree: Tree, level: Level, targets: list[Target]) -> Groups | None:
    if len(tree.group_clause):
        raise NotSupported("GROUP BY is not supported")
    return None


def placed(
    plan: Plan, level: Level, groups: Groups | None, having: Node | None
) -> tuple[Plan, Callable[[Node], Node]]:
    return plan, lambda node: node
