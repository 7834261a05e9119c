"""Subqueries in expressions: EXISTS, IN, ANY, ALL, ARRAY(...), and those that are a value.

A subquery becomes a `plan.Subquery` and a `Nested` node that refers to it. The node's arguments are the
operands, if any, and the outer values of the subquery. Without outer values it has one result for the whole
statement.

A row in front of a subquery is several operands, each compared with its column.

Walk: `sql.bind.expressions` comes here with SubLinks.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

from tenure.base.errors import DatatypeMismatch, NotSupported, SyntaxFault
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Cast, ColumnRef, Const, ContextValue, Nested, Node
from tenure.expr.tree.overload_resolution import array_of, resolve
from tenure.expr.types.datatype import Type
from tenure.sql.bind.binding import refuse_recursion
from tenure.sql.bind.clauses import check_subquery
from tenure.sql.bind.locations import at
from tenure.sql.bind.row_values import check_row_operator, compared, operator_name
from tenure.sql.bind.scope import QueryLevel, expression_in
from tenure.sql.bind.values import BOOL
from tenure.sql.plans.plan import (
    Aggregate,
    Distinct,
    Filter,
    Limit,
    NestedKind,
    OutputColumn,
    Plan,
    Project,
    ProjectSet,
    SetOperation,
    Sort,
    Subquery,
    Window,
)
from tenure.sql.text.parse import Tree, child, kind, option


def sublink(tree: Tree, level: QueryLevel) -> Typed:
    check_subquery(level.clause, tree.location)
    inner = QueryLevel(level.binding, level.names, parent=level)
    form = option(tree, "sub_link_type").removesuffix("_SUBLINK")
    query = child(tree, "subselect")
    if form in ("ANY", "ALL"):
        return _compared(tree, form, level, inner)
    plan = level.binding.query(query, inner)
    match form:
        case "EXISTS":
            return _nested(level, NestedKind.EXISTS, _rows_only(plan), BOOL)
        case "EXPR" | "ARRAY":
            _check_one_column(plan, tree.location)
            kind_of_value = plan.outputs[0].type
            if form == "EXPR":
                return _nested(level, NestedKind.SCALAR, plan, kind_of_value)
            result = kind_of_value if kind_of_value.category == "A" else array_of(kind_of_value)
            return _nested(level, NestedKind.ARRAY, plan, result)
        case _:
            raise NotSupported(f"subqueries of the form {form} are not supported", position=tree.location + 1)


def _rows_only(plan: Plan) -> Plan:
    """The plan of EXISTS: without the select list and the order, which do not matter."""
    below = plan
    while _keeps_rows(below):
        below = below.input
    beneath = below.input if isinstance(below, Filter) else below
    return plan if isinstance(beneath, Aggregate | Window | SetOperation | ProjectSet) else below


def _keeps_rows(plan: Plan) -> TypeGuard[Project | Sort | Distinct | Limit | Aggregate]:
    """Whether the node gives rows if and only if its input does."""
    match plan:
        case Project() | Sort() | Distinct():
            return True
        case Limit():
            count = plan.count.operand if isinstance(plan.count, Cast) else plan.count
            return plan.offset is None and isinstance(count, Const) and count.packed != 0
        case Aggregate():
            return bool(plan.keys) and not plan.calls and plan.sets is None and not plan.groupings
        case _:
            return False


def is_value(tree: Tree) -> bool:
    """A subquery in brackets."""
    return kind(tree) == "SubLink" and option(tree, "sub_link_type") == "EXPR_SUBLINK"


def row_compared(tree: Tree, level: QueryLevel) -> Typed:
    """(a, b) = (SELECT x, y ...): NULL if there is no row."""
    subquery = child(tree, "rexpr")
    check_subquery(level.clause, subquery.location)
    inner = QueryLevel(level.binding, level.names, parent=level)
    operands = [level.expression(each) for each in child(tree, "lexpr").args]
    plan = level.binding.query(child(subquery, "subselect"), inner)
    with at(tree.location):
        _check_width(plan, operands)
        test = _tested(plan, operator_name(tree.name), operands, level, inner)
    return _nested(level, NestedKind.SCALAR, test, BOOL)


def _check_width(plan: Plan, operands: Sequence[Typed]) -> None:
    if len(plan.outputs) != len(operands):
        many = "many" if len(plan.outputs) > len(operands) else "few"
        raise SyntaxFault(f"subquery has too {many} columns")


def _check_one_column(plan: Plan, location: int) -> None:
    if len(plan.outputs) != 1:
        raise SyntaxFault("subquery must return only one column", position=location + 1)


def _nested(
    level: QueryLevel,
    kind: NestedKind,
    plan: Plan,
    type: Type,
    operands: Sequence[Node] = (),
    functions: Sequence[str] = (),
) -> Typed:
    binding = level.binding
    refuse_recursion(plan, binding, "a subquery")
    outer_values = binding.outer_values_in(plan, level)
    arguments: list[Node] = list(operands)
    for outer_value in outer_values:
        owner, position = binding.origins[outer_value.number]
        arguments.append(
            ColumnRef(position) if owner is level else ContextValue(outer_value.number, outer_value.type)
        )
    value = type if kind in (NestedKind.SCALAR, NestedKind.ARRAY) else None
    takes = tuple(each.number for each in outer_values)
    binding.nested.append(Subquery(kind, plan, takes, tuple(functions), value))
    return Typed(Nested(len(binding.nested) - 1, tuple(arguments), type.ref), type)


def _compared(tree: Tree, form: str, level: QueryLevel, inner: QueryLevel) -> Typed:
    test = child(tree, "testexpr")
    trees = list(test.args) if kind(test) == "RowExpr" else [test]
    operands = [level.expression(each) for each in trees]
    plan = level.binding.query(child(tree, "subselect"), inner)
    name = operator_name(tree.oper_name) if len(tree.oper_name) else "="
    with at(tree.location):
        _check_width(plan, operands)
        question = NestedKind.IN if form == "ANY" else NestedKind.ALL
        return _over_columns(level, question, name, operands, plan)


def _tested(plan: Plan, name: str, operands: Sequence[Typed], level: QueryLevel, inner: QueryLevel) -> Plan:
    """One column: whether the operands compare so with each row."""
    outside = [expression_in(inner, level, each) for each in operands]
    columns = [Typed(ColumnRef(at), output.type) for at, output in enumerate(plan.outputs)]
    return Project((OutputColumn("?column?", BOOL),), plan, (compared(name, outside, columns).node,))


def _over_columns(
    level: QueryLevel, kind: NestedKind, name: str, operands: Sequence[Typed], plan: Plan
) -> Typed:
    """Operands and columns as the types that the operator compares, pair by pair."""
    pairs = [
        _compared_pair(name, operand, Typed(ColumnRef(place), output.type))
        for place, (operand, output) in enumerate(zip(operands, plan.outputs, strict=True))
    ]
    if len(pairs) > 1:
        check_row_operator(name)
    columns = [pair.column for pair in pairs]
    if [each.node for each in columns] != [ColumnRef(place) for place in range(len(columns))]:
        outputs = [
            OutputColumn(output.name, each.type) for output, each in zip(plan.outputs, columns, strict=True)
        ]
        plan = Project(tuple(outputs), plan, tuple(each.node for each in columns))
    lefts, functions = [pair.operand for pair in pairs], [pair.function for pair in pairs]
    return _nested(level, kind, plan, BOOL, lefts, functions)


class _Pair(NamedTuple):
    function: str
    operand: Node
    column: Typed


def _compared_pair(name: str, operand: Typed, column: Typed) -> _Pair:
    function, (left, right) = resolve(name, [operand.type, column.type])
    if function.result != "bool":
        raise DatatypeMismatch(f"operator {name} must return boolean, not type {function.result}")
    return _Pair(function.id, build.coerce(operand, left).node, build.coerce(column, right))
