"""Holding: whoever publishes waits for the pins of its own node."""

from contextlib import suppress

import pytest

from tenure.base.errors import Disconnected, OutcomeUnknown, RetryError
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.catalog.leasing import bump
from tests.unit.kv.breaking import Deliver
from tests.unit.kv.waiting import Call, SeenWaits
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import add_index, created


def test_a_hold_waits_for_the_pins_of_its_own_node(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    with node.leases.hold([id], timeout=0.05) as is_free:
        assert not is_free
    use.close()
    with node.leases.hold([id], timeout=0.05) as is_free:
        assert is_free


def test_two_holds_of_overlapping_sets_take_turns(node: SchemaNode) -> None:
    with node.leases.hold([1, 2], timeout=0.05) as first:
        with node.leases.hold([2, 3], timeout=0.05) as second:
            assert (first, second) == (True, False)
        with node.leases.hold([3, 4], timeout=0.05) as third:
            assert third
    with node.leases.hold([2, 3], timeout=0.05) as again:
        assert again


def test_a_new_use_waits_for_the_publisher_and_starts_over_on_what_it_published() -> None:
    env = SeenWaits()
    engine = SqliteEngine(MEMORY, env)
    node = SchemaNode(engine, env)
    id = created(node)
    use = node.bind()
    with node.leases.hold([id], timeout=1.0) as is_free:
        assert is_free
        waiting = Call(lambda: use.descriptor(id))
        bump(node, id)
        node.leases.renew()
    with pytest.raises(RetryError):
        waiting.result()
    use.close()
    engine.close()


def test_a_publisher_in_doubt_keeps_its_hold_until_a_newer_lease_is_there(
    cluster: Cluster, node: SchemaNode
) -> None:
    """Stages may have been skipped: nobody here may use the version from before them."""
    id = created(node)
    with suppress(OutcomeUnknown), node.leases.hold([id], timeout=0.05) as is_free:
        assert is_free
        bump(node, id)  # it has landed, but nobody says so
        raise OutcomeUnknown("cut")
    with cluster.env.still(), node.leases.hold([id], timeout=0.05) as is_free:
        assert not is_free
    node.step_leases()
    with node.leases.hold([id], timeout=0.05) as is_free:
        assert is_free
    assert node.leases.newest.descriptor(id) == node.table(id)


def test_an_earlier_renewal_does_not_end_a_doubt(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    """Its lease may be older than the commit that nobody knows of."""
    id = created(node)
    cluster.settle()

    def doubt_meanwhile(group: Group, deliver: Deliver) -> list[Outcome]:
        node.wire.on_commit = None
        outcomes = deliver(group)
        with suppress(OutcomeUnknown), node.leases.hold([id], timeout=0.05):
            bump(other, id)
            raise OutcomeUnknown("cut")
        return outcomes

    node.wire.on_commit = doubt_meanwhile
    with cluster.env.still():
        node.leases.renew()
        with node.leases.hold([id], timeout=0.05) as is_free:
            assert not is_free
    node.step_leases()
    with node.leases.hold([id], timeout=0.05) as is_free:
        assert is_free


@pytest.mark.invariant("I11")
def test_a_change_whose_lease_cannot_be_taken_into_use_hides_the_version_before_it(
    cluster: Cluster, node: SchemaNode
) -> None:
    """All stages of an index in one commit, and then the store is away: who wrote without it now..."""
    id = created(node)
    use = node.bind()
    add_index(use, id, 2)
    bystander = node.bind()

    def land_and_go_away(group: Group, deliver: Deliver) -> list[Outcome]:
        deliver(group)
        node.wire.settle_errors = [OutcomeUnknown("gone for now")]
        raise Disconnected("cut")

    with cluster.env.still():
        node.wire.on_commit = land_and_go_away
        with pytest.raises(OutcomeUnknown):
            node.changer.commit(use)
        node.wire.on_commit = None
        with node.leases.hold([id], timeout=0.05) as is_free:
            assert not is_free
    with pytest.raises(RetryError):
        node.insert(bystander, id, 1, 1, 1)  # waits, until the node has caught up
    bystander.close()
    node.put_rows(id, (2, 2, 2))
    assert node.wrong_indexes(id) == []


def test_release_gives_all_rows_up(node: SchemaNode, other: SchemaNode) -> None:
    created(node)
    node.leases.release()
    assert {row.instance for row in node.lease_rows()} == {other.liveness.session().id.instance}
    with pytest.raises(RetryError):
        node.bind()
