"""DuckDB as an accelerator of plans: which parts of a plan it takes, if any.

    Sort(avg desc)                  by rows: an average is only known when it is out of DuckDB
      Aggregate(city; avg(price))   ┐
        Join(id = customer)         │ in DuckDB, all of it one query
          Scan, Scan                ┘

The rows executor asks at each node from the top. The first one that can be rendered whole, and is worth
it, runs here; what is above it goes on by rows. Worth it: something is to be computed of many rows.
A few rows are sooner read than DuckDB is asked (a millisecond or two).

Nothing here depends on DuckDB's answers: where it fails, it answers None and the rows executor does
what it would have done, with PostgreSQL's own errors.

DuckDB, Arrow and numpy are imported when the first query needs them: a node that never runs one starts
faster and is a hundred megabytes smaller.

Walk: the session hands `Duck.taking` to its `QueryRun` -> `sql.duck.rendering.render` -> `sql.duck.engine`.
"""

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tenure.base.errors import BaseMoved, SnapshotTooOld, TenureError
from tenure.base.settings import COLUMNS_MEMORY, DUCKDB_MEMORY
from tenure.expr.functions.function import Context
from tenure.expr.tree.compiled import compile
from tenure.expr.types.type_names import EnumLookup
from tenure.kv.bases import Base, with_base
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.sql.duck.duck_types import NotShared
from tenure.sql.duck.rendering import Rendered, Used, render
from tenure.sql.plans.plan import (
    Aggregate,
    Among,
    Distinct,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Query,
    Scan,
    SetOperation,
    Sort,
    SpanEnd,
    Window,
)
from tenure.sql.plans.plan_facts import everything
from tenure.sql.rows.run import QueryRun
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.files import Files
from tenure.table.compiled_index import ScanBound as KeyBound
from tenure.table.rows import Layout

if TYPE_CHECKING:
    from tenure.sql.duck.engine import DuckEngine
    from tenure.table.columnar import Columnar, Columns

Rows: TypeAlias = Iterator[tuple[Any, ...]]

ROWS_MIN = 2_000
"""If no scan of a plan reads so many rows, the rows executor is faster."""


IDLE_SECONDS = 1.0
"""Until the first query runs here, there is nothing to keep up to date."""


class Duck:
    """One per node."""

    def __init__(
        self,
        store: Store,
        *,
        lake: Files | None = None,
        cache_bytes: int = COLUMNS_MEMORY.default,
        memory_bytes: int = DUCKDB_MEMORY.default,
    ) -> None:
        self._store = store
        self._lake = lake
        self._cache_bytes = cache_bytes
        self._memory_bytes = memory_bytes
        self._lock = store.env.lock()
        self._engine: DuckEngine | None = None
        self._columnar: Columnar | None = None
        self._large: set[int] = set()
        """Tables that were found to have many rows."""
        self.offloaded_count = 0
        self.failed_count = 0
        """How many plans ran here, and how many DuckDB could not answer after all."""

    def taking(
        self, enum: EnumLookup | None = None, *, is_forced: bool = False, is_once: bool = False
    ) -> "_Taking":
        """The callback that a `QueryRun` calls for each node; if forced, it takes over every node that it
        can.

        A caller that can start over sets `is_once`: large results come as they are made, and
        `RowsIncomplete` may end them.
        """
        return _Taking(self, enum, is_forced=is_forced, is_once=is_once)

    def step(self) -> float:
        """Keeps the columns of tables in use up to date, and loads a file that is read often: for a loop."""
        if self._engine is None or self._columnar is None:
            return IDLE_SECONDS
        if self._engine.held_files is not None:
            self._engine.held_files.step()
        return self._columnar.keep_up()

    def columns_bytes(self) -> int:
        """What tables take that are held as columns."""
        return 0 if self._columnar is None else self._columnar.held_bytes

    def engine_bytes(self) -> int:
        """What DuckDB has allocated."""
        return 0 if self._engine is None else self._engine.used_bytes()

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def answer(self, rendered: Rendered, run: QueryRun, *, is_once: bool = False) -> Rows | None:
        engine, columnar = self._engine_and_columns()
        from tenure.table.arrow import Unrepresentable

        read: dict[int, Columns] = {}

        def tables() -> "dict[int, Columns]":
            for id, used in rendered.tables.items():
                layout = run.layouts(used.table)
                within = _within(used, layout, run.context)
                read[id] = columnar.read(layout, tuple(used.columns), run.source, run.check, within)
            return read

        def has_moved() -> bool:
            return columnar.has_moved(read.values())

        try:
            ask = partial(
                engine.run, rendered, tables, run.check, has_moved, account=run.memory, is_once=is_once
            )
            rows = ask()
            while rows is None and has_moved():
                rows = ask()  # a file may have been removed
        except (Unrepresentable, NotShared, SnapshotTooOld, BaseMoved):
            rows = None  # the rows executor raises the error, if there is one
        if rows is None:
            self.failed_count += 1
        else:
            self.offloaded_count += 1
        return rows

    def reaches(self, scan: Scan, layout: Layout, context: Context) -> bool:
        """Whether a scan has so many rows to go through that it is worth the way."""
        if scan.access is None:
            if scan.table.id in self._large:
                return True
            cached_rows = None if self._columnar is None else self._columnar.rows(layout)
            is_large = cached_rows >= ROWS_MIN if cached_rows else self._has_many(layout.primary.span())
            if is_large:
                self._large.add(scan.table.id)
            return is_large
        span = _span(scan, layout, context)
        return span is not None and self._has_many(span)

    def streams(self, layout: Layout) -> bool:
        """Whether a table is too large to be held as columns."""
        return self._columnar is not None and self._columnar.is_too_large(layout)

    def base_locations(self, rendered: Rendered, run: QueryRun) -> Iterator[str]:
        """Where the rows of tables with a base lie, for EXPLAIN."""
        for used in rendered.tables.values():
            layout = run.layouts(used.table)
            base = self._store.bases.of(layout.primary.head)
            if base is not None:
                delta = None if self._columnar is None else self._columnar.delta_rows(layout)
                delta_text = "" if delta is None else f"; delta: {delta} rows"
                yield f'Base of "{used.table.name}": {base.described}{delta_text}'

    def _has_many(self, span: Span) -> bool:
        def has_many(base: Base | None) -> bool:
            return base is not None and base.rows_within(span) >= ROWS_MIN

        if with_base(self._store.bases, span.lo[:HEAD_BYTES], has_many):
            return True
        rows = self._store.snapshot().scan(span, limit=ROWS_MIN)
        return sum(1 for _ in rows) == ROWS_MIN

    def _engine_and_columns(self) -> "tuple[DuckEngine, Columnar]":
        with self._lock:
            if self._engine is None or self._columnar is None:
                from tenure.sql.duck.engine import DuckEngine
                from tenure.table.columnar import Columnar
                from tenure.table.lake.damage import damage_in

                self._engine = DuckEngine(
                    self._store.env,
                    memory_bytes=self._memory_bytes,
                    threads=max(1, (os.cpu_count() or 1) - 1),
                    lake=self._lake,
                    damage=damage_in(self._store),
                )
                self._columnar = Columnar(self._store, bytes_max=self._cache_bytes)
            return self._engine, self._columnar


class _Taking:
    def __init__(self, duck: Duck, enum: EnumLookup | None, *, is_forced: bool, is_once: bool) -> None:
        self._duck = duck
        self._enum = enum
        self._is_forced = is_forced
        self._is_once = is_once
        self._refused: set[int] = set()
        """Nodes, by identity, that are not worth offloading or cannot be rendered."""

    def __call__(self, plan: Plan, run: QueryRun) -> Rows | None:
        if id(plan) in self._refused:
            return None
        rendered = self.rendered(plan, run)
        rows = None if rendered is None else self._duck.answer(rendered, run, is_once=self._is_once)
        if rows is None:
            self._refused.add(id(plan))
        return rows

    def noted(self, plan: Plan, run: QueryRun) -> tuple[str, ...]:
        """The line of EXPLAIN for a node that DuckDB runs."""
        rendered = render(_query(run), plan, run.context, self._enum)
        return () if rendered is None else tuple(self._duck.base_locations(rendered, run))

    def rendered(self, plan: Plan, run: QueryRun) -> Rendered | None:
        """The query for DuckDB; None if the rows executor runs the node."""
        if not self._is_forced and not self._is_worth_it(plan, run):
            return None
        return render(_query(run), plan, run.context, self._enum)

    def _is_worth_it(self, plan: Plan, run: QueryRun) -> bool:
        """Whether there is something to compute, of many rows, that cannot be had of the first few."""
        nodes = list(everything(plan, _query(run)))
        if _is_lazy(plan) or not any(map(_computes, nodes)):
            return False
        scans = [(each, run.layouts(each.table)) for each in nodes if isinstance(each, Scan)]
        if not any(map(_gathers, nodes)) and any(self._duck.streams(layout) for _, layout in scans):
            return False  # rows that only pass through are streamed as well by the rows executor
        return any(self._duck.reaches(scan, layout, run.context) for scan, layout in scans)


def _query(run: QueryRun) -> Query:
    assert run.query is not None, "a run that has started"
    return run.query


def _is_lazy(plan: Plan) -> bool:
    """Whether a LIMIT stops the scan below it: then rows need not read what DuckDB would."""
    is_limited = False
    while True:
        is_limited = is_limited or (isinstance(plan, Limit) and plan.count is not None)
        if isinstance(plan, Scan):
            return is_limited
        if not isinstance(plan, Limit | Project | Filter) and not (
            isinstance(plan, Sort) and plan.is_presorted
        ):
            return False
        plan = plan.input


def _computes(plan: Plan) -> bool:
    """Whether a node gives fewer rows than it reads, or has to read all of them."""
    if isinstance(plan, Scan):
        return plan.condition is not None
    return isinstance(plan, Filter) or _gathers(plan)


def _gathers(plan: Plan) -> bool:
    """Whether a node has to read many rows before it can give one."""
    if isinstance(plan, Sort):
        return not plan.is_presorted
    return isinstance(plan, Aggregate | Distinct | Join | SetOperation | Window)


def _within(used: Used, layout: Layout, context: Context) -> Span | None:
    """The part of a table's primary index that all its scans lie in; None if that is not known."""
    spans = []
    for scan in used.scans:
        if scan is None or scan.access is None or scan.access.index != layout.primary.id:
            return None
        spans.append(_span(scan, layout, context))
    key_spans = [span for span in spans if span is not None]
    if len(key_spans) < len(spans):
        return None
    return Span(min(span.lo for span in key_spans), max(span.hi for span in key_spans))


def _span(scan: Scan, layout: Layout, context: Context) -> Span | None:
    """The keys that a scan along an index goes through; None if they are surely few."""
    access = scan.access
    assert access is not None
    if access.is_point or any(isinstance(each, Among) for each in access.prefix):
        return None

    def value(node: Any) -> Any:
        return compile(node, {})((), context)

    def bound(end: SpanEnd | None) -> KeyBound | None:
        return None if end is None else KeyBound((value(end.value),), end.is_inclusive)

    try:
        prefix = tuple(value(each) for each in access.prefix)
        return layout.indexes[access.index].span(prefix, start=bound(access.start), end=bound(access.end))
    except TenureError:
        return None
