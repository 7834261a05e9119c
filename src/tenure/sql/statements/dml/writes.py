"""INSERT, UPDATE, DELETE and UPSERT: planned from their parse trees.

    UPDATE t SET a = u.b FROM u WHERE t.id = u.id RETURNING t.a, u.c

    Project(t's primary key; new values; t's and u's columns, for RETURNING)
      Filter(t.id = u.id)
        Join(Scan t, Scan u)

The reading part is a plan like any other; the writing part is in `statements.dml.writing`.

Walk: `statements.statement_table` -> `plan_insert`, `plan_update`, `plan_delete` -> the binder ->
`sql.access.planner`.
"""

from collections.abc import Callable, Sequence

from tenure.base.errors import (
    DuplicateColumn,
    GeneratedAlways,
    InsufficientPrivilege,
    NotSupported,
    StringTooLong,
    SyntaxFault,
    WrongObjectType,
)
from tenure.catalog.accounts.privileges import DELETE, INSERT, UPDATE
from tenure.catalog.descriptors.definitions import Column as TableColumn
from tenure.catalog.descriptors.definitions import EnumType, Table, visible
from tenure.expr.tree.build import Typed
from tenure.expr.tree.cheap_expressions import cost
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.compiled import check, compile
from tenure.expr.tree.expressions import ColumnRef, Node
from tenure.expr.tree.folding import is_lazy
from tenure.expr.tree.sequence_needs import default_needs
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.access import planner as access
from tenure.sql.bind import binder as bind
from tenure.sql.bind import from_clause as bind_from
from tenure.sql.bind import with_clause as bind_with
from tenure.sql.bind.locations import location_of
from tenure.sql.bind.relations import Relation, VirtualTable
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.bind.targets import check_boolean
from tenure.sql.execution.planner import Planner
from tenure.sql.plans.plan import (
    Among,
    Filter,
    Join,
    JoinKind,
    OutputColumn,
    Plan,
    Project,
    Query,
    Scan,
    Values,
    walk,
)
from tenure.sql.plans.plan_facts import is_bounded
from tenure.sql.rows import runner as rows
from tenure.sql.session.inline import disturbs_others, is_cheap_write, trees_of
from tenure.sql.statements.dml.assignments import as_column, assignments, column_of
from tenure.sql.statements.dml.on_conflict import plan_conflict
from tenure.sql.statements.dml.past_blocks import refuse_locks
from tenure.sql.statements.dml.returning import plan_returning
from tenure.sql.statements.dml.write_expressions import folds_of, value_or_default
from tenure.sql.statements.dml.writing import Conflict, Insert, InsertedValues, PastRows, Returning, RowChange
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree, child, items

# INSERT


def plan_insert(planner: Planner, tree: Tree, *, reading: "Planner | None" = None) -> Insert:
    """`reading` plans the query whose rows are inserted, where that is one of the past."""
    binder = bind.Binder(planner.names, planner.parameters, tree)
    level = binder.level()
    if parse.has(tree, "with_clause"):
        bind_with.declare(tree.with_clause, level)
    table = _target(planner, tree.relation, INSERT)
    targets = _insert_targets(table, tree)
    override = parse.option(tree, "override")
    source = child(tree, "select_stmt")
    source_rows: InsertedValues | Query | PastRows
    if reading is not None:
        source_rows, targets = _selected_then(planner, reading, targets, tree, override=override)
    elif source is not None and len(source.values_lists) > 0 and not _is_decorated(source):
        source_rows = _values_rows(planner, level, table, targets, source, override)
        if not tree.cols:
            targets = targets[: _width(source)]
    elif source is not None:
        source_rows, targets = _selected(
            planner, binder, level, targets, source, is_named=bool(tree.cols), override=override
        )
    else:
        source_rows, targets = InsertedValues(((),)), []
    _check_insertable(tree, targets, source)
    for each in targets:
        planner.names.require(table.id, INSERT, each.id)
    left = [each for each in visible(table.columns) if each not in targets]
    planner.names.require_sequences(default_needs(left))
    if isinstance(source_rows, InsertedValues) and len(source_rows.rows) == 1:
        source_rows, targets = _in_order(table, source_rows, targets)
    runner = (
        rows.compile(access.with_access(source_rows), planner.names.enum)
        if isinstance(source_rows, Query)
        else source_rows
    )
    scan, item = bind_from.table_item(table, level, [table.name], child(tree.relation, "alias"))
    level.items += item
    conflict = plan_conflict(planner, level, table, tree)
    returning = plan_returning(planner, level, table, tree)
    is_small = isinstance(source_rows, InsertedValues) and len(source_rows.rows) <= SHORT_ROWS_MAX
    return Insert(
        table,
        tuple(each.id for each in targets),
        runner,
        not isinstance(source_rows, Query) or is_bounded(source_rows.plan, source_rows),
        planner.parameters.types(),
        scan.columns,
        conflict,
        returning,
        is_small=is_small,
        is_short=is_small
        and isinstance(source_rows, InsertedValues)
        and _is_cheap_insert(table, source_rows, conflict, returning),
    )


def _is_cheap_insert(
    table: Table, rows: InsertedValues, conflict: Conflict | None, returning: Returning | None
) -> bool:
    if conflict is not None and (conflict.changes or conflict.overwrites):
        changed = None if conflict.changes is None else [id for id, _ in conflict.changes]
        if disturbs_others(table, changed):
            return False
    per_row = sum(each.steps for each in (conflict, returning) if each is not None)
    return is_cheap_write(table, rows.steps, rows=len(rows.rows), per_row=per_row)


SHORT_ROWS_MAX = 20
"""Rows of VALUES that are written on the door's loop: more would hold other clients up."""


def _target(planner: Planner, tree: Tree, privilege: int) -> Table:
    path = [each for each in (tree.catalogname, tree.schemaname, tree.relname) if each]
    relation = planner.names.target(path, tree.location + 1, privilege)
    refuse_system(relation)
    if not isinstance(relation, Table):
        raise WrongObjectType(f'cannot change relation "{path[-1]}": it is not a table')
    return relation


def refuse_system(relation: Relation) -> None:
    """Refuses writes to a system table."""
    if isinstance(relation, VirtualTable):
        raise InsufficientPrivilege(f'permission denied: "{relation.name}" is a system catalog')


def _shown(table: Table) -> list[TableColumn]:
    return [each for each in visible(table.columns) if not each.is_hidden]


def _insert_targets(table: Table, tree: Tree) -> list[TableColumn]:
    if not tree.cols:
        return _shown(table)
    found: list[TableColumn] = []
    for each in items(tree.cols):
        column = column_of(table, each)
        if column in found:
            raise DuplicateColumn(
                f'column "{each.name}" specified more than once', position=each.location + 1
            )
        found.append(column)
    return found


def _is_decorated(select: Tree) -> bool:
    """VALUES with ORDER BY, LIMIT or WITH is a query."""
    return bool(
        select.sort_clause or select.HasField("limit_count") or select.HasField("limit_offset")
    ) or select.HasField("with_clause")


def _width(select: Tree) -> int:
    return len(parse.unwrap(select.values_lists[0]).items)


def _values_rows(
    planner: Planner,
    level: QueryLevel,
    table: Table,
    targets: Sequence[TableColumn],
    select: Tree,
    override: str,
) -> "InsertedValues | Query":
    """INSERT ... VALUES: an expression per column, read as the column's type."""
    bound: list[list[Node | None]] = []
    too_long: StringTooLong | None = None
    for each in items(select.values_lists):
        row = items(each.items)
        if len(row) != _width(select):
            raise SyntaxFault("VALUES lists must all be the same length", position=location_of(row[0]) + 1)
        if len(row) > len(targets):
            raise SyntaxFault(
                "INSERT has more expressions than target columns",
                position=location_of(row[len(targets)]) + 1,
            )
        # As in PostgreSQL, errors of the expression come before errors of its column.
        with level.binding_of("VALUES"):
            typed = [
                None if parse.kind(value) == "SetToDefault" else level.expression(value) for value in row
            ]
        by_default = [column for column, each in zip(targets, typed, strict=False) if each is None]
        planner.names.require_sequences(default_needs(by_default))
        try:
            bound.append(
                [
                    None if each is None else _assigned(planner, column, each, value, override)
                    for column, each, value in zip(targets, typed, row, strict=False)
                ]
            )
        except StringTooLong as error:
            too_long = too_long or error
    if too_long is not None:
        # Row lengths are checked after binding: errors of a later row come first.
        raise too_long
    if not level.binding.nested:
        compiled = [
            tuple(None if node is None else compile(node, {}, planner.names.enum) for node in row)
            for row in bound
        ]
        lazy_nodes = [node for row in bound for node in row if node is not None and is_lazy(node)]
        steps = cost(node for row in bound for node in row if node is not None)
        return InsertedValues(tuple(compiled), folds_of(planner, lazy_nodes), steps)
    outputs = tuple(
        OutputColumn(each.name, type_of(each.type, planner.names.enum)) for each in targets[: _width(select)]
    )
    complete = tuple(
        tuple(value_or_default(planner, column, node) for column, node in zip(targets, row, strict=False))
        for row in bound
    )
    return level.binding.finished(Values(outputs, complete))


def _in_order(
    table: Table, rows: InsertedValues, targets: Sequence[TableColumn]
) -> tuple[InsertedValues, list[TableColumn]]:
    """One row is evaluated in the order of the table's columns; of several, as they are written."""
    (row,) = rows.rows
    pairs = sorted(zip(targets, row, strict=True), key=lambda each: table.columns.index(each[0]))
    return rows._replace(rows=(tuple(value for _, value in pairs),)), [column for column, _ in pairs]


def _assigned(planner: Planner, column: TableColumn, typed: Typed, value: Tree, override: str) -> Node | None:
    """An expression as a column's new value; None if the default comes instead."""
    _check_writable(column, override)
    node = as_column(planner, column, typed, value).node
    return None if _is_overridden(column, override) else node


def _is_overridden(column: TableColumn, override: str) -> bool:
    """OVERRIDING USER VALUE: the value for an identity column is ignored."""
    return bool(column.identity) and override == USER_VALUE


def _selected(
    planner: Planner,
    binder: bind.Binder,
    level: QueryLevel,
    targets: Sequence[TableColumn],
    select: Tree,
    *,
    is_named: bool,
    override: str,
) -> tuple[Query, list[TableColumn]]:
    """A query's rows as new rows, and the columns that it fills."""
    plan = binder.query(select, level, keeps_unknown=True)
    filled = _filled(planner, targets, plan.outputs, select, is_named=is_named, override=override)
    outputs = tuple(OutputColumn(column.name, typed.type) for column, typed in filled)
    project = Project(outputs, plan, tuple(typed.node for _, typed in filled))
    return level.binding.finished(project), [column for column, _ in filled]


def _filled(
    planner: Planner,
    targets: Sequence[TableColumn],
    outputs: Sequence[OutputColumn],
    select: Tree,
    *,
    is_named: bool,
    override: str,
) -> list[tuple[TableColumn, Typed]]:
    """The columns that a query's rows fill, each with its value over such a row."""
    if len(outputs) > len(targets):
        raise SyntaxFault("INSERT has more expressions than target columns", position=location_of(select) + 1)
    if is_named and len(outputs) < len(targets):
        raise SyntaxFault("INSERT has more target columns than expressions")
    filled: list[tuple[TableColumn, Typed]] = []
    for at, (output, column) in enumerate(zip(outputs, targets, strict=False)):
        _check_writable(column, override)
        typed = as_column(planner, column, Typed(ColumnRef(at), output.type), select)
        if not _is_overridden(column, override):
            filled.append((column, typed))
    return filled


def _selected_then(
    planner: Planner, reading: Planner, targets: Sequence[TableColumn], tree: Tree, *, override: str
) -> tuple[PastRows, list[TableColumn]]:
    """As `_selected`, of the past: the query is bound to the catalog of then, its values to today's table."""
    select = child(tree, "select_stmt")
    if select is None or (select.values_lists and not _is_decorated(select)):
        raise NotSupported("AS OF SYSTEM TIME is not supported without a query that reads the past")
    if parse.has(tree, "with_clause"):
        raise NotSupported(
            "AS OF SYSTEM TIME is not supported with WITH before INSERT",
            hint="Write WITH behind INSERT INTO, as a part of the query.",
        )
    binder = bind.Binder(reading.names, planner.parameters, tree)
    query = access.with_access(binder.finished(binder.query(select, keeps_unknown=True)))
    refuse_locks(query)
    outputs = query.plan.outputs
    filled = _filled(planner, targets, outputs, select, is_named=bool(tree.cols), override=override)
    types = {at: each.type for at, each in enumerate(outputs)}
    values = tuple(compile(typed.node, types, _enum_of(planner, reading)) for _, typed in filled)
    runner = rows.compile(query, reading.names.enum)
    return PastRows(runner, reading.block, values), [column for column, _ in filled]


def _enum_of(planner: Planner, reading: Planner) -> Callable[[int], EnumType]:
    """An enum as it is now, or as it was if it is gone: values of either are converted."""

    def enum(id: int) -> EnumType:
        names = reading.names if planner.names.descriptor(id) is None else planner.names
        return names.enum(id)

    return enum


def _check_insertable(tree: Tree, targets: Sequence[TableColumn], source: Tree | None) -> None:
    if tree.cols and source is not None and source.values_lists and _width(source) < len(targets):
        raise SyntaxFault(
            "INSERT has more target columns than expressions",
            position=items(tree.cols)[_width(source)].location + 1,
        )


SYSTEM_VALUE, USER_VALUE = "OVERRIDING_SYSTEM_VALUE", "OVERRIDING_USER_VALUE"


def _check_writable(column: TableColumn, override: str) -> None:
    if column.generated is not None:
        raise GeneratedAlways(
            f'cannot insert a non-DEFAULT value into column "{column.name}"',
            detail=f'Column "{column.name}" is a generated column.',
        )
    if column.identity == "always" and override not in (SYSTEM_VALUE, USER_VALUE):
        raise GeneratedAlways(
            f'cannot insert a non-DEFAULT value into column "{column.name}"',
            detail=f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            hint="Use OVERRIDING SYSTEM VALUE to override.",
        )


# UPDATE and DELETE


def plan_update(planner: Planner, tree: Tree) -> RowChange:
    return _plan_change(planner, tree, tree.from_clause, tree.target_list)


def plan_delete(planner: Planner, tree: Tree) -> RowChange:
    return _plan_change(planner, tree, tree.using_clause, None)


def _plan_change(
    planner: Planner, tree: Tree, sources: Sequence[Tree], targets: Sequence[Tree] | None
) -> RowChange:
    binder = bind.Binder(planner.names, planner.parameters, tree)
    level = binder.level()
    if parse.has(tree, "with_clause"):
        bind_with.declare(tree.with_clause, level)
    table = _target(planner, tree.relation, DELETE if targets is None else UPDATE)
    scan, (item,) = bind_from.table_item(table, level, [table.name], child(tree.relation, "alias"))
    level.items.append(item)
    plan: Plan = scan
    if len(sources):
        item.hide_from_laterals()
        plan = Join(JoinKind.INNER, scan, bind_from.bind(sources, level))
    where = child(tree, "where_clause")
    if where is not None:
        condition = check_boolean(level.bind(where, "WHERE"), "argument of WHERE", location_of(where))
        plan = Filter(plan, condition.node)
    changes, defaults = ([], []) if targets is None else assignments(planner, level, table, targets)
    changes.sort(key=lambda each: table.columns.index(each[0]))
    joined_width = len(level.row)
    returning = plan_returning(planner, level, table, tree)
    primary = [part.column for part in table.index(table.primary).parts]
    keys = [ColumnRef(scan.columns.index(id)) for id in primary]
    joined = [ColumnRef(at) for at in range(joined_width)] if returning is not None else []
    everything = (*keys, *(node for _, node in changes), *joined)
    outputs = tuple(OutputColumn(f"c{at}", _type(level, each)) for at, each in enumerate(everything))
    query = access.with_access(level.binding.finished(Project(outputs, plan, everything)))
    point = _point(planner, query, table)
    changed = (
        None if targets is None else [each.id for each in (*(column for column, _ in changes), *defaults)]
    )
    is_cheap = (
        point is not None
        and not disturbs_others(table, changed)
        and is_cheap_write(table, cost(trees_of(query)), per_row=0 if returning is None else returning.steps)
    )
    return RowChange(
        table,
        rows.compile(query, planner.names.enum),
        is_bounded(query.plan, query),
        len(keys),
        planner.parameters.types(),
        scan.columns,
        targets=None if targets is None else tuple(column.id for column, _ in changes),
        defaults=tuple(each.id for each in defaults),
        point=point,
        returning=returning,
        is_short=is_cheap,
    )


def _type(level: QueryLevel, node: Node) -> Type:
    return check(node, dict(enumerate(level.row)), level.names.enum)


def _point(planner: Planner, query: Query, table: Table) -> tuple[Evaluate, ...] | None:
    """The primary key that the statement names, if it names one row and reads nothing else."""
    scans = [each for each in walk(query.plan) if isinstance(each, Scan)]
    if (
        query.nested
        or query.shared
        or len(scans) != 1
        or any(isinstance(each, Join) for each in walk(query.plan))
    ):
        return None
    way = scans[0].access
    if way is None or not way.is_point or way.index != table.primary:
        return None
    if any(isinstance(each, Among) for each in way.prefix):
        return None
    return tuple(compile(each, {}, planner.names.enum) for each in way.prefix if not isinstance(each, Among))
