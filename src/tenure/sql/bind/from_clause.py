"""FROM: tables, subqueries, functions and joins, side by side in one row.

Positions run through the whole clause from left to right. A join's condition, which sees only the
join's own rows, is shifted to where its left side begins. The values that LATERAL items take from items to
their left are context values; each join hands over those that come from its own left side.

    FROM a, b JOIN LATERAL (SELECT a.x, b.y) c ON true

    Join(a, Join(b, c, lateral: b.y), lateral: a.x)

Walk: `sql.bind.select` calls `bind`; statements that write call `table_item`.
"""

from collections.abc import Iterable, Sequence

from tenure.base.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    DuplicateColumn,
    InvalidColumnReference,
    NotSupported,
    UndefinedColumn,
    UndefinedTable,
)
from tenure.catalog.descriptors.definitions import Column, Table, replace, visible
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef
from tenure.expr.tree.overload_resolution import common_type
from tenure.expr.tree.rewrite import shifted
from tenure.expr.types.type_names import type_of
from tenure.sql.bind import functions as bind_functions
from tenure.sql.bind.binding import Binding, refuse_recursion
from tenure.sql.bind.locations import location_of
from tenure.sql.bind.relations import NamedColumns, Names, Relation, ViewQuery, VirtualTable
from tenure.sql.bind.renaming import projected, renamed
from tenure.sql.bind.scope import Item, Named, QueryLevel
from tenure.sql.bind.targets import check_boolean
from tenure.sql.bind.with_clause import Cte
from tenure.sql.plans.plan import Join, JoinKind, OutputColumn, Plan, Scan, Values, Virtual, Working
from tenure.sql.text.parse import Tree, child, items, kind, names, option

_KINDS = {
    "JOIN_INNER": JoinKind.INNER,
    "JOIN_LEFT": JoinKind.LEFT,
    "JOIN_RIGHT": JoinKind.RIGHT,
    "JOIN_FULL": JoinKind.FULL,
}


def bind(trees: Iterable[Tree], level: QueryLevel) -> Plan:
    """Adds the items of FROM to the level, to the right of its existing ones."""
    start = len(level.row)
    plan: Plan | None = None
    for tree in items(trees):
        right, added = _item(tree, level)
        plan = right if plan is None else _joined(JoinKind.INNER, plan, right, level, start)
        _check_conflicts(level.items, added)
        for each in added:
            each.is_lateral_only, each.is_lateral_ok = True, True
        level.items += added
    for each in level.items:
        each.is_lateral_only, each.is_lateral_ok = False, True
    return Values((), ((),)) if plan is None else plan


def _item(tree: Tree, level: QueryLevel) -> tuple[Plan, list[Item]]:
    match kind(tree):
        case "RangeVar":
            return _relation(tree, level)
        case "RangeSubselect":
            return _subquery(tree, level)
        case "RangeFunction":
            return _function(tree, level)
        case "JoinExpr":
            return _join(tree, level)
        case "RangeTableSample":
            raise NotSupported("TABLESAMPLE is not supported", position=tree.location + 1)
        case other:
            raise NotSupported(f"{other} in FROM is not supported")


def _check_conflicts(there: Sequence[Item], added: Sequence[Item]) -> None:
    for new in added:
        for old in there:
            if not (new.has_name and old.has_name and new.name == old.name):
                continue
            if new.path and old.path and new.path != old.path:
                continue
            raise DuplicateAlias(f'table name "{new.name}" specified more than once')


# Tables, views and WITH queries


def _relation(tree: Tree, level: QueryLevel) -> tuple[Plan, list[Item]]:
    path = [each for each in (tree.catalogname, tree.schemaname, tree.relname) if each]
    cte = _cte_named(path[0], level) if len(path) == 1 else None
    if cte is not None:
        plan, added = _placed(cte.reference(tree.location, level), tree, level, path[-1])
        added[0].source = "a WITH query"
        level.reads_working = level.reads_working or isinstance(plan, Working)
        return plan, added
    relation = _relation_named(path, level, tree.location)
    if isinstance(relation, Table):
        return table_item(relation, level, path, child(tree, "alias"))
    if isinstance(relation, NamedColumns):
        return table_item(relation.table, level, path, child(tree, "alias"), relation.columns)
    alias = child(tree, "alias")
    plan = _plan_of(relation, level, path[-1] if alias is None else alias.aliasname)
    hidden = relation.hidden if isinstance(relation, VirtualTable) else frozenset()
    plan, added = _placed(plan, tree, level, path[-1], path=tuple(path), hidden=hidden)
    added[0].relation = relation
    return plan, added


def _relation_named(path: list[str], level: QueryLevel, location: int) -> Relation:
    try:
        return level.names.relation(path, location + 1)
    except UndefinedTable as error:
        if len(path) == 1 and any(path[0] in each.later_ctes for each in level.ancestors()):
            error.detail = (
                f'There is a WITH item named "{path[0]}", but it cannot be referenced from this part '
                "of the query."
            )
            error.hint = "Use WITH RECURSIVE, or re-order the WITH items to remove forward references."
        raise


def _cte_named(name: str, level: QueryLevel) -> Cte | None:
    for each in level.ancestors():
        if name in each.ctes:
            found = each.ctes[name]
            assert isinstance(found, Cte)
            return found
    return None


def _plan_of(relation: Relation, level: QueryLevel, name: str) -> Plan:
    if isinstance(relation, VirtualTable):
        places = tuple(range(len(relation.columns)))
        return Virtual(relation.columns, relation.key, places, relation.lookups)
    assert isinstance(relation, ViewQuery)
    outside = QueryLevel(level.binding, relation.names)
    locks = level.locks_for(name)
    plan = renamed(level.binding.query(relation.tree, outside, locks=locks), relation.columns)
    outputs = plan.outputs[: relation.shown]
    if relation.id:
        outputs = tuple(
            OutputColumn(each.name, each.type, relation.id, number) for number, each in enumerate(outputs, 1)
        )
    return projected(plan, outputs, tuple(ColumnRef(at) for at in range(len(outputs))))


def table_item(
    table: Table,
    level: QueryLevel,
    path: Sequence[str],
    alias: Tree | None,
    columns: Sequence[tuple[str, int]] | None = None,
) -> tuple[Scan, list[Item]]:
    """A scan of a table, with its columns in sight under its name or alias; `columns` may rename them."""
    scan, hidden = scan_of(table, level.names, columns)
    name = alias.aliasname if alias is not None else path[-1]
    item = _entered(scan, level, name, alias, hidden=hidden)
    item.table, item.relation, item.relation_name = table, table, path[-1]
    item.path = () if alias is not None else tuple(path)
    return scan, [item]


def scan_of(
    table: Table, catalog_names: Names, named: Sequence[tuple[str, int]] | None = None
) -> tuple[Scan, frozenset[int]]:
    """The readable columns of a table, or those named; and the positions that are not part of *."""
    columns = list(visible(table.columns))
    if named is not None:
        columns = _under_names(table, named)
    outputs = tuple(
        OutputColumn(each.name, type_of(each.type, catalog_names.enum), table.id, each.id) for each in columns
    )
    hidden = frozenset(at for at, each in enumerate(columns) if each.is_hidden)
    return Scan(outputs, table, tuple(each.id for each in columns)), hidden


def _under_names(table: Table, named: Sequence[tuple[str, int]]) -> list[Column]:
    """The columns named, and, hidden, the other columns of the primary key."""
    by_id = {each.id: each for each in visible(table.columns)}
    shown = [replace(by_id[id], name=name, is_hidden=False) for name, id in named if id in by_id]
    there = {id for _, id in named}
    key = [part.column for part in table.index(table.primary).parts if part.column not in there]
    return shown + [replace(by_id[id], name="", is_hidden=True) for id in key]


def _placed(
    plan: Plan,
    tree: Tree,
    level: QueryLevel,
    name: str,
    *,
    path: tuple[str, ...] = (),
    hidden: frozenset[int] = frozenset(),
) -> tuple[Plan, list[Item]]:
    alias = child(tree, "alias")
    item = _entered(plan, level, alias.aliasname if alias is not None else name, alias, hidden=hidden)
    item.relation_name = name
    item.path = () if alias is not None else path
    return plan, [item]


def _entered(
    plan: Plan, level: QueryLevel, name: str, alias: Tree | None, *, hidden: frozenset[int] = frozenset()
) -> Item:
    """Puts a plan's columns at the end of the level's row."""
    start = len(level.row)
    aliases = names(alias.colnames) if alias is not None else []
    shown = [at for at in range(len(plan.outputs)) if at not in hidden]
    if len(aliases) > len(shown):
        raise InvalidColumnReference(
            f'table "{name}" has {len(shown)} columns available but {len(aliases)} columns specified'
        )
    titles = dict(zip(shown, aliases, strict=False))
    columns = [
        Named(titles.get(at, each.name), Typed(ColumnRef(start + at), each.type), each, at in hidden)
        for at, each in enumerate(plan.outputs)
    ]
    level.row += [each.type for each in plan.outputs]
    level.outputs += plan.outputs
    item = Item(name, columns, start=start)
    level.all_items.append(item)
    return item


# Subqueries and functions


def _subquery(tree: Tree, level: QueryLevel) -> tuple[Plan, list[Item]]:
    alias = child(tree, "alias")
    name = alias.aliasname if alias is not None else "unnamed_subquery"
    inner = QueryLevel(level.binding, level.names, parent=level)
    before, level.is_lateral = level.is_lateral, tree.lateral
    try:
        plan = level.binding.query(child(tree, "subquery"), inner, locks=level.locks_for(name))
    finally:
        level.is_lateral = before
    item = _entered(plan, level, name, alias)
    item.has_name = alias is not None
    return plan, [item]


def _function(tree: Tree, level: QueryLevel) -> tuple[Plan, list[Item]]:
    inner = QueryLevel(level.binding, level.names, parent=level)
    alias = child(tree, "alias")
    before, level.is_lateral = level.is_lateral, True
    try:
        plan, name = bind_functions.function_scan(tree, inner, alias)
    finally:
        level.is_lateral = before
    item = _entered(plan, level, name, alias)
    item.source = "a function"
    return plan, [item]


# Joins


def _join(tree: Tree, level: QueryLevel) -> tuple[Plan, list[Item]]:
    start = len(level.row)
    how = _KINDS[option(tree, "jointype")]
    left, left_items = _item(child(tree, "larg"), level)
    for each in left_items:
        each.is_lateral_only, each.is_lateral_ok = True, how in (JoinKind.INNER, JoinKind.LEFT)
    there = len(level.items)
    level.items += left_items
    right, right_items = _item(child(tree, "rarg"), level)
    del level.items[there:]
    _check_conflicts(left_items, right_items)
    sides = _columns(left_items), _columns(right_items)
    merged, condition = _merged(tree, how, sides, level)
    both = [*left_items, *right_items]
    if tree.HasField("quals"):
        condition = _on(tree.quals, level, both)
    _check_recursion(how, left, right, level.binding)
    plan = _joined(how, left, right, level, start, condition)
    _mark_nullable(how, left_items, right_items)
    return plan, _join_items(tree, both, merged, sides)


def _columns(side: Sequence[Item]) -> list[Named]:
    return [each for item in side if item.has_columns for each in item.columns]


def _mark_nullable(how: JoinKind, left: Sequence[Item], right: Sequence[Item]) -> None:
    for item in (
        *(left if how in (JoinKind.RIGHT, JoinKind.FULL) else ()),
        *(right if how in (JoinKind.LEFT, JoinKind.FULL) else ()),
    ):
        item.is_nullable = True


def _check_recursion(how: JoinKind, left: Plan, right: Plan, binding: Binding[QueryLevel]) -> None:
    for plan, harmful in (
        (left, (JoinKind.RIGHT, JoinKind.FULL)),
        (right, (JoinKind.LEFT, JoinKind.FULL)),
    ):
        if how in harmful:
            refuse_recursion(plan, binding, "an outer join")


def _joined(
    how: JoinKind, left: Plan, right: Plan, level: QueryLevel, start: int, condition: Typed | None = None
) -> Join:
    end = start + len(left.outputs)
    lateral = []
    for outer_value in level.binding.outer_values_in(right, level):
        owner, position = level.binding.origins[outer_value.number]
        if owner is level and start <= position < end:
            lateral.append((outer_value.number, position - start))
    node = None if condition is None else shifted(condition.node, -start)
    return Join(how, left, right, node, tuple(lateral))


def _on(tree: Tree, level: QueryLevel, both: list[Item]) -> Typed:
    for each in both:
        each.is_lateral_only, each.is_lateral_ok = False, True
    before, level.items = level.items, both
    try:
        return check_boolean(level.bind(tree, "JOIN/ON"), "argument of JOIN/ON", location_of(tree))
    finally:
        level.items = before


def _merged(
    tree: Tree, how: JoinKind, sides: tuple[list[Named], list[Named]], level: QueryLevel
) -> tuple[list[Named], Typed | None]:
    """USING and NATURAL: the columns that are one, and the condition that makes them so."""
    wanted = names(tree.using_clause)
    if tree.is_natural:
        there = {each.name for each in sides[1] if not each.is_hidden}
        wanted = [each.name for each in sides[0] if each.name in there and not each.is_hidden]
    merged, conditions = [], []
    for name in wanted:
        if wanted.count(name) > 1 and not tree.is_natural:
            raise DuplicateColumn(f'column name "{name}" appears more than once in USING clause')
        left = _common(name, sides[0], "left")
        right = _common(name, sides[1], "right")
        for each in (left, right):
            if isinstance(each.typed.node, ColumnRef):
                level.read(each.typed.node.column)
        conditions.append(build.call("=", left.typed, right.typed))
        merged.append(_one_column(how, left, right))
    if not conditions:
        return [], None
    return merged, conditions[0] if len(conditions) == 1 else build.conjunction(*conditions)


def _common(name: str, side: Sequence[Named], which: str) -> Named:
    found = [each for each in side if each.name == name]
    if not found:
        raise UndefinedColumn(f'column "{name}" specified in USING clause does not exist in {which} table')
    if len(found) > 1:
        raise AmbiguousColumn(f'common column name "{name}" appears more than once in {which} table')
    return found[0]


def _one_column(how: JoinKind, left: Named, right: Named) -> Named:
    kind_of_both = common_type([left.typed.type, right.typed.type], "JOIN/USING")
    first, second = (build.coerce(each.typed, kind_of_both) for each in (left, right))
    if how is JoinKind.FULL:
        return Named(left.name, build.coalesce(first, second), OutputColumn(left.name, kind_of_both))
    if how is JoinKind.RIGHT or (how is JoinKind.INNER and first.node != left.typed.node):
        return Named(left.name, second, right.origin)
    return Named(left.name, first, left.origin)


def _join_items(
    tree: Tree, both: list[Item], merged: list[Named], sides: tuple[list[Named], list[Named]]
) -> list[Item]:
    merged_names = {each.name for each in merged}
    columns = [*merged, *(each for side in sides for each in side if each.name not in merged_names)]
    alias = child(tree, "alias")
    extra = []
    if tree.HasField("join_using_alias"):
        extra = [Item(tree.join_using_alias.aliasname, merged, has_columns=False)]
    if alias is None:
        for each in both:
            each.has_columns = False
        return [*both, *extra, Item("", columns, has_name=False)]
    return [*extra, Item(alias.aliasname, _titled(columns, alias), source="a join")]


def _titled(columns: Sequence[Named], alias: Tree) -> list[Named]:
    """A join's columns under the names of an alias list, which hidden ones have no part in."""
    titles = names(alias.colnames)
    shown = [at for at, each in enumerate(columns) if not each.is_hidden]
    if len(titles) > len(shown):
        raise InvalidColumnReference(
            f'join expression "{alias.aliasname}" has {len(shown)} columns available '
            f"but {len(titles)} columns specified"
        )
    title = dict(zip(shown, titles, strict=False))
    return [each._replace(name=title.get(at, each.name)) for at, each in enumerate(columns)]
