"""Statements that may run on the door's loop: provably cheap ones, over inputs of bounded size.

    what is evaluated   what is in `expr.tree.cheap_expressions`, STEPS_MAX steps in all
    parameters          INPUT_BYTES_MAX bytes of Bind, as many of the statement's text
    rows that are read  KEYS_MAX keys, ROWS_BYTES_MAX bytes of what is stored under them
    rows written        ENTRIES_MAX entries of indexes; none of another table but what a foreign key looks up

A statement of a table evaluates more than it says: defaults, generated columns, CHECKs and the conditions of
partial indexes belong to what is counted. Rows that other tables' foreign keys act on are never counted: such
statements leave the loop.

All limits but that of the rows read are checked when the statement is planned. Rows are measured while they
are read, before they are decoded: if they are too large, `NotShort` is raised, and the statement is undone.

Walk: `statements.dml.queries` asks `is_cheap_query` and `statements.dml.writes` asks `is_cheap_write` when
they plan; `statements.dml.queries` and `statements.dml.writing` count with a `RowsBudget`;
`pgwire.conversation` takes the limits of what comes in.
"""

from collections.abc import Iterable, Iterator
from math import prod

from tenure.catalog.descriptors.definitions import Expression, Table
from tenure.expr.tree.cheap_expressions import cost
from tenure.expr.tree.expressions import Node, decode
from tenure.sql.plans.plan import Access, Among, Query, Scan, access_nodes, expressions
from tenure.sql.plans.plan_facts import everything, is_point_query
from tenure.sql.session.answers import NotShort

STEPS_MAX = 1_000
"""Steps of `expr.tree.cheap_expressions`: 40 ms in the worst case, some microseconds for ordinary values."""

INPUT_BYTES_MAX = 8 * 1024
"""The bytes of a Bind message, and of a statement's text: reading so much JSON takes 10 ms."""

KEYS_MAX = 20
"""The keys that one statement looks up: each takes some 20 microseconds."""

ROWS_BYTES_MAX = 16 * 1024
"""The bytes of stored rows that one statement reads."""

ENTRIES_MAX = 200
"""The index entries that one statement writes: each takes some 20 microseconds."""


def is_cheap_query(query: Query) -> bool:
    """Whether it looks up few keys, and does little with what it finds."""
    if not is_point_query(query):
        return False
    keys = keys_of(query)
    return keys <= KEYS_MAX and cost(trees_of(query)) * keys <= STEPS_MAX


def trees_of(query: Query) -> list[Node]:
    """All that a query without subqueries evaluates."""
    inside = everything(query.plan, query)
    found = [tree for each in inside for tree in (*expressions(each), *access_nodes(each))]
    return [*found, *query.constants]


def keys_of(query: Query) -> int:
    scans = [each for each in everything(query.plan, query) if isinstance(each, Scan)]
    return prod(_keys_of(each.access) for each in scans if each.access is not None)


def _keys_of(access: Access) -> int:
    """How many keys it looks up; too many for an array, whose length is known only when it runs."""
    if any(isinstance(each, Among) and each.array is not None for each in access.prefix):
        return KEYS_MAX + 1
    return prod(max(1, len(each.items)) for each in access.prefix if isinstance(each, Among))


def is_cheap_write(table: Table, steps: int, *, rows: int = 1, per_row: int = 0) -> bool:
    """Whether writing so many rows is cheap, with all that the table does by itself.

    `steps` are those of the statement as a whole, `per_row` those that come with every row.
    """
    steps += rows * (per_row + cost(_of_table(table)))
    return rows * len(table.indexes) <= ENTRIES_MAX and steps <= STEPS_MAX


def _of_table(table: Table) -> Iterator[Node]:
    """The expressions evaluated for each written row; defaults count even if a value is given."""
    stored: list[Expression | None] = []
    for column in table.columns:
        stored += (column.default, column.generated, column.computed, column.reverse)
    stored += (index.predicate for index in table.indexes)
    stored += (check.expression for check in table.checks)
    for each in stored:
        if each is not None and each.tree:
            yield decode(each.tree)


def disturbs_others(table: Table, changed: Iterable[int] | None) -> bool:
    """Whether foreign keys that lead to this table may act, or be looked at, when rows of it change or go.

    `changed`: the columns that get other values; None: rows are deleted. What foreign keys lead to are keys.
    """
    if not table.inbound:
        return False
    keys = {part.column for index in table.indexes for part in index.parts if _is_key(table, index.id)}
    return changed is None or not keys.isdisjoint(changed)


def _is_key(table: Table, index: int) -> bool:
    return index == table.primary or table.index(index).is_unique


class RowsBudget:
    """How much of what is stored one statement may still read on the loop."""

    __slots__ = ("_read_bytes",)

    def __init__(self) -> None:
        self._read_bytes = 0

    def spend(self, count: int) -> None:
        self._read_bytes += count
        check_rows_bytes(self._read_bytes)


def check_rows_bytes(count: int) -> None:
    """Raises NotShort if the rows that a statement has read on the loop are too large to go on there."""
    if count > ROWS_BYTES_MAX:
        raise NotShort
