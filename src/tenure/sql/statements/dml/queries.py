"""SELECT, VALUES and TABLE: a plan, compiled once, run by the rows executor with DuckDB's help.

A query that is bounded (it looks up keys, or reads system tables) runs on rows alone; for any other
one DuckDB is asked at each node of the plan whether it takes it over.

A query that is fetched in parts gives the rows of its opening, under both executors: tables are read
through a view (`Execution.source`), and system tables, which have no past, are read at once. FOR UPDATE finds
and locks its rows at once; one that the transaction itself has changed since is left out.

Walk: `statements.statement_table` -> `plan` -> `sql.bind` -> `sql.access` -> `sql.rows.runner`; `run` ->
`sql.rows.run`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenure.base.errors import PlanChanged
from tenure.base.memory import Holding
from tenure.expr.types.datatype import Type
from tenure.sql.access import planner as access
from tenure.sql.bind import binder as bind
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.point_lookup import PointLookup, lookup_of
from tenure.sql.execution.row_locking import Passing, settled
from tenure.sql.execution.statement import ReadOnlyStatement, Result
from tenure.sql.plans.plan import Lock, OutputColumn, Query, Virtual
from tenure.sql.plans.plan_facts import everything, is_bounded
from tenure.sql.rows import runner as rows
from tenure.sql.rows.run import QueryRun, Tuple
from tenure.sql.rows.runner import CompiledQuery
from tenure.sql.session.answers import ResultColumn
from tenure.sql.session.inline import RowsBudget, is_cheap_query
from tenure.sql.session.past_moments import read_past
from tenure.sql.statements.dml import past_blocks
from tenure.sql.text import as_of
from tenure.sql.text.parse import Tree


@dataclass(frozen=True, slots=True)
class Select(ReadOnlyStatement):
    query: Query
    runner: CompiledQuery
    columns: tuple[ResultColumn, ...]
    parameters: tuple[Type, ...]
    is_short: bool
    is_bounded: bool
    locks: bool = False
    """Whether FOR UPDATE or FOR SHARE is anywhere in it."""
    reads_system: bool = False
    """Whether a system table is anywhere in it."""
    lookup: PointLookup | None = None
    """The point lookup, if the query reads one row by its key."""
    is_kept: bool = True
    tag: str = "SELECT"

    @property
    def point_lookup(self) -> PointLookup | None:
        return self.lookup

    def run(self, execution: Execution) -> Result:
        if not self.locks:
            execution.block.start_finding()
        return Result(self.tag, self.rows(execution), counts=True)

    def rows(self, execution: Execution) -> Iterator[Tuple]:
        if self.locks:
            return self._locked(execution)
        execution.block.note_query()
        rows = self.runner.rows(run_of(execution, None if self.is_bounded else self.query))
        # Inline, all of the few rows are read at once: a query that turns out not to be short must have given
        # none.
        is_whole = execution.inline or (execution.stays and self.reads_system)
        return iter(list(rows)) if is_whole else rows

    def _locked(self, execution: Execution) -> Iterator[Tuple]:
        """FOR UPDATE: all of it, found and locked."""
        execution.block.txn("SELECT FOR UPDATE")

        def find(passing: Passing) -> list[tuple[Tuple, Sequence[bytes]]]:
            rows = self.runner.rows(run_of(execution, passing=passing))
            locked.give_back()
            found: list[tuple[Tuple, Sequence[bytes]]] = []
            for row in rows:
                locked.add(row)
                found.append((row, passing.keys_of_row()))
            return found

        locked = Holding(execution.account, "the rows it locks")
        found = settled(execution, self.query, find)
        if not execution.stays:
            return iter([row for row, _ in found])
        view = execution.block.use.txn.view()
        return (row for row, keys in found if not any(map(view.has_changed, keys)))


def run_of(execution: Execution, query: Query | None = None, passing: Passing | None = None) -> QueryRun:
    """One run of a plan in this execution; DuckDB may take over parts of `query`, `passing` sees what is
    to be locked."""
    session, block = execution.session, execution.block
    duck, tables = session.duck, session.system_tables
    executor = session.variables["tenure.executor"]
    budget = RowsBudget() if execution.inline else None
    run = QueryRun(
        context=execution.context,
        source=execution.source if passing is None else block.source,  # locking reads the current rows
        layouts=block.layout,
        virtual=lambda key, sought: tables.rows(key, execution, sought),
        check=execution.check,
        memory=execution.account,
        lock=None if passing is None else passing.passes,
        read=None if budget is None else budget.spend,
    )
    if query is not None and duck is not None and executor != "rows":
        run.instead = duck.taking(
            block.enum, is_forced=executor == "duckdb", is_once=execution.can_start_over
        )
    return run


@dataclass(frozen=True, slots=True)
class SelectAsOf:
    """A query of the past: planned for the catalog as it was then, when the moment is known."""

    text: str
    tree: Tree
    operand: str
    columns: tuple[ResultColumn, ...]
    parameters: tuple[Type, ...]
    is_short: bool = False
    is_kept: bool = False

    def run(self, execution: Execution) -> Result:
        return Result("SELECT", self.rows(execution), counts=True)

    def rows(self, execution: Execution) -> Iterator[Tuple]:
        session, block = execution.session, execution.block
        read_past(session, block, self.operand, execution.values)
        planner = Planner(session, block, self.text, self.parameters)
        select = plan_query(planner, self.tree)
        planner.names.needs.require(session, block)
        if [(each.name, each.type.ref) for each in select.columns] != [
            (each.name, each.type.ref) for each in self.columns
        ]:
            raise PlanChanged("cached plan must not change result type")
        return select.rows(execution)


def plan(planner: Planner, tree: Tree) -> "Select | SelectAsOf":
    operand = planner.as_of
    if not operand:
        return plan_query(planner, tree)
    # In a separate block: the session's own must not have started to read when the query runs.
    with past_blocks.planning_block(planner.session, operand) as block:
        inside = planner.inside(block)
        if operand.startswith("$"):
            inside.parameters.expect(int(operand[1:]), as_of.TEXT)
        select = plan_query(inside, tree)
        return SelectAsOf(planner.text, tree, operand, select.columns, inside.parameters.types())


def plan_query(planner: Planner, tree: Tree) -> Select:
    bound = bind.bind_query(tree, planner.names, planner.parameters)
    return compiled(planner, bound)


def compiled(planner: Planner, bound: Query) -> Select:
    query = access.with_access(bound)
    nodes = list(everything(query.plan, query))
    locks = any(isinstance(each, Lock) for each in nodes)
    return Select(
        query,
        rows.compile(query, planner.names.enum),
        columns_of(query.outputs),
        query.parameters,
        is_short=is_cheap_query(query) and not locks,
        is_bounded=is_bounded(query.plan, query),
        locks=locks,
        reads_system=any(isinstance(each, Virtual) for each in nodes),
        lookup=None if locks else lookup_of(query, planner.names.enum),
    )


def columns_of(outputs: tuple[OutputColumn, ...]) -> tuple[ResultColumn, ...]:
    return tuple(ResultColumn(each.name, each.type, each.table, each.number) for each in outputs)
