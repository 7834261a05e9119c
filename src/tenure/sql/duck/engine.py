"""DuckDB itself: one database in memory per node, one connection per query.

It is shut in: no network, no extensions, no files but the lake's, its configuration locked; all else it sees
are the Arrow columns that a query is given. Memory is bounded for all queries together, and nothing is
spilled.

A result is fetched whole before the first row is given, so that an error comes while the rows executor
can still take over. One too large for that is run twice: once to see that it ends well, once to stream. If a
file of the lake goes while it streams, it is planned and run again, and gives what it has not given yet
(`duck.delivered_rows`). For a caller that can start over (`is_once`) it is run once, and `RowsIncomplete`
tells the caller to do so.

    run ──► a thread runs it        the caller looks every so often whether it was canceled,
                                    and interrupts DuckDB if so (`duck.query_connection`)

Invariant (duck-error): when DuckDB fails for any reason, `run` answers None, and never half a result that
looks like a whole one.

Walk: `sql.duck.offload` -> `DuckEngine.run` -> `table.columnar` for the tables -> rows by
`sql.duck.duck_types`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from math import inf
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from tenure.base.env import Env
from tenure.base.errors import RowsIncomplete, StoreError
from tenure.base.memory import Account
from tenure.sql.duck.base_scan_sql import BaseSql, base_sql
from tenure.sql.duck.delivered_rows import DeliveredRows
from tenure.sql.duck.duck_types import NotShared, Value, quoted
from tenure.sql.duck.held_files import FileColumns, HeldFiles
from tenure.sql.duck.query_connection import FAILURES, FetchedResult, QueryConnection, QuerySql, step_back
from tenure.sql.duck.rendering import Rendered
from tenure.storage.files import Files
from tenure.table.arrow import Unrepresentable
from tenure.table.columnar import Check, Columns
from tenure.table.lake.checked_files import CheckedFiles, Damage

Rows: TypeAlias = Iterator[tuple[Any, ...]]
Open: TypeAlias = Callable[[], Mapping[int, Columns]]
"""Gives the tables of a query anew: a stream can be read once."""

HasMoved: TypeAlias = Callable[[], bool]
"""Whether the tables were read from a base that is not the newest any more: a file may have been removed."""

HELD_SHARE = 4
"""Files may be held in memory up to one part in so many of the queries' memory, besides it."""

COPIED_SHARE = 16
"""One part in so many of the memory may be taken by deltas that are copied for a query, some 25 ns a row."""


class DuckEngine:
    def __init__(
        self,
        env: Env,
        *,
        memory_bytes: int,
        threads: int,
        lake: Files | None = None,
        damage: Damage | None = None,
    ) -> None:
        self._env = env
        self._lake = lake
        self._copied_bytes_max = memory_bytes // COPIED_SHARE
        held_bytes_max = 0 if lake is None else memory_bytes // HELD_SHARE
        databases: list[Any] = []

        def make() -> None:
            step_back()  # DuckDB's own threads take over the priority of the one that makes it
            databases.append(_database(memory_bytes + held_bytes_max, threads))

        env.spawn("duckdb", make).join()
        self._database = databases[0]
        if lake is not None:
            self._database.execute("SET GLOBAL parquet_metadata_cache = true")  # its files never change
            lake.let_duckdb_read(self._database)
            self._database.execute(f"SET allowed_directories = [{quoted(lake.duck_root)}]")
        self._database.execute("SET enable_external_access = false; SET lock_configuration = true")
        self.held_files: HeldFiles | None = None
        if lake is not None and damage is not None:
            open_files = partial(CheckedFiles, lake, damage)
            self.held_files = HeldFiles(env, self._database, open_files, held_bytes_max)

    def close(self) -> None:
        self._database.close()

    def used_bytes(self) -> int:
        """What queries and held files take now."""
        used = "SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()"
        try:
            with closing(self._database.cursor()) as cursor:
                return int(cursor.execute(used).fetchone()[0])
        except duckdb.ConnectionException:
            return 0  # it was closed: the node stops

    def run(
        self,
        rendered: Rendered,
        open: Open,
        check: Check,
        has_moved: HasMoved = lambda: False,
        *,
        account: Account,
        is_once: bool = False,
    ) -> Rows | None:
        """The rows of a query; None if DuckDB cannot answer it. Raises what `check` raises, or OutOfMemory.

        What is held of the result is charged to `account`.
        """
        with ExitStack() as stack:
            connection = stack.enter_context(closing(self._connection(rendered, open())))
            fetched = FetchedResult(connection, account, waits_when_full=is_once)
            stack.callback(fetched.give_back)
            connection.watched(fetched.fetch, check)
            fetched.check()
            if fetched.error is not None:
                return None
            if fetched.is_whole:
                stack.pop_all()
                connection.close()
                return _whole(fetched, rendered)
            if is_once:
                stack.pop_all()
                return self._as_they_come(connection, fetched, rendered, check)
        return self._streamed(rendered, open(), open, check, has_moved)

    def _connection(self, rendered: Rendered, tables: Mapping[int, Columns]) -> QueryConnection:
        files = self._take_held(tables)
        try:
            query = _query(rendered, tables, self._lake, files, self._copied_bytes_max)
            data = {f"a{id}": columns.data for id, columns in tables.items() if not _is_empty(columns)}
            closed = partial(self._give_back, files)
            return QueryConnection(self._env, self._database.cursor(), query, data, closed)
        except BaseException:
            self._give_back(files)
            raise

    def _take_held(self, tables: Mapping[int, Columns]) -> Mapping[str, str]:
        if self.held_files is None:
            return {}
        bases = [columns.base for columns in tables.values() if columns.base is not None]
        return self.held_files.take(
            [
                FileColumns(scan.file, frozenset(scan.columns(base.kepts)))
                for base in bases
                for scan in base.scans
                if scan.times is None
            ]
        )

    def _give_back(self, files: Mapping[str, str]) -> None:
        if self.held_files is not None:
            self.held_files.give_back(files)

    def _as_they_come(
        self, connection: QueryConnection, fetched: FetchedResult, rendered: Rendered, check: Check
    ) -> Rows:
        """The rows in portions: those that are held, then the next ones, to the end."""
        with closing(connection), closing(fetched):
            while True:
                yield from _rows(fetched.take_batches(), rendered.columns)
                fetched.give_back()
                if fetched.is_whole:
                    return
                check()  # `watched` does not check while a batch comes at once
                connection.watched(fetched.fetch, check)
                fetched.check()
                if fetched.error is not None:
                    raise RowsIncomplete("DuckDB gave up when it had given some rows") from fetched.error

    def _streamed(
        self,
        rendered: Rendered,
        tables: Mapping[int, Columns],
        open: Open,
        check: Check,
        has_moved: HasMoved,
    ) -> Rows:
        """Runs the query again, a batch at a time; the first run has shown that it succeeds."""
        delivery = DeliveredRows()
        marked = delivery.marked(rendered)
        try:
            while True:
                try:
                    with closing(self._connection(marked, tables)) as connection:
                        for batch in connection.watched_batches(check):
                            yield from _rows([delivery.new(batch)], rendered.columns)
                    break
                except FAILURES:
                    if not has_moved():
                        raise
                tables = open()
                delivery.start_over()
        except (*FAILURES, NotShared, Unrepresentable) as error:
            raise StoreError(f"a query failed that had succeeded before: {error}") from error
        delivery.require_all()


def _database(memory_bytes: int, threads: int) -> Any:
    return duckdb.connect(
        ":memory:",
        config={
            "threads": threads,
            "memory_limit": f"{memory_bytes}B",
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "preserve_insertion_order": "true",
        },
    )


def _query(
    rendered: Rendered,
    tables: Mapping[int, Columns],
    lake: Files | None,
    files: Mapping[str, str],
    copied_bytes_max: int,
) -> QuerySql:
    withs: list[str] = []
    bitmaps: dict[str, bytes] = {}
    filled = {id: each for id, each in tables.items() if not _is_empty(each)}
    visible = {id: f"SELECT * FROM a{id}{' WHERE alive' * each.has_dead}" for id, each in filled.items()}
    copies: tuple[str, ...] = ()
    if _gain_bounds(rendered, tables) and _held_bytes(tables) <= copied_bytes_max:
        copies = tuple(f"CREATE OR REPLACE TEMP TABLE n{id} AS {sql}" for id, sql in visible.items())
        visible = {id: f"SELECT * FROM n{id}" for id in filled}
    is_alone = sum(used.times for used in rendered.tables.values()) == 1
    is_first = is_alone and rendered.is_first
    for id, columns in tables.items():
        base = BaseSql([], {})
        if columns.base is not None:
            base = base_sql(id, columns.base, lake, files, is_alone=is_alone, is_first=is_first)
        withs += _table(id, columns, visible.get(id), rendered.tables[id].times, base.selects)
        bitmaps |= base.bitmaps
    withs += [f"{name} AS ({sql})" for name, sql in rendered.withs]
    sql = f"WITH {', '.join(withs)} {rendered.select}" if withs else rendered.select
    return QuerySql(sql, bitmaps, copies)


def _gain_bounds(rendered: Rendered, tables: Mapping[int, Columns]) -> bool:
    """Whether it pays to make tables of what was registered: of those DuckDB knows bounds, as of files.

    A join on whole numbers between known bounds needs no hash table. A delta of 200,000 rows without bounds
    made the join of a million twice as slow.
    """
    has_base = any(columns.base is not None for columns in tables.values())
    return has_base and sum(used.times for used in rendered.tables.values()) > 1


def _held_bytes(tables: Mapping[int, Columns]) -> float:
    return sum(inf if _is_stream(columns) else columns.data.nbytes for columns in tables.values())


def _is_stream(columns: Columns) -> bool:
    return isinstance(columns.data, pa.RecordBatchReader)


def _is_empty(columns: Columns) -> bool:
    """Whether all rows lie in the base: then no columns have to be registered."""
    has_files = columns.base is not None and bool(columns.base.scans)
    return has_files and not _is_stream(columns) and not len(columns.data)


def _table(id: int, columns: Columns, visible: str | None, times: int, based: Sequence[str]) -> Iterator[str]:
    """The SQL of table d<id>: the rows of the base, and the visible rows of the registered columns."""
    selects = [*based]
    if visible is not None and _is_stream(columns) and times > 1:  # a stream can be read but once
        yield f"e{id} AS MATERIALIZED ({visible})"
        selects.append(f"SELECT {_names(columns)} FROM e{id}")
    elif visible is not None:
        selects.append(f"SELECT {_names(columns)} FROM ({visible})")
    yield f"d{id} AS NOT MATERIALIZED ({' UNION ALL '.join(selects)})"


def _names(columns: Columns) -> str:
    """In the order of the base's; of a table without one, all."""
    return "*" if columns.base is None else ", ".join(f"c{id}" for id in columns.base.kepts) or "alive"


def _whole(fetched: FetchedResult, rendered: Rendered) -> Rows:
    with closing(fetched):
        batches = deque(fetched.take_batches())
        while batches:
            yield from _rows([batches.popleft()], rendered.columns)


def _rows(batches: Sequence[Any], columns: Sequence[Value]) -> Rows:
    for batch in batches:
        if columns:
            yield from zip(*map(_decoded, batch.columns, columns), strict=True)
        else:
            yield from [()] * batch.num_rows


def _decoded(array: Any, column: Value) -> list[Any]:
    decode = column.shape.decode
    if decode is not None:
        return [None if each is None else decode(each) for each in array.to_pylist()]
    if not array.null_count and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        numbers: list[Any] = np.asarray(array).tolist()  # several times faster
        return numbers
    values: list[Any] = array.to_pylist()
    return values
