"""Functions in FROM: generate_series(...), ROWS FROM (...), WITH ORDINALITY.

Walk: `sql.bind.from_clause` calls `function_scan`.
"""

from tenure.base.errors import NotSupported
from tenure.expr.set_function_table import is_set_function
from tenure.expr.tree import build
from tenure.expr.types.datatype import Type
from tenure.sql.bind.column_names import column_name
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.bind.set_calls import set_call
from tenure.sql.bind.values import INT8, TEXT
from tenure.sql.plans.plan import FunctionScan, OutputColumn, Plan, SetCall, Values
from tenure.sql.text.parse import Tree, items, kind, names, unwrap


def function_scan(tree: Tree, level: QueryLevel, alias: Tree | None) -> tuple[Plan, str]:
    """Also returns the name under which its columns are in sight."""
    level.clause = "FUNCTION"
    functions = [unwrap(unwrap(each).items[0]) for each in tree.functions]
    if len(tree.coldeflist) or any(
        len(items(unwrap(each).items)) > 1 and _definitions(each) for each in tree.functions
    ):
        raise NotSupported("column definition lists are not supported")
    name = alias.aliasname if alias is not None else column_name(functions[0])
    if len(functions) == 1 and not _is_set(functions[0]):
        return _one_row(functions[0], level, name, tree.ordinality), name
    calls: list[SetCall] = []
    columns: list[tuple[str, Type]] = []
    for each in functions:
        for part in _apart(each):
            call, found = _called(part, level)
            calls.append(call)
            columns += found
    if len(columns) == 1 and len(functions) == 1 and columns[0][0] == names(functions[0].funcname)[-1]:
        columns = [(name, columns[0][1])]
    outputs = [OutputColumn(title, kind_of_column) for title, kind_of_column in columns]
    if tree.ordinality:
        outputs.append(OutputColumn("ordinality", INT8))
    return FunctionScan(tuple(outputs), tuple(calls), tree.ordinality), name


def _definitions(tree: Tree) -> bool:
    second = unwrap(unwrap(tree).items[1])
    return second is not None and len(second.items) > 0


def _is_set(tree: Tree) -> bool:
    return kind(tree) == "FuncCall" and is_set_function(names(tree.funcname)[-1])


def _apart(tree: Tree) -> list[Tree]:
    """unnest(a, b) stands for ROWS FROM (unnest(a), unnest(b))."""
    if kind(tree) != "FuncCall" or names(tree.funcname)[-1] != "unnest" or len(tree.args) < 2:
        return [tree]
    pieces = []
    for each in tree.args:
        part = type(tree)()
        part.CopyFrom(tree)
        del part.args[:]
        part.args.append(each)
        pieces.append(part)
    return pieces


def _called(tree: Tree, level: QueryLevel) -> tuple[SetCall, list[tuple[str, Type]]]:
    if not _is_set(tree):
        raise NotSupported("a function that gives no set is not supported in ROWS FROM")
    return set_call(tree, level, names(tree.funcname)[-1])


def _one_row(tree: Tree, level: QueryLevel, name: str, has_ordinality: bool) -> Plan:
    typed = level.expression(tree)
    if typed.type.family == "unknown":
        typed = build.coerce(typed, TEXT)
    if not has_ordinality:
        return Values((OutputColumn(name, typed.type),), ((typed.node,),))
    outputs = OutputColumn(name, typed.type), OutputColumn("ordinality", INT8)
    return Values(outputs, ((typed.node, build.const(1, INT8).node),))
