"""One execution of a plan: its sources, its memory, and its check for cancels.

A plan is compiled once into a tree of `RowNode`s, which get a `QueryRun` for each execution. Nodes pull rows:
a node asks its input for the next row only when its own next row is asked for, so rows beyond a LIMIT are
neither read nor computed.

    rows(run, wanted)       `wanted`: how many rows the caller takes at most, if that is known

`context_values` is one list for the whole run: a lateral join or a subquery puts its outer values in, under
numbers that are its own, before it starts what uses them. No node runs inside itself, so none is
disturbed.

Walk: `sql.rows.runner` makes the nodes and starts them; the session fills in a `QueryRun`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeAlias

from tenure.base.memory import Account, Holding
from tenure.base.sizes import size_of_rows
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.functions.function import Context
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.expressions import Node
from tenure.expr.types.datatype import Type
from tenure.sql.plans.free_values import FreeValues
from tenure.sql.plans.plan import Lock, OutputColumn, Plan, Query
from tenure.table.read import Source
from tenure.table.rows import Layout

Tuple: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Iterator[Tuple]

BATCH_ROWS = 1_000
"""After so many rows a run checks for a cancel, and counts its memory."""

BATCH_BYTES_MAX = 4 << 20
"""Batches grow from one row on, as long as they, and the values made for them, stay below this."""


@dataclass(slots=True)
class QueryRun:
    context: Context
    source: Source
    """The source that tables are read from."""
    layouts: Callable[[Table], Layout]
    virtual: "Callable[[str, tuple[int, Sequence[Any]] | None], Iterable[Tuple]]"
    """The rows of a system table by its key; of a lookup, all that have one of the values in the column, and
    possibly others."""
    check: Callable[[], None]
    """Raises if the run was canceled or takes too long."""
    memory: Account
    """The statement's account: sorts, hash tables and groups are charged to it."""
    instead: "Callable[[Plan, QueryRun], Rows | None] | None" = None
    """Called for each node with the run: returns rows if DuckDB takes the node over."""
    lock: Callable[[Lock, Tuple], bool] | None = None
    """Locks a row as it passes a Lock node; False if the row is to be skipped."""
    read: Callable[[int], None] | None = None
    """Called with the size of each row that was looked up by its key, before it is decoded."""
    watch: Callable[[Plan, Rows], Rows] | None = None
    """Sees the rows of each node pass: EXPLAIN ANALYZE."""
    query: Query | None = None
    """The query: set when the run starts."""
    context_values: list[Any] = field(default_factory=list)
    """The same list as the context's `context_values`: filled when the run starts."""
    shared: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """The rows of WITH queries that have been read."""
    working: dict[int, list[Tuple]] = field(default_factory=dict)
    """The rows of the last round of each WITH RECURSIVE."""
    rounds: Counter[int] = field(default_factory=Counter)
    """How many rounds each WITH RECURSIVE has begun, however often it was started."""
    scans: dict[int, Any] = field(default_factory=dict)
    """The rows that `rows.repeated_scans` keeps."""

    def of_query(self, query: Query, context: Context, context_values: list[Any]) -> "QueryRun":
        """The run of one query, which has read nothing yet. Cheaper than `dataclasses.replace`."""
        return QueryRun(
            *(context, self.source, self.layouts, self.virtual, self.check, self.memory),
            *(self.instead, self.lock, self.read, self.watch, query, context_values),
        )


class RowNode(ABC):
    """A node of a plan, compiled."""

    plan: Plan

    @abstractmethod
    def rows(self, run: QueryRun, wanted: int | None = None) -> Rows: ...

    def start(self, run: QueryRun, wanted: int | None = None) -> Rows:
        """Its rows: from `run.instead` if that takes the plan, else from `rows`."""
        rows = None if run.instead is None else run.instead(self.plan, run)
        if rows is None:
            rows = self.rows(run, wanted)
        return rows if run.watch is None else run.watch(self.plan, rows)


class Compiler(Protocol):
    """The compiler that nodes are made with."""

    free: FreeValues

    def node(self, plan: Plan) -> RowNode: ...

    def evaluate(self, tree: Node, types: Mapping[int, Type]) -> Evaluate: ...

    def type_of(self, tree: Node, types: Mapping[int, Type]) -> Type: ...


def types_of(outputs: Iterable[OutputColumn]) -> dict[int, Type]:
    """The types of a row, by position: what its expressions are compiled with."""
    return {position: output.type for position, output in enumerate(outputs)}


def batches(run: QueryRun, rows: Iterable[Tuple]) -> Iterator[list[Tuple]]:
    """For callers that read all rows. Large rows come in small batches, so that they are counted in time."""
    rows, wanted, memory = iter(rows), 1, run.memory
    while batch := list(islice(rows, wanted)):
        run.check()
        made_bytes = memory.large_bytes
        yield batch
        memory.settle()  # the caller has charged the rows that it keeps
        if wanted < BATCH_ROWS or made_bytes or size_of_rows(batch[:1]) * wanted > BATCH_BYTES_MAX:
            is_small = max(made_bytes, size_of_rows(batch)) < BATCH_BYTES_MAX
            wanted = min(BATCH_ROWS, wanted * 4) if is_small else 1


def gather(run: QueryRun, rows: Iterable[Tuple], holding: Holding) -> list[Tuple]:
    """All of it, held."""
    gathered: list[Tuple] = []
    for batch in batches(run, rows):
        holding.hold(batch)
        gathered += batch
    return gathered
