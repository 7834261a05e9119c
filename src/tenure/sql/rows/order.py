"""Sort and Limit: rows in order, and only so many of them.

A Sort below a Limit keeps no more rows than the Limit asks for: whenever twice as many have come
together, the worse half goes.

Walk: `sql.rows.runner` makes these; `sql.rows.ordering` compares.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from tenure.base.errors import NegativeLimit, NegativeOffset
from tenure.base.memory import Holding
from tenure.base.sizes import size_of_rows
from tenure.sql.plans.plan import Limit, Sort
from tenure.sql.rows.ordering import key_of, sorter
from tenure.sql.rows.run import (
    BATCH_BYTES_MAX,
    BATCH_ROWS,
    Compiler,
    QueryRun,
    RowNode,
    Rows,
    Tuple,
    batches,
    gather,
    types_of,
)

KEPT_ROWS_MAX = 10_000
"""Above this a Limit does not change how a Sort works: sorting again and again would cost more."""


class SortRows(RowNode):
    def __init__(self, plan: Sort, compiler: Compiler) -> None:
        self.plan: Sort = plan
        self._input = compiler.node(plan.input)
        self._sort = sorter(plan.keys, types_of(plan.input.outputs), compiler)

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        if self.plan.is_presorted:
            # An input that DuckDB runs would not keep the index's order.
            return self._input.start(replace(run, instead=None), wanted)
        return self._sorted(run, wanted)

    def _sorted(self, run: QueryRun, wanted: int | None) -> Rows:
        with run.memory.holding("a sort") as holding:
            rows = self._input.start(run)
            if wanted is None or wanted > KEPT_ROWS_MAX:
                yield from self._sort(gather(run, rows, holding), run.context)
            else:
                yield from self._first(run, rows, wanted, holding)

    def _first(self, run: QueryRun, rows: Iterable[Tuple], wanted: int, holding: Holding) -> list[Tuple]:
        kept: list[Tuple] = []
        kept_bytes = 0
        for batch in batches(run, rows):
            holding.hold(batch)
            kept = self._sort(kept + batch, run.context)[:wanted]
            if len(kept) <= BATCH_ROWS or holding.held_bytes > 2 * kept_bytes + BATCH_BYTES_MAX:
                # Most of the rows may be gone; measuring all of them each time would take long.
                kept_bytes = size_of_rows(kept)
                holding.replace(kept_bytes)
        return kept


class LimitRows(RowNode):
    def __init__(self, plan: Limit, compiler: Compiler) -> None:
        self.plan: Limit = plan
        self._input = compiler.node(plan.input)
        self._count = None if plan.count is None else compiler.evaluate(plan.count, {})
        self._offset = None if plan.offset is None else compiler.evaluate(plan.offset, {})
        nodes = [key.node for key in plan.ties]
        self._tie = key_of(nodes, types_of(plan.input.outputs), compiler) if nodes else None

    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows:
        offset = (None if self._offset is None else self._offset((), run.context)) or 0
        count = None if self._count is None else self._count((), run.context)
        if offset < 0:
            raise NegativeOffset("OFFSET must not be negative")
        if count is not None and count < 0:
            raise NegativeLimit("LIMIT must not be negative")
        if count is None:
            needed = None if wanted is None else wanted + offset
            return islice(self._input.start(run, needed), offset, None)
        if self._tie is not None:
            return self._with_ties(run, count, offset)
        count = count if wanted is None else min(count, wanted)
        if count == 0:
            return iter(())
        return islice(self._input.start(run, offset + count), offset, offset + count)

    def _with_ties(self, run: QueryRun, count: int, offset: int) -> Rows:
        assert self._tie is not None
        if count == 0:
            return
        rows = islice(self._input.start(run), offset, None)
        last = None
        for number, row in enumerate(rows, 1):
            if number > count and self._tie(row, run.context) != last:
                return
            if number == count:
                last = self._tie(row, run.context)
            yield row
