"""SELECT: clause by clause, in PostgreSQL's order, then one node upon the other.

    FROM, select list, WHERE, HAVING, ORDER BY, GROUP BY, DISTINCT, LIMIT        binding
    FROM, Filter, Aggregate, Filter, Window, ProjectSet, Project, Distinct,      building
    Sort, Lock, Limit, Project

Expressions are bound over the row of FROM; `sql.bind.groups` moves them to the row that they will get.

Walk: `sql.bind.binder` calls `bind` for a statement's query, and for each query inside of it.
"""

from dataclasses import dataclass, field

from tenure.base.errors import (
    CannotCast,
    DatatypeMismatch,
    InvalidColumnReference,
    NotSupported,
    SyntaxFault,
    WrongRecursion,
)
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import ColumnRef, Node, nodes
from tenure.expr.tree.overload_resolution import common_type
from tenure.sql.bind import from_clause as bind_from
from tenure.sql.bind import groups as bind_groups
from tenure.sql.bind import locks as bind_locks
from tenure.sql.bind import set_operations as bind_sets
from tenure.sql.bind import targets as bind_targets
from tenure.sql.bind import windows as bind_windows
from tenure.sql.bind import with_clause as bind_with
from tenure.sql.bind.grouping import AGGREGATE, SET, standing_for
from tenure.sql.bind.locations import at, location_of, odd_one
from tenure.sql.bind.renaming import projected
from tenure.sql.bind.scope import Item, Locking, Named, QueryLevel, refusing_sets
from tenure.sql.bind.targets import Ordered, SelectTarget, check_boolean, check_equality
from tenure.sql.bind.values import INT8
from tenure.sql.plans.plan import Distinct, Filter, Limit, OutputColumn, Plan, Sort, Values
from tenure.sql.plans.trees import is_volatile
from tenure.sql.text.parse import Tree, items, option, unwrap


@dataclass
class BoundSelect:
    """One SELECT, its clauses bound."""

    tree: Tree
    level: QueryLevel
    source: Plan
    targets: list[SelectTarget]
    where: Node | None = None
    having: Node | None = None
    order: list[Ordered] = field(default_factory=list)
    groups: bind_groups.GroupingKeys | None = None
    distinct: list[SelectTarget] | None = None
    """The targets of DISTINCT ON; none of a plain DISTINCT, which goes by all."""
    limit: Node | None = None
    offset: Node | None = None
    locks: list[bind_locks.LockedTable] = field(default_factory=list)


def bind(
    tree: Tree, parent: QueryLevel, *, keeps_unknown: bool = False, locks: tuple[Locking, ...] = ()
) -> Plan:
    """Binds a SelectStmt inside a level; `keeps_unknown` leaves literals of the select list untyped."""
    tree = unwrap(tree)
    if tree.HasField("into_clause"):
        raise NotSupported("SELECT INTO is not supported")
    level = QueryLevel(parent.binding, parent.names, parent=parent)
    level.grow(1)
    level.locks = (*locks, *bind_locks.clauses(tree))
    if tree.HasField("with_clause"):
        bind_with.declare(tree.with_clause, level, tree)
    if len(tree.values_lists):
        return _of_rows(tree, level, _values(tree, level), keeps_unknown)
    if option(tree, "op") != "SETOP_NONE":
        bind_locks.refuse(level, "UNION/INTERSECT/EXCEPT")
        return _of_rows(tree, level, bind_sets.bind(tree, level), keeps_unknown)
    return _built(_bound(tree, level), keeps_unknown)


def _bound(tree: Tree, level: QueryLevel) -> BoundSelect:
    for each in items(tree.window_clause):
        bind_windows.add(level, each)
    source = bind_from.bind(tree.from_clause, level)
    targets = bind_targets.bind(tree.target_list, level)
    select = BoundSelect(tree, level, source, targets)
    select.where = _condition(tree, "where_clause", "WHERE", level)
    select.having = _condition(tree, "having_clause", "HAVING", level)
    select.order = bind_targets.order(tree.sort_clause, level, targets)
    select.groups = bind_groups.bind(tree, level, targets)
    _bind_distinct(select)
    _bind_limit(select)
    bind_windows.check_unused(level)
    select.locks = bind_locks.bind(tree, level)
    if level.reads_working and level.calls.aggregates:
        raise WrongRecursion(
            "aggregate functions are not allowed in a recursive query's recursive term",
            position=level.calls.locations[AGGREGATE] + 1,
        )
    return select


def _condition(tree: Tree, field: str, clause: str, level: QueryLevel) -> Node | None:
    if not tree.HasField(field):
        return None
    inner = getattr(tree, field)
    typed = level.bind(inner, clause)
    return check_boolean(typed, f"argument of {clause}", location_of(inner)).node


def _bind_distinct(select: BoundSelect) -> None:
    trees = [unwrap(each) for each in select.tree.distinct_clause]
    if not trees:
        return
    targets = select.targets
    if trees[0] is None:
        for each in select.order:
            if each.target.is_hidden:
                raise InvalidColumnReference(
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    position=each.target.location + 1,
                )
        select.distinct = []
        checked = targets
    else:
        select.distinct = checked = [_distinct_on(each, select) for each in trees]
        _check_initial(select, [location_of(each) for each in trees])
    for target in checked:
        bind_targets.decide_unknown(target)
        check_equality(target.typed.type, target.location)


def _distinct_on(tree: Tree, select: BoundSelect) -> SelectTarget:
    level, targets = select.level, select.targets
    found = bind_targets.by_name_or_number(tree, level, targets, "DISTINCT ON")
    return found or bind_targets.by_value(tree, level, targets, "DISTINCT ON")


def _check_initial(select: BoundSelect, locations: list[int]) -> None:
    """ORDER BY begins with what DISTINCT ON names, in any order."""
    wanted = list(zip(select.distinct or [], locations, strict=True))
    sorted_by = [each.target for each in select.order]
    initial = 0
    while initial < len(sorted_by) and any(sorted_by[initial] is target for target, _ in wanted):
        initial += 1
    for target, location in wanted:
        places = [at for at, each in enumerate(sorted_by) if each is target]
        if initial < len(sorted_by) and (not places or places[0] > initial):
            raise InvalidColumnReference(
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                position=location + 1,
            )


def _bind_limit(select: BoundSelect) -> None:
    tree, level = select.tree, select.level
    select.limit = _count(tree, "limit_count", "LIMIT", level)
    select.offset = _count(tree, "limit_offset", "OFFSET", level)
    if option(tree, "limit_option") == "LIMIT_OPTION_WITH_TIES" and not select.order:
        raise SyntaxFault("WITH TIES cannot be specified without ORDER BY clause")


def _count(tree: Tree, field: str, clause: str, level: QueryLevel) -> Node | None:
    if not tree.HasField(field):
        return None
    inner = getattr(tree, field)
    location = location_of(inner)
    with refusing_sets(level, clause):
        typed = level.bind(inner, clause)
    with at(location):
        try:
            count = build.assign(typed, INT8)
        except (CannotCast, DatatypeMismatch):
            raise DatatypeMismatch(
                f"argument of {clause} must be type bigint, not type {typed.type.sql_name}"
            ) from None
    if any(isinstance(each, ColumnRef) for each in nodes(count.node)):
        raise InvalidColumnReference(
            f"argument of {clause} must not contain variables", position=location + 1
        )
    return count.node


# From clauses to nodes


def _built(select: BoundSelect, keeps_unknown: bool) -> Plan:
    if not keeps_unknown:
        for target in select.targets:
            bind_targets.decide_unknown(target)
    bind_locks.add_keys(select.locks, select.targets, select.level)
    plan = select.source
    if select.where is not None:
        plan = Filter(plan, select.where)
    plan, mover = bind_groups.placed(plan, select.level, select.groups, select.having, select.targets)
    return _finished(select, _projected(select, plan, mover))


def _projected(select: BoundSelect, plan: Plan, mover: bind_groups.Mover) -> Plan:
    """The targets, without repetition and in order. Those that wait are computed after that."""
    level, targets = select.level, select.targets
    late = _late(select)
    early = [each for each in targets if not any(each is other for other in late)]
    are_sets_late = any(standing_for(SET, each.typed.node) for each in late)
    if not are_sets_late:
        plan = bind_groups.sets_upon(plan, level, mover)
    carried = plan.outputs if late else ()
    outputs = (*bind_targets.outputs(early, level), *carried)
    expressions = [mover.move_target(each) for each in early]
    expressions += [ColumnRef(at) for at in range(len(carried))]
    plan = _in_order(select, projected(plan, outputs, tuple(expressions)), early)
    if not late:
        return plan
    mover.start = len(early)
    if are_sets_late:
        plan = bind_groups.sets_upon(plan, level, mover)
    places = {id(each): ColumnRef(at) for at, each in enumerate(early)}
    expressions = [places.get(id(each)) or mover.move_target(each) for each in targets]
    return projected(plan, bind_targets.outputs(targets, level), tuple(expressions))


def _late(select: BoundSelect) -> list[SelectTarget]:
    """The targets that are computed after ORDER BY, as in PostgreSQL: volatile ones run for the rows that
    are given, in their order; sets are expanded once DISTINCT ON has chosen its rows."""
    if not select.order or select.distinct == []:
        return []
    needed = {id(each.target) for each in select.order} | {id(each) for each in select.distinct or ()}
    free = [each for each in select.targets if id(each) not in needed]
    has_set = {id(each): bool(standing_for(SET, each.typed.node)) for each in select.targets}
    if any(has_set[each] for each in needed):
        return [each for each in free if not has_set[id(each)] and is_volatile(each.typed.node)]
    return [each for each in free if has_set[id(each)] or is_volatile(each.typed.node)]


def _in_order(select: BoundSelect, plan: Plan, targets: list[SelectTarget]) -> Plan:
    keys = tuple(each.key(targets) for each in select.order)
    if select.distinct == []:
        plan = Distinct(plan)
    if keys:
        plan = Sort(plan, keys)
    if select.distinct:
        plan = Distinct(plan, tuple(ColumnRef(_place(each, targets)) for each in select.distinct))
    return plan


def _finished(select: BoundSelect, plan: Plan) -> Plan:
    targets = select.targets
    plan = bind_locks.locked(plan, select.locks, targets)
    if select.limit is not None or select.offset is not None:
        has_ties = option(select.tree, "limit_option") == "LIMIT_OPTION_WITH_TIES"
        ties = tuple(each.key(targets) for each in select.order) if has_ties else ()
        plan = Limit(plan, select.limit, select.offset, ties)
    visible = [at for at, each in enumerate(targets) if not each.is_hidden]
    select.level.binding.places = [targets[at].location for at in visible]
    outputs = tuple(plan.outputs[at] for at in visible)
    return projected(plan, outputs, tuple(ColumnRef(at) for at in visible))


def _place(target: SelectTarget, targets: list[SelectTarget]) -> int:
    return next(at for at, each in enumerate(targets) if each is target)


# VALUES and set operations: rows that only ORDER BY and LIMIT are left to do something with


def _of_rows(tree: Tree, level: QueryLevel, rows: Plan, keeps_unknown: bool) -> Plan:
    columns = [
        Named(each.name, Typed(ColumnRef(at), each.type), each) for at, each in enumerate(rows.outputs)
    ]
    level.items = [Item("*SELECT*", columns, has_name=False)]
    level.row = [each.type for each in rows.outputs]
    level.outputs = list(rows.outputs)
    places = level.binding.places if len(level.binding.places) == len(columns) else [-1] * len(columns)
    targets = [
        SelectTarget(each.name, each.typed, place) for each, place in zip(columns, places, strict=True)
    ]
    select = BoundSelect(tree, level, rows, targets)
    select.order = bind_targets.order(tree.sort_clause, level, targets)
    if len(targets) > len(columns) and option(tree, "op") != "SETOP_NONE":
        raise NotSupported(
            "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            detail="Only result column names can be used, not expressions or functions.",
            hint="Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
            position=targets[len(columns)].location + 1,
        )
    _bind_limit(select)
    return _built(select, keeps_unknown)


def _values(tree: Tree, level: QueryLevel) -> Values:
    bind_locks.refuse_values(level)
    rows = value_rows(tree, level)
    trees = [each.items for each in items(tree.values_lists)]
    types = []
    for place, column in enumerate(zip(*rows, strict=True)):
        with at(odd_one([row[place] for row in trees], column)):
            types.append(common_type([each.type for each in column], "VALUES"))
    converted_rows = tuple(
        tuple(build.coerce(each, kind).node for each, kind in zip(row, types, strict=True)) for row in rows
    )
    outputs = tuple(OutputColumn(f"column{number}", kind) for number, kind in enumerate(types, 1))
    level.binding.places = [location_of(each) for each in trees[0]]
    return Values(outputs, converted_rows)


def value_rows(tree: Tree, level: QueryLevel) -> list[list[Typed]]:
    """The rows of VALUES as they are written, before their columns have one type each."""
    rows: list[list[Typed]] = []
    for each in items(tree.values_lists):
        with refusing_sets(level, "VALUES"):
            row = [level.bind(value, "VALUES") for value in each.items]
        if rows and len(row) != len(rows[0]):
            raise SyntaxFault(
                "VALUES lists must all be the same length",
                position=location_of(each.items[0]) + 1 if len(each.items) else 0,
            )
        rows.append(row)
    return rows
