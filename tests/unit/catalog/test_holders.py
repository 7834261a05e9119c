"""Ending a node's own transactions when others have waited for them too long."""

import pytest

from tenure.base.settings import LEASE_HOLDER_GRACE
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.leases.catalog_use import UseState
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.kv.keys import LEASE_WAITS
from tenure.kv.thresholds import publish_threshold
from tenure.storage.engine import Group, Outcome
from tests.unit.catalog.leasing import bump
from tests.unit.catalog.test_lease_waits import awaited
from tests.unit.kv.breaking import Deliver
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import created


def make_wait(node: SchemaNode, *ids: int) -> None:
    """Somebody waits for these, and says so."""
    assert node.lease_waits.record(awaited(node, *ids), LeaseWaiter(ZERO_AT)) is not None


def let_grace_pass(cluster: Cluster, node: SchemaNode) -> None:
    with cluster.env.still():
        cluster.env.advance(node.settings[LEASE_HOLDER_GRACE] + 0.1)


@pytest.mark.setting("lease.holder_grace")
def test_a_transaction_is_ended_after_the_grace_and_not_before(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    bump(node, id)
    node.step_leases()
    make_wait(node, id)
    node.step_holders()
    node.step_holders()
    assert not use.ended
    let_grace_pass(cluster, node)
    node.step_holders()
    assert "held up a schema change" in use.ended
    assert use.pins == {}
    use.close()


def test_transactions_that_nobody_waits_for_are_left_alone(cluster: Cluster, node: SchemaNode) -> None:
    waited_for, free = created(node, "waited_for"), created(node, "free")
    bystander, newer = node.bind(), None
    bystander.descriptor(free)
    bump(node, waited_for)
    node.step_leases()
    newer = node.bind()
    newer.descriptor(waited_for)  # in the newest version: in nobody's way
    make_wait(node, waited_for)
    node.step_holders()
    let_grace_pass(cluster, node)
    node.step_holders()
    assert (bystander.ended, newer.ended) == ("", "")
    bystander.close()
    newer.close()


def test_a_commit_under_way_is_waited_for(cluster: Cluster, node: SchemaNode, other: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    node.insert(use, id, 1, 1, 1)
    bump(other, id)
    make_wait(other, id)
    node.step_leases()
    node.step_holders()
    let_grace_pass(cluster, node)

    def look_meanwhile(group: Group, deliver: Deliver) -> list[Outcome]:
        node.wire.on_commit = None
        node.step_holders()
        assert use.state is UseState.COMMITTING and not use.ended
        return deliver(group)

    node.wire.on_commit = look_meanwhile
    use.commit()
    assert node.shown(id) == [(1, 1, 1)]


def test_a_watch_that_has_fallen_behind_is_made_anew(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    bump(node, id)
    node.step_leases()
    node.step_holders()
    bump(node, created(node, "other"))
    head = node.store.keyspace.head(LEASE_WAITS)
    at = node.store.snapshot().at
    node.transact(lambda txn: publish_threshold(txn, node.store.keyspace, head, at))
    make_wait(node, id)
    let_grace_pass(cluster, node)
    for _ in range(3):
        node.step_holders()
    assert use.ended
    use.close()
