"""What every lease scheme keeps: the same cases for schema leases, expiring ones, and both at once."""

from collections.abc import Callable, Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import LockNotAvailable, RetryError, TenureError, UserError
from tenure.base.interruptible import checked_by
from tenure.base.settings import LEASE_DURATION, LIVENESS_TTL
from tenure.base.timestamp import seconds_between
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DEFAULT_SCHEMA, NameKey, replace
from tenure.catalog.leases.catalog_use import UseState
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.catalog.leases.publish_holds import HELD_SECONDS
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.contract.lease_nodes import EXPIRING, MIXED, SCHEMA, SETTINGS, TABLE, LeaseNode, renamed
from tests.unit.kv.breaking import BreakingEngine, Deliver

MakeNode = Callable[[], LeaseNode]

LONGEST_SECONDS = max(SETTINGS[LEASE_DURATION], SETTINGS[LIVENESS_TTL])
SHORTEST_SECONDS = min(SETTINGS[LEASE_DURATION], SETTINGS[LIVENESS_TTL])


@pytest.fixture
def env() -> ManualEnv:
    return ManualEnv()


@pytest.fixture
def broken(env: ManualEnv) -> Iterator[BreakingEngine]:
    engine = BreakingEngine(SqliteEngine(MEMORY, env))
    yield engine
    engine.close()


@pytest.fixture(params=[SCHEMA, EXPIRING, MIXED])
def make_node(broken: BreakingEngine, env: ManualEnv, request: pytest.FixtureRequest) -> MakeNode:
    return lambda: LeaseNode(broken, env, request.param)


@pytest.fixture
def node(make_node: MakeNode) -> LeaseNode:
    node = make_node()
    node.create()
    node.leases.renew()
    return node


@pytest.fixture
def other(node: LeaseNode, make_node: MakeNode) -> LeaseNode:
    """A node that knows the table, and leaves it to the first one to change it."""
    return make_node()


# ── what a use sees ────────────────────────────────────────────────────────────────────────────


def test_a_use_goes_on_with_the_version_it_has_pinned(node: LeaseNode, other: LeaseNode) -> None:
    use = other.pinned()
    node.publish()
    other.leases.step()
    found = use.descriptor(TABLE)
    assert found is not None and found.version == 1
    use.close()


def test_a_new_use_sees_the_new_version_after_a_step(node: LeaseNode, other: LeaseNode) -> None:
    other.pinned().close()
    node.publish()
    other.leases.step()
    assert other.version() == 2


def test_what_is_not_there_is_none(node: LeaseNode) -> None:
    use = node.bind()
    assert use.descriptor(TABLE + 1) is None
    use.close()


@pytest.mark.invariant("I18")
def test_what_changed_since_a_use_began_is_not_handed_out(node: LeaseNode, other: LeaseNode) -> None:
    other.pinned().close()
    use = other.bind()
    node.publish()
    other.leases.step()
    with pytest.raises(RetryError):
        use.descriptor(TABLE)
    use.close()


def test_names_are_found(node: LeaseNode) -> None:
    use = node.bind()
    assert use.id_at(NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, "t")) == TABLE
    assert use.id_at(NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, "u")) is None
    entry = use.schema_entry(DEFAULT_DATABASE, "public")
    assert entry is not None and entry.id == DEFAULT_SCHEMA
    use.close()


def test_both_names_stand_while_the_older_drains(node: LeaseNode, other: LeaseNode) -> None:
    other.pinned().close()
    node.publish(change=renamed("u"))
    other.leases.step()
    use = other.pinned()
    assert use.id_at(NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, "u")) == TABLE
    assert use.id_at(NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, "t")) == TABLE
    use.close()


def test_the_older_name_is_gone_once_it_has_drained(node: LeaseNode, other: LeaseNode) -> None:
    other.pinned().close()
    node.publish(change=renamed("u"))
    other.leases.step()
    node.publish(change=lambda former: replace(former, draining=()))
    other.leases.step()
    use = other.pinned()
    assert use.id_at(NameKey(DEFAULT_DATABASE, DEFAULT_SCHEMA, "t")) is None
    use.close()


def test_a_transaction_sees_its_own_copy_and_nobody_else_does(node: LeaseNode) -> None:
    use = node.pinned()
    found = use.descriptor(TABLE)
    assert found is not None
    use.draft.declare(replace(found, owner="somebody"), made_from=found.version)
    own, bystander = use.descriptor(TABLE), node.pinned()
    theirs = bystander.descriptor(TABLE)
    assert own is not None and theirs is not None
    assert (own.owner, theirs.owner) == ("somebody", "root")
    use.close()
    bystander.close()


# ── two versions ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I11")
@pytest.mark.invariant("I12")
def test_the_version_after_the_next_waits_for_a_pin(node: LeaseNode, other: LeaseNode) -> None:
    use = other.pinned()
    node.publish()
    other.leases.step()
    with pytest.raises(LockNotAvailable):
        node.publish(timeout=1.0)
    use.close()
    other.leases.step()
    node.publish(timeout=1.0)
    assert node.stored().version == 3


def test_a_version_that_nobody_uses_any_more_does_not_block(node: LeaseNode, other: LeaseNode) -> None:
    for version in range(2, 6):
        other.pinned().close()
        node.publish(timeout=1.0)
        other.leases.step()
        assert other.version() == version


def test_a_pin_holds_up_only_what_it_is_on(node: LeaseNode, other: LeaseNode) -> None:
    node.create(TABLE + 1, "u")
    other.leases.step()
    use = other.pinned(TABLE + 1)
    node.publish()
    other.leases.step()
    node.publish(timeout=1.0)
    assert node.stored().version == 3
    use.close()


def test_a_node_does_not_wait_for_what_it_has_given_up_itself(node: LeaseNode) -> None:
    use = node.pinned()
    node.publish()
    node.publish(use=use, timeout=1.0)
    assert node.stored().version == 3
    use.close()


def test_a_node_waits_for_its_own_other_transactions(node: LeaseNode) -> None:
    use = node.pinned()
    node.publish()
    with pytest.raises(LockNotAvailable):
        node.publish(timeout=1.0)
    use.close()
    node.publish(timeout=1.0)


@pytest.mark.invariant("I10")
def test_a_use_that_waits_for_a_lock_is_in_no_publishers_way_and_does_not_go_on_after_it(
    node: LeaseNode, other: LeaseNode
) -> None:
    use = other.pinned()
    use.pause()
    for _ in range(2):
        node.publish(timeout=1.0)
        other.leases.step()
    with pytest.raises(RetryError):
        use.resume()
    with pytest.raises(RetryError):
        use.check()
    use.close()


@pytest.mark.invariant("I16")
def test_a_use_that_has_waited_for_a_lock_goes_on_with_what_has_not_changed(
    node: LeaseNode, other: LeaseNode
) -> None:
    use = other.pinned()
    use.pause()
    assert not use.pins
    use.resume()
    node.publish()
    other.leases.step()
    with pytest.raises(LockNotAvailable):
        node.publish(timeout=1.0)
    use.close()
    other.leases.step()
    node.publish(timeout=1.0)


@pytest.mark.invariant("I16")
def test_a_pin_stays_until_the_outcome_of_its_transaction_is_known(node: LeaseNode, other: LeaseNode) -> None:
    use = other.writing()
    node.publish()
    other.leases.step()
    use._scheme.start_commit(use)
    assert not other.leases.end(use, "somebody waits")
    with pytest.raises(LockNotAvailable):
        node.publish(timeout=1.0)
    use.close()


@pytest.mark.invariant("I16")
def test_a_submitted_transactions_pins_stay_until_its_outcome_is_known(
    node: LeaseNode, other: LeaseNode, broken: BreakingEngine
) -> None:
    use = other.writing()
    seen: list[bool] = []

    def look(group: Group, deliver: Deliver) -> list[Outcome]:
        broken.on_commit = None
        use.close()  # its client has gone
        seen.append(other.leases.is_pinned([TABLE]))
        return deliver(group)

    broken.on_commit = look
    use.submit(lambda: seen.append(other.leases.is_pinned([TABLE])))
    assert seen == [True, True]
    assert use.finish_commit() == use.txn.commit_at
    assert not other.leases.is_pinned([TABLE]) and use.state is UseState.OVER


@pytest.mark.setting("lease.poll_interval")
def test_a_lost_notification_is_made_up_for_by_the_poll(
    node: LeaseNode, broken: BreakingEngine, make_node: MakeNode
) -> None:
    broken.loses_signals = True
    deaf = make_node()
    deaf.pinned().close()
    node.publish()
    deaf.leases.step()
    assert deaf.version() == 2


def test_a_change_that_was_waited_for_is_known_to_its_own_node_at_once(node: LeaseNode) -> None:
    node.pinned().close()
    settled = node.publisher.settle([TABLE], LeaseWaiter(node.store.clock.now()))
    txn = node.store.begin()
    node.publisher.publish(txn, [node.stored()], settled)
    session = node.leases.write_next_lease(txn)
    node.leases.install(txn.commit(), session)
    assert node.version() == 2


# ── death and deadlines ────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I15")
@pytest.mark.invariant("I19")
def test_a_dead_nodes_lease_goes_by_itself(node: LeaseNode, other: LeaseNode) -> None:
    use = other.writing()
    node.publish()
    began_at = node.store.clock.now()
    node.publish()
    waited = seconds_between(began_at, node.store.clock.now())
    assert SHORTEST_SECONDS - 1 < waited < LONGEST_SECONDS + 1
    with pytest.raises(TenureError):
        use.commit()


def test_what_a_dead_node_left_is_swept_though_nobody_waits_for_it(node: LeaseNode, other: LeaseNode) -> None:
    other.pinned()
    rows = node.lease_rows()
    for _ in range(10):
        node.env.advance(LONGEST_SECONDS / 9)
        node.liveness.step()
    node.deaths.reap()
    for table in node.tables:
        table.sweep()
    assert node.lease_rows() < rows


def test_a_sweep_leaves_the_leases_of_the_living_alone(node: LeaseNode, other: LeaseNode) -> None:
    use = other.pinned()
    rows = node.lease_rows()
    for table in node.tables:
        table.sweep()
    assert node.lease_rows() == rows
    use.close()


@pytest.mark.invariant("I10")
@pytest.mark.invariant("I13")
def test_a_commit_at_the_frontier_is_refused(node: LeaseNode) -> None:
    use = node.writing()
    frontier_at = use.frontier_at
    node.env.advance(seconds_between(node.store.clock.now(), frontier_at) + 0.000_001)
    with pytest.raises(RetryError):
        use.commit()


@pytest.mark.invariant("I10")
def test_a_submit_at_the_frontier_is_refused(node: LeaseNode) -> None:
    use = node.writing()
    frontier_at = use.frontier_at
    node.env.advance(seconds_between(node.store.clock.now(), frontier_at) + 0.000_001)
    use.submit(lambda: None)
    with pytest.raises(RetryError):
        use.finish_commit()
    assert use.state is UseState.OVER


def test_a_use_that_was_ended_cannot_submit(node: LeaseNode) -> None:
    use = node.writing()
    node.leases.end(use, "it was in the way")
    with pytest.raises(RetryError):
        use.submit(lambda: None)
    assert use.state is UseState.OVER


def test_a_commit_just_below_the_frontier_is_made(node: LeaseNode) -> None:
    use = node.writing()
    frontier_at = use.frontier_at
    node.env.advance(seconds_between(node.store.clock.now(), frontier_at) - 0.001)
    assert use.commit() < frontier_at


def test_the_frontier_moves_while_the_node_keeps_up(node: LeaseNode) -> None:
    use = node.pinned()
    first_at = use.frontier_at
    for _ in range(10):
        node.env.advance(LONGEST_SECONDS / 10)
        node.liveness.step()
        node.leases.step()
    assert use.frontier_at > first_at
    use.close()


def test_a_use_that_was_ended_cannot_commit_and_blocks_nobody(node: LeaseNode, other: LeaseNode) -> None:
    use = other.writing()
    node.publish()
    other.leases.step()
    assert other.leases.end(use, "somebody waits")
    other.leases.step()
    node.publish(timeout=1.0)
    with pytest.raises(RetryError):
        use.commit()
    assert use.state is UseState.OVER


def test_a_node_that_leaves_leaves_no_row(node: LeaseNode, other: LeaseNode) -> None:
    rows = node.lease_rows()
    third = LeaseNode(other.store.engine, other.env, MIXED)
    third.pinned().close()
    assert node.lease_rows() > rows
    third.leases.release()
    assert node.lease_rows() == rows


# ── publishers of the same node ────────────────────────────────────────────────────────────────


def test_a_hold_is_had_when_nothing_is_pinned(node: LeaseNode) -> None:
    use = node.pinned()
    with node.leases.hold([TABLE], timeout=0.01) as is_free:
        assert not is_free
    use.close()
    with node.leases.hold([TABLE], timeout=0.01) as is_free, node.leases.freeze_rows():
        assert is_free
        assert not node.leases.is_pinned([TABLE])


def test_a_canceled_statement_does_not_wait_for_a_hold(node: LeaseNode) -> None:
    def canceled() -> None:
        raise UserError("canceled")

    use, before = node.bind(), node.env.monotonic()
    with node.leases.hold([TABLE], timeout=0.01):
        with checked_by(canceled), pytest.raises(UserError, match="canceled"):
            use.descriptor(TABLE)
        assert node.env.monotonic() - before < HELD_SECONDS
    use.close()


def test_one_of_two_publishers_gets_the_hold(node: LeaseNode) -> None:
    with node.leases.hold([TABLE], timeout=0.01), node.leases.hold([TABLE], timeout=0.01) as is_free:
        assert not is_free


def test_a_node_is_alone_until_another_uses_the_table(node: LeaseNode, other: LeaseNode) -> None:
    node.pinned().close()
    other.leases.release()
    assert node.waits.is_alone(node.store.snapshot(), [TABLE])
    other.leases.renew()
    other.pinned().close()
    assert not node.waits.is_alone(node.store.snapshot(), [TABLE])
