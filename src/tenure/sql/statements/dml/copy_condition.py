"""COPY ... FROM STDIN WHERE: which of the client's rows are written.

The condition sees a row with its defaults, and no generated columns, which are computed later.

Walk: `statements.dml.copy` plans it with `plan_condition`, and has it choose rows by `CopyCondition.kept`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tenure.base.errors import InvalidColumnReference
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.functions.function import Context
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.expressions import ColumnRef, nodes
from tenure.expr.types.datatype import Datum
from tenure.sql.bind import binder as bind
from tenure.sql.bind import from_clause as bind_from
from tenure.sql.bind.locations import location_of
from tenure.sql.bind.targets import check_boolean
from tenure.sql.execution.planner import Planner
from tenure.sql.statements.dml.write_expressions import compiled_over
from tenure.sql.text.parse import Tree
from tenure.table.columns import Values


@dataclass(frozen=True, slots=True)
class CopyCondition:
    columns: tuple[int, ...]
    """The columns of a row, in the order in which the condition has them."""
    used: frozenset[int]
    """Those that it reads."""
    holds: Evaluate

    def kept(
        self, rows: Iterator[Values], default: Callable[[int], Datum], context: Context
    ) -> Iterator[Values]:
        """The rows that it is true of; a default that it has read is the one that is written."""
        for row in rows:
            missing = self.used - row.keys()
            whole = {**row, **{each: default(each) for each in missing}} if missing else row
            if self.holds([whole.get(each) for each in self.columns], context) is True:
                yield whole


def plan_condition(planner: Planner, table: Table, tree: Tree, where: Tree) -> CopyCondition:
    level = bind.Binder(planner.names, planner.parameters, tree).level()
    _, (item,) = bind_from.table_item(table, level, [table.name], None)
    level.items.append(item)
    condition = level.bind(where, "COPY FROM WHERE")
    node = check_boolean(condition, "argument of WHERE", location_of(where)).node
    columns = tuple(each.origin.number for each in item.columns)
    used = frozenset(columns[each.column] for each in nodes(node) if isinstance(each, ColumnRef))
    for column in table.columns:
        if column.id in used and column.generated is not None:
            raise InvalidColumnReference(
                "generated columns are not supported in COPY FROM WHERE conditions",
                detail=f'Column "{column.name}" is a generated column.',
            )
    return CopyCondition(columns, used, compiled_over(planner, level, node))
