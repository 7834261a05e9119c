"""ON CONFLICT: the unique indexes of a conflict target, and the action for the existing row.

Walk: `statements.dml.writes` -> `plan_conflict`; `statements.dml.writing` runs what it returns.
"""

from collections.abc import Iterable, Mapping

from tenure.base.errors import (
    InvalidColumnReference,
    NotSupported,
    SyntaxFault,
    UndefinedColumn,
    UndefinedObject,
    WrongState,
)
from tenure.catalog.accounts.privileges import SELECT, UPDATE
from tenure.catalog.descriptors.definitions import Column as TableColumn
from tenure.catalog.descriptors.definitions import Expression, Index, Table, visible
from tenure.expr.tree.cheap_expressions import cost
from tenure.expr.tree.expressions import Node, decode
from tenure.sql.bind import from_clause as bind_from
from tenure.sql.bind.locations import location_of
from tenure.sql.bind.scope import QueryLevel
from tenure.sql.bind.targets import check_boolean
from tenure.sql.execution.planner import Planner
from tenure.sql.plans.implication import implies
from tenure.sql.plans.trees import substituted
from tenure.sql.statements.dml.assignments import assignments
from tenure.sql.statements.dml.write_expressions import (
    compiled_over,
    folds_of,
    refuse_nested,
    value_or_default,
)
from tenure.sql.statements.dml.writing import Conflict
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree, child, items


def plan_conflict(planner: Planner, level: QueryLevel, table: Table, tree: Tree) -> Conflict | None:
    if planner.is_upsert:
        _require_immediate([table.index(table.primary)])
        _need_key(planner, table, [table.primary])
        for each in visible(table.columns):
            planner.names.require(table.id, UPDATE, each.id)
        return Conflict((table.primary,), overwrites=True)
    clause = child(tree, "on_conflict_clause")
    if clause is None:
        return None
    arbiters = _arbiters(planner, level, table, child(clause, "infer"))
    _need_key(planner, table, arbiters)
    if parse.option(clause, "action") == "ONCONFLICT_NOTHING":
        return Conflict(arbiters)
    if not arbiters:
        raise SyntaxFault(
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
        )
    _, proposed = bind_from.table_item(table, level, ["excluded"], None)
    proposed[0].has_columns = False
    level.items += proposed
    changes, defaults = assignments(planner, level, table, clause.target_list)
    where = child(clause, "where_clause")
    condition = None
    if where is not None:
        condition = check_boolean(level.bind(where, "WHERE"), "argument of WHERE", location_of(where)).node
    trees = [*(node for _, node in changes), *([condition] if condition is not None else [])]
    refuse_nested(trees)
    values = [value_or_default(planner, each, None) for each in defaults]
    level.items.remove(proposed[0])
    return Conflict(
        arbiters,
        (
            *((column.id, compiled_over(planner, level, node)) for column, node in changes),
            *(
                (each.id, compiled_over(planner, level, value))
                for each, value in zip(defaults, values, strict=True)
            ),
        ),
        None if condition is None else compiled_over(planner, level, condition),
        constants=folds_of(planner, trees),
        steps=cost((*trees, *values)),
    )


def _need_key(planner: Planner, table: Table, arbiters: Iterable[int]) -> None:
    """Whether a key is there is read."""
    for index in arbiters:
        for part in table.index(index).parts:
            planner.names.require(table.id, SELECT, part.column)


def _arbiters(planner: Planner, level: QueryLevel, table: Table, infer: Tree | None) -> tuple[int, ...]:
    """The unique indexes that a conflict target means; none: any of them."""
    if infer is None:
        _require_immediate(visible(table.indexes))
        return ()
    unique = [each for each in visible(table.indexes) if each.is_unique or each.id == table.primary]
    if infer.conname:
        found = [each.id for each in unique if each.name == infer.conname]
        if not found:
            raise UndefinedObject(f'constraint "{infer.conname}" for table "{table.name}" does not exist')
        _require_immediate(each for each in unique if each.id in found)
        return tuple(found)
    wanted = {_conflict_column(table, each).id for each in items(infer.index_elems)}
    where = child(infer, "where_clause")
    condition = None
    if where is not None:
        condition = check_boolean(level.bind(where, "WHERE"), "argument of WHERE", location_of(where)).node
    places = {each.origin.number: each.typed.node for each in level.items[-1].columns}
    found = [
        each.id
        for each in unique
        if {part.column for part in each.parts} == wanted
        and (each.predicate is None or _covers(each.predicate, places, condition, planner))
    ]
    if not found:
        raise InvalidColumnReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification"
        )
    _require_immediate(each for each in unique if each.id in found)
    return tuple(found)


def _require_immediate(indexes: Iterable[Index]) -> None:
    if any(each.is_deferrable for each in indexes):
        raise WrongState(
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters"
        )


def _covers(
    predicate: Expression, places: Mapping[int, Node], condition: Node | None, planner: Planner
) -> bool:
    """Whether a partial index has every row that the conflict target's WHERE is true of."""
    return implies(condition, substituted(decode(predicate.tree), places), planner.names.enum)


def _conflict_column(table: Table, element: Tree) -> TableColumn:
    if not element.name:
        raise NotSupported("ON CONFLICT on expressions is not supported")
    column = table.column_named(element.name)
    if column is None:
        raise UndefinedColumn(f'column "{element.name}" does not exist')
    return column
