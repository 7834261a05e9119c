import pytest

from tenure.base.env import ManualEnv
from tests.unit.cluster.members import Member
from tests.unit.kv.breaking import BreakingEngine


@pytest.fixture
def member(engine: BreakingEngine, env: ManualEnv) -> Member:
    return Member(engine, env)


@pytest.fixture
def other(engine: BreakingEngine, env: ManualEnv) -> Member:
    return Member(engine, env)
