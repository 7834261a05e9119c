"""Files of the lake that queries read again and again, held by DuckDB in its own compressed form.

    file                            a database of its own, in memory
    live-7.parquet   c1 c2 ... ──►  h3.f   c1 c2 c5      the columns that queries have used
    row 0, 1, 2, ...                rowid 0, 1, 2, ...   so the bitmap of hidden rows counts here as well

A file never changes, so what is held of it never becomes wrong. A query takes a held file in place of the
Parquet file if all columns that it needs are there, and else reads the Parquet file. Nothing is decoded or
decompressed then: TPC-H's queries took a half to a third of their CPU.

A loop loads files, one for each step, in a thread that comes after those that answer statements: a file
whose columns were used by two queries or more. Each is loaded into a database of its own, which queries get
to know when it is complete. What is loaded stays for long, so its bytes are compared with their checksums on
their way into memory, as those of a merge are. A damaged file is not held, and queries of it report the
damage.

A held file goes when no query has used it for some minutes, or when it is replaced by one with more columns;
not while a query reads it. Where there is no room, later files are not held: files in use never drive each
other out.

Invariant (held-checked): no byte of a file is held before it was compared with the manifest.

Walk: `duck.engine` -> `take` and `give_back` for each query; a loop of `sql.duck.offload` -> `step` ->
`table.lake.checked_files`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tenure.base.env import Env
from tenure.base.errors import TenureError
from tenure.sql.duck.query_connection import FAILURES, step_back
from tenure.table.arrays import Rows
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.format import Footer
from tenure.table.lake.manifests import File

USES_MIN = 2
"""Queries of a file before it is loaded: loading takes as long as some queries do."""

USED_SECONDS = 300.0
"""How long a file is held without a query of it."""

USES_MAX = 10_000
"""The most files whose uses are counted; with more, all counts begin anew."""

FULL_SHARE = 7 / 8
"""The share of the bytes that may be held from which on nothing more is loaded."""

BLOCK_ROWS = 122_880
"""DuckDB's row groups: what is inserted at once is a multiple of these, so that they are full."""

LOADED_BYTES_MAX = 64 << 20
VALUE_BYTES = 16
"""Rows are compressed after each insertion. It has as many rows as fit into so much, at so much a value."""

ROW_NUMBER = "row_number"


class FileColumns(NamedTuple):
    file: File
    columns: frozenset[str]


@dataclass(slots=True)
class _FileUse:
    file: File
    columns: set[str] = field(default_factory=set)
    times: int = 0
    used: float = 0.0
    refused: frozenset[str] = frozenset()
    """Columns for which there was no room, or that could not be read."""


class _HeldFile(NamedTuple):
    database: str
    columns: frozenset[str]


class HeldFiles:
    """One per engine, for all its threads."""

    def __init__(
        self, env: Env, database: Any, open_files: Callable[[], CheckedFiles], bytes_max: int
    ) -> None:
        self._env = env
        self._database = database
        self._open_files = open_files
        """Gives the lake's files without results of earlier checks."""
        self._bytes_max = bytes_max
        self._lock = env.lock()
        self._uses: dict[str, _FileUse] = {}
        self._files: dict[str, _HeldFile] = {}
        self._pins: Counter[str] = Counter()
        """How many queries read each database."""
        self._gone: list[str] = []
        """Databases that no query takes any more, to be detached."""
        self._number = 0

    def take(self, wanted: Sequence[FileColumns]) -> dict[str, str]:
        """The tables of held files that a query reads, by file; each stays until it is given back."""
        now = self._env.monotonic()
        tables: dict[str, str] = {}
        with self._lock:
            if len(self._uses) + len(wanted) > USES_MAX:
                self._uses = {name: use for name, use in self._uses.items() if name in self._files}
            for file, columns in wanted:
                use = self._uses.setdefault(file.name, _FileUse(file))
                use.columns |= columns
                use.times, use.used = use.times + 1, now
                held_file = self._files.get(file.name)
                if held_file is not None and columns <= held_file.columns:
                    tables[file.name] = f"{held_file.database}.f"
                    self._pins[held_file.database] += 1
        return tables

    def give_back(self, tables: Mapping[str, str]) -> None:
        with self._lock:
            for table in tables.values():
                self._pins[table.partition(".")[0]] -= 1

    @property
    def names(self) -> frozenset[str]:
        """The files that are held."""
        with self._lock:
            return frozenset(self._files)

    # ── for the loop ────────────────────────────────────────────────────────────────────────────

    def step(self) -> bool:
        """Lets go of files that are not used, and loads one; False if there was none to load."""
        self._forget_unused()
        wanted = self._next()
        if wanted is None:
            return False
        self._number += 1
        load = _FileLoad(self._database.cursor(), f"h{self._number}", self._bytes_max)
        self._env.spawn("duckdb", lambda: load.run(wanted, self._open_files())).join()
        with self._lock:
            if load.is_complete:
                self._replace(wanted.file.name, _HeldFile(load.name, wanted.columns))
            else:
                self._uses[wanted.file.name].refused = wanted.columns
        return True

    def _next(self) -> FileColumns | None:
        """The file that queries have missed most often, if there may be room."""
        with self._lock:
            missed = [use for use in self._uses.values() if use.times >= USES_MIN and self._misses(use)]
        if not missed or self._is_full():
            return None
        use = max(missed, key=lambda each: each.times)
        return FileColumns(use.file, frozenset(use.columns))

    def _is_full(self) -> bool:
        with closing(self._database.cursor()) as cursor:
            return held_bytes(cursor) > self._bytes_max * FULL_SHARE

    def _misses(self, use: _FileUse) -> bool:
        held_file = self._files.get(use.file.name)
        columns = use.refused if held_file is None else use.refused | held_file.columns
        return not use.columns <= columns

    def _forget_unused(self) -> None:
        since = self._env.monotonic() - USED_SECONDS
        with self._lock:
            for name in [name for name, use in self._uses.items() if use.used < since]:
                del self._uses[name]
                self._replace(name, None)
            free = [each for each in self._gone if not self._pins[each]]
            self._gone = [each for each in self._gone if each not in free]
            for use in self._uses.values() if free else ():
                use.refused = frozenset()  # there is room again
        with closing(self._database.cursor()) as cursor:
            for each in free:
                cursor.execute(f"DETACH {each}")

    def _replace(self, name: str, held_file: _HeldFile | None) -> None:
        before = self._files.pop(name, None)
        if before is not None:
            self._gone.append(before.database)
        if held_file is not None:
            self._files[name] = held_file


class _FileLoad:
    """One file on its way into a database, which no query knows yet."""

    def __init__(self, cursor: Any, name: str, bytes_max: int) -> None:
        self._cursor = cursor
        self.name = name
        self._bytes_max = bytes_max
        self.is_complete = False

    def run(self, wanted: FileColumns, files: CheckedFiles) -> None:
        step_back()
        try:
            self._cursor.execute(f"ATTACH ':memory:' AS {self.name} (COMPRESS)")
            try:
                self.is_complete = self._load(wanted, files)
            finally:
                if not self.is_complete:
                    self._cursor.execute(f"DETACH {self.name}")
        except (*FAILURES, TenureError):
            self.is_complete = False  # a file that is gone or damaged, or no memory: queries go on without it
        finally:
            self._cursor.close()

    def _load(self, wanted: FileColumns, files: CheckedFiles) -> bool:
        table, loaded = f"{self.name}.f", 0
        for groups in _portions(_group_rows(files.footer(wanted.file)), len(wanted.columns)):
            rows = files.read_groups(wanted.file, groups, sorted(wanted.columns))
            self._insert(table, _numbered(rows, loaded), is_first=loaded == 0)
            loaded += len(rows)
            self._cursor.execute(f"CHECKPOINT {self.name}")
            if held_bytes(self._cursor) > self._bytes_max:
                return False
        if loaded == 0:
            return False
        (found,) = self._cursor.execute(
            f"SELECT count(*), count(*) FILTER (rowid <> {ROW_NUMBER}) FROM {table}"
        ).fetchall()
        self._cursor.execute(f"ALTER TABLE {table} DROP COLUMN {ROW_NUMBER}")
        return bool(found == (wanted.file.rows, 0))

    def _insert(self, table: str, rows: Rows, *, is_first: bool) -> None:
        self._cursor.register("portion", rows)
        verb = f"CREATE TABLE {table} AS" if is_first else f"INSERT INTO {table}"
        self._cursor.execute(f"{verb} SELECT * FROM portion")
        self._cursor.unregister("portion")


def _numbered(rows: Rows, start: int) -> Rows:
    """The rows with their numbers in the file, which must be those that DuckDB gives them."""
    return rows.append_column(ROW_NUMBER, pa.array(np.arange(start, start + len(rows), dtype=np.int64)))


def _group_rows(footer: Footer) -> list[int]:
    metadata = footer.metadata
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def _portions(group_rows: Sequence[int], columns: int) -> Iterator[list[int]]:
    """The numbers of the row groups that are inserted together; whole blocks, where groups divide them."""
    blocks = LOADED_BYTES_MAX // (VALUE_BYTES * (columns + 1) * BLOCK_ROWS)
    rows_max = max(1, blocks) * BLOCK_ROWS
    portion: list[int] = []
    rows = 0
    for number, count in enumerate(group_rows):
        if portion and rows + count > rows_max:
            yield portion
            portion, rows = [], 0
        portion.append(number)
        rows += count
    if portion:
        yield portion


def held_bytes(connection: Any) -> int:
    """The bytes of all tables that DuckDB holds in memory, those of queries under way included."""
    ((found,),) = connection.execute(
        "SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'IN_MEMORY_TABLE'"
    ).fetchall()  # an unfinished result would keep the connection from taking tables
    return int(found or 0)
