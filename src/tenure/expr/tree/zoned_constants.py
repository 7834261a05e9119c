"""How an expression depends on the session's time zone: constants are fixed, other dependencies are reported.

    at > '2024-05-01 12:00'::timestamptz     the constant is read once, in the zone of the defining session
    at::date                                 depends on the zone of the evaluating session: not immutable

Invariant (zone-fixed): a stored expression means the same in every session.

Walk: `sql.statements.ddl.definition` fixes what it stores, and refuses what depends on the zone.
"""

from collections.abc import Mapping
from datetime import tzinfo

from tenure.expr.tree.build import const
from tenure.expr.tree.compiled import check
from tenure.expr.tree.expressions import Cast, Const, Node, nodes
from tenure.expr.tree.rewrite import rewrite
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.casts import zoned_cast
from tenure.expr.types.datatype import Type
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.type_names import EnumLookup, type_of


def fix_constants(tree: Node, zone: tzinfo, enum: EnumLookup | None = None) -> Node:
    """The same with literals that the zone decides already read. Raises as reading them does."""

    def fixed(node: Node) -> Node | None:
        literal = node.operand if isinstance(node, Cast) else None
        if not isinstance(node, Cast) or not isinstance(literal, Const) or literal.type.name != "unknown":
            return None
        target = type_of(node.type, enum)
        convert = zoned_cast(type_of(literal.type), target, node.context)
        if convert is None or literal.packed is None:
            return None
        return const(convert(literal.packed, zone), target).node

    return rewrite(tree, fixed)


_TEXTS = ("text", "varchar", "bpchar", "name")
_SHOWN_BY_SESSION = ("date", "timestamp", "timestamptz", "timetz", "interval")
"""As PostgreSQL counts it: their text depends on settings. A time of day depends on them when it is read."""


def depends_on_session(tree: Node, columns: Mapping[int, Type], enum: EnumLookup | None = None) -> bool:
    """Whether a cast in it may give another value in another session, as PostgreSQL counts it."""
    casts = (node for node in nodes(tree) if isinstance(node, Cast))
    return any(_is_stable(each, check(each.operand, columns, enum), enum) for each in casts)


def _is_stable(cast: Cast, source: Type, enum: EnumLookup | None) -> bool:
    target = type_of(cast.type, enum)
    if zoned_cast(source, target, cast.context) is not None:
        return True
    if target.family in _TEXTS:
        return _has_stable_text(source)
    return source.family in _TEXTS and (_has_stable_text(target) or target.family == "time")


def _has_stable_text(type: Type) -> bool:
    """Labels of an enum can be renamed; an array may have elements of any type."""
    return isinstance(type, EnumOf | ArrayOf) or type.family in _SHOWN_BY_SESSION
