"""One query of DuckDB: the connection that runs it in another thread, and its result.

    watched ──► a thread runs it ──► done
       └── the check raises ──► DuckDB is interrupted ──► it ends within HEED_SECONDS
                                                     └── it waits for a file: it is left to its thread

DuckDB does not heed an interrupt while it waits for a file of an object store that hangs. Then the statement
ends, and the thread closes the connection when DuckDB has come back.

Walk: `duck.engine` makes both for each run of a query.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from tenure.base.env import Env
from tenure.base.errors import OutOfMemory
from tenure.base.interruptible import Check
from tenure.base.memory import Account, Holding

RESULT_BYTES_MAX = 32 << 20
"""The most bytes of a result that is held until it is complete."""

FETCH_ROWS = 20_000
LOOK_SECONDS = 0.02
"""How often a running query is checked for a cancel."""

HEED_SECONDS = 0.5
"""How long an interrupted query is waited for; unless it waits for a file, it ends much sooner."""

NICENESS = 10
"""The niceness of the threads that run queries: a tenth of a busy core, all of an idle one."""

BINDS_ONCE = duckdb.__version__.startswith("2.0.") and hasattr(duckdb.DuckDBPyConnection, "_submit")
"""Whether this version runs a query without describing it before. The method is not documented: other
versions are asked by the documented way."""

FAILURES = (duckdb.Error, pa.ArrowException, OSError)
"""The exceptions of DuckDB itself, and of the streams that it reads."""


class QuerySql(NamedTuple):
    sql: str
    bitmaps: dict[str, bytes]
    copies: tuple[str, ...] = ()
    """Statements to run first."""


class QueryConnection:
    """A connection that knows the tables of one query."""

    def __init__(
        self,
        env: Env,
        cursor: Any,
        query: QuerySql,
        tables: Mapping[str, Any],
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._env = env
        self._lock = env.lock()
        self._is_busy = False
        self.is_left = False
        """Whether the statement has stopped waiting for the thread."""
        self._cursor = cursor
        self._query = query
        self._closed = closed
        """Called when the query needs its tables no longer."""
        for name, data in tables.items():
            cursor.register(name, data)

    def batches(self) -> Iterator[Any]:
        sql, bitmaps, copies = self._query
        for copy in copies:
            self._cursor.execute(copy)
        yield from reader(self._cursor, sql, bitmaps)

    def watched_batches(self, check: Check) -> Iterator[Any]:
        """The same, each of them made by the thread beside."""
        coming, batches, errors = self.batches(), deque[Any](), list[Exception]()

        def take() -> None:
            try:
                batches.extend(islice(coming, 1))
            except Exception as error:  # raised below, in the thread of the statement
                errors.append(error)

        while True:
            check()
            self.watched(take, check)
            if errors:
                raise errors[0]
            if not batches:
                return
            yield batches.popleft()

    def watched(self, run: Callable[[], None], check: Check) -> None:
        """Runs it in a thread beside, and interrupts it when `check` raises."""
        done = self._env.event()

        def beside() -> None:
            step_back()
            try:
                run()
            finally:
                with self._lock:
                    self._is_busy = False
                done.set()
                if self.is_left:
                    self._cursor.close()

        self._is_busy = True
        self._env.spawn("duckdb", beside)
        try:
            while not done.is_set() and not done.wait(LOOK_SECONDS):
                check()
        except BaseException:
            self._cursor.interrupt()
            done.wait(HEED_SECONDS)
            raise

    def close(self) -> None:
        """At once, or when what it runs has ended."""
        with self._lock:
            self.is_left = self._is_busy
        if not self.is_left:
            self._cursor.close()
        self._closed()


def reader(cursor: Any, sql: str, values: Mapping[str, Any], *, binds_once: bool = BINDS_ONCE) -> Any:
    """Streams the rows of a query as Arrow batches.

    `sql` parses and binds a query to describe its columns, and again to run it: 2 to 7 ms of the 15 to 40 ms
    of TPC-H's short queries. `_submit` is its second half.
    """
    if binds_once:
        return cursor._submit(sql, values or None, "stream", FETCH_ROWS).arrow_reader()
    relation = cursor.sql(sql, params=values) if values else cursor.sql(sql)
    return relation.to_arrow_reader(FETCH_ROWS)


def step_back() -> None:
    """Lets a thread that computes for long come after those that answer short statements.

    On Linux this counts for the calling thread alone; elsewhere it would for the whole process.
    """
    if sys.platform == "linux":
        with suppress(OSError):  # a thread that is nicer already keeps its niceness
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)


class FetchedResult:
    """A result, held up to a bound. Beyond it the rest is read and dropped, or waits to be fetched."""

    def __init__(self, connection: QueryConnection, account: Account, *, waits_when_full: bool) -> None:
        self._holding = Holding(account, "a result of DuckDB")
        self._refusal: OutOfMemory | None = None
        self._connection = connection
        self._coming = connection.batches()
        self._waits_when_full = waits_when_full
        self.batches: list[Any] = []
        self.is_whole = False
        """Whether all of it is held, or was fetched."""
        self.error: Exception | None = None

    def fetch(self) -> None:
        held_bytes, is_kept = 0, True
        try:
            for batch in self._coming:
                held_bytes += batch.nbytes
                self._holding.hold_bytes(batch.nbytes)
                if held_bytes <= RESULT_BYTES_MAX or self._waits_when_full:
                    self.batches.append(batch)
                else:
                    is_kept = False
                    self.batches.clear()
                    self._holding.give_back()
                if held_bytes > RESULT_BYTES_MAX and self._waits_when_full:
                    return
            self.is_whole = is_kept
        except FAILURES as error:
            self.error = error
        except OutOfMemory as refusal:
            self._refusal = refusal
        finally:
            if self._connection.is_left:
                self.close()

    def check(self) -> None:
        """In the thread of the statement. Raises OutOfMemory if there was no room for the result."""
        if self._refusal is not None:
            raise self._refusal

    def give_back(self) -> None:
        self._holding.give_back()

    def close(self) -> None:
        self.batches.clear()
        self._holding.give_back()

    def take_batches(self) -> list[Any]:
        batches, self.batches = self.batches, []
        return batches
