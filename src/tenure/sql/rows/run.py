"""One execution of a plan: what it reads from, what it may hold, who may stop it.

A plan is compiled once into a tree of `RowNode`s; a `Run` is what they are given each time. All of
them work by pulling: a node asks its input for the next row only when it is asked itself, so what
a LIMIT does not need is neither read nor computed.

    rows(run, wanted)       `wanted`: how many rows whoever asks will take at most, if that is known

`given` is one list for the whole run: a lateral join or a subquery puts its outer values in, under
numbers that are its own, before it starts what uses them. No node runs inside itself, so none is
disturbed.

Walk: `sql.rows.runner` makes the nodes and starts them; the session fills in a `Run`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from sys import getsizeof
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from tenure.base.memory import OutOfMemory
from tenure.catalog.descriptors import Table
from tenure.expr.closures import Evaluate
from tenure.expr.datatype import Type
from tenure.expr.expressions import Node
from tenure.expr.function import Context
from tenure.sql.plans.free_values import FreeValues
from tenure.sql.plans.plan import Lock, Output, Plan, Query
from tenure.table.read import Source
from tenure.table.rows import Layout

Tuple: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Iterator[Tuple]

ROW_BYTES = 80
"""A tuple and its place."""

BATCH_ROWS = 1_000
"""So often a run looks whether it was canceled, and counts what it holds."""

FIRST_BATCH_ROWS = 16
BATCH_BYTES_MAX = 4 << 20
"""Batches grow from a few rows on, as long as they stay below this."""

FLAT = (int, float, str, bytes, bool, type(None), Decimal, datetime, date, time, timedelta, UUID)
"""What tells its whole size by itself."""


class Memory:
    """How much the sorts, hashes and groups of one run hold, in bytes, roughly."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0

    @contextmanager
    def account(self) -> Iterator["Account"]:
        """What is held through it is given back when its holder is done."""
        account = Account(self)
        try:
            yield account
        finally:
            account.give_back()


class Account:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.held_bytes = 0

    def hold(self, rows: Sequence[Tuple]) -> None:
        """Raises OutOfMemory if these are too many."""
        self.hold_bytes(size_of_rows(rows))

    def give_back(self) -> None:
        self._memory.held_bytes -= self.held_bytes
        self.held_bytes = 0

    def hold_bytes(self, count: int) -> None:
        self.held_bytes += count
        memory = self._memory
        memory.held_bytes += count
        if memory.held_bytes > memory.limit_bytes:
            raise OutOfMemory(
                f"the query holds more than {memory.limit_bytes} bytes in memory",
                hint="Let it read less, or raise sql.query_memory.",
            )


def size_of_rows(rows: Sequence[Tuple]) -> int:
    """Each value is measured: one that is large may stand among many that are not."""
    return len(rows) * ROW_BYTES + sum(map(size_of, chain.from_iterable(rows)))


def size_of(value: Any) -> int:
    """Roughly, with all that it is made of."""
    if type(value) in FLAT:
        return getsizeof(value)
    if isinstance(value, tuple):  # an array, or of jsonb
        return getsizeof(value) + sum(map(size_of, value))
    if isinstance(value, dict):
        return getsizeof(value) + sum(map(size_of, value.keys())) + sum(map(size_of, value.values()))
    inner = getattr(value, "value", None) or getattr(value, "text", None)
    return getsizeof(value) + (size_of(inner) if inner is not None else 0)


@dataclass(slots=True)
class Run:
    context: Context
    source: Source
    """What tables are read from."""
    layouts: Callable[[Table], Layout]
    virtual: Callable[[str], Iterable[Tuple]]
    """The rows of a system table by its key."""
    check: Callable[[], None]
    """Raises if the run was canceled or takes too long."""
    memory: Memory
    instead: "Callable[[Plan, Run], Rows | None] | None" = None
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
    def rows(self, run: Run, wanted: int | None = None) -> Rows: ...

    def start(self, run: Run, wanted: int | None = None) -> Rows:
        """Its rows, by whoever is the one to make them."""
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


def types_of(outputs: Iterable[Output]) -> dict[int, Type]:
    """The types of a row, by position: what its expressions are compiled with."""
    return {position: output.type for position, output in enumerate(outputs)}


def batches(run: Run, rows: Iterable[Tuple]) -> Iterator[list[Tuple]]:
    """For whoever reads it all anyway. Large rows come in small batches: they are counted in time."""
    rows, wanted = iter(rows), FIRST_BATCH_ROWS
    while batch := list(islice(rows, wanted)):
        run.check()
        yield batch
        if wanted < BATCH_ROWS or size_of_rows(batch[:1]) * wanted > BATCH_BYTES_MAX:
            is_small = size_of_rows(batch) < BATCH_BYTES_MAX
            wanted = min(BATCH_ROWS, wanted * 4) if is_small else FIRST_BATCH_ROWS


def gather(run: Run, rows: Iterable[Tuple], account: Account) -> list[Tuple]:
    """All of it, held."""
    gathered: list[Tuple] = []
    for batch in batches(run, rows):
        account.hold(batch)
        gathered += batch
    return gathered
