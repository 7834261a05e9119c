"""One execution of a plan: what it reads from, what it may hold, who may stop it.

A plan is compiled once into a tree of `RowNode`s; a `QueryRun` is what they are given each time. All of
them work by pulling: a node asks its input for the next row only when it is asked itself, so what
a LIMIT does not need is neither read nor computed.

    rows(run, wanted)       `wanted`: how many rows the caller takes at most, if that is known

`given` is one list for the whole run: a lateral join or a subquery puts its outer values in, under
numbers that are its own, before it starts what uses them. No node runs inside itself, so none is
disturbed.

Walk: `sql.rows.runner` makes the nodes and starts them; the session fills in a `QueryRun`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
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
"""So often a run looks whether it was canceled, and counts what it holds."""

BATCH_BYTES_MAX = 4 << 20
"""Batches grow from one row on, as long as they, and the values made for them, stay below this."""


@dataclass(slots=True)
class QueryRun:
    context: Context
    source: Source
    """What tables are read from."""
    layouts: Callable[[Table], Layout]
    virtual: Callable[[str], Iterable[Tuple]]
    """The rows of a system table by its key."""
    check: Callable[[], None]
    """Raises if the run was canceled or takes too long."""
    memory: Account
    """Of the statement: what sorts, hashes and groups hold is charged there."""
    instead: "Callable[[Plan, QueryRun], Rows | None] | None" = None
    """Asked at each node, with the run itself: whether something faster takes it over."""
    lock: Callable[[Lock, Tuple], bool] | None = None
    """Locks a row as it passes a Lock node; False if it shall be passed over."""
    read: Callable[[int], None] | None = None
    """Told how large each row is that was looked up by its key, before it is decoded."""
    watch: Callable[[Plan, Rows], Rows] | None = None
    """Sees the rows of each node pass: EXPLAIN ANALYZE."""
    query: Query | None = None
    """What is run: set when the run starts."""
    given: list[Any] = field(default_factory=list)
    """What the context's `given` is: filled when the run starts."""
    shared: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """The rows of WITH queries that have been read."""
    working: dict[int, list[Tuple]] = field(default_factory=dict)
    """What the last round of a WITH RECURSIVE gave."""
    rounds: Counter[int] = field(default_factory=Counter)
    """How many rounds each WITH RECURSIVE has begun, however often it was started."""
    scans: dict[int, Any] = field(default_factory=dict)
    """What `rows.repeated_scans` holds of tables that are scanned again and again."""


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
    """What a node is made with."""

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
        memory.settle()  # the caller has charged what it keeps of the batch
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
