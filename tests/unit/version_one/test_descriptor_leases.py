"""A process's expiring leases: taken, extended and given up."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import DeadlinePassed
from tenure.base.settings import LEASE_DURATION
from tests.contract.lease_nodes import EXPIRING, SETTINGS, TABLE, LeaseNode
from tests.unit.kv.breaking import BreakingEngine

SECONDS = SETTINGS[LEASE_DURATION]


def versions(node: LeaseNode) -> list[int]:
    return [row.version for row in node.old_leases() if row.owner == node.expiring.owner()]


def test_no_row_is_written_before_the_first_use(old: LeaseNode) -> None:
    old.bind().close()
    assert versions(old) == []


def test_a_lease_serves_many_uses(old: LeaseNode, engine: BreakingEngine) -> None:
    old.pinned().close()
    groups = len(engine.groups)
    for _ in range(5):
        old.pinned().close()
    assert len(engine.groups) == groups


@pytest.mark.setting("lease.duration")
def test_a_lease_that_is_soon_over_is_extended_if_it_was_used(old: LeaseNode) -> None:
    old.pinned().close()
    (before,) = old.old_leases()
    old.env.advance(SECONDS * 0.9)
    assert old.expiring.renew_due() > 0
    (after,) = old.old_leases()
    assert after.expires_at > before.expires_at


def test_a_lease_that_was_not_used_since_is_given_up(old: LeaseNode) -> None:
    old.pinned().close()
    for _ in range(2):
        old.env.advance(SECONDS * 0.9)
        old.expiring.renew_due()
    old.expiring.release_closed()
    assert old.old_leases() == []


def test_a_lease_in_use_is_kept_for_as_long_as_it_takes(old: LeaseNode) -> None:
    use = old.writing()
    for _ in range(5):
        old.env.advance(SECONDS * 0.9)
        old.expiring.renew_due()
    use.commit()


@pytest.mark.invariant("I13")
def test_an_older_version_in_use_is_not_extended(old: LeaseNode) -> None:
    use = old.writing()
    frontier_at = use.frontier_at
    old.publish()
    old.leases.step()
    for _ in range(2):
        old.env.advance(SECONDS * 0.4)
        old.expiring.renew_due()
    assert use.frontier_at == frontier_at
    use.close()


def test_an_expired_lease_is_taken_anew(old: LeaseNode) -> None:
    old.pinned().close()
    old.env.advance(SECONDS + 1)
    use = old.writing()
    use.commit()


@pytest.mark.invariant("I16")
def test_an_older_row_goes_with_its_last_pin(old: LeaseNode) -> None:
    first, second = old.pinned(), old.pinned()
    old.publish()
    old.leases.step()
    assert versions(old) == [1, 2]
    first.close()
    old.leases.step()
    assert versions(old) == [1, 2]
    second.close()
    old.leases.step()
    assert versions(old) == [2]


def test_a_lease_given_up_and_taken_again_keeps_its_row(old: LeaseNode) -> None:
    old.pinned().close()
    assert old.expiring.is_past(TABLE, old.stored().modified_at + 1)
    use = old.pinned()
    old.expiring.release_closed()
    assert versions(old) == [1]
    use.close()


def test_a_process_with_the_id_of_a_stalled_one_does_not_release_its_leases(
    old: LeaseNode, engine: BreakingEngine, env: ManualEnv
) -> None:
    stalled = old.writing()
    instance = old.liveness.session().id.instance
    old.store.transact(lambda txn: old.sessions.instances.delete(txn, instance))
    env.advance(1.0)
    successor = LeaseNode(engine, env, EXPIRING)
    assert successor.liveness.session().id.instance == instance
    successor.pinned().close()
    successor.leases.release()
    assert versions(old) == [1]
    stalled.commit()


def test_what_was_dropped_is_not_leased_any_more(old: LeaseNode) -> None:
    old.pinned().close()
    old.store.transact(lambda txn: old.catalog.delete(txn, TABLE))
    old.leases.step()
    old.leases.step()
    assert old.version() == 0
    assert old.old_leases() == []


@pytest.mark.invariant("I19")
def test_a_publisher_waits_for_its_own_nodes_older_lease_no_longer_than_it_lasts(old: LeaseNode) -> None:
    use = old.writing()
    old.publish()
    old.publish()
    assert old.stored().version == 3
    with pytest.raises(DeadlinePassed):
        use.commit()
