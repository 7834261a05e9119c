"""Calls: plain functions, and which of the other kinds a call is.

Walk: `sql.bind.expressions` passes FuncCalls here; aggregates go on to `sql.bind.aggregates`, window
functions to `sql.bind.windows`.
"""

from collections.abc import Sequence

from tenure.base.errors import NotSupported, SyntaxFault, UndefinedFunction, UndefinedObject, WrongObjectType
from tenure.expr.aggregates.aggregate_table import is_aggregate
from tenure.expr.aggregates.window_functions import is_window_function
from tenure.expr.function_table import functions_named
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.types.type_names import parse_type_name, type_of
from tenure.sql.bind import aggregates as bind_aggregates
from tenure.sql.bind import windows as bind_windows
from tenure.sql.bind.locations import at
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.bind.set_calls import set_columns, set_name
from tenure.sql.text.parse import Tree, items, kind, names

INTERNAL_PREFIX = "tenure_"
"""What the binder makes of other functions begins so, once the rights that those need are noted. Users cannot
call it: tenure_nextval(id) would draw values of any sequence."""


def call(tree: Tree, level: QueryLevel) -> Typed:
    path = names(tree.funcname)
    name = path[-1]
    if tree.func_variadic:
        raise NotSupported("VARIADIC is not supported", position=tree.location + 1)
    is_built_in = path[:-1] in ([], ["pg_catalog"])
    if tree.HasField("over"):
        if is_built_in and (is_window_function(name) or is_aggregate(name)):
            return bind_windows.call(tree, level, name)
    elif is_built_in and is_aggregate(name):
        return bind_aggregates.call(tree, level, name)
    elif is_built_in and is_window_function(name):
        if tree.agg_within_group:
            raise NotSupported("hypothetical-set aggregates are not supported", position=tree.location + 1)
        raise WrongObjectType(f"window function {name} requires an OVER clause", position=tree.location + 1)
    result = _set_call(tree, level, name) if set_name(tree) else _plain_call(tree, level, path)
    _check_plain(tree, name)
    return result


def _plain_call(tree: Tree, level: QueryLevel, path: list[str]) -> Typed:
    arguments: list[Typed] = []
    by_name: dict[str, Typed] = {}
    for each in items(tree.args):
        if kind(each) != "NamedArgExpr":
            if by_name:
                raise SyntaxFault(
                    "positional argument cannot follow named argument", position=tree.location + 1
                )
            arguments.append(level.expression(each))
        elif each.name in by_name:
            raise SyntaxFault(f'argument name "{each.name}" used more than once', position=each.location + 1)
        else:
            by_name[each.name] = level.expression(each.arg)
    with at(tree.location):
        if by_name:
            return build.call_named(path[-1], arguments, by_name)
        return plain(path, arguments, level)


def plain(path: list[str], arguments: Sequence[Typed], level: QueryLevel) -> Typed:
    """A function of values, by its name and arguments."""
    own = level.names.call(path, arguments)
    if own is not None:
        return own
    *schema, name = path
    if schema not in ([], ["pg_catalog"]) or name.startswith(INTERNAL_PREFIX):
        types = ", ".join(each.type.sql_name for each in arguments)
        raise UndefinedFunction(f"function {'.'.join(path)}({types}) does not exist")
    try:
        return build.call(name, *arguments)
    except UndefinedFunction:
        result = _as_cast(name, arguments)
        if result is None:
            raise
        return result


def _as_cast(name: str, arguments: Sequence[Typed]) -> Typed | None:
    """text(x), date(x): a type's name in front of one value."""
    if len(arguments) != 1 or functions_named(name):
        return None
    try:
        target = type_of(parse_type_name(name))
    except (UndefinedObject, NotSupported):
        return None
    return build.cast(arguments[0], target)


def _check_plain(tree: Tree, name: str) -> None:
    """Raises WrongObjectType (42809) for clauses that only aggregates may have."""
    for is_there, what in (
        (tree.agg_star, f"{name}(*) specified"),
        (tree.agg_distinct, "DISTINCT specified"),
        (tree.agg_within_group, "WITHIN GROUP specified"),
        (len(tree.agg_order) > 0, "ORDER BY specified"),
        (tree.HasField("agg_filter"), "FILTER specified"),
    ):
        if is_there:
            raise WrongObjectType(
                f"{what}, but {name} is not an aggregate function", position=tree.location + 1
            )
    if tree.HasField("over"):
        raise WrongObjectType(
            f"OVER specified, but {name} is not a window function nor an aggregate function",
            position=tree.location + 1,
        )


def _set_call(tree: Tree, level: QueryLevel, name: str) -> Typed:
    columns = set_columns(tree, level, name)
    if len(columns) != 1:
        raise NotSupported(f"function {name} gives rows: use it in FROM", position=tree.location + 1)
    return columns[0][1]
