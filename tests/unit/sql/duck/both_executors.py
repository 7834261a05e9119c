"""The same queries by rows and by DuckDB, over tables filled at random."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tenure.base.env import SystemEnv
from tenure.base.errors import UserError
from tenure.base.memory import lone_account
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.types.json_values import Jsonb
from tenure.kv.store import Store
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.duck.offload import Duck
from tenure.sql.plans.plan import Query
from tenure.sql.rows.run import QueryRun
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.read import Source
from tenure.table.rows import Layouts, Row
from tests.unit.sql.schema import TABLES, KnownNames
from tests.unit.table.trees import CONTEXT

NAMES = KnownNames()


class BothExecutors:
    """A store with the schema's tables filled, and queries by rows and by DuckDB."""

    def __init__(self, seed: int = 1, rows: int = 60) -> None:
        env = SystemEnv()
        self.engine = SqliteEngine(MEMORY, env)
        self.store = Store(self.engine, env)
        self.layouts = Layouts(self.store.keyspace)
        self.duck = Duck(self.store)
        rng = random.Random(seed)
        for name in TABLES:
            made = [dict(row_of(name, rng, at)) for at in range(rows)]
            self.fill(table_named(name), made)

    def fill(self, table: Table, rows: list[dict[str, Any]]) -> None:
        layout = self.layouts.of(table, NAMES.enum)
        ids = {column.name: column.id for column in table.columns}

        def put(txn: Any) -> None:
            for at, row in enumerate(rows):
                values = {id: row.get(name, at if name == "rowid" else None) for name, id in ids.items()}
                entry = layout.entry(layout.primary, Row(layout.key(values), values), CONTEXT)
                assert entry is not None
                txn.put(*entry)

        self.store.transact(put)

    def query(self, text: str) -> Query:
        return bound(text)

    def run(self, source: Source | None = None) -> QueryRun:
        return QueryRun(
            context=CONTEXT,
            source=self.store.snapshot() if source is None else source,
            layouts=lambda table: self.layouts.of(table, NAMES.enum),
            virtual=lambda key, sought: (),
            check=lambda: None,
            memory=lone_account(1 << 30),
        )

    def by_rows(self, query: Query, source: Source | None = None) -> Any:
        return _outcome(query, self.run(source))

    def by_duck(self, query: Query, source: Source | None = None, *, is_forced: bool = True) -> Any:
        run = self.run(source)
        run.instead = self.duck.taking(NAMES.enum, is_forced=is_forced)
        return _outcome(query, run)

    def close(self) -> None:
        self.duck.close()
        self.engine.close()


def bound(text: str) -> Query:
    statement = one(text)
    assert statement is not None
    return with_access(bind_query(statement.tree, NAMES, Parameters(())))


def _outcome(query: Query, run: QueryRun) -> Any:
    try:
        return [tuple(map(_exact, row)) for row in compile(query, NAMES.enum).rows(run)]
    except UserError as error:
        return error.sqlstate


def _exact(value: Any) -> tuple[str, str]:
    if isinstance(value, float) and abs(value) < 1e300:
        value = float(f"{value:.12g}")  # sums of floats depend on the order of rows
    return type(value).__name__, repr(value)


def table_named(name: str) -> Table:
    found: Any = TABLES[name]
    table: Table = getattr(found, "table", found)
    return table


def row_of(name: str, rng: random.Random, at: int) -> Iterator[tuple[str, Any]]:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    kinds: dict[str, dict[str, Any]] = {
        "people": {
            "id": at,
            "name": rng.choice(["ann", "Bob", "çelik", "", "ann", "日本"]) + str(rng.randrange(3)),
            "age": maybe(rng.randrange(-2, 60)),
            "city": maybe(rng.choice(["Rome", "Oslo", "Zürich", "rome"])),
            "mood": maybe(rng.choice(["sad", "ok", "happy"])),
            "born": maybe(date(2000, 1, 1) + timedelta(days=rng.randrange(-20000, 9000))),
            "tags": maybe((rng.choice("ab"), None)),
            "data": maybe(Jsonb(rng.choice([Decimal(1), "x", None]))),
            "raw": None,
            "score": maybe(Decimal(rng.randrange(-500, 500)).scaleb(-2)),
            "seen": maybe(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=rng.randrange(9999))),
        },
        "orders": {
            "id": at,
            "person": maybe(rng.randrange(70)),
            "amount": maybe(Decimal(rng.randrange(0, 99999)).scaleb(-2)),
            "note": maybe(rng.choice(["", "a%b", "gift", "it's"])),
            "at": maybe(datetime(2023, 5, 1) + timedelta(minutes=rng.randrange(999999))),
        },
        "pairs": {"a": at % 7, "b": at, "c": maybe(rng.choice("xyz"))},
        "t": {"a": maybe(at % 5), "b": maybe(rng.choice("pq")), "c": maybe(rng.choice([0.5, -1.25, 3.0]))},
        "u": {
            "a": maybe(at % 6),
            "d": maybe(rng.random() < 0.5),
            "e": maybe(rng.choice(["a  ", "bc ", "xyz"])),
        },
    }
    yield from kinds[name].items()
