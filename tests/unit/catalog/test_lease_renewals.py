"""Leases that are renewed, and rows of leases that are narrowed."""

import pytest

from tenure.base.errors import OutcomeUnknown, RetryError
from tenure.catalog.leases.lease_pins import bound
from tenure.storage.engine import Group, Outcome
from tests.unit.catalog.leasing import bump, cut, rows_of
from tests.unit.kv.breaking import Deliver
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import created

LONG_SECONDS = 0.05


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


@pytest.fixture
def waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The narrowing waits longer than a step takes."""
    monkeypatch.setattr("tenure.catalog.leases.narrowing.NARROW_SECONDS", LONG_SECONDS)


def test_a_publishers_commit_takes_the_row_of_the_lease_before_its_own_along(
    node: SchemaNode, waits_long: None
) -> None:
    created(node, "a")
    before = len(node.wire.groups)
    created(node, "b")
    node.step_leases()
    assert len(node.wire.groups) - before == 1
    assert len(rows_of(node)) == 2, "its own, and the one before it, which the next takes along"


def test_what_no_other_change_takes_along_is_narrowed_a_little_later(
    cluster: Cluster, node: SchemaNode, waits_long: None
) -> None:
    created(node)
    node.step_leases()
    assert len(rows_of(node)) == 2
    cluster.env.advance(LONG_SECONDS)
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
    node.wire.on_commit = cut
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
    node.leases.write_next_lease(txn)
    return txn.commit()


@pytest.mark.invariant("I12")
def test_a_node_is_past_a_version_only_once_its_newest_lease_is(node: SchemaNode) -> None:
    """Until then a transaction may still begin here under what is older."""
    id = created(node)
    bump(node, id)
    modified_at = node.table(id).modified_at
    assert modified_at > node.leases.newest_at()
    assert not node.leases.is_past(id, modified_at)
    node.leases.renew()
    assert node.leases.is_past(id, modified_at)
