"""Expressions: parse trees to typed `expr` trees, by PostgreSQL's rules.

Each kind of node has a function, here or in a neighbouring module. All of them get the level, which resolves
names. `expr.tree.build` chooses overloads, casts and common types. The functions here handle syntax: which
function an operator or a keyword means, and the position of an error in the text.

Walk: `sql.bind.binder` hands `bind` to the scopes of a query, which call it for each expression.
"""

from collections.abc import Callable
from typing import TypeAlias

from tenure.base.errors import (
    CannotCast,
    DatatypeMismatch,
    IndeterminateDatatype,
    NotSupported,
    SyntaxFault,
    UndefinedObject,
)
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Cast, MakeArray
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.casts import bare
from tenure.expr.types.type_names import type_of
from tenure.sql.bind import aggregates as bind_aggregates
from tenure.sql.bind import calls as bind_calls
from tenure.sql.bind import json_constructors
from tenure.sql.bind import records as bind_records
from tenure.sql.bind import row_values as bind_rows
from tenure.sql.bind import subqueries as bind_subqueries
from tenure.sql.bind import values as bind_values
from tenure.sql.bind.locations import at, location_of, odd_one
from tenure.sql.bind.scope import QueryLevel, refusing_sets
from tenure.sql.bind.types import type_at, with_unit
from tenure.sql.bind.values import INT4, TEXT
from tenure.sql.text.parse import Tree, child, items, kind, names, option, unwrap

_REFUSED = {
    "XmlExpr": "XML",
    "XmlSerialize": "XML",
    "JsonArrayQueryConstructor": "JSON_ARRAY() of a query",
    "JsonObjectAgg": "JSON_OBJECTAGG()",
    "JsonArrayAgg": "JSON_ARRAYAGG()",
    "JsonFuncExpr": "SQL/JSON functions",
    "JsonParseExpr": "JSON()",
    "JsonScalarExpr": "JSON_SCALAR()",
    "JsonSerializeExpr": "JSON_SERIALIZE()",
    "CurrentOfExpr": "WHERE CURRENT OF",
    "MergeSupportFunc": "MERGE_ACTION()",
}


def bind(tree: Tree, level: QueryLevel) -> Typed:
    tree = unwrap(tree)
    binder = _BY_KIND.get(kind(tree))
    if binder is not None:
        return binder(tree, level)
    if kind(tree) == "SetToDefault":
        raise SyntaxFault("DEFAULT is not allowed in this context", position=tree.location + 1)
    what = _REFUSED.get(kind(tree), kind(tree))
    raise NotSupported(f"{what} is not supported", position=getattr(tree, "location", -1) + 1)


# Operators


def _operator(tree: Tree, level: QueryLevel) -> Typed:
    form = option(tree, "kind")
    if form == "AEXPR_IN":
        return bind_rows.in_list(tree, level)
    if form in ("AEXPR_OP_ANY", "AEXPR_OP_ALL"):
        return _over_array(tree, level, is_all=form == "AEXPR_OP_ALL")
    if form.endswith(("BETWEEN", "BETWEEN_SYM")):
        return _between(tree, level)
    left, right = child(tree, "lexpr"), child(tree, "rexpr")
    if left is not None and (kind(left) == "RowExpr" or kind(right) == "RowExpr"):
        if bind_subqueries.is_value(right):
            return bind_subqueries.row_compared(tree, level)
        return bind_rows.comparison(tree, level)
    name = bind_rows.operator_name(tree.name)
    if left is None:
        return _prefix(name, level.expression(right), tree.location)
    operands = level.expression(left), level.expression(right)
    with at(tree.location):
        match form:
            case "AEXPR_DISTINCT" | "AEXPR_NOT_DISTINCT":
                return build.is_distinct(*operands, is_negated=form == "AEXPR_NOT_DISTINCT")
            case "AEXPR_NULLIF":
                return build.nullif(*operands)
            case _:
                return build.call(name, *operands)


def _prefix(name: str, operand: Typed, location: int) -> Typed:
    with at(location):
        return build.call(name, operand)


def _between(tree: Tree, level: QueryLevel) -> Typed:
    form = option(tree, "kind")
    low, high = items(unwrap(tree.rexpr).items)
    of = [_again(each, level) for each in (child(tree, "lexpr"), low, high)]
    is_negated, is_symmetric = "NOT" in form, form.endswith("SYM")
    with at(tree.location):
        return _symmetric(*of, is_negated=is_negated) if is_symmetric else _within(*of, is_negated=is_negated)


Part: TypeAlias = Callable[[], Typed]


def _again(tree: Tree, level: QueryLevel) -> Part:
    """An operand of BETWEEN, which is used in several comparisons: a parameter is bound anew in each of
    them."""
    if kind(tree) == "ParamRef":
        return lambda: level.expression(tree)
    bound = level.expression(tree)
    return lambda: bound


def _within(operand: Part, low: Part, high: Part, *, is_negated: bool) -> Typed:
    signs = ("<", ">") if is_negated else (">=", "<=")
    tests = [build.call(sign, operand(), each()) for sign, each in zip(signs, (low, high), strict=True)]
    return build.disjunction(*tests) if is_negated else build.conjunction(*tests)


def _symmetric(operand: Part, low: Part, high: Part, *, is_negated: bool) -> Typed:
    both = [_within(operand, *each, is_negated=is_negated) for each in ((low, high), (high, low))]
    return build.conjunction(*both) if is_negated else build.disjunction(*both)


def _over_array(tree: Tree, level: QueryLevel, *, is_all: bool) -> Typed:
    operand, array = level.expression(tree.lexpr), level.expression(tree.rexpr)
    with at(tree.location):
        return build.quantified(bind_rows.operator_name(tree.name), operand, array, is_all=is_all)


# Logic


def _logic(tree: Tree, level: QueryLevel) -> Typed:
    form = option(tree, "boolop")
    word = form.removesuffix("_EXPR")
    operands = []
    for each in items(tree.args):
        operand = level.expression(each)
        with at(location_of(each)):
            operands.append(Typed(build.condition(operand, f"argument of {word}"), bind_values.BOOL))
    if word == "NOT":
        return build.negation(*operands)
    return build.conjunction(*operands) if word == "AND" else build.disjunction(*operands)


def _null_test(tree: Tree, level: QueryLevel) -> Typed:
    is_negated = option(tree, "nulltesttype") == "IS_NOT_NULL"
    operand = child(tree, "arg")
    if kind(operand) == "RowExpr":
        tests = [build.is_null(level.expression(each), is_negated=is_negated) for each in items(operand.args)]
        return build.conjunction(*tests)
    return build.is_null(level.expression(operand), is_negated=is_negated)


_TRUTHS = {"TRUE": True, "FALSE": False, "UNKNOWN": None}


def _truth_test(tree: Tree, level: QueryLevel) -> Typed:
    *negation, truth = option(tree, "booltesttype").removeprefix("IS_").split("_")
    operand = level.expression(tree.arg)
    with at(location_of(tree.arg)):
        what = f"argument of IS {' '.join([*negation, truth])}"
        checked = Typed(build.condition(operand, what), bind_values.BOOL)
    return build.is_truth(checked, _TRUTHS[truth], is_negated=bool(negation))


# Choices


def _case(tree: Tree, level: QueryLevel) -> Typed:
    with refusing_sets(level, "CASE"):
        operand = level.expression(tree.arg) if tree.HasField("arg") else None
        if operand is not None and operand.type.family == "unknown":
            operand = build.coerce(operand, TEXT)
        branches = []
        for each in items(tree.args):
            when = level.expression(each.expr)
            with at(location_of(each.expr) if operand is None else each.location):
                if operand is not None:
                    when = build.call("=", operand, when)
                checked = Typed(build.condition(when, "argument of CASE/WHEN"), bind_values.BOOL)
            branches.append((checked, level.expression(each.result)))
        otherwise = level.expression(tree.defresult) if tree.HasField("defresult") else None
    results = [*([tree.defresult] if otherwise else []), *(each.result for each in items(tree.args))]
    with at(odd_one(results, [*([otherwise] if otherwise else []), *(then for _, then in branches)])):
        result = build.case(branches, otherwise)
    # A missing ELSE is a NULL without modifiers.
    return result if otherwise else Typed(result.node, bare(result.type))


def _coalesce(tree: Tree, level: QueryLevel) -> Typed:
    with refusing_sets(level, "COALESCE"):
        operands = [level.expression(each) for each in tree.args]
    with at(odd_one(tree.args, operands)):
        return build.coalesce(*operands)


def _extreme(tree: Tree, level: QueryLevel) -> Typed:
    operands = [level.expression(each) for each in tree.args]
    with at(odd_one(tree.args, operands)):
        is_greatest = option(tree, "op") == "IS_GREATEST"
        return build.greatest(*operands) if is_greatest else build.least(*operands)


# Casts and collations


def _type_cast(tree: Tree, level: QueryLevel) -> Typed:
    inner = child(tree, "arg")
    target = type_at(tree.type_name, level.names, has_unit=kind(inner) == "A_Const")
    if kind(inner) == "A_ArrayExpr" and isinstance(target, ArrayOf):
        return _array_of(inner, level, target)
    operand = level.expression(inner)
    if kind(inner) == "A_Const" and target.family == "interval":
        operand = with_unit(inner, tree.type_name, operand)
    location = tree.location if tree.location >= 0 else location_of(inner)
    with at(location):
        return build.cast(operand, target)


def _collated(tree: Tree, level: QueryLevel) -> Typed:
    *path, name = names(tree.collname)
    operand = level.expression(tree.arg)
    if operand.type.family == "unknown":
        operand = build.coerce(operand, TEXT)
    if operand.type.category != "S":
        raise DatatypeMismatch(
            f"collations are not supported by type {operand.type.sql_name}", position=tree.location + 1
        )
    if path in ([], ["pg_catalog"]) and name in (
        "C",
        "POSIX",
        "default",
        "ucs_basic",
        "pg_c_utf8",
        "C.UTF-8",
    ):
        return operand
    raise UndefinedObject(
        f'collation "{".".join([*path, name])}" for encoding "UTF8" does not exist',
        position=tree.location + 1,
    )


# Arrays


def _array(tree: Tree, level: QueryLevel) -> Typed:
    elements = [level.expression(each) for each in tree.elements]
    if not elements:
        raise IndeterminateDatatype(
            "cannot determine type of empty array",
            hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
            position=tree.location + 1,
        )
    with at(odd_one(tree.elements, elements)):
        return build.make_array(*elements)


def _array_of(tree: Tree, level: QueryLevel, target: ArrayOf) -> Typed:
    """ARRAY[...]::type[]: each element is cast by itself."""
    elements = []
    for each in items(tree.elements):
        if kind(each) == "A_ArrayExpr":
            elements.append(_array_of(each, level, target).node)
            continue
        element = level.expression(each)
        goal = target if isinstance(element.type, ArrayOf) else target.element
        with at(location_of(each)):
            elements.append(build.cast(element, goal).node)
    return Typed(MakeArray(target.ref, tuple(elements)), target)


def _indirection(tree: Tree, level: QueryLevel) -> Typed:
    base, steps = child(tree, "arg"), items(tree.indirection)
    if kind(steps[0]) == "String":
        operand, steps = bind_records.field(base, steps[0].sval, level), steps[1:]
    else:
        operand = level.expression(base)
    if len(steps) > 1 and isinstance(operand.type, ArrayOf):
        return _in_dimensions(operand, steps, level, location_of(base))
    for each in steps:
        if kind(each) != "A_Indices":
            raise NotSupported("composite values are not supported", position=location_of(base) + 1)
        operand = _element(operand, each, level, location_of(base))
    return operand


def _in_dimensions(array: Typed, steps: list[Tree], level: QueryLevel, location: int) -> Typed:
    """array[i][j] of an array with as many dimensions."""
    if any(kind(each) != "A_Indices" or each.is_slice for each in steps):
        raise NotSupported("slices of several dimensions are not supported", position=location + 1)
    places = [_bound(child(each, "uidx"), level) for each in steps]
    return build.call("array_element", array, *places)


def _element(operand: Typed, tree: Tree, level: QueryLevel, location: int) -> Typed:
    if operand.type.family == "jsonb":
        if tree.is_slice:
            raise DatatypeMismatch("jsonb subscript does not support slices", position=location + 1)
        return _member(operand, level.expression(tree.uidx))
    if operand.type.family == "name" and not tree.is_slice:
        return build.call("subscript", operand, _bound(child(tree, "uidx"), level))
    if not isinstance(operand.type, ArrayOf):
        raise DatatypeMismatch(
            f"cannot subscript type {operand.type.sql_name} because it does not support subscripting",
            position=location + 1,
        )
    if tree.is_slice:
        ends = (("lidx", FIRST_PLACE), ("uidx", LAST_PLACE))
        bounds = [_bound(child(tree, field), level, otherwise) for field, otherwise in ends]
        return build.call("array_slice", operand, *bounds)
    return build.call("subscript", operand, _bound(child(tree, "uidx"), level))


FIRST_PLACE, LAST_PLACE = 1, 2**31 - 1
"""The default bound of a slice."""


def _bound(tree: Tree | None, level: QueryLevel, otherwise: int | None = None) -> Typed:
    if tree is None:
        return build.const(otherwise, INT4)
    subscript = level.expression(tree)
    with at(location_of(tree)):
        try:
            return build.assign(subscript, INT4)
        except (CannotCast, DatatypeMismatch):
            raise DatatypeMismatch("array subscript must have type integer") from None


def _member(operand: Typed, subscript: Typed) -> Typed:
    """A path of one step, for a value of any type."""
    if subscript.type.family in ("int2", "int4"):
        subscript = build.cast(subscript, TEXT)
    elif subscript.type.category not in ("S", "X"):
        raise DatatypeMismatch(f"subscript type {subscript.type.sql_name} is not supported")
    return build.call("#>", operand, build.make_array(build.coerce(subscript, TEXT)))


# Keywords that are values


_CLOCKS = {
    "SVFOP_CURRENT_DATE": "current_date",
    "SVFOP_CURRENT_TIMESTAMP": "current_timestamp",
    "SVFOP_CURRENT_TIMESTAMP_N": "current_timestamp",
    "SVFOP_LOCALTIME": "localtime",
    "SVFOP_LOCALTIME_N": "localtime",
    "SVFOP_LOCALTIMESTAMP": "localtimestamp",
    "SVFOP_LOCALTIMESTAMP_N": "localtimestamp",
}


def _keyword(tree: Tree, level: QueryLevel) -> Typed:
    form = option(tree, "op")
    if form in _CLOCKS:
        value = build.call(_CLOCKS[form])
        if not form.endswith("_N"):
            return value
        target = type_of(TypeRef(value.type.ref.name, (min(tree.typmod, 6),)))
        return Typed(Cast(value.node, target.ref, "explicit"), target)
    name = form.removeprefix("SVFOP_").lower()
    found = level.names.call([name], [])
    if found is None:
        raise NotSupported(f"{name.upper()} is not supported", position=tree.location + 1)
    return found


_BY_KIND: dict[str, Callable[[Tree, QueryLevel], Typed]] = {
    "A_Const": bind_values.constant,
    "ParamRef": bind_values.parameter,
    "ColumnRef": bind_values.column_reference,
    "A_Expr": _operator,
    "BoolExpr": _logic,
    "NullTest": _null_test,
    "BooleanTest": _truth_test,
    "CaseExpr": _case,
    "CoalesceExpr": _coalesce,
    "MinMaxExpr": _extreme,
    "TypeCast": _type_cast,
    "CollateClause": _collated,
    "A_ArrayExpr": _array,
    "A_Indirection": _indirection,
    "SQLValueFunction": _keyword,
    "FuncCall": bind_calls.call,
    "GroupingFunc": bind_aggregates.grouping,
    "SubLink": bind_subqueries.sublink,
    "RowExpr": bind_rows.refuse,
    "JsonObjectConstructor": json_constructors.json_object,
    "JsonArrayConstructor": json_constructors.json_array,
    "JsonIsPredicate": json_constructors.is_json,
}
