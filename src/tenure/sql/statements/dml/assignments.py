"""SET of UPDATE and ON CONFLICT: which columns get which values.

    SET a = x, (b, c) = (y, z), (d, e) = (SELECT ...), f = DEFAULT

Walk: `statements.dml.writes` asks for `assignments`, and for one value `as_column`.
"""

from collections.abc import Sequence

from tenure.base.errors import DatatypeMismatch, GeneratedAlways, NotSupported, SyntaxFault, UndefinedColumn
from tenure.catalog.accounts.privileges import UPDATE
from tenure.catalog.descriptors.definitions import Column as TableColumn
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.tree import build
from tenure.expr.tree.build import Typed
from tenure.expr.tree.expressions import Node
from tenure.expr.tree.sequence_needs import default_needs
from tenure.expr.types.type_names import type_of
from tenure.sql.bind.locations import location_of
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.execution.planner import Planner
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree, items


def assignments(
    planner: Planner, level: QueryLevel, table: Table, targets: Sequence[Tree]
) -> tuple[list[tuple[TableColumn, Node]], list[TableColumn]]:
    """SET a = ..., (b, c) = (..., ...): the new values, and the columns set to their default."""
    values = [_set_value(parse.unwrap(target.val)) for target in items(targets)]
    # As in PostgreSQL, errors of the expression come before errors of its column.
    bound = [None if parse.kind(each) == "SetToDefault" else level.bind(each, "UPDATE") for each in values]
    changes: list[tuple[TableColumn, Node]] = []
    defaults: list[TableColumn] = []
    for target, value, typed in zip(items(targets), values, bound, strict=True):
        column = column_of(table, target)
        if column in defaults or any(column == each for each, _ in changes):
            raise SyntaxFault(f'multiple assignments to same column "{column.name}"')
        planner.names.require(table.id, UPDATE, column.id)
        if typed is None:
            defaults.append(column)
            planner.names.require_sequences(default_needs([column]))
            continue
        if column.generated is not None or column.identity == "always":
            raise GeneratedAlways(f'column "{column.name}" can only be updated to DEFAULT')
        changes.append((column, as_column(planner, column, typed, value).node))
    return changes, defaults


def _set_value(value: Tree) -> Tree:
    """One value of SET (a, b) = (x, y), which comes as a reference into the row."""
    if parse.kind(value) != "MultiAssignRef":
        return value
    source = parse.unwrap(value.source)
    if parse.kind(source) == "SubLink":
        return _part_of(source, value.colno, value.ncolumns)
    if parse.kind(source) != "RowExpr":
        raise NotSupported("SET (...) = takes a row or a subquery")
    if value.ncolumns != len(source.args):
        raise SyntaxFault("number of columns does not match number of values")
    return items(source.args)[value.colno - 1]


def _part_of(subquery: Tree, number: int, count: int) -> Tree:
    """One column of the row that a subquery gives. Simplified: the subquery is run once for each of them."""
    names = ", ".join(f"c{each}" for each in range(1, count + 1))
    wrapped = parse.expression(f"(SELECT c{number} FROM (SELECT) AS s({names}))")
    subselect = parse.unwrap(wrapped.subselect).from_clause[0].range_subselect
    subselect.subquery.CopyFrom(subquery.subselect)
    return wrapped


def column_of(table: Table, target: Tree) -> TableColumn:
    if target.indirection:
        raise NotSupported("assigning to a part of a column is not supported", position=target.location + 1)
    column = table.column_named(target.name)
    if column is None:
        raise UndefinedColumn(
            f'column "{target.name}" of relation "{table.name}" does not exist', position=target.location + 1
        )
    return column


def as_column(planner: Planner, column: TableColumn, typed: Typed, value: Tree) -> Typed:
    target = type_of(column.type, planner.names.enum)
    try:
        return build.assign(typed, target)
    except DatatypeMismatch as error:
        raise DatatypeMismatch(
            f'column "{column.name}" is of type {target.sql_name} but expression is of type '
            f"{typed.type.sql_name}",
            hint="You will need to rewrite or cast the expression.",
            position=location_of(value) + 1,
        ) from error
