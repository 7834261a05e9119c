"""UNION, INTERSECT and EXCEPT: both sides get the same types, pair by pair from the leaves up.

Walk: `sql.bind.select` comes here with a SelectStmt that has two sides.
"""

from collections.abc import Sequence
from dataclasses import replace

from tenure.base.errors import SyntaxFault
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef
from tenure.expr.tree.overload_resolution import common_type
from tenure.expr.types.casts import IMPLICIT
from tenure.expr.types.datatype import Type
from tenure.sql.bind.locations import at
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.bind.targets import check_equality
from tenure.sql.plans.plan import OutputColumn, Plan, Project, SetKind, SetOperation
from tenure.sql.text.parse import Tree, option


def bind(tree: Tree, level: QueryLevel) -> Plan:
    """The rows of the operation, before its ORDER BY and LIMIT."""
    word = option(tree, "op").removeprefix("SETOP_")
    binding = level.binding
    left, left_places = _side(tree.larg, level), binding.places
    right, right_places = _side(tree.rarg, level), binding.places
    if len(left.outputs) != len(right.outputs):
        raise SyntaxFault(
            f"each {word} query must have the same number of columns",
            position=right_places[0] + 1 if right_places else 0,
        )
    types = common_types(word, left.outputs, right.outputs, right_places)
    binding.places = [
        theirs if a.type.family == "unknown" else ours
        for a, ours, theirs in zip(left.outputs, left_places, right_places, strict=True)
    ]
    if not (tree.all and word == "UNION"):
        for each, place in zip(types, binding.places, strict=True):
            check_equality(each, place)
    outputs = tuple(
        OutputColumn(each.name, kind_of_both) for each, kind_of_both in zip(left.outputs, types, strict=True)
    )
    return SetOperation(outputs, SetKind[word], tree.all, converted(left, types), converted(right, types))


def _side(tree: Tree, level: QueryLevel) -> Plan:
    is_plain = not (
        len(tree.sort_clause)
        or len(tree.locking_clause)
        or tree.HasField("with_clause")
        or tree.HasField("limit_count")
        or tree.HasField("limit_offset")
    )
    if option(tree, "op") != "SETOP_NONE" and is_plain:
        return bind(tree, level)
    return level.binding.query(tree, QueryLevel(level.binding, level.names, parent=level), keeps_unknown=True)


def common_types(
    word: str, left: Sequence[OutputColumn], right: Sequence[OutputColumn], places: Sequence[int]
) -> list[Type]:
    """`places` are those of the right side's columns."""
    types = []
    for a, b, place in zip(left, right, places, strict=True):
        with at(place):
            types.append(common_type([a.type, b.type], word))
    return types


def converted(plan: Plan, types: Sequence[Type], context: str = IMPLICIT) -> Plan:
    """The same rows in these types; literals and parameters in a select list are taken to be of them."""
    if all(each.type.ref == wanted.ref for each, wanted in zip(plan.outputs, types, strict=True)):
        return plan
    if isinstance(plan, Project):
        columns = [Typed(node, each.type) for node, each in zip(plan.expressions, plan.outputs, strict=True)]
    else:
        columns = [Typed(ColumnRef(number), each.type) for number, each in enumerate(plan.outputs)]
    expressions = [build.coerce(each, wanted, context) for each, wanted in zip(columns, types, strict=True)]
    outputs = tuple(
        OutputColumn(each.name, new.type) if new.type.ref != each.type.ref else each
        for each, new in zip(plan.outputs, expressions, strict=True)
    )
    nodes = tuple(each.node for each in expressions)
    if isinstance(plan, Project):
        return replace(plan, outputs=outputs, expressions=nodes)
    return Project(outputs, plan, nodes)
