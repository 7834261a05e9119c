"""Leases of one node and of two: binding, and other threads."""

import threading

import pytest

from tenure.base.errors import DeadlinePassed, OutcomeUnknown, RetryError
from tenure.base.settings import LIVENESS_TTL
from tenure.catalog.leases.catalog_use import UseState
from tenure.catalog.leases.lease_pins import bound
from tenure.catalog.leases.node_leases import ALONE_SPACING_SECONDS, SPACING_SECONDS, Leases
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.catalog.leasing import bump, cut
from tests.unit.kv.breaking import Deliver
from tests.unit.kv.waiting import Call, SeenWaits
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import add_column, create, created, place, rename

# ── binding ───────────────────────────────────────────────────────────────────────────────────


def test_a_transaction_binds_before_it_takes_its_read_time(node: SchemaNode) -> None:
    use = node.bind()
    assert bound(use).at <= use.txn.read_at
    use.close()


def test_all_lookups_of_a_transaction_are_of_its_lease(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    before = use.descriptor(id)
    bump(node, id)
    node.leases.renew()
    created(node, "later")
    assert use.descriptor(id) is before
    assert use.id_at(place("later")) is None
    use.close()
    fresh = node.bind()
    assert fresh.descriptor(id) == node.table(id)
    assert fresh.id_at(place("later")) is not None
    fresh.close()


def test_lookups_do_not_touch_the_store(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    node.wire.is_dead = True  # whatever touches it now fails
    found = use.descriptor(id)
    assert found is not None and use.id_at(place("t")) == id
    assert use.schema_entry(found.database, "public") is not None  # type: ignore[union-attr]
    node.wire.is_dead = False
    use.close()


@pytest.mark.invariant("I13")
def test_a_lease_whose_session_has_expired_cannot_be_used_even_to_read(
    cluster: Cluster, node: SchemaNode
) -> None:
    with cluster.env.still():
        use = node.bind()
        use.close()
        cluster.env.advance(node.settings[LIVENESS_TTL] + 1)
        # Somebody else moves the store clock beyond the frontier.
        node.store.transact(lambda txn: txn.put(node.store.keyspace.key(5_000, [1]), b""))
        with pytest.raises(DeadlinePassed):
            node.bind()
    assert node.leases.uses() == []


@pytest.mark.invariant("I13")
def test_a_commit_at_or_beyond_the_frontier_is_refused(cluster: Cluster, node: SchemaNode) -> None:
    id = created(node)
    with cluster.env.still():
        use = node.bind()
        node.insert(use, id, 1, 1, 1)
        cluster.env.advance(node.settings[LIVENESS_TTL] + 1)
        with pytest.raises(DeadlinePassed):
            use.commit()
    assert node.shown(id) == []
    assert use.state is UseState.OVER


@pytest.mark.invariant("I13")
def test_the_frontier_moves_with_acknowledged_heartbeats_only(cluster: Cluster, node: SchemaNode) -> None:
    with cluster.env.still():
        use = node.bind()
        before = bound(use).frontier_at
        cluster.env.advance(5)
        node.wire.on_commit = cut
        node.wire.settle_errors = [OutcomeUnknown("nobody can tell")]
        with pytest.raises(OutcomeUnknown):
            node.liveness.step()
        assert bound(use).frontier_at == before
        node.wire.on_commit = None
        node.liveness.step()
        assert bound(use).frontier_at > before
        use.close()


# ── threads ───────────────────────────────────────────────────────────────────────────────────


def test_while_the_store_hangs_lookups_go_on() -> None:
    env = SeenWaits()
    engine = SqliteEngine(MEMORY, env)
    node = SchemaNode(engine, env)
    id = created(node)
    use = node.bind()
    entered, gate = threading.Event(), threading.Event()

    def hang(group: Group, deliver: Deliver) -> list[Outcome]:
        entered.set()
        assert gate.wait(30)
        return deliver(group)

    node.wire.on_commit = hang
    renewal = Call(node.leases.renew)
    assert entered.wait(30)
    try:
        assert use.descriptor(id) is not None
        assert use.id_at(place("t")) == id
        use.check_frontier()
    finally:
        gate.set()
    renewal.result()
    use.close()
    engine.close()


def test_names_and_descriptors_of_one_transaction_belong_together(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    node.once(lambda other: rename(other, id, "u"))
    found = use.id_at(place("t"))
    assert found == id
    with pytest.raises(RetryError):
        use.descriptor(found)
    use.close()
    fresh = node.bind()
    assert (fresh.id_at(place("t")), fresh.id_at(place("u"))) == (None, id)
    fresh.close()


@pytest.mark.invariant("I10")
def test_what_a_transaction_declared_it_sees_and_nobody_else(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    add_column(use, id, "c", default=1)
    made = create(node, use, "made")
    own = use.descriptor(id)
    assert own is not None and [column.name for column in own.columns] == ["id", "a", "b", "c"]  # type: ignore[union-attr]
    assert use.id_at(place("made")) == made
    bystander = node.bind()
    assert bystander.descriptor(id) == node.table(id)
    assert bystander.id_at(place("made")) is None
    bystander.close()
    use.close()
    assert node.table(id).version == 1


# ── following ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("is_alone", "spacing_seconds"),
    [(True, ALONE_SPACING_SECONDS), (False, SPACING_SECONDS)],
    ids=["alone", "with others"],
)
def test_changes_are_looked_for_sooner_where_others_can_make_them(
    cluster: Cluster, node: SchemaNode, is_alone: bool, spacing_seconds: float
) -> None:
    id = created(node)
    leases = Leases(
        node.store,
        node.catalog,
        node.rows,
        node.liveness.session,
        lambda: node.settings,
        is_alone=lambda: is_alone,
    )
    leases.renew()
    with cluster.env.still():
        bump(node, id)
        leases.step()
        looked = cluster.env.monotonic()
        bump(node, id)
        leases.step()
        assert cluster.env.monotonic() - looked == pytest.approx(spacing_seconds)
    leases.release()
    leases.close()
