"""What a node needs: memory for a scan of ten million rows, memory and time with a thousand tables.

    scan       every row of a large table to a client by COPY TO and by a cursor; an aggregate of them
    idle       a node started over a store with a thousand tables, after a client asked for one row

Resident memory is the kernel's figure for the node's process, the highest since the scan began. Starting is
from the call to the ready line. The peers are the promises.

Walk: `bench.__main__` -> `run`.
"""

import time
from collections.abc import Callable
from uuid import uuid4

from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, forget_peak, memory, node
from bench.store.places import sqlite_store, store_path
from bench.store.rounds import note
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.functions.function import Context
from tenure.kv.transaction import Transaction
from tenure.table.rows import Layout, Row

ROWS, QUICK_ROWS = 10_000_000, 20_000
TABLES, QUICK_TABLES = 1_000, 20
LOAD_ROWS = 20_000
SCAN_MEGABYTES = 500.0
IDLE_MEGABYTES = 200.0
START_SECONDS = 2.0
STARTS = 3
FETCH_ROWS = 5_000


def run(quick: bool) -> list[Ratio]:
    with store_path() as path:
        ratios = _many_tables(path, QUICK_TABLES if quick else TABLES)
    with store_path() as path:
        return ratios + _scan(path, QUICK_ROWS if quick else ROWS)


def _many_tables(path: str, tables: int) -> list[Ratio]:
    with node(path) as place, place.connect() as connection:
        for number in range(tables):
            connection.execute(
                f"CREATE TABLE t{number} (id bigint PRIMARY KEY, a int, b text, c timestamptz, UNIQUE (a, b))"
            )
    starts = []
    for _ in range(STARTS):
        with node(path) as place:
            starts.append(place.start_seconds)
            with place.connect() as connection:
                connection.execute(f"SELECT a FROM t{tables - 1} WHERE id = 1").fetchall()
            idle = memory(place.pids[0])
            with place.connect() as connection:
                for number in range(tables):
                    connection.execute(f"SELECT a FROM t{number} WHERE id = 1").fetchall()
            used = memory(place.pids[0])
    note(f"sql.memory: {used.now:.0f} MB after a query of each of {tables} tables; starts {starts}")
    return [
        _promised("sql.memory.idle", idle.now, IDLE_MEGABYTES, "MB"),
        _promised("sql.memory.start", min(starts), START_SECONDS, "s"),
    ]


def _scan(path: str, rows: int) -> list[Ratio]:
    _load(path, rows)
    ratios = []
    for name, scan in (("copy", _copy), ("cursor", _cursor), ("aggregate", _aggregate)):
        with node(path) as place:
            forget_peak(place.pids[0])
            began = time.perf_counter()
            assert scan(place) == rows
            seconds = time.perf_counter() - began
            peak = memory(place.pids[0]).peak
        note(f"sql.memory.{name}: {rows} rows in {seconds:.1f} s")
        ratios.append(_promised(f"sql.memory.{name}", peak, SCAN_MEGABYTES, "MB"))
    return ratios


def _promised(name: str, found: float, promise: float, unit: str) -> Ratio:
    return compare(name, ours=found, peer=promise, unit=unit, bar=Bar.AT_MOST, limit=1.0)


def _load(path: str, rows: int) -> None:
    """Straight into the store, of which no node is running: ten million rows take long enough that way."""
    with node(path) as place, place.connect() as connection:
        connection.execute(
            "CREATE TABLE measures (id bigint PRIMARY KEY, sensor int NOT NULL, value float8, note text)"
        )
    with sqlite_store(path) as store:
        catalog = Catalog(store.keyspace)
        tables = [each for each in catalog.list(store.snapshot()) if each.name == "measures"]
        assert isinstance(tables[0], Table)
        layout = Layout(tables[0], store.keyspace)
        for first in range(0, rows, LOAD_ROWS):
            store.transact(_put(layout, range(first, min(rows, first + LOAD_ROWS))))


def _put(layout: Layout, numbers: range) -> Callable[[Transaction], None]:
    context = Context(0, 0, uuid4, lambda: 0)

    def put(txn: Transaction) -> None:
        for n in numbers:
            values = {1: n, 2: n % 5000, 3: n % 997 + 0.5, 4: f"note {n % 1000}"}
            entry = layout.entry(layout.primary, Row(layout.key(values), values), context)
            assert entry is not None
            txn.put(entry.key, entry.value)

    return put


def _copy(place: Place) -> int:
    lines = 0
    with place.connect() as connection, connection.cursor().copy("COPY measures TO STDOUT") as copy:
        for data in copy:
            lines += bytes(data).count(b"\n")
    return lines


def _cursor(place: Place) -> int:
    """As clients read what is too large for them: in a transaction, some thousand rows at a time."""
    rows = 0
    with place.connect() as connection, connection.transaction():
        connection.execute("DECLARE c CURSOR FOR SELECT id, sensor, value, note FROM measures")
        while found := connection.execute(f"FETCH {FETCH_ROWS} FROM c").fetchall():
            rows += len(found)
    return rows


def _aggregate(place: Place) -> int:
    with place.connect() as connection:
        found = connection.execute(
            "SELECT sum(n) FROM ("
            "SELECT sensor, count(*) AS n, avg(value), max(note) FROM measures GROUP BY sensor) t"
        ).fetchone()
    assert found is not None
    return int(found[0])
