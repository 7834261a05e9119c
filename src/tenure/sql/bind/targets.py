"""The select list, and references to it: ORDER BY, GROUP BY and DISTINCT ON by name, number or expression.

A target is one column of the list while the SELECT is bound. ORDER BY may add hidden ones: they are
computed, sorted by and projected away.

Walk: `sql.bind.select`, `sql.bind.groups`, and for RETURNING the binders of statements that write.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tenure.base.errors import (
    AmbiguousColumn,
    InvalidColumnReference,
    NotSupported,
    SyntaxFault,
    TooManyColumns,
    UndefinedFunction,
)
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef
from tenure.expr.types.datatype import Type
from tenure.sql.bind.column_names import column_name
from tenure.sql.bind.locations import at, location_of
from tenure.sql.bind.records import fields_of_call, refuse_rows
from tenure.sql.bind.scope import QueryLevel, column
from tenure.sql.bind.values import BOOL, TEXT, star
from tenure.sql.plans.plan import OutputColumn, SortKey
from tenure.sql.text.parse import Tree, items, kind, names, option, unwrap


@dataclass
class SelectTarget:
    name: str
    typed: Typed
    location: int
    is_hidden: bool = False


def bind(trees: Iterable[Tree], level: QueryLevel, clause: str = "SELECT") -> list[SelectTarget]:
    targets: list[SelectTarget] = []
    for tree in items(trees):
        value = unwrap(tree.val)
        if kind(value) == "ColumnRef" and kind(unwrap(value.fields[-1])) == "A_Star":
            targets += _stars(value, level)
        elif kind(value) == "A_Indirection" and kind(unwrap(value.indirection[-1])) == "A_Star":
            raise NotSupported("composite values are not supported", position=tree.location + 1)
        else:
            targets += _values(tree, value, level, clause)
    return targets


def _values(tree: Tree, value: Tree, level: QueryLevel, clause: str) -> list[SelectTarget]:
    title = tree.name or column_name(value)
    with level.binding_of(clause):
        found = fields_of_call(value, title, level) or [(title, level.expression(value))]
    return [SelectTarget(name, typed, location_of(value)) for name, typed in found]


def _stars(tree: Tree, level: QueryLevel) -> list[SelectTarget]:
    path = names(items(tree.fields)[:-1])
    if path:
        found = [
            SelectTarget(name, typed, tree.location) for name, typed, _ in star(level, path, tree.location)
        ]
        refuse_rows((each.name for each in found), tree.location)
        return found
    if not level.items:
        raise SyntaxFault("SELECT * with no tables specified is not valid", position=tree.location + 1)
    found = []
    for item in level.items:
        if item.has_columns:
            for each in item.columns:
                if not each.is_hidden:
                    if isinstance(each.typed.node, ColumnRef):
                        level.read(each.typed.node.column)
                        level.locations.setdefault(each.typed.node.column, tree.location)
                    found.append(SelectTarget(each.name, each.typed, tree.location))
    refuse_rows((each.name for each in found), tree.location)
    return found


TARGETS_MAX = 1664
"""As in PostgreSQL."""


def outputs(targets: Sequence[SelectTarget], level: QueryLevel) -> tuple[OutputColumn, ...]:
    if len(targets) > TARGETS_MAX:
        raise TooManyColumns(f"target lists can have at most {TARGETS_MAX} entries")
    columns = []
    for target in targets:
        node = target.typed.node
        if isinstance(node, ColumnRef) and node.column < len(level.outputs):
            origin = level.outputs[node.column]
            columns.append(OutputColumn(target.name, target.typed.type, origin.table, origin.number))
        else:
            columns.append(OutputColumn(target.name, target.typed.type))
    return tuple(columns)


def decide_unknown(target: SelectTarget) -> None:
    """A literal or parameter whose type nothing else decides is text."""
    if target.typed.type.family == "unknown":
        target.typed = build.coerce(target.typed, TEXT)


def by_name_or_number(
    tree: Tree, level: QueryLevel, targets: Sequence[SelectTarget], clause: str
) -> SelectTarget | None:
    """A column of the select list by its name or its position; None if it is an expression."""
    visible = [each for each in targets if not each.is_hidden]
    if kind(tree) == "ColumnRef" and len(tree.fields) == 1 and kind(unwrap(tree.fields[0])) == "String":
        name = names(tree.fields)[0]
        if clause == "GROUP BY" and _is_own_column(level, name, tree.location):
            return None
        return _by_name(name, visible, clause, tree.location)
    if kind(tree) == "A_Const":
        return _by_number(tree, visible, clause)
    return None


def _is_own_column(level: QueryLevel, name: str, location: int) -> bool:
    parent, level.parent = level.parent, None
    try:
        return column(level, name, location) is not None
    finally:
        level.parent = parent


def _by_name(name: str, targets: Sequence[SelectTarget], clause: str, location: int) -> SelectTarget | None:
    found = [each for each in targets if each.name == name]
    if any(each.typed.node != found[0].typed.node for each in found):
        raise AmbiguousColumn(f'{clause} "{name}" is ambiguous', position=location + 1)
    return found[0] if found else None


def _by_number(tree: Tree, targets: Sequence[SelectTarget], clause: str) -> SelectTarget | None:
    if tree.isnull or tree.WhichOneof("val") != "ival":
        raise SyntaxFault(f"non-integer constant in {clause}", position=tree.location + 1)
    number: int = tree.ival.ival
    if not 1 <= number <= len(targets):
        raise InvalidColumnReference(
            f"{clause} position {number} is not in select list", position=tree.location + 1
        )
    return targets[number - 1]


def by_value(tree: Tree, level: QueryLevel, targets: list[SelectTarget], clause: str) -> SelectTarget:
    """The target that is this very expression; a hidden one is added if there is none."""
    typed = level.bind(tree, clause)
    for each in targets:
        if each.typed.node == typed.node and each.typed.type.family == typed.type.family:
            return each
    targets.append(SelectTarget("?column?", typed, location_of(tree), is_hidden=True))
    return targets[-1]


@dataclass
class Ordered:
    """One part of ORDER BY, before targets have their places."""

    target: SelectTarget
    is_descending: bool
    nulls_first: bool

    def key(self, targets: Sequence[SelectTarget]) -> SortKey:
        place = next(at for at, each in enumerate(targets) if each is self.target)
        return SortKey(ColumnRef(place), self.is_descending, self.nulls_first)


def order(trees: Iterable[Tree], level: QueryLevel, targets: list[SelectTarget]) -> list[Ordered]:
    result: list[Ordered] = []
    for tree in items(trees):
        inner = unwrap(tree.node)
        target = by_name_or_number(inner, level, targets, "ORDER BY")
        target = target or by_value(inner, level, targets, "ORDER BY")
        decide_unknown(target)
        check_ordered(target.typed.type, location_of(inner))
        if all(each.target is not target for each in result):
            result.append(Ordered(target, *direction(tree)))
    return result


def direction(tree: Tree) -> tuple[bool, bool]:
    """Whether a SortBy is descending, and whether NULLs come first."""
    if option(tree, "sortby_dir") == "SORTBY_USING":
        raise NotSupported("ORDER BY USING is not supported", position=tree.location + 1)
    is_descending = option(tree, "sortby_dir") == "SORTBY_DESC"
    nulls = option(tree, "sortby_nulls")
    return is_descending, is_descending if nulls.endswith("DEFAULT") else nulls.endswith("FIRST")


def sort_keys(
    trees: Iterable[Tree], level: QueryLevel, clause: str, types: list[Type] | None = None
) -> tuple[SortKey, ...]:
    """ORDER BY inside an aggregate or a window: expressions only, whose types are added to `types`."""
    keys = []
    for tree in items(trees):
        typed = level.bind(tree.node, clause)
        if typed.type.family == "unknown":
            typed = build.coerce(typed, TEXT)
        check_ordered(typed.type, location_of(tree.node))
        keys.append(SortKey(typed.node, *direction(tree)))
        if types is not None:
            types.append(typed.type)
    return tuple(keys)


def check_ordered(kind: Type, location: int) -> None:
    if not kind.has_order:
        raise UndefinedFunction(
            f"could not identify an ordering operator for type {kind.sql_name}",
            hint="Use an explicit ordering operator or modify the query.",
            position=location + 1,
        )


def check_equality(kind: Type, location: int) -> None:
    if not kind.has_order:
        raise UndefinedFunction(
            f"could not identify an equality operator for type {kind.sql_name}", position=location + 1
        )


def check_boolean(typed: Typed, what: str, location: int) -> Typed:
    with at(location):
        return Typed(build.condition(typed, what), BOOL)
