from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.storage.sqlite import MEMORY, SqliteEngine
from tests.unit.cluster.members import Member
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
def member(engine: BreakingEngine, env: ManualEnv) -> Member:
    return Member(engine, env)


@pytest.fixture
def other(engine: BreakingEngine, env: ManualEnv) -> Member:
    return Member(engine, env)
