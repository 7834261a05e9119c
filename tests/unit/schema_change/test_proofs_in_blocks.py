"""Proofs of a change whose transaction has written rows itself, while another node writes too."""

from collections.abc import Callable, Sequence

import pytest

from tenure.base.errors import TenureError
from tenure.catalog.descriptors.definitions import Action, AnyDescriptor, ElementState, Table
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.schema_change.in_transaction import PreparedChange
from tenure.table.read import find, get
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.committing import PUBLIC, assert_whole, index_states
from tests.unit.schema_change.declared import A, add_foreign_key, add_index, created, drop_index

WRITE_ONLY = ElementState.WRITE_ONLY


def _delete(node: SchemaNode, use: CatalogUse, id: int, key: int) -> None:
    with node.writer(use, id) as writer:
        row = get(use.txn, writer.layout, [key])
        assert row is not None
        writer.delete(use.txn, row)


def _once(cluster: Cluster, is_time: Callable[[], bool], act: Callable[[], None]) -> list[str]:
    """Has somebody act in the middle of a change; returns what came of it: "done" or an error's code."""
    came: list[str] = []

    def part() -> None:
        if came or not is_time():
            return
        came.append("")
        try:
            act()
            came[0] = "done"
        except TenureError as error:
            came[0] = error.sqlstate

    cluster.env.add(part)
    return came


def _before_completion(
    monkeypatch: pytest.MonkeyPatch, node: SchemaNode, act: Callable[[], None]
) -> list[str]:
    """The same between the proof and the moment when the transaction completes its rows."""
    came: list[str] = []
    in_transaction = node.changer._in_transaction
    complete = in_transaction.complete

    def late(use: CatalogUse, declared: Sequence[AnyDescriptor], prepared: PreparedChange) -> None:
        if not came:
            act()
            came.append("done")
        complete(use, declared, prepared)

    monkeypatch.setattr(in_transaction, "complete", late)
    return came


def _has_key(node: SchemaNode, id: int) -> bool:
    return any(key.state is WRITE_ONLY for key in node.table(id).foreign_keys)


def _has_unique(node: SchemaNode, id: int) -> bool:
    return index_states(node, id).get("t_a") is WRITE_ONLY


@pytest.mark.invariant("completion-checks")
@pytest.mark.parametrize("is_late", [False, True], ids=["before the proof", "after it"])
@pytest.mark.parametrize("action", [Action.CASCADE, Action.SET_NULL, Action.SET_DEFAULT])
def test_a_row_that_comes_to_refer_to_a_removed_one_stops_the_foreign_key_and_stays(
    cluster: Cluster,
    node: SchemaNode,
    other: SchemaNode,
    action: Action,
    is_late: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent, child = created(node, "parent"), created(node, "child")
    node.put_rows(parent, (1, 1, 1), (2, 2, 2))

    def refer() -> None:
        other.put_rows(child, (7, 2, 7))

    if is_late:
        came = _before_completion(monkeypatch, node, refer)
    else:
        came = _once(cluster, lambda: _has_key(node, child), refer)

    def work(use: CatalogUse) -> None:
        _delete(node, use, parent, 2)
        add_foreign_key(use, child, parent, on_delete=action)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23503"
    assert came == ["done"]
    cluster.until(lambda: not node.open_jobs())
    assert node.shown(parent) == [(1, 1, 1), (2, 2, 2)]
    assert node.shown(child) == [(7, 2, 7)]
    assert node.table(child).foreign_keys == ()


def test_a_reference_to_a_row_that_the_transaction_brings_is_good(
    node: SchemaNode, other: SchemaNode
) -> None:
    parent, child = created(node, "parent"), created(node, "child")
    other.put_rows(child, (1, 2, 1))

    def work(use: CatalogUse) -> None:
        node.insert(use, parent, 2, 2, 2)
        add_foreign_key(use, child, parent)

    node.run(work)
    assert node.table(child).foreign_keys[0].state is PUBLIC
    assert node.shown(child) == [(1, 2, 1)]


def test_equal_rows_of_which_the_transaction_has_removed_or_changed_one_are_not_in_the_way(
    node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    other.put_rows(id, (1, 5, 1), (2, 5, 2), (3, 6, 3), (4, 6, 4))

    def work(use: CatalogUse) -> None:
        _delete(node, use, id, 1)
        with node.writer(use, id) as writer:
            row = get(use.txn, writer.layout, [3])
            assert row is not None
            writer.update(use.txn, row, {A: 9})
        add_index(use, id, A, unique=True)

    node.run(work)
    assert node.shown(id) == [(2, 5, 2), (3, 9, 3), (4, 6, 4)]
    assert_whole(node, id)


@pytest.mark.invariant("completion-read")
def test_a_target_that_goes_while_the_key_to_it_is_proved_takes_no_reference_along(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    """The reference is not committed yet, so whoever deletes the target cannot see it."""
    parent, child = created(node, "parent"), created(node, "child")
    node.put_rows(parent, (1, 1, 1), (2, 2, 2))
    came = _once(
        cluster, lambda: _has_key(node, child), lambda: other.run(lambda use: _delete(other, use, parent, 2))
    )

    def work(use: CatalogUse) -> None:
        node.insert(use, child, 7, 2, 7)
        add_foreign_key(use, child, parent)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23503"
    assert came == ["done"]
    assert node.shown(child) == []


@pytest.mark.invariant("completion-read")
def test_an_equal_row_that_comes_during_the_proof_stops_the_unique_index(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    node.put_rows(id, (1, 5, 1), (2, 5, 2))
    came = _once(cluster, lambda: _has_unique(node, id), lambda: other.put_rows(id, (7, 9, 7)))

    def work(use: CatalogUse) -> None:
        _delete(node, use, id, 2)
        node.insert(use, id, 8, 9, 8)
        add_index(use, id, A, unique=True)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23505"
    assert came == ["done"]
    cluster.until(lambda: not node.open_jobs())
    assert node.shown(id) == [(1, 5, 1), (2, 5, 2), (7, 9, 7)]
    assert_whole(node, id)


def test_a_value_that_the_transaction_gives_up_may_be_taken_by_another_meanwhile(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    node.put_rows(id, (1, 5, 1), (2, 6, 2))
    came = _once(cluster, lambda: _has_unique(node, id), lambda: other.put_rows(id, (7, 6, 7)))

    def work(use: CatalogUse) -> None:
        _delete(node, use, id, 2)
        add_index(use, id, A, unique=True)

    node.run(work)
    assert came == ["done"]
    assert node.shown(id) == [(1, 5, 1), (7, 6, 7)]
    assert index_states(node, id)["t_a"] is PUBLIC
    assert_whole(node, id)


def test_rows_that_a_dropped_index_forbade_are_found_by_whoever_still_knows_the_index(
    cluster: Cluster, node: SchemaNode
) -> None:
    other = cluster.add(without=("leases",))
    found: list[tuple[int, int]] = []
    id = 0

    def look() -> None:
        """Under the lease that it has, as of now."""
        use = other.bind()
        table = use.descriptor(id)
        assert isinstance(table, Table)
        rows = list(find(use.txn, other.layouts.of(table), (A,), (5,)))
        found.append((len(table.indexes), len(rows)))
        use.close()

    def late() -> None:
        """Takes versions in only after it has looked."""
        if id and len(node.shown(id)) == 2:
            look()
        other.step_leases()

    cluster.env.add(late)
    made = created(node)
    node.run(lambda use: add_index(use, made, A, unique=True))
    node.put_rows(made, (1, 5, 1))
    id = made

    def work(use: CatalogUse) -> None:
        drop_index(use, id, "t_a")
        node.insert(use, id, 2, 5, 2)

    node.run(work)
    assert found[0] == (2, 2)
    assert node.shown(id) == [(1, 5, 1), (2, 5, 2)]
    assert list(index_states(node, id)) == ["t_pkey"]
    assert_whole(node, id)


@pytest.mark.invariant("way-back")
def test_an_index_that_was_to_go_is_read_again_if_the_transaction_does_not_commit(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    node.run(lambda use: add_index(use, id, A, unique=True))
    node.put_rows(id, (1, 5, 1))
    came = _once(
        cluster,
        lambda: any(index.is_unread for index in node.table(id).indexes),
        lambda: other.put_rows(id, (3, 7, 3)),
    )

    def work(use: CatalogUse) -> None:
        drop_index(use, id, "t_a")
        node.insert(use, id, 2, 5, 2)
        use.txn.deadline_at = 1  # its own commit will come too late

    with pytest.raises(TenureError):
        node.once(work)
    assert came == ["done"]
    cluster.until(lambda: not node.open_jobs())
    index = node.table(id).index(2)
    assert (index.state, index.is_unread) == (PUBLIC, False)
    assert node.shown(id) == [(1, 5, 1), (3, 7, 3)]
    with pytest.raises(TenureError) as caught:
        other.put_rows(id, (4, 7, 4))
    assert caught.value.sqlstate == "23505"
    assert_whole(node, id)
