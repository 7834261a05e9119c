"""Aggregate calls, and to which level of the query they belong.

An aggregate belongs to the innermost level whose columns it reads; without any, to the one it stands
in. In `SELECT (SELECT max(t.a)) FROM t` it is the outer query that is grouped, and the inner one gets
the result as an outer value.

Walk: `sql.bind.calls` calls these; the scope keeps the calls for the query's Aggregate node.
"""

from collections.abc import Sequence

from tenure.base.errors import GroupingFault, InvalidColumnReference, NotSupported, WrongObjectType
from tenure.expr.aggregates.aggregate import AggregateFunction
from tenure.expr.aggregates.aggregate_table import aggregate_type, resolve_aggregate
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Cast, ColumnRef, ContextValue, Node, nodes
from tenure.expr.tree.rewrite import rewrite
from tenure.expr.types.casts import IMPLICIT
from tenure.sql.bind.clauses import check_aggregate
from tenure.sql.bind.grouping import AGGREGATE, SET, WINDOW, found_at
from tenure.sql.bind.locations import at, location_of
from tenure.sql.bind.scope import QueryLevel, expression_in
from tenure.sql.bind.targets import check_boolean, check_equality, sort_keys
from tenure.sql.bind.values import INT4
from tenure.sql.plans.plan import AggregateCall, SortKey, of_call
from tenure.sql.text.parse import Tree, items, kind


def call(tree: Tree, level: QueryLevel, name: str) -> Typed:
    mentioned = dict(level.locations)
    aggregate_call = aggregate(tree, level, name)
    level.locations = mentioned
    owner = _owner(level, of_call(aggregate_call))
    if owner is not level:
        aggregate_call = _moved(aggregate_call, owner)
    _check_parts(of_call(aggregate_call), owner)
    check_aggregate(owner.clause, tree.location)
    result = owner.calls.aggregate(aggregate_call, tree.location)
    return result if owner is level else expression_in(level, owner, result, tree.location)


def aggregate(tree: Tree, level: QueryLevel, name: str) -> AggregateCall:
    """The call over the row it stands in, wherever it belongs."""
    arguments = [level.expression(each) for each in _arguments(tree, name)]
    function, operands = _resolved(tree, name, arguments, level)
    order: tuple[SortKey, ...] = ()
    if tree.agg_within_group:
        direct = function.direct_count
        keys = sort_keys(tree.agg_order, level, level.clause)
        order = tuple(
            SortKey(each.node, key.is_descending, key.nulls_first)
            for each, key in zip(operands[direct:], keys, strict=True)
        )
    elif len(tree.agg_order):
        order = sort_keys(tree.agg_order, level, level.clause)
    if tree.agg_distinct:
        _check_distinct(operands, order, tree)
    condition = None
    if tree.HasField("agg_filter"):
        typed = level.bind(tree.agg_filter, "FILTER")
        condition = check_boolean(typed, "argument of FILTER", location_of(tree.agg_filter)).node
    kind_of_result = aggregate_type(function, [each.type for each in operands])
    nodes_given = tuple(each.node for each in operands)
    return AggregateCall(function.id, nodes_given, kind_of_result, tree.agg_distinct, order, condition)


def _arguments(tree: Tree, name: str) -> list[Tree]:
    found = items(tree.args)
    for each in found:
        if kind(each) == "NamedArgExpr":
            raise NotSupported("named arguments of aggregates are not supported", position=each.location + 1)
    if not found and not tree.agg_star and not tree.agg_within_group and name == "count":
        raise WrongObjectType(
            "count(*) must be used to call a parameterless aggregate function", position=tree.location + 1
        )
    return found


def _resolved(
    tree: Tree, name: str, arguments: list[Typed], level: QueryLevel
) -> tuple[AggregateFunction, list[Typed]]:
    with at(tree.location):
        if tree.agg_within_group:
            arguments = arguments + [level.expression(each.node) for each in items(tree.agg_order)]
        if tree.agg_star and name != "count":
            resolve_aggregate(name, [])
        function, targets = resolve_aggregate(name, [each.type for each in arguments])
        if function.is_ordered_set and not tree.agg_within_group:
            raise WrongObjectType(f"WITHIN GROUP is required for ordered-set aggregate {name}")
        if tree.agg_within_group and not function.is_ordered_set:
            raise WrongObjectType(f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP")
        if tree.agg_distinct:
            # Values that are compared need a type, even if the aggregate accepts any.
            arguments = [
                build.coerce(each, to) if each.type.family == "unknown" else each
                for each, to in zip(arguments, targets, strict=True)
            ]
        return function, build.with_casts(function, arguments, targets)


def _before_relabeling(typed: Typed) -> Node | None:
    """The varchar below a cast to text: its value and its order are the same."""
    node = typed.node
    is_text = isinstance(node, Cast) and node.type.name == "text" and node.context == IMPLICIT
    return node.operand if is_text and isinstance(node, Cast) else None


def _check_distinct(operands: Sequence[Typed], order: Sequence[SortKey], tree: Tree) -> None:
    for each in operands:
        check_equality(each.type, tree.location)
    for key, sort in zip(order, items(tree.agg_order), strict=True):
        if not any(key.node in (each.node, _before_relabeling(each)) for each in operands):
            raise InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                position=location_of(sort.node) + 1,
            )


def _owner(level: QueryLevel, operands: Sequence[Node]) -> QueryLevel:
    outer: set[QueryLevel] = set()
    for part in operands:
        for node in nodes(part):
            if isinstance(node, ColumnRef):
                return level
            if isinstance(node, ContextValue) and node.number in level.binding.origins:
                outer.add(level.binding.origins[node.number][0])
    return next((each for each in level.ancestors() if each in outer), level)


def _moved(call: AggregateCall, owner: QueryLevel) -> AggregateCall:
    """The call over the owner's row: context values that came from the owner are its columns again."""
    origins = owner.binding.origins

    def back(node: Node) -> Node | None:
        if isinstance(node, ContextValue) and node.number in origins and origins[node.number][0] is owner:
            return ColumnRef(origins[node.number][1])
        return None

    return call.rewritten(lambda node: rewrite(node, back))


def _check_parts(operands: Sequence[Node], owner: QueryLevel) -> None:
    if (location := found_at(AGGREGATE, owner.calls, *operands)) is not None:
        raise GroupingFault("aggregate function calls cannot be nested", position=location + 1)
    if (location := found_at(WINDOW, owner.calls, *operands)) is not None:
        raise GroupingFault(
            "aggregate function calls cannot contain window function calls", position=location + 1
        )
    if (location := found_at(SET, owner.calls, *operands)) is not None:
        raise NotSupported(
            "aggregate function calls cannot contain set-returning function calls",
            hint="You might be able to move the set-returning function into a LATERAL FROM item.",
            position=location + 1,
        )


def grouping(tree: Tree, level: QueryLevel) -> Typed:
    """GROUPING(a, b): which of the keys are not part of a row's grouping set."""
    check_grouping_place(level.clause, tree.location)
    keys = tuple(level.expression(each).node for each in tree.args)
    return Typed(ColumnRef(level.calls.grouping(keys, tuple(location_of(each) for each in tree.args))), INT4)


def check_grouping_place(clause: str, location: int) -> None:
    try:
        check_aggregate(clause, location)
    except GroupingFault as error:
        message = str(error).replace("aggregate functions", "grouping operations")
        raise GroupingFault(message, position=location + 1) from None
