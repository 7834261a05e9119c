"""Schema leases: what only they do."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import Unavailable
from tenure.storage.engine import Found, Scan
from tests.contract.lease_nodes import SCHEMA, LeaseNode
from tests.unit.kv.breaking import BreakingEngine


class DiffLost(BreakingEngine):
    """An engine whose next incremental scan does not answer."""

    loses_diff = False

    def scan(self, query: Scan) -> Found:
        if self.loses_diff and query.since_at is not None:
            self.loses_diff = False
            raise Unavailable("the store is away")
        return super().scan(query)


def test_a_lease_row_whose_diff_was_lost_does_not_hold_up_others(
    node: LeaseNode, engine: BreakingEngine, env: ManualEnv
) -> None:
    flaky = DiffLost(engine.engine)
    other = LeaseNode(flaky, env, SCHEMA)
    flaky.loses_diff = True
    with pytest.raises(Unavailable):
        other.leases.renew()
    other.leases.step()
    for _ in range(4):
        node.publish(timeout=1.0)
        other.leases.step()
    assert node.stored().version == 5
