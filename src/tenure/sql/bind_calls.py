"""Calls: plain functions, and which of the other kinds a call is.

Walk: `sql.bind_expressions` comes here with FuncCalls.
"""

from tenure.expr import build
from tenure.expr.build import Typed
from tenure.expr.errors import NotSupported, UndefinedFunction, UndefinedObject
from tenure.expr.functions import functions_named
from tenure.expr.types import parse_type_name, type_of
from tenure.sql.bind_errors import WrongObject
from tenure.sql.locations import at
from tenure.sql.parse import Tree, items, kind, names
from tenure.sql.scope import Level


def call(tree: Tree, level: Level) -> Typed:
    path = names(tree.funcname)
    for each in items(tree.args):
        if kind(each) == "NamedArgExpr":
            raise NotSupported("named arguments are not supported", position=each.location + 1)
    if tree.func_variadic:
        raise NotSupported("VARIADIC is not supported", position=tree.location + 1)
    _check_plain(tree, path[-1])
    arguments = [level.expression(each) for each in tree.args]
    with at(tree.location):
        return plain(path, arguments, level)


def plain(path: list[str], arguments: list[Typed], level: Level) -> Typed:
    """A function of values, by its name and arguments."""
    own = level.names.call(path, arguments)
    if own is not None:
        return own
    *schema, name = path
    if schema not in ([], ["pg_catalog"]):
        types = ", ".join(each.type.sql_name for each in arguments)
        raise UndefinedFunction(f"function {'.'.join(path)}({types}) does not exist")
    try:
        return build.call(name, *arguments)
    except UndefinedFunction:
        made = _as_cast(name, arguments)
        if made is None:
            raise
        return made


def _as_cast(name: str, arguments: list[Typed]) -> Typed | None:
    """text(x), date(x): a type's name in front of one value."""
    if len(arguments) != 1 or functions_named(name):
        return None
    try:
        target = type_of(parse_type_name(name))
    except (UndefinedObject, NotSupported):
        return None
    return build.cast(arguments[0], target)


def _check_plain(tree: Tree, name: str) -> None:
    """Raises WrongObject (42809) for what only aggregates may have."""
    for is_there, what in (
        (tree.agg_star, f"{name}(*) specified"),
        (tree.agg_distinct, "DISTINCT specified"),
        (tree.agg_within_group, "WITHIN GROUP specified"),
        (len(tree.agg_order) > 0, "ORDER BY specified"),
        (tree.HasField("agg_filter"), "FILTER specified"),
    ):
        if is_there:
            raise WrongObject(f"{what}, but {name} is not an aggregate function", position=tree.location + 1)
    if tree.HasField("over"):
        raise WrongObject(
            f"OVER specified, but {name} is not a window function nor an aggregate function",
            position=tree.location + 1,
        )


def grouping(tree: Tree, level: Level) -> Typed:
    raise NotSupported("GROUPING is not supported", position=tree.location + 1)
