"""A round over many heads that nobody has written to asks for none of them, in both engines."""

from collections.abc import Iterator
from typing import Any, cast
from uuid import uuid4

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.retention.protections.protection_records import Mode
from tenure.retention.sweeping.sweep_records import SweepStage
from tenure.storage.engine import Engine
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.postgres_server import Server, drop_schema
from tests.unit.catalog.tables import users
from tests.unit.retention.sweeping import TTL, SweptStore

FIRST, FEW, MANY = 200, 20, 300
CALLS_MAX = 20
"""How many more calls a round may make for three hundred heads: lists are read in pages of 1,000 rows, and a
system head with more rows takes a commit more.
"""


class CountingEngine:
    """An engine that counts the calls of each of its methods."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            return found(*arguments, **options)

        return call


class CountedStore(SweptStore):
    def __init__(self, engine: Engine, env: ManualEnv | None = None) -> None:
        self.counting = CountingEngine(engine)
        super().__init__(cast("Engine", self.counting), env)

    def fill(self, tables: int) -> None:
        """Makes tables with one row each."""

        def work_of(id: int) -> None:
            self.transact(lambda txn: self.catalog.put(txn, users(id=id, name=f"t{id}")))
            self.put(id, "k", "1")

        for id in range(FIRST, FIRST + tables):
            work_of(id)

    def round_calls(self) -> dict[str, int]:
        """The calls of a round in which nothing but the system's heads is due."""
        self.wait(TTL + 1)
        self.sweep()
        self.wait(60)
        self.counting.calls.clear()
        self.sweep()
        return dict(self.counting.calls)


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request: pytest.FixtureRequest) -> Iterator[list[CountedStore]]:
    """Two stores, of few tables and of many."""
    made: list[CountedStore] = []
    if request.param == "sqlite":
        for _ in range(2):
            env = ManualEnv()
            made.append(CountedStore(SqliteEngine(MEMORY, env), env))
        yield made
        for node in made:
            node.engine.close()
        return
    server: Server = request.getfixturevalue("postgres")
    schemas = [f"tenure_{uuid4().hex[:12]}" for _ in range(2)]
    made = [CountedStore(PostgresEngine(server.dsn, SystemEnv(), schema=schema)) for schema in schemas]
    yield made
    for node, schema in zip(made, schemas, strict=True):
        node.engine.close()
        drop_schema(server, schema)


@pytest.mark.invariant("idle-heads")
def test_a_round_costs_no_call_per_idle_head(stores: list[CountedStore]) -> None:
    few, many = stores
    few.fill(FEW)
    many.fill(MANY)
    calls_of_few, calls_of_many = few.round_calls(), many.round_calls()
    assert calls_of_many["written_heads"] == 1
    assert "history" not in calls_of_many and "revisions" not in calls_of_many
    assert sum(calls_of_many.values()) <= sum(calls_of_few.values()) + CALLS_MAX
    last = many.record(many.head(FIRST + MANY - 1))
    assert last is not None and last.stage is SweepStage.SWEPT


@pytest.mark.invariant("idle-heads")
def test_idle_heads_with_protections_cost_no_commit(stores: list[CountedStore]) -> None:
    """A kept point makes a head worth a look, and not due."""
    few, _ = stores
    few.fill(FEW)
    few.protect(few.now(), Mode.AT, *range(FIRST, FIRST + FEW))
    few.round_calls()
    before = [few.record(few.head(id)) for id in range(FIRST, FIRST + FEW)]
    few.wait(60)
    few.sweep()
    assert [few.record(few.head(id)) for id in range(FIRST, FIRST + FEW)] == before


def test_a_threshold_that_is_published_makes_no_head_due(stores: list[CountedStore]) -> None:
    """A raised threshold moves the head clock for watches; a sweep that counted it would never end."""
    few, _ = stores
    few.fill(1)
    few.wait(TTL // 2)
    few.sweep()
    few.wait(TTL)
    few.sweep()
    settled = few.record(few.head(FIRST))
    for _ in range(3):
        few.wait(60)
        few.sweep()
    assert few.record(few.head(FIRST)) == settled


def test_a_write_between_a_threshold_and_its_publication_is_swept_later(
    stores: list[CountedStore],
) -> None:
    few, _ = stores
    few.fill(1)
    few.wait(TTL - 10)
    few.put(FIRST, "k", "2")
    few.wait(20)
    few.sweep()
    assert few.kept(FIRST, "k") == ["1", "2"]
    few.wait(TTL)
    few.sweep()
    assert few.kept(FIRST, "k") == ["2"]
