"""A table whose rows lie in the lake, made without an import: files and a manifest are written as they are.

Walk: the modules of `bench.bulk` call `Based`; a row follows from its number, for every side alike.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tenure.base.env import SystemEnv
from tenure.base.memory import lone_account
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.duck.offload import Duck
from tenure.sql.rows.run import QueryRun
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tenure.storage.engine import HEAD_BYTES
from tenure.storage.files import open_files
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.table.arrow import decimals_of
from tenure.table.key_arrays import key_array, key_columns
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.format import FILE_ROWS, schema_of, shape_of, write
from tenure.table.lake.manifests import Manifests, WrittenFile, no_base
from tenure.table.lake.publishing import ManifestEdit, publish
from tenure.table.rows import Layouts, Row
from tests.unit.sql import schema
from tests.unit.table.trees import CONTEXT

SALES = schema.table(
    300, "sales", "id bigint; cust int; city text; price numeric(12,2); qty float8; day date", ["id"]
)
CUSTOMERS = schema.table(301, "customers", "id int; name text; region text", ["id"])
DDL = """
CREATE TABLE sales (id bigint PRIMARY KEY, cust int, city text, price numeric(12,2), qty float8, day date);
CREATE TABLE customers (id int PRIMARY KEY, name text, region text);
"""
CUSTOMER_ROWS = 100_000
CACHE_BYTES = 256 << 20
DELTA_BATCH = 5_000
FIRST_DAY = date(2020, 1, 1)


def sale(at: int, salt: int = 0) -> tuple[Any, ...]:
    return (
        at,
        (at * 7 + salt) % CUSTOMER_ROWS,
        f"city{(at + salt) % 50}",
        Decimal((at * 31 + salt * 17) % 100_000).scaleb(-2),
        ((at + salt) % 1000) * 0.5,
        FIRST_DAY + timedelta(days=(at + salt) % 1000),
    )


def sales(first: int, end: int) -> list[Any]:
    """The same rows as arrays."""
    at = np.arange(first, end, dtype=np.int64)
    days = (FIRST_DAY - date(1970, 1, 1)).days + at % 1000
    return [
        pa.array(at),
        pa.array((at * 7 % CUSTOMER_ROWS).astype(np.int32)),
        pa.array([f"city{number}" for number in range(50)]).take(pa.array(at % 50)),
        decimals_of(pa.array(at * 31 % 100_000), pa.decimal128(12, 2)),
        pa.array((at % 1000) * 0.5),
        pa.array(days.astype(np.int32)).view(pa.date32()),
    ]


def customers(first: int, end: int) -> list[Any]:
    at = range(first, end)
    return [
        pa.array(at, pa.int32()),
        pa.array([f"name{number}" for number in at]),
        pa.array([f"region{number % 12}" for number in at]),
    ]


class Based:
    """A store and a lake of its own; `sales` has so many rows in its base, `customers` some."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.env = SystemEnv()
        self.engine = SqliteEngine(str(folder / "store"), self.env)
        self.store = Store(self.engine, self.env)
        self.files = open_files(str(folder / "lake"))
        self.manifests = Manifests(self.store.keyspace)
        self.bases = LakeBases(self.store, self.manifests, self.files, cache_bytes=CACHE_BYTES)
        self.store.use_bases(self.bases)
        self.layouts = Layouts(self.store.keyspace)
        self.duck = Duck(self.store, lake=self.files)
        schema.TABLES.update(sales=SALES, customers=CUSTOMERS)
        self._names = schema.KnownNames()
        self.file_names = {
            "sales": self._publish(SALES, sales, rows),
            "customers": self._publish(CUSTOMERS, customers, CUSTOMER_ROWS),
        }
        self.bases.load()

    def close(self) -> None:
        self.duck.close()
        self.bases.close()
        self.store.close()
        self.engine.close()

    def _publish(self, table: Table, columns: Any, rows: int) -> list[str]:
        made = [
            self._write(table, columns(first, min(rows, first + FILE_ROWS)), number)
            for number, first in enumerate(range(0, rows, FILE_ROWS))
        ]
        at = self.store.snapshot().at
        self.store.transact(
            lambda txn: publish(
                txn,
                self.store.keyspace,
                self.manifests,
                no_base(table.id, 1),
                ManifestEdit((), live=tuple(made)),
                at,
            )
        )
        return [self.files.duck_path(each.file.name) for each in made]

    def _write(self, table: Table, arrays: list[Any], number: int) -> WrittenFile:
        layout = self.layouts.of(table)
        shape = shape_of(layout, 1)
        keys = key_array(key_columns(layout.primary), {1: arrays[0]})
        count = len(arrays[0])
        times = pa.array(np.ones(count, dtype=np.int64))
        made = pa.table([keys, times, *arrays, pa.nulls(count, pa.binary())], schema=schema_of(shape))
        return write(self.files, f"t{table.id}/live-{number}.parquet", shape, made)

    def put(self, rows: list[tuple[Any, ...]]) -> None:
        """Writes sales to the store: the delta."""
        layout = self.layouts.of(SALES)
        for start in range(0, len(rows), DELTA_BATCH):

            def work(txn: Transaction, start: int = start) -> None:
                for row in rows[start : start + DELTA_BATCH]:
                    values = dict(enumerate(row, 1))
                    entry = layout.entry(layout.primary, Row(layout.key(values), values), CONTEXT)
                    assert entry is not None
                    txn.put(*entry)

            self.store.transact(work)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        statement = one(text)
        assert statement is not None
        query = with_access(bind_query(statement.tree, self._names, Parameters(())))
        txn = self.store.begin()
        run = QueryRun(
            CONTEXT, txn, self.layouts.of, lambda key, sought: (), lambda: None, lone_account(1 << 30)
        )
        run.instead = self.duck.taking()
        found = list(compile(query).rows(run))
        txn.commit()
        return found

    def key(self, id: int) -> bytes:
        key: bytes = self.layouts.of(SALES).key({1: id})
        assert len(key) > HEAD_BYTES
        return key


@contextmanager
def based(rows: int) -> Iterator[Based]:
    with tempfile.TemporaryDirectory() as folder:
        made = Based(Path(folder), rows)
        try:
            yield made
        finally:
            made.close()
