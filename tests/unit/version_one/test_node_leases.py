"""Which lease scheme a node has, and how it gets from one to the other while it runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import SessionLost
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, VERSION, Settings
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DEFAULT_SCHEMA
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.node_leases import Leases
from tenure.cluster.sessions.session_records import Sessions
from tenure.node import Node, NodeOptions
from tenure.version_one.expiring_lease_rows import OldLeaseRow, OldLeaseRows
from tenure.version_one.expiring_scheme import ExpiringLeases
from tenure.version_one.mixed_scheme import MixedLeases
from tests.unit.kv.waiting import PATIENCE_SECONDS

SETTINGS = Settings(DEFINITIONS).with_value(LIVENESS_HEARTBEAT, 0.1)

Start = Callable[[int], Node]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a node of a version, in the same cluster each time."""
    started: list[Node] = []

    def start(version: int) -> Node:
        started.append(
            Node(NodeOptions(f"sqlite:{tmp_path}/store.db", settings=SETTINGS, version=version), SystemEnv())
        )
        return started[-1]

    yield start
    for node in started:
        node.stop()


def pinned(node: Node) -> CatalogUse:
    use = node.leases.bind(node.store.begin())
    assert use.descriptor(DEFAULT_DATABASE) is not None
    return use


def old_leases(node: Node) -> list[OldLeaseRow]:
    return list(OldLeaseRows(node.store.keyspace, node.catalog).list(node.store.snapshot()))


def await_no_old_lease(node: Node) -> None:
    rows = OldLeaseRows(node.store.keyspace, node.catalog)
    watch = node.store.watch([rows.span()], since_at=node.store.snapshot().at)
    give_up = node.store.env.monotonic() + PATIENCE_SECONDS
    while old_leases(node):
        assert node.store.env.monotonic() < give_up, "expiring leases are left"
        watch.next(1.0, changes_only=True)
    watch.close()


def test_a_node_of_version_1_has_expiring_leases_alone(start: Start) -> None:
    node = start(1)
    pinned(node).close()
    assert isinstance(node.leases, ExpiringLeases)
    assert [row.descriptor for row in old_leases(node)] == [DEFAULT_DATABASE]


def test_a_node_of_a_new_cluster_writes_no_expiring_lease(start: Start) -> None:
    node = start(2)
    pinned(node).close()
    assert isinstance(node.leases, Leases)
    assert old_leases(node) == []


def test_a_newer_node_of_an_older_cluster_leases_both_ways_until_it_starts_again(start: Start) -> None:
    old, new = start(1), start(2)
    assert isinstance(new.leases, MixedLeases)
    old.stop()
    new.store.transact(lambda txn: new.settings.set(txn, VERSION.name, "2"))
    await_no_old_lease(new)
    assert isinstance(start(2).leases, Leases)


def test_a_cluster_is_finalized_while_transactions_run(start: Start) -> None:
    old, new = start(1), start(2)
    use = pinned(new)
    use.txn.put(new.store.keyspace.key(DEFAULT_SCHEMA, (1,)), b"row")
    assert len(old_leases(new)) == 1
    old.stop()
    new.store.transact(lambda txn: new.settings.set(txn, VERSION.name, "2"))
    other = pinned(new)
    other.close()
    use.commit()
    await_no_old_lease(new)


def test_a_node_of_version_1_that_was_given_up_takes_no_new_lease(start: Start) -> None:
    node = start(1)
    sessions = Sessions(node.store.keyspace)
    instance = node.liveness.session().id.instance
    node.store.transact(lambda txn: sessions.instances.delete(txn, instance))
    use = node.leases.bind(node.store.begin())
    with pytest.raises(SessionLost):
        use.descriptor(DEFAULT_DATABASE)
    use.close()


def test_a_drained_node_of_either_version_leaves_no_lease(start: Start) -> None:
    old, new = start(1), start(2)
    for node in (old, new):
        pinned(node).close()
    old.stop()
    assert len(old_leases(new)) == 1
    last = start(2)
    new.stop()
    assert old_leases(last) == []
