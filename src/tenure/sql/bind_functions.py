"""Functions in FROM: generate_series(...), ROWS FROM (...), WITH ORDINALITY.

Walk: `sql.bind_from` calls `function_scan`.
"""

from tenure.expr.errors import NotSupported
from tenure.sql.parse import Tree
from tenure.sql.plan import Plan
from tenure.sql.scope import Level


def function_scan(tree: Tree, level: Level, alias: Tree | None) -> tuple[Plan, str]:
    """Also returns the name under which its columns are in sight."""
    raise NotSupported("functions in FROM are not supported")
