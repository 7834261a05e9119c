"""One row by its key, and nothing else: the shortest way through the system.

    SELECT abalance FROM accounts WHERE aid = $1

Such a query, outside of a transaction block, needs no transaction of its own: one read of the store, which
brings the time it is as of, under the newest lease. It takes no pins; whether the lease was good for it
is asked after the read (`catalog.leases.lease_pins.LeasePins.was_good`). Where that says no, or the plan was
made under another lease, or the row is not simply there, the query goes the ordinary way.

Invariant (point-leased): a row found this way is given out only if the lease it was read under is still
the newest one, not closed, and good for the time of the read.

Walk: `sql.clients.session` asks `rows` before it opens a block; `statements.dml.queries` makes them with
`lookup_of`.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from tenure.catalog.descriptors.definitions import Table
from tenure.expr.tree.expressions import And, Call, ColumnRef, Const, ContextValue
from tenure.expr.types.datatype import Datum
from tenure.expr.types.type_names import EnumLookup, type_of
from tenure.sql.plans.plan import Access, Project, Query, Scan
from tenure.sql.session.answers import NotShort
from tenure.sql.session.inline import ROWS_BYTES_MAX
from tenure.sql.session.services import Services
from tenure.table.rows import Layout

Values = Sequence[Datum]
Rows = Sequence[Sequence[Datum]]


class PointLookup:
    """A query that is one row by its primary key, of which some columns are asked for."""

    __slots__ = ("_columns", "_layout", "_read", "_table", "_values")

    def __init__(
        self, table: Table, columns: tuple[int, ...], values: Callable[[Values], Sequence[Datum]]
    ) -> None:
        self._table = table
        self._columns = columns
        self._values = values
        self._layout: Layout | None = None
        self._read: Any = None

    def rows(
        self, services: Services, lease: Any, used_ids: Sequence[int], parameters: Values
    ) -> Rows | None:
        """None if the query has to run the ordinary way. Raises NotShort if the row is too large for the
        loop.

        `lease` and `used_ids` are what the query was planned under and over.
        """
        leases = services.leases
        newest = leases.peek()
        if newest is None or newest is not lease:
            return None
        values = self._values(parameters)
        if None in values:
            return ()
        layout = self._layout
        if layout is None:
            layout = self._compile(services)
        key = layout.primary.prefix(values)
        found = services.store.look(key)
        if found is None or not leases.was_good(newest, used_ids, found.clock_at):
            return None
        revisions = found.revisions
        if not revisions or revisions[0].value is None:
            return ()
        stored = revisions[0].value
        if len(stored) > ROWS_BYTES_MAX:
            raise NotShort
        return (self._read(key, stored),)

    def _compile(self, services: Services) -> Layout:
        layout = services.layouts.of(self._table)
        self._read = layout.reader(layout.primary, self._columns)
        self._layout = layout
        return layout


def lookup_of(query: Query, enum: EnumLookup) -> PointLookup | None:
    """The query as a lookup, if it is one: columns of one table by the whole primary key."""
    plan, picked = query.plan, None
    if isinstance(plan, Project):
        if not all(isinstance(each, ColumnRef) for each in plan.expressions):
            return None
        picked = [each.column for each in plan.expressions if isinstance(each, ColumnRef)]
        plan = plan.input
    if not isinstance(plan, Scan) or query.nested or query.shared:
        return None
    access = plan.access
    if access is None or not access.is_point or access.index != plan.table.primary:
        return None
    if any(each.type.enum for each in plan.table.columns) or not _is_implied(plan, access):
        return None
    values = _values_of(access, enum)
    # Only the selected columns are read: the condition needs no column, as the key implies it.
    columns = plan.columns if picked is None else tuple(plan.columns[each] for each in picked)
    return None if values is None else PointLookup(plan.table, columns, values)


def _is_implied(scan: Scan, access: Access) -> bool:
    """Whether the condition says no more than the key does: `key = value` in the column's own type."""
    condition = scan.condition
    if condition is None:
        return True
    conjuncts = condition.operands if isinstance(condition, And) else (condition,)
    primary = scan.table.index(scan.table.primary)
    wanted = {part.column: value for part, value in zip(primary.parts, access.prefix, strict=False)}
    for each in conjuncts:
        if not isinstance(each, Call) or not each.function.startswith("=(") or len(each.arguments) != 2:
            return False
        left, right = each.arguments
        if isinstance(right, ColumnRef):
            left, right = right, left
        if not isinstance(left, ColumnRef) or wanted.get(scan.columns[left.column]) != right:
            return False
    return True


def _values_of(access: Access, enum: EnumLookup) -> Callable[[Values], Sequence[Datum]] | None:
    """The key's values from the parameters, without evaluating anything."""
    sources: list[tuple[int, Datum]] = []
    for each in access.prefix:
        if isinstance(each, ContextValue):
            sources.append((each.number, None))
        elif isinstance(each, Const):
            sources.append((-1, type_of(each.type, enum).unpack(each.packed)))
        else:
            return None
    if all(number >= 0 for number, _ in sources):
        if len(sources) == 1:
            only = sources[0][0]
            return lambda parameters: (parameters[only],)
        return itemgetter(*(number for number, _ in sources))
    return lambda parameters: [parameters[number] if number >= 0 else value for number, value in sources]
