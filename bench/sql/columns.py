"""Aggregates and joins over a table in the delta beside PostgreSQL, one row in a hundred changed each time.

The same rows, the same queries, other constants every time; before each run, rows are changed in both.
What is measured is from the statement's text to its rows: ours without the wire, PostgreSQL's over a
unix socket. The answers are compared.

Walk: `bench.__main__` calls `run`; it drives the packages `bind`, `access`, `rows` and `duck` of `sql`.
"""

import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg

from bench.ratio import Bar, Ratio, compare
from tenure.base.env import SystemEnv
from tenure.base.memory import lone_account
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.duck.offload import Duck
from tenure.sql.rows.run import QueryRun
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.table.rows import Layout, Layouts, Row
from tests import postgres_server
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
QUERIES = {
    "groups": "SELECT city, count(*), sum(price), avg(qty) FROM sales WHERE cust > {} GROUP BY city",
    "one sum": "SELECT count(*), sum(price * qty::int) FROM sales WHERE day >= date '2020-01-01' + {}",
    "join": "SELECT region, sum(price), count(*) FROM sales JOIN customers ON customers.id = sales.cust "
    "WHERE qty > {} GROUP BY region",
    "distinct": "SELECT count(DISTINCT cust) FROM sales WHERE city <> 'city{}'",
}
ROWS, CUSTOMER_ROWS, QUICK_ROWS = 1_000_000, 100_000, 20_000
ROUNDS, QUICK_ROUNDS = 4, 1
CHANGED_SHARE = 0.01


def run(quick: bool) -> list[Ratio]:
    rows, rounds = (QUICK_ROWS, QUICK_ROUNDS) if quick else (ROWS, ROUNDS)
    took: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with _both(rows) as (ours, peer, change):
        for text in QUERIES.values():
            ours(text.format(0))  # loads the columns
        constants = iter(range(1, 1000))
        for _ in range(rounds):
            for name, text in QUERIES.items():
                change(int(rows * CHANGED_SHARE))
                took[name].append(_timed(ours, peer, text.format(next(constants))))
    return [
        compare(
            f"{name} over {rows} rows, 1 % changed",
            ours=min(mine for mine, _ in each) * 1000,
            peer=min(other for _, other in each) * 1000,
            unit="ms",
            bar=Bar.AT_MOST,
            limit=1.0,
        )
        for name, each in took.items()
    ]


Ask = Callable[[str], list[tuple[Any, ...]]]


def _timed(ours: Ask, peer: Ask, text: str) -> tuple[float, float]:
    began = time.perf_counter()
    mine = ours(text)
    middle = time.perf_counter()
    other = peer(text)
    ended = time.perf_counter()
    if sorted(map(_rounded, mine)) != sorted(map(_rounded, other)):
        raise AssertionError(f"different answers: {text}")
    return middle - began, ended - middle


def _rounded(row: tuple[Any, ...]) -> str:
    return repr(tuple(round(each, 6) if isinstance(each, float) else each for each in row))


@contextmanager
def _both(rows: int) -> Iterator[tuple[Ask, Ask, Callable[[int], None]]]:
    """Both filled: how to ask either, and how to change rows in both."""
    directory = postgres_server.make_directory()
    with tempfile.TemporaryDirectory() as folder:
        try:
            server = postgres_server.start(directory)
            with psycopg.connect(server.socket_dsn, autocommit=True) as connection:
                _fill_peer(connection, rows)
                with _Ours(Path(folder), rows) as ours:
                    yield ours.ask, _asking(connection), _changing(ours, connection, rows)
        finally:
            postgres_server.remove_directory(directory)


class _Ours:
    def __init__(self, folder: Path, rows: int) -> None:
        env = SystemEnv()
        self.engine = SqliteEngine(str(folder / "store"), env)
        self.store = Store(self.engine, env)
        self.layouts = Layouts(self.store.keyspace)
        self.duck = Duck(self.store)
        schema.TABLES.update(sales=SALES, customers=CUSTOMERS)
        self.names = schema.KnownNames()
        self.put(self.layouts.of(SALES), [_sale(at) for at in range(rows)])
        self.put(self.layouts.of(CUSTOMERS), [_customer(at) for at in range(CUSTOMER_ROWS)])

    def __enter__(self) -> "_Ours":
        return self

    def __exit__(self, *_: object) -> None:
        self.duck.close()
        self.engine.close()

    def put(self, layout: Layout, rows: list[tuple[Any, ...]]) -> None:
        for start in range(0, len(rows), 5_000):

            def write(txn: Transaction, start: int = start) -> None:
                for row in rows[start : start + 5_000]:
                    values = dict(enumerate(row, 1))
                    entry = layout.entry(layout.primary, Row(layout.key(values), values), CONTEXT)
                    assert entry is not None
                    txn.put(*entry)

            self.store.transact(write)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        statement = one(text)
        assert statement is not None
        query = with_access(bind_query(statement.tree, self.names, Parameters(())))
        txn = self.store.begin()
        run = QueryRun(
            CONTEXT, txn, self.layouts.of, lambda key, sought: (), lambda: None, lone_account(1 << 30)
        )
        run.instead = self.duck.taking()
        found = list(compile(query).rows(run))
        txn.commit()
        return found


def _fill_peer(connection: "psycopg.Connection[Any]", rows: int) -> None:
    cursor = connection.cursor()
    cursor.execute(DDL)
    for name, made in (
        ("sales", map(_sale, range(rows))),
        ("customers", map(_customer, range(CUSTOMER_ROWS))),
    ):
        with cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
            for row in made:
                copy.write_row(row)
    cursor.execute("VACUUM ANALYZE")


def _asking(connection: "psycopg.Connection[Any]") -> Ask:
    return lambda text: connection.execute(text.encode()).fetchall()


def _changing(ours: _Ours, connection: "psycopg.Connection[Any]", rows: int) -> Callable[[int], None]:
    rng = random.Random(1)
    layout = ours.layouts.of(SALES)
    update = "UPDATE sales SET cust = %s, city = %s, price = %s, qty = %s, day = %s WHERE id = %s"

    def change(count: int) -> None:
        salt = rng.randrange(1, 1000)
        changed = [_sale(at, salt) for at in rng.sample(range(rows), count)]
        ours.put(layout, changed)
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(update, [(*row[1:], row[0]) for row in changed])

    return change


def _sale(at: int, salt: int = 0) -> tuple[Any, ...]:
    price = Decimal((at * 31 + salt * 17) % 100_000).scaleb(-2)
    day = date(2020, 1, 1) + timedelta(days=(at + salt) % 1000)
    return (
        at,
        (at * 7 + salt) % CUSTOMER_ROWS,
        f"city{(at + salt) % 50}",
        price,
        ((at + salt) % 1000) * 0.5,
        day,
    )


def _customer(at: int) -> tuple[Any, ...]:
    return at, f"name{at}", f"region{at % 12}"
