"""Constants, parameters and columns: the leaves of expressions.

Walk: `sql.bind.expressions` calls these by the kind of node.
"""

from tenure.base.errors import NotSupported, UndefinedColumn
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.tree.build import UNKNOWN, Typed, const, read, undecided
from tenure.expr.tree.expressions import Const
from tenure.expr.types.datatype import Type
from tenure.expr.types.numbers import parse_numeric
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.clauses import check_column
from tenure.sql.bind.locations import at
from tenure.sql.bind.scope import Item, QueryLevel, column, column_of, expression_in, qualified
from tenure.sql.bind.suggestions import hint
from tenure.sql.text.parse import Tree, items, kind, names

INT4, INT8, NUMERIC, BOOL, TEXT = (
    type_of(TypeRef(name)) for name in ("int4", "int8", "numeric", "bool", "text")
)
_SYSTEM_COLUMNS = ("tableoid", "ctid", "xmin", "xmax", "cmin", "cmax")


def constant(tree: Tree, level: QueryLevel) -> Typed:
    if tree.isnull:
        return literal(None, tree.location)
    match tree.WhichOneof("val"):
        case "ival":
            return const(tree.ival.ival, INT4)
        case "fval":
            return _number(tree.fval.fval)
        case "boolval":
            return const(tree.boolval.boolval, BOOL)
        case "sval":
            return literal(tree.sval.sval, tree.location)
        case _:
            raise NotSupported("bit strings are not supported", position=tree.location + 1)


def literal(text: str | None, location: int) -> Typed:
    """A quoted literal, or NULL: errors in it get this position."""
    node = Const(UNKNOWN.ref, text)

    def decide(target: Type, context: str) -> Typed:
        with at(location):
            return read(node, target, context)

    return undecided(node, decide)


INTEGER_DIGITS_MAX = 100
"""Longer numbers are no integers; Python converts them slowly, and refuses those of some thousand digits."""


def _number(text: str) -> Typed:
    """A number that is no plain integer; its sign may be part of it, so that -2147483648 is an integer."""
    digits = text.removeprefix("-")
    if len(digits) > INTEGER_DIGITS_MAX and digits.isdigit():
        return const(parse_numeric(text), NUMERIC)
    if digits.isdigit() or digits[:2].lower() in ("0x", "0o", "0b"):
        value = int(text.replace("_", ""), 10 if digits.isdigit() else 0)
        if -(1 << 31) <= value < 1 << 31:
            return const(value, INT4)
        if -(1 << 63) <= value < 1 << 63:
            return const(value, INT8)
        return const(parse_numeric(str(value)), NUMERIC)
    return const(parse_numeric(text), NUMERIC)


def parameter(tree: Tree, level: QueryLevel) -> Typed:
    return level.binding.parameters.reference(tree.number, tree.location + 1)


def column_reference(tree: Tree, level: QueryLevel) -> Typed:
    check_column(level.clause, tree.location)
    fields = items(tree.fields)
    if kind(fields[-1]) == "A_Star":
        raise NotSupported("whole-row references are not supported", position=tree.location + 1)
    *path, name = names(fields)
    if path:
        return _qualified_column(level, path, name, tree.location)
    found = column(level, name, tree.location)
    if found is None:
        raise _no_such(level, name, tree.location)
    return found


def _qualified_column(level: QueryLevel, path: list[str], name: str, location: int) -> Typed:
    if name in _SYSTEM_COLUMNS:
        _, item = qualified(level, path, location)
        _refuse_system_column(item, name, location)
    try:
        return column_of(level, path, name, location)
    except UndefinedColumn as error:
        error.hint = hint(level, name, path[-1])
        raise


def _refuse_system_column(item: Item, name: str, location: int) -> None:
    if item.table is not None and not any(each.name == name for each in item.columns):
        raise NotSupported(f'system column "{name}" is not supported', position=location + 1)


def _no_such(level: QueryLevel, name: str, location: int) -> Exception:
    for owner in level.ancestors():
        for item in owner.items:
            if item.has_name and item.name == name:
                return NotSupported("whole-row references are not supported", position=location + 1)
            if name in _SYSTEM_COLUMNS:
                _refuse_system_column(item, name, location)
    error = UndefinedColumn(f'column "{name}" does not exist', position=location + 1)
    hidden = _hidden_item_with(level, name)
    if hidden is None:
        error.hint = hint(level, name)
    else:
        error.detail = (
            f'There is a column named "{name}" in table "{hidden.name}", but it cannot be referenced from '
            "this part of the query."
        )
    return error


def _hidden_item_with(level: QueryLevel, name: str) -> Item | None:
    """The target of UPDATE or DELETE if it has such a column, which items of FROM cannot refer to."""
    items = (item for owner in level.ancestors() for item in owner.items)
    targets = (item for item in items if item.is_target and item.is_lateral_only)
    return next((item for item in targets if any(each.name == name for each in item.columns)), None)


def star(level: QueryLevel, path: list[str], location: int) -> list[tuple[str, Typed, Item]]:
    """The columns of t.*."""
    owner, item = qualified(level, path, location)
    return [
        (each.name, expression_in(level, owner, each.typed, location), item)
        for each in item.columns
        if not each.is_hidden
    ]
