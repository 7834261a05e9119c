"""A table that is scanned again for each outer value: its rows are held in a hash table by the compared
column.

    SELECT id, EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.n > a.n) OR a.x FROM a

Without an index, a subquery that is no join would read all of b for each outer value. So a scan that was read
to its end once, and starts again, keeps its rows by b.k. After that only rows with an equal key are tried,
with the whole condition. A scan that always ends early, as under EXISTS, is not kept.

Rows that do not fit into the query's memory are not held: then each run reads them, as before.

Walk: `sql.rows.scan` asks `repeated_scan` when it compiles a scan, and `RepeatedScan.rows` when one is run.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.base.errors import OutOfMemory
from tenure.base.memory import Holding
from tenure.expr.tree.expressions import ColumnRef, ContextValue, Node
from tenure.expr.types.datatype import Type
from tenure.sql.plans.plan import Scan
from tenure.sql.plans.trees import compares_as_is, comparison, conjuncts, is_volatile
from tenure.sql.rows.ordering import comparable_of
from tenure.sql.rows.run import Compiler, QueryRun, Rows, Tuple, batches

HELD_SHARE = 4
"""One table may take this fraction (1/n) of the query's memory."""


def repeated_scan(plan: Scan, types: Mapping[int, Type], compiler: Compiler) -> "RepeatedScan | None":
    """None if there is no outer value that a column must be equal to, or an index that leads to the rows."""
    outer = compiler.free.givens(plan)
    if plan.access is not None or plan.condition is None or not outer or is_volatile(plan.condition):
        return None
    ties = [tie for each in conjuncts(plan.condition) if (tie := _tie(each, outer)) is not None]
    return RepeatedScan(ties, types) if ties else None


def _tie(tree: Node, outer: frozenset[int]) -> tuple[int, int] | None:
    """The column and the outer value that an equality compares; casts may fail, so there are none."""
    found = comparison(tree)
    if found is None or found.sign != "=" or not compares_as_is(found.families):
        return None
    for each in (found, found.turned):
        if (
            isinstance(each.left, ColumnRef)
            and isinstance(each.right, ContextValue)
            and each.right.number in outer
        ):
            return each.left.column, each.right.number
    return None


@dataclass(slots=True)
class _State:
    """The state of a scan in one run."""

    was_whole: bool = False
    """Whether it has been read to its end."""
    is_too_large: bool = False
    table: dict[Tuple, list[Tuple]] | None = None
    holding: Holding | None = None


class RepeatedScan:
    def __init__(self, ties: Sequence[tuple[int, int]], types: Mapping[int, Type]) -> None:
        self._columns = [column for column, _ in ties]
        self._givens = [number for _, number in ties]
        self._comparables = [comparable_of(types[column]) or _same for column in self._columns]

    def rows(self, run: QueryRun, read: Callable[[], Rows]) -> Iterable[Tuple]:
        """The rows that may satisfy the condition, or all; `read` gives them of the store."""
        state: _State = run.scans.setdefault(id(self), _State())
        if state.was_whole and state.table is None and not state.is_too_large:
            self._hold(run, state, read())
        if state.table is None:
            return _noting_end(read(), state)
        return state.table.get(self._key([run.context_values[number] for number in self._givens]), ())

    def _hold(self, run: QueryRun, state: _State, rows: Rows) -> None:
        holding = Holding(run.memory, "a table that is read again and again")
        table: defaultdict[Tuple, list[Tuple]] = defaultdict(list)
        columns = self._columns
        try:
            for batch in batches(run, rows):
                holding.hold(batch)
                if holding.held_bytes * HELD_SHARE > run.memory.limit_bytes:
                    raise OutOfMemory("a table that is not held")
                for row in batch:
                    table[self._key([row[column] for column in columns])].append(row)
        except OutOfMemory:
            holding.give_back()
            state.is_too_large = True
            return
        # NULL is equal to nothing: rows with one are found by no outer value, and no row by a NULL.
        state.table = {key: found for key, found in table.items() if None not in key}
        state.holding = holding

    def _key(self, values: Sequence[Any]) -> Tuple:
        return tuple([of(value) for of, value in zip(self._comparables, values, strict=True)])


def _same(value: Any) -> Any:
    return value


def _noting_end(rows: Rows, state: _State) -> Iterator[Tuple]:
    yield from rows
    state.was_whole = True
