"""What the owner of advisory locks writes while its node is stopped past its ttl and others get the locks."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import RetryError, SessionLost
from tenure.cluster.locks.lock_table import LockOwner
from tenure.kv.keys import USER_TABLES
from tenure.kv.transaction import Transaction
from tests.unit.cluster.lockers import Locker
from tests.unit.cluster.members import TTL_SECONDS, expire
from tests.unit.cluster.test_advisory import KEY, OTHER, tries
from tests.unit.kv.breaking import BreakingEngine


@pytest.fixture
def node(engine: BreakingEngine, env: ManualEnv) -> Locker:
    return Locker(engine, env)


@pytest.fixture
def other(engine: BreakingEngine, env: ManualEnv) -> Locker:
    return Locker(engine, env)


def write(node: Locker, owner: LockOwner, value: bytes = b"mine") -> None:
    """A statement of the owner's, tried once."""

    def put(txn: Transaction) -> None:
        txn.put(node.store.keyspace.key(USER_TABLES, [1]), value)
        node.advisory.fence(owner, txn)

    node.store.transact(put, attempts=1)


def written(node: Locker) -> bytes | None:
    return node.store.snapshot().get(node.store.keyspace.key(USER_TABLES, [1]))


@pytest.mark.invariant("lock-fence")
def test_a_node_that_does_not_know_of_its_loss_writes_nothing(
    node: Locker, other: Locker, env: ManualEnv
) -> None:
    owner = node.owner()
    tries(node, owner)
    expire(env)
    assert tries(other)
    with pytest.raises((RetryError, SessionLost)):
        write(node, owner)
    assert written(other) is None


@pytest.mark.invariant("lock-fence")
def test_what_is_tried_again_under_the_next_session_is_refused(
    node: Locker, other: Locker, env: ManualEnv
) -> None:
    owner = node.owner()
    tries(node, owner)
    expire(env)
    assert tries(other)
    node.liveness.step()  # it finds that its session is gone
    node.liveness.step()  # and has another
    write(node, node.owner())  # who held nothing may go on
    with pytest.raises(SessionLost, match="advisory locks were lost"):
        write(node, owner, b"late")
    assert written(other) == b"mine"


@pytest.mark.invariant("lock-fence")
def test_a_lock_of_the_next_session_does_not_make_up_for_one_of_the_last(
    node: Locker, other: Locker, env: ManualEnv
) -> None:
    owner = node.owner()
    tries(node, owner)
    expire(env)
    assert tries(other)
    node.liveness.step()
    node.liveness.step()
    assert tries(node, owner, OTHER)
    with pytest.raises(SessionLost):
        write(node, owner)


def test_heartbeats_move_the_fence_on(node: Locker, env: ManualEnv) -> None:
    owner = node.owner()
    tries(node, owner)
    for _ in range(4):
        env.advance(TTL_SECONDS / 2)
        node.liveness.step()
    write(node, owner)
    assert written(node) == b"mine"


def test_an_expired_session_that_nobody_deleted_holds_its_locks_again(
    node: Locker, other: Locker, env: ManualEnv
) -> None:
    owner = node.owner()
    tries(node, owner)
    expire(env)
    with pytest.raises(RetryError):
        write(node, owner)
    node.liveness.step()
    write(node, owner)
    assert not tries(other)


def test_who_has_given_all_locks_up_is_fenced_no_more(node: Locker, other: Locker, env: ManualEnv) -> None:
    owner = node.owner()
    tries(node, owner)
    assert node.advisory.unlock(owner, KEY)
    expire(env)
    other.liveness.step()
    other.deaths.reap()
    node.liveness.step()
    node.liveness.step()
    write(node, owner)
    assert written(node) == b"mine"
