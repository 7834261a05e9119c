import pytest

from tenure.base.env import ManualEnv
from tests.contract.lease_nodes import EXPIRING, MIXED, LeaseNode
from tests.unit.kv.breaking import BreakingEngine


@pytest.fixture
def old(engine: BreakingEngine, env: ManualEnv) -> LeaseNode:
    """A node of version 1, with the table that most tests use."""
    node = LeaseNode(engine, env, EXPIRING)
    node.create()
    node.leases.renew()
    return node


@pytest.fixture
def new(old: LeaseNode, engine: BreakingEngine, env: ManualEnv) -> LeaseNode:
    """A newer node in the same cluster."""
    return LeaseNode(engine, env, MIXED)
