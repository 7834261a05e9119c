"""Leases and the session they are held by."""

from contextlib import suppress

import pytest

from tenure.base.errors import RetryError, SessionLost
from tenure.base.settings import LIVENESS_TTL
from tenure.base.timestamp import ZERO_AT
from tenure.storage.engine import Group, Outcome
from tests.unit.kv.breaking import Deliver
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import created


@pytest.mark.invariant("I11")
def test_a_lost_session_ends_the_uses_under_it(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    node.insert(use, id, 1, 1, 1)
    _lose_session(cluster, node)
    with pytest.raises(RetryError):
        use.commit()
    with pytest.raises(RetryError):
        node.bind()
    node.liveness.step()
    node.step_leases()
    fresh = node.bind()
    assert fresh.descriptor(id) is not None
    fresh.close()


def _lose_session(cluster: Cluster, node: SchemaNode) -> None:
    session = node.liveness.session()
    undertaker = cluster.add()
    with cluster.env.still():
        cluster.env.advance(node.settings[LIVENESS_TTL] + 1)
        assert undertaker.deaths.bury(session.id)
        with suppress(SessionLost):
            node.liveness.step()
    assert session.done.is_set() and session.expires_at == ZERO_AT


@pytest.mark.invariant("I11")
def test_pins_do_not_move_to_a_lease_of_another_session(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    _lose_session(cluster, node)
    node.liveness.step()
    node.leases.renew()
    assert not node.leases.is_pinned([id])
    with pytest.raises(RetryError):
        use.check()
    use.close()


def test_without_a_session_there_is_no_lease(cluster: Cluster, node: SchemaNode) -> None:
    _lose_session(cluster, node)
    with pytest.raises(SessionLost):
        node.leases.renew()


@pytest.mark.invariant("I16")
def test_a_commit_under_way_is_not_ended(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    node.insert(use, id, 1, 1, 1)
    seen: list[bool] = []

    def end_meanwhile(group: Group, deliver: Deliver) -> list[Outcome]:
        seen.append(node.leases.end(use, "too slow"))
        seen.append(node.leases.is_pinned([id]))
        return deliver(group)

    node.wire.on_commit = end_meanwhile
    use.commit()
    assert seen == [False, True]
    assert not node.leases.is_pinned([id])


def test_a_transaction_that_was_ended_neither_commits_nor_reads_on_later(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    node.insert(use, id, 1, 1, 1)
    assert node.leases.end(use, "it held up a schema change")
    assert not node.leases.is_pinned([id])
    for step in (use.check, use.refresh, use.commit):
        with pytest.raises(RetryError, match="held up a schema change"):
            step()
    assert node.shown(id) == []
