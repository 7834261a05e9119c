"""Rows in brackets, compared with each other or with lists: (a, b) = (c, d), (a, b) IN ((1, 2), (3, 4)).

    =     all pairs are equal
    <>    some pair differs
    <     the first pair that differs decides

Rows are not values here: they can be compared, not returned.

Walk: `sql.bind.expressions` for lists and row operators, `sql.bind.subqueries` for rows of a subquery.
"""

from collections.abc import Iterable, Sequence

from tenure.base.errors import DatatypeMismatch, NotSupported, SyntaxFault
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ContextValue, columns
from tenure.expr.tree.overload_resolution import common_type
from tenure.sql.bind.locations import at, location_of
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.text.parse import Tree, child, items, kind, names, option, unwrap

_ORDERINGS = {"<": "<", "<=": "<", ">": ">", ">=": ">"}


def operator_name(name_parts: Iterable[Tree]) -> str:
    *path, name = names(name_parts)
    if path not in ([], ["pg_catalog"]):
        raise NotSupported(f"operator {'.'.join([*path, name])} is not supported")
    return "<>" if name == "!=" else name


def refuse(tree: Tree, level: QueryLevel) -> Typed:
    raise NotSupported("rows as values are not supported", position=tree.location + 1)


def comparison(tree: Tree, level: QueryLevel) -> Typed:
    """row op row, row IS [NOT] DISTINCT FROM row."""
    left, right = child(tree, "lexpr"), child(tree, "rexpr")
    if kind(left) != "RowExpr" or kind(right) != "RowExpr":
        raise NotSupported("rows as values are not supported", position=tree.location + 1)
    pair = _members(left, level), _members(right, level)
    form = option(tree, "kind")
    with at(tree.location):
        if form in ("AEXPR_DISTINCT", "AEXPR_NOT_DISTINCT"):
            _check_lengths(*pair)
            comparisons = [build.is_distinct(*each) for each in zip(*pair, strict=True)]
            differ = build.disjunction(*comparisons)
            return build.negation(differ) if form == "AEXPR_NOT_DISTINCT" else differ
        if form != "AEXPR_OP":
            raise NotSupported("rows as values are not supported")
        return compared(operator_name(tree.name), *pair)


def _members(row: Tree, level: QueryLevel) -> list[Typed]:
    return [level.expression(each) for each in row.args]


def compared(name: str, left: Sequence[Typed], right: Sequence[Typed]) -> Typed:
    _check_lengths(left, right)
    pairs = list(zip(left, right, strict=True))
    if len(pairs) == 1:
        return _truth(name, *pairs[0])
    if name == "=":
        return build.conjunction(*(_truth("=", *each) for each in pairs))
    if name == "<>":
        return build.disjunction(*(_truth("<>", *each) for each in pairs))
    check_row_operator(name)
    decided = _truth(name, *pairs[-1])
    for each in reversed(pairs[:-1]):
        equal_so_far = build.conjunction(_truth("=", *each), decided)
        decided = build.disjunction(_truth(_ORDERINGS[name], *each), equal_so_far)
    return decided


def check_row_operator(name: str) -> None:
    if name not in ("=", "<>", *_ORDERINGS):
        raise NotSupported(f"could not determine interpretation of row comparison operator {name}")


def _check_lengths(left: Sequence[Typed], right: Sequence[Typed]) -> None:
    if len(left) != len(right):
        raise SyntaxFault("unequal number of entries in row expressions")
    if not left:
        raise NotSupported("cannot compare rows of zero length")


def _truth(name: str, left: Typed, right: Typed) -> Typed:
    result = build.call(name, left, right)
    if result.type.family != "bool":
        raise DatatypeMismatch(
            f"row comparison operator must yield type boolean, not type {result.type.sql_name}"
        )
    return result


def in_list(tree: Tree, level: QueryLevel) -> Typed:
    """operand [NOT] IN (items)."""
    is_negated = operator_name(tree.name) == "<>"
    operand_tree, item_trees = child(tree, "lexpr"), items(unwrap(tree.rexpr).items)
    if kind(operand_tree) == "RowExpr":
        return _row_in(operand_tree, item_trees, level, tree.location, is_negated=is_negated)
    operand = level.expression(operand_tree)
    members = [level.expression(each) for each in item_trees]
    with at(tree.location):
        if any(map(_is_open_parameter, (operand, *members))):
            return _with_parameters(operand, members, is_negated=is_negated)
        try:
            return build.in_list(operand, *members, is_negated=is_negated)
        except DatatypeMismatch:
            return _one_by_one(operand, members, is_negated=is_negated)


def _is_open_parameter(typed: Typed) -> bool:
    return isinstance(typed.node, ContextValue) and typed.type.family == "unknown"


def _with_parameters(operand: Typed, members: Sequence[Typed], *, is_negated: bool) -> Typed:
    """As PostgreSQL gives types to parameters: several members without columns have one type, and come first;
    all others are compared one by one."""
    fixed = [each for each in members if not columns(each.node)]
    rest = list(members)
    tests = []
    if len(fixed) > 1:
        try:
            # There are no arrays of arrays.
            if common_type([each.type for each in (operand, *fixed)], "IN").category == "A":
                return _one_by_one(operand, members, is_negated=is_negated)
            tests = [build.in_list(operand, *fixed, is_negated=is_negated)]
            rest = [each for each in members if columns(each.node)]
        except DatatypeMismatch:
            pass
    if not rest:
        return tests[0]
    tests.append(_one_by_one(operand, rest, is_negated=is_negated))
    return build.conjunction(*tests) if is_negated else build.disjunction(*tests)


def _one_by_one(operand: Typed, members: Sequence[Typed], *, is_negated: bool) -> Typed:
    tests = [build.call("<>" if is_negated else "=", operand, each) for each in members]
    if len(tests) == 1:
        return tests[0]
    return build.conjunction(*tests) if is_negated else build.disjunction(*tests)


def _row_in(
    row: Tree, item_trees: Sequence[Tree], level: QueryLevel, location: int, *, is_negated: bool
) -> Typed:
    operands = _members(row, level)
    tests = []
    for each in item_trees:
        if kind(each) != "RowExpr":
            raise NotSupported("rows as values are not supported", position=location_of(each) + 1)
        with at(location):
            tests.append(compared("<>" if is_negated else "=", operands, _members(each, level)))
    return build.conjunction(*tests) if is_negated else build.disjunction(*tests)
