from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.kv.store import Store
from tenure.storage.sqlite import MEMORY, SqliteEngine


@pytest.fixture
def env() -> ManualEnv:
    return ManualEnv()


@pytest.fixture
def store(env: ManualEnv) -> Iterator[Store]:
    engine = SqliteEngine(MEMORY, env)
    yield Store(engine, env)
    engine.close()
