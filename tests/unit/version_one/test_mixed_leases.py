"""Newer nodes beside those of version 1, and what finalizing changes."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import DeadlinePassed, LockNotAvailable, RetryError
from tenure.base.settings import LEASE_DURATION, LIVENESS_TTL
from tenure.base.timestamp import seconds_between
from tests.contract.lease_nodes import MIXED, SETTINGS, TABLE, LeaseNode
from tests.unit.kv.breaking import BreakingEngine

SECONDS = SETTINGS[LEASE_DURATION]
TTL_SECONDS = SETTINGS[LIVENESS_TTL]


def stop(old: LeaseNode) -> None:
    old.leases.release()
    old.liveness.release()


def finalize(old: LeaseNode, new: LeaseNode) -> None:
    stop(old)
    new.finalize()
    new.learn_of_finalizing()


@pytest.mark.invariant("mixed-leases")
def test_what_is_handed_out_is_covered_by_a_row_as_well(new: LeaseNode) -> None:
    use = new.pinned()
    assert [(row.descriptor, row.version) for row in new.old_leases()] == [(TABLE, 1)]
    use.close()


def test_an_older_publisher_waits_for_a_newer_nodes_pin(old: LeaseNode, new: LeaseNode) -> None:
    use = new.pinned()
    old.publish()
    new.leases.step()
    with pytest.raises(LockNotAvailable):
        old.publish(timeout=1.0)
    use.close()
    new.leases.step()
    old.publish(timeout=1.0)


def test_a_newer_publisher_waits_for_an_older_nodes_pin(old: LeaseNode, new: LeaseNode) -> None:
    use = old.pinned()
    new.publish()
    old.leases.step()
    with pytest.raises(LockNotAvailable):
        new.publish(timeout=1.0)
    use.close()
    old.leases.step()
    new.publish(timeout=1.0)


def test_an_older_publisher_does_not_look_at_schema_leases(old: LeaseNode, new: LeaseNode) -> None:
    for _ in range(3):
        old.publish(timeout=1.0)
    assert old.stored().version == 4


@pytest.mark.invariant("I10")
def test_what_changed_under_an_unused_schema_lease_is_not_handed_out(old: LeaseNode, new: LeaseNode) -> None:
    use = new.bind()
    for _ in range(2):
        old.publish()
    with pytest.raises(RetryError):
        use.descriptor(TABLE)
    use.close()
    assert new.version() == 3


def test_what_an_older_node_made_is_found_at_the_second_try(old: LeaseNode, new: LeaseNode) -> None:
    old.create(TABLE + 1, "u")
    use = new.bind()
    with pytest.raises(RetryError):
        use.descriptor(TABLE + 1)
    use.close()
    assert new.version(TABLE + 1) == 1


@pytest.mark.invariant("mixed-leases")
def test_the_deadline_is_the_lesser_of_both(new: LeaseNode) -> None:
    use = new.writing()
    (row,) = new.old_leases()
    while new.liveness.session().expires_at <= row.expires_at:
        new.env.advance(TTL_SECONDS / 2)
        new.liveness.step()
    assert use.frontier_at == row.expires_at
    new.env.advance(TTL_SECONDS)
    new.liveness.step()
    with pytest.raises(DeadlinePassed):
        use.commit()


def test_the_row_of_a_stalled_newer_node_lasts_until_it_expires(old: LeaseNode, new: LeaseNode) -> None:
    new.pinned()
    old.publish()
    began_at = old.store.clock.now()
    old.publish()
    assert seconds_between(began_at, old.store.clock.now()) > SECONDS - 1


# ── finalizing ─────────────────────────────────────────────────────────────────────────────────


def test_finalizing_ends_the_rows(old: LeaseNode, new: LeaseNode, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    new.pinned().close()
    finalize(old, new)
    for _ in range(3):
        new.leases.step()
    new.pinned().close()
    assert new.old_leases() == []
    assert new.mixed.is_over
    assert [each.message for each in caplog.records if "no expiring lease is left" in each.message] != []


def test_a_node_that_has_not_heard_of_it_learns_when_it_wants_a_row(old: LeaseNode, new: LeaseNode) -> None:
    stop(old)
    new.finalize()
    use = new.writing()
    assert new.old_leases() == []
    use.commit()


def test_a_transaction_lives_through_finalizing(old: LeaseNode, new: LeaseNode) -> None:
    use = new.writing()
    finalize(old, new)
    new.leases.step()
    for _ in range(20):
        new.env.advance(SECONDS / 20)
        new.liveness.step()
        new.leases.step()
    use.commit()


@pytest.mark.invariant("mixed-leases")
def test_a_pin_from_before_finalizing_keeps_to_its_rows_expiration(old: LeaseNode, new: LeaseNode) -> None:
    use = new.writing()
    (row,) = new.old_leases()
    old.publish()
    finalize(old, new)
    new.leases.step()
    assert new.old_leases() == [row]
    for _ in range(10):
        new.env.advance(SECONDS / 10)
        new.liveness.step()
        new.leases.step()
    assert use.frontier_at == row.expires_at
    with pytest.raises(DeadlinePassed):
        use.commit()


def test_a_schema_lease_from_before_finalizing_is_not_used_without_a_row(
    old: LeaseNode, new: LeaseNode
) -> None:
    use = new.bind()
    for _ in range(2):
        old.publish()
    finalize(old, new)
    with pytest.raises(RetryError):
        use.descriptor(TABLE)
    use.close()


@pytest.mark.invariant("I15")
def test_the_lease_of_a_stalled_older_node_is_respected_after_finalizing(
    old: LeaseNode, new: LeaseNode
) -> None:
    stalled = old.writing()
    instance = old.liveness.session().id.instance
    new.store.transact(lambda txn: new.sessions.instances.delete(txn, instance))
    new.publish()
    new.finalize()
    new.learn_of_finalizing()
    new.leases.step()
    with pytest.raises(LockNotAvailable):
        new.publish(timeout=1.0)
    stalled.commit()
    new.env.advance(SECONDS)
    new.liveness.step()
    for _ in range(2):
        new.leases.step()
    assert new.old_leases() == []
    new.publish(timeout=1.0)


def test_newer_nodes_respect_each_other_in_a_mixed_cluster(
    new: LeaseNode, engine: BreakingEngine, env: ManualEnv
) -> None:
    third = LeaseNode(engine, env, MIXED)
    use = third.pinned()
    new.publish()
    third.leases.step()
    with pytest.raises(LockNotAvailable):
        new.publish(timeout=1.0)
    use.close()
    third.leases.step()
    new.publish(timeout=1.0)
