"""Leases of one node and of two: binding, pinning, renewing, narrowing, holding."""

import threading
from contextlib import suppress

import pytest

from tenure.base.errors import DeadlinePassed, Disconnected, OutcomeUnknown, RetryError, SessionLost
from tenure.base.settings import LIVENESS_TTL
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.lease_rows import LeaseRow
from tenure.catalog.leases import NARROW_SECONDS, bound
from tenure.catalog.uses import UseState
from tenure.storage.engine import Group, Outcome
from tenure.storage.sqlite import MEMORY, SqliteEngine
from tests.unit.kv.breaking import Deliver
from tests.unit.kv.waiting import Call, SeenWaits
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import add_column, add_index, create, created, place, rename


def rows_of(node: SchemaNode) -> list[LeaseRow]:
    return [row for row in node.lease_rows() if row.session == node.liveness.session().id]


def bump(node: SchemaNode, id: int) -> None:
    """Gives a table its next version, and says nothing to any lease."""

    def publish(txn: object) -> None:
        table = node.catalog.get(txn, id)  # type: ignore[arg-type]
        assert table is not None
        node.publisher.publish(txn, [table], {id: table.modified_at})  # type: ignore[arg-type]

    node.store.transact(publish)


# ── binding ────────────────────────────────────────────────────────────────────────────────────


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
        node.wire.on_commit = _cut
        node.wire.settle_errors = [OutcomeUnknown("nobody can tell")]
        with pytest.raises(OutcomeUnknown):
            node.liveness.step()
        assert bound(use).frontier_at == before
        node.wire.on_commit = None
        node.liveness.step()
        assert bound(use).frontier_at > before
        use.close()


def _cut(group: Group, deliver: Deliver) -> list[Outcome]:
    deliver(group)
    raise Disconnected("cut")


# ── renewing and narrowing ─────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I16")
def test_the_old_row_goes_only_after_the_new_lease_was_acknowledged(node: SchemaNode) -> None:
    first = rows_of(node)
    node.leases.renew()
    assert len(rows_of(node)) == len(first) + 1
    node.leases.narrow()
    assert [row.lease_at for row in rows_of(node)] == [node.leases.newest_at()]


@pytest.mark.invariant("I16")
def test_a_row_is_narrowed_to_what_is_still_pinned_in_an_older_version(node: SchemaNode) -> None:
    used, unused, same = created(node, "used"), created(node, "unused"), created(node, "same")
    use = node.bind("SELECT 1")
    for id in (used, unused, same):
        use.descriptor(id)
    use.give_up([unused])
    bump(node, used)
    bump(node, unused)
    node.step_leases()
    older, newest = sorted(rows_of(node), key=lambda row: row.lease_at)
    assert older.descriptors == (used,)
    assert [holder.statement for holder in older.holders] == ["SELECT 1"]
    assert newest.descriptors is None
    assert use.pins[same].lease.at == newest.lease_at
    use.close()
    node.step_leases()
    assert rows_of(node) == [newest]


@pytest.mark.invariant("I16")
def test_a_pin_that_comes_before_the_acknowledgement_is_in_the_narrowed_row(node: SchemaNode) -> None:
    """The reason why narrowing has a transaction of its own."""
    id = created(node)
    bump(node, id)
    use = node.bind()

    def pin_meanwhile(group: Group, deliver: Deliver) -> list[Outcome]:
        node.wire.on_commit = None
        use.descriptor(id)
        return deliver(group)

    node.wire.on_commit = pin_meanwhile
    node.leases.renew()
    node.leases.narrow()
    older = min(rows_of(node), key=lambda row: row.lease_at)
    assert older.descriptors == (id,)
    use.close()


@pytest.mark.invariant("I16")
def test_a_row_never_widens(node: SchemaNode) -> None:
    a, b = created(node, "a"), created(node, "b")
    node.leases.narrow()
    session, lease_at = node.liveness.session().id, node.leases.newest_at()
    narrow = node.rows.narrow
    node.transact(lambda txn: narrow(txn, lease_at, session, frozenset([a]), ()))
    node.transact(lambda txn: narrow(txn, lease_at, session, frozenset([a, b]), ()))
    assert rows_of(node)[-1].descriptors == (a,)
    node.transact(lambda txn: narrow(txn, lease_at, session, frozenset([b]), ()))
    assert rows_of(node) == []
    node.transact(lambda txn: narrow(txn, lease_at, session, frozenset([b]), ()))
    assert rows_of(node) == []


def test_a_first_use_after_the_lease_was_closed_needs_the_same_version(node: SchemaNode) -> None:
    same, changed = created(node, "same"), created(node, "changed")
    use = node.bind()
    bump(node, changed)
    node.leases.renew()
    found = use.descriptor(same)
    assert found is not None and use.pins[same].lease.at == node.leases.newest_at()
    with pytest.raises(RetryError):
        use.descriptor(changed)
    use.close()


def test_a_descriptor_made_after_the_lease_is_not_there_for_it(node: SchemaNode) -> None:
    use = node.bind()
    id = created(node)
    with pytest.raises(RetryError):
        use.descriptor(id)
    use.close()


def test_a_burst_of_changes_is_one_renewal(node: SchemaNode) -> None:
    id = created(node)
    node.leases.narrow()
    before = len(node.wire.groups)
    for _ in range(20):
        bump(node, id)
    bumps = len(node.wire.groups)
    node.step_leases()
    assert (bumps - before, len(node.wire.groups) - bumps) == (20, 2)  # the new row, the old one's end
    assert node.leases.newest.descriptor(id) == node.table(id)


def test_a_publishers_commit_takes_the_row_of_the_lease_before_its_own_along(node: SchemaNode) -> None:
    created(node, "a")
    before = len(node.wire.groups)
    created(node, "b")
    node.step_leases()
    assert len(node.wire.groups) - before == 1
    assert len(rows_of(node)) == 2, "its own, and the one before it, which the next takes along"


def test_what_no_other_change_takes_along_is_narrowed_a_little_later(
    cluster: Cluster, node: SchemaNode
) -> None:
    created(node)
    node.step_leases()
    assert len(rows_of(node)) == 2
    cluster.env.advance(NARROW_SECONDS)
    node.step_leases()
    assert [row.lease_at for row in rows_of(node)] == [node.leases.newest_at()]


@pytest.mark.invariant("I16")
def test_a_publishers_commit_leaves_the_row_of_a_lease_that_is_pinned(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    use.descriptor(id)
    held_at = bound(use).at
    bump(node, id)
    node.leases.renew()
    created(node, "b")
    created(node, "c")
    assert held_at in [row.lease_at for row in rows_of(node)]
    use.close()
    created(node, "d")
    assert held_at not in [row.lease_at for row in rows_of(node)]


def test_nothing_is_written_while_nothing_changes(node: SchemaNode) -> None:
    node.step_leases()
    before = len(node.wire.groups)
    for _ in range(10):
        node.step_leases()
    assert len(node.wire.groups) == before


def test_a_renewal_that_failed_is_tried_again_though_nothing_else_changes(node: SchemaNode) -> None:
    id = created(node)
    node.step_leases()
    bump(node, id)
    node.wire.on_commit = _refuse
    with pytest.raises(RetryError):
        node.step_leases()
    node.wire.on_commit = None
    node.step_leases()
    assert node.leases.newest.descriptor(id) == node.table(id)


def _refuse(group: Group, deliver: Deliver) -> list[Outcome]:
    raise RetryError("not now")


def test_a_lease_that_was_written_but_not_taken_into_use_blocks_nobody(node: SchemaNode) -> None:
    """The answer to the commit was lost, or the store went away right after it."""
    node.wire.on_commit = _cut
    node.wire.settle_errors = [OutcomeUnknown("nobody can tell")]
    with pytest.raises(OutcomeUnknown):
        node.leases.renew()
    node.wire.on_commit = None
    assert len(rows_of(node)) == 2
    node.leases.renew()
    node.leases.narrow()
    assert [row.lease_at for row in rows_of(node)] == [node.leases.newest_at()]


def test_leases_are_taken_into_use_in_their_order_however_they_come(node: SchemaNode) -> None:
    session = node.liveness.session()
    first, second = (_written_row(node) for _ in range(2))
    node.leases.install(second, session)
    node.leases.install(first, session)
    assert node.leases.newest_at() == second
    node.leases.narrow()
    assert [row.lease_at for row in rows_of(node)] == [second]


def _written_row(node: SchemaNode) -> int:
    txn = node.store.begin()
    node.leases.carry(txn)
    return txn.commit()


# ── sessions ───────────────────────────────────────────────────────────────────────────────────


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


# ── holding ────────────────────────────────────────────────────────────────────────────────────


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


# ── threads ────────────────────────────────────────────────────────────────────────────────────


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
