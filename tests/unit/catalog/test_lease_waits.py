"""Waiting for leases: for living, dead and stubborn nodes, in circles, and without being told."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import DeadlockDetected, DiskFull, LockNotAvailable, RetryError
from tenure.base.settings import LEASE_HOLDER_GRACE, LIVENESS_TTL
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.leases.lease_rows import LeaseRow
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.catalog.leases.wait_records import AwaitedDescriptor, Hold, LeaseWait, blocks, must_give_way
from tenure.cluster.sessions.session_records import Existence, SessionId
from tenure.kv.keys import SCHEMA_LEASES, SESSIONS
from tenure.kv.records import Records
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.catalog.leasing import bump, rows_of
from tests.unit.kv.breaking import Deliver
from tests.unit.kv.waiting import Call, SeenWaits
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import created, drop, place, rename

DEAD_MANY = 2_000


def awaited(node: SchemaNode, *ids: int) -> list[AwaitedDescriptor]:
    return [AwaitedDescriptor(id, node.table(id).modified_at) for id in ids]


def wait(node: SchemaNode, *ids: int, timeout: float | None = None) -> None:
    node.lease_waits.await_gone(awaited(node, *ids), LeaseWaiter(ZERO_AT), timeout=timeout)


# ── living nodes ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I12")
def test_an_older_lease_of_another_node_is_waited_for(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    """The document's case L < M: the row is seen, and as long as it is there the change is blocked."""
    id = created(node)
    use = other.bind("SELECT * FROM t")
    use.descriptor(id)
    bump(node, id)
    cluster.settle()
    with pytest.raises(LockNotAvailable) as caught:
        wait(node, id, timeout=0.5)
    assert f"transaction {use.number}: SELECT * FROM t" in str(caught.value)
    assert f"instance {other.liveness.session().id.instance}" in str(caught.value)
    use.close()
    wait(node, id, timeout=0.5)


@pytest.mark.invariant("I12")
def test_a_lease_as_new_as_the_version_is_not_waited_for(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    """The document's case L >= M."""
    id = created(node)
    cluster.settle()
    use = other.bind()
    use.descriptor(id)
    wait(node, id, timeout=0.0)
    use.close()


def test_a_transaction_does_not_wait_for_itself(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    bump(node, id)
    node.lease_waits.await_gone(awaited(node, id), LeaseWaiter(use.started_at, use), timeout=1.0)
    assert id not in use.pins
    use.close()


def test_another_transaction_of_the_same_node_is_waited_for(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    bump(node, id)
    with pytest.raises(LockNotAvailable), cluster.env.still():
        wait(node, id, timeout=0.5)
    use.close()
    with cluster.env.still():
        wait(node, id, timeout=0.5)


def test_a_wait_that_is_over_leaves_no_record(cluster: Cluster, node: SchemaNode, other: SchemaNode) -> None:
    id = created(node)
    use = other.bind()
    use.descriptor(id)
    bump(node, id)
    with pytest.raises(LockNotAvailable):
        wait(node, id, timeout=1.0)
    assert list(node.waits.list(node.store.snapshot())) == []
    use.close()


def test_a_record_that_cannot_be_taken_back_goes_with_the_next_wait(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    use = other.bind()
    use.descriptor(id)
    bump(node, id)

    def check() -> None:
        if list(node.waits.list(node.store.snapshot())):
            node.wire.on_commit = _away
            raise RetryError("enough")

    with pytest.raises(RetryError, match="enough"):
        node.lease_waits.await_gone(awaited(node, id), LeaseWaiter(ZERO_AT, check=check))
    node.wire.on_commit = None
    assert len(list(node.waits.list(node.store.snapshot()))) == 1
    with pytest.raises(LockNotAvailable):
        wait(node, id, timeout=0.5)
    assert list(node.waits.list(node.store.snapshot())) == []
    use.close()


def _away(group: Group, deliver: Deliver) -> list[Outcome]:
    raise DiskFull("no room for the moment")


# ── dead nodes ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I15")
@pytest.mark.invariant("I19")
def test_the_rows_of_a_dead_node_go_when_its_session_has_expired(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    dead = other.liveness.session().id
    other.wire.is_dead = True
    bump(node, id)
    wait(node, id)
    assert node.found(dead) is None
    assert {row.session for row in node.lease_rows()} == {node.liveness.session().id}
    assert cluster.env.monotonic() <= node.settings[LIVENESS_TTL] + 2


@pytest.mark.invariant("I15")
def test_nobody_deletes_the_row_of_a_session_that_is_there(node: SchemaNode, other: SchemaNode) -> None:
    (row,) = rows_of(other)
    assert not node.transact(lambda txn: node.rows.delete_abandoned(txn, row))
    assert rows_of(other) == [row]


def test_two_thousand_dead_sessions_are_cleared_away(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    _leave_behind(node, DEAD_MANY)
    bump(node, id)
    cluster.env.advance(100)
    node.liveness.step()
    assert len(node.lease_waits.blockers(awaited(node, id))) >= DEAD_MANY
    wait(node, id)
    assert {row.session for row in node.lease_rows()} == {node.liveness.session().id}


def _leave_behind(node: SchemaNode, number: int) -> None:
    """Sessions of nodes that died long ago, each with a lease."""
    keyspace = node.store.keyspace
    existence = Records(keyspace, SESSIONS, Existence, key=("instance", "epoch_at"))
    rows = Records(keyspace, SCHEMA_LEASES, LeaseRow, key=("lease_at", "instance", "epoch_at"))
    epoch_at = node.store.snapshot().at

    def write(txn: Transaction) -> None:
        for instance in range(1_000, 1_000 + number):
            existence.put(txn, Existence(instance, epoch_at, 1.0, ()))
            rows.put(txn, LeaseRow(epoch_at, instance, epoch_at))

    node.transact(write)


@pytest.mark.invariant("I19")
def test_a_holder_that_does_not_end_is_cut_off_and_dies_within_a_ttl(
    cluster: Cluster, node: SchemaNode
) -> None:
    stubborn = cluster.add(without=["holders"])
    id = created(node)
    use = stubborn.bind()
    use.descriptor(id)
    session = stubborn.liveness.session()
    bump(node, id)
    began = cluster.env.monotonic()
    wait(node, id)
    waited = cluster.env.monotonic() - began
    assert session.done.is_set()
    assert use.ended
    limit = node.settings[LEASE_HOLDER_GRACE] + 2 * node.settings[LIVENESS_TTL]
    assert node.settings[LEASE_HOLDER_GRACE] <= waited <= limit + 5
    use.close()


def test_a_holder_whose_node_ends_it_costs_the_grace_and_not_the_session(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    use = other.bind()
    use.descriptor(id)
    session = other.liveness.session()
    bump(node, id)
    began = cluster.env.monotonic()
    wait(node, id)
    assert cluster.env.monotonic() - began <= node.settings[LEASE_HOLDER_GRACE] + 3
    assert not session.done.is_set()
    with pytest.raises(RetryError):
        use.commit()


@pytest.mark.invariant("I19")
def test_lost_notifications_cost_no_more_than_the_poll(cluster: Cluster) -> None:
    cluster.loses_signals = True
    node, other = cluster.add(), cluster.add()
    id = created(node)
    node.run(lambda use: rename(use, id, "u"))
    node.run(lambda use: drop(use, id))
    assert other.leases.newest.id_at(place("u")) is None
    assert cluster.env.monotonic() < 60


# ── circles ────────────────────────────────────────────────────────────────────────────────────


def _wait_of(number: int, started_at: int, waits_for: set[int], holds: set[int]) -> LeaseWait:
    """Descriptors are awaited before 10; holding one at 5 is in the way."""
    return LeaseWait(
        1,
        1,
        number,
        started_at,
        0,
        tuple(AwaitedDescriptor(id, 10) for id in sorted(waits_for)),
        tuple(Hold(id, 5) for id in sorted(holds)),
    )


_sets = st.sets(st.integers(1, 4), max_size=2)
_waits = st.lists(st.tuples(st.integers(1, 3), _sets, _sets), max_size=6).map(
    lambda drawn: [_wait_of(n, *each) for n, each in enumerate(drawn)]
)


def _has_cycle(waits: list[LeaseWait]) -> bool:
    left = [each for each in waits if not blocks(each, each)]
    while left:
        free = [each for each in left if not any(blocks(other, each) for other in left if other is not each)]
        if not free:
            return True
        left = [each for each in left if each not in free]
    return False


@pytest.mark.invariant("I9")
@given(_waits)
def test_whoever_gives_way_breaks_every_circle_and_nobody_does_without_one(waits: list[LeaseWait]) -> None:
    waits = [each for each in waits if not blocks(each, each)]  # it gives up what it waits for first
    giving_way = [each for each in waits if must_give_way(each, waits)]
    assert bool(giving_way) == _has_cycle(waits)
    assert not _has_cycle([each for each in waits if each not in giving_way])


@pytest.mark.invariant("I9")
def test_a_pin_under_a_lease_that_is_new_enough_is_in_nobodys_way() -> None:
    waiter = _wait_of(1, 1, {7}, set())
    assert blocks(_wait_of(2, 2, set(), {7}), waiter)
    assert not blocks(LeaseWait(1, 1, 2, 2, 0, (), (Hold(7, 10),)), waiter)


class Threaded:
    """Nodes on real threads, whose leases are renewed all the time."""

    def __init__(self, count: int) -> None:
        self.env = SeenWaits()
        self.engine = SqliteEngine(MEMORY, self.env)
        self.nodes = [SchemaNode(self.engine, self.env) for _ in range(count)]
        self._is_over = threading.Event()
        self._loops = [Call(lambda node=node: self._renew(node)) for node in self.nodes]  # type: ignore[misc]

    def _renew(self, node: SchemaNode) -> None:
        while not self._is_over.is_set():
            node.leases.step()

    def close(self) -> None:
        self._is_over.set()
        for node, loop in zip(self.nodes, self._loops, strict=True):
            node.leases.wake()
            loop.result()
        self.engine.close()


@pytest.fixture
def pair() -> Iterator[Threaded]:
    threaded = Threaded(2)
    yield threaded
    threaded.close()


@pytest.mark.invariant("I9")
@pytest.mark.parametrize("is_first_older", [True, False])
def test_of_two_transactions_on_two_nodes_that_wait_for_each_other_the_youngest_gives_way(
    pair: Threaded, is_first_older: bool
) -> None:
    node, other = pair.nodes
    x, y = created(node, "x"), created(node, "y")
    first, second = (node, other) if is_first_older else (other, node)
    old, young = first.bind(), second.bind()
    old.descriptor(x)
    young.descriptor(y)
    bump(node, x)
    bump(node, y)

    def wait_for(at: SchemaNode, use: object, id: int) -> None:
        try:
            at.lease_waits.await_gone(awaited(node, id), LeaseWaiter(use.started_at, use))  # type: ignore[attr-defined,arg-type]
        finally:
            use.close()  # type: ignore[attr-defined]

    calls = Call(lambda: wait_for(first, old, y)), Call(lambda: wait_for(second, young, x))
    assert isinstance(calls[1].error(), DeadlockDetected)
    calls[0].result()
    assert list(node.waits.list(node.store.snapshot())) == []


def test_the_records_of_the_dead_make_no_circle(node: SchemaNode) -> None:
    """They are left alone until somebody finds their session gone."""
    mine = node.lease_waits.record([AwaitedDescriptor(1, 10)], LeaseWaiter(node.store.clock.now()))
    assert mine is not None
    dead = LeaseWait(99, 1, 1, 1, 1, (AwaitedDescriptor(2, 10),), (Hold(1, 5),))
    node.transact(lambda txn: node.waits.put(txn, dead))
    node.lease_waits.check_cycle(mine)
    assert not node.deaths.is_alive(SessionId(99, 1))
    node.step_holders()
    node.step_holders()
    assert list(node.waits.list(node.store.snapshot())) == [mine]
    node.lease_waits.forget(mine)
