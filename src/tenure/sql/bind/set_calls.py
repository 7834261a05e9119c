"""Calls of functions that give sets: generate_series, unnest, jsonb_each.

In a select list each column of such a call has a placeholder, as aggregates have; in FROM it is a
`plan.FunctionScan`.

Walk: `sql.bind.calls` and `sql.bind.records` for select lists, `sql.bind.functions` for FROM.
"""

from tenure.expr.set_function_table import column_types, is_set_function, resolve_set
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.types.datatype import Type
from tenure.sql.bind.clauses import check_set
from tenure.sql.bind.locations import at
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.plans.plan import SetCall
from tenure.sql.text.parse import Tree, kind, names


def set_columns(tree: Tree, level: QueryLevel, name: str) -> list[tuple[str, Typed]]:
    """The columns of a function that gives a set, in a select list."""
    call, columns = set_call(tree, level, name)
    check_set(level.clause, tree.location)
    stand_ins = level.calls.set(call, [type for _, type in columns], tree.location)
    return [(title, typed) for (title, _), typed in zip(columns, stand_ins, strict=True)]


def set_name(tree: Tree) -> str:
    """The name of a function that gives a set, if a node calls one."""
    if kind(tree) != "FuncCall":
        return ""
    *schema, name = names(tree.funcname)
    is_there = schema in ([], ["pg_catalog"]) or [*schema, name] == ["information_schema", "_pg_expandarray"]
    return name if is_there and is_set_function(name) else ""


def set_call(tree: Tree, level: QueryLevel, name: str) -> tuple[SetCall, list[tuple[str, Type]]]:
    """A function that gives a set, and the names and types of its columns."""
    arguments = [level.expression(each) for each in tree.args]
    with at(tree.location):
        function, targets = resolve_set(name, [each.type for each in arguments])
        operands = build.with_casts(function, arguments, targets)
    types = column_types(function, [each.type for each in operands])
    titles = [title for title, _ in function.results]
    call = SetCall(function.id, tuple(each.node for each in operands), len(types))
    return call, list(zip(titles, types, strict=True))
