"""A store in memory on a manual clock, behind an engine that breaks on demand; a new one for each test."""

from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.breaking import BreakingEngine


@pytest.fixture
def env() -> ManualEnv:
    return ManualEnv()


@pytest.fixture
def engine(env: ManualEnv) -> Iterator[BreakingEngine]:
    engine = BreakingEngine(SqliteEngine(MEMORY, env))
    yield engine
    engine.close()


@pytest.fixture
def store(engine: BreakingEngine, env: ManualEnv) -> Store:
    return Store(engine, env)
