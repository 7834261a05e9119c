"""Changes of locked tables: unlocked by a version of its own, changed, and locked again; nobody notices."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from tenure.base.errors import RetryError, TenureError
from tenure.catalog.changes import lock_schedule
from tenure.catalog.changes.table_changes import SetComment, SetDefault, SetLocked, alter, empty
from tenure.catalog.descriptors.definitions import Column, TypeRef, replace
from tenure.catalog.descriptors.equal_versions import logical_of, row_of
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.schema_change import stage_locks
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.schema_change.clusters import Cluster, Crashed, SchemaNode
from tests.unit.schema_change.committing import assert_whole, commits_of
from tests.unit.schema_change.declared import (
    A,
    add_column,
    add_foreign_key,
    add_index,
    create,
    created,
    drop,
    make_view,
    rename,
)
from tests.unit.schema_change.locking import broken_locks, end, lock, versions, watch
from tests.unit.schema_change.stepping import SteppedEnv
from tests.unit.table.trees import constant


@pytest.fixture
def id(node: SchemaNode) -> int:
    id = created(node)
    node.put_rows(id, (1, 1, 1), (2, 2, 2))
    return id


# ── locking ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I33")
def test_a_lock_is_a_version_of_its_own_that_changes_nothing_else(node: SchemaNode, id: int) -> None:
    before = node.table(id)
    job = watch(node, id)
    locked = node.table(id)
    assert (locked.version, locked.watchers) == (before.version + 1, (job,))
    assert (row_of(locked), logical_of(locked)) == (row_of(before), logical_of(before))


def test_many_tables_are_locked_by_one_commit(node: SchemaNode) -> None:
    ids = [created(node, name) for name in "abcdef"]
    job = node.transact(lambda txn: node.jobs.create(txn, kind="x")).id
    for id in ids:
        node.locks.want(id, job)
    before = len(node.wire.groups)
    node.locks.step()
    assert len(node.wire.groups) == before + 1
    assert all(node.table(id).is_locked for id in ids)


def test_nothing_is_locked_before_the_cluster_is_finalized(node: SchemaNode, id: int) -> None:
    node.is_finalized = False
    node.locks.want(id, 1)
    assert node.locks.step() > 0
    assert not node.table(id).is_locked


@pytest.mark.invariant("I33")
def test_a_table_with_a_mark_is_not_locked(node: SchemaNode, id: int) -> None:
    job = node.transact(lambda txn: node.jobs.create(txn, kind="x")).id
    table = node.table(id)
    settled = {id: table.modified_at}
    node.transact(lambda txn: node.publisher.publish(txn, [replace(table, job=7)], settled))
    node.locks.want(id, job)
    lock(node)
    assert not node.table(id).is_locked


def test_a_lock_waits_for_no_transaction_and_ends_none(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int
) -> None:
    use = other.bind()
    assert use.descriptor(id) is not None
    node.run(lambda use: set_default(use, id))  # one version: who uses the one before goes on
    job = node.transact(lambda txn: node.jobs.create(txn, kind="x")).id
    node.locks.want(id, job)
    lock(node)
    assert not node.table(id).is_locked
    assert not use.ended
    use.close()
    cluster.settle()
    lock(node)
    assert node.table(id).is_locked


def test_a_table_whose_changefeed_has_ended_is_not_locked_again(node: SchemaNode, id: int) -> None:
    end(node, watch(node, id))
    node.run(lambda use: add_column(use, id))
    lock(node)
    assert not node.table(id).is_locked


def test_a_lock_by_hand_comes_back_after_a_change(node: SchemaNode, id: int) -> None:
    node.run(lambda use: alter(use.draft, use, id, SetLocked(True)))
    lock(node)
    assert node.table(id).is_locked
    node.run(lambda use: add_column(use, id))
    lock(node)
    assert node.table(id).is_locked
    node.run(lambda use: alter(use.draft, use, id, SetLocked(False)))
    lock(node)
    assert not node.table(id).is_locked


# ── the gate ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I33")
@pytest.mark.parametrize("is_locked", [True, False])
def test_the_gate_refuses_changes_from_a_locked_version_and_locks_that_change(
    node: SchemaNode, id: int, is_locked: bool
) -> None:
    if not is_locked:
        watch(node, id)
    table = node.table(id)
    wider = (*table.columns, Column(9, "x", TypeRef("int8")))
    changed = replace(table, columns=wider, next_column=10, is_locked=is_locked)
    settled = node.publisher.settle([id], LeaseWaiter(node.store.clock.now()))
    with pytest.raises(RetryError, match="lock"):
        node.transact(lambda txn: node.publisher.publish(txn, [changed], settled))


# ── changes ────────────────────────────────────────────────────────────────────────────────────


def _insert_and_index(node: SchemaNode, use: CatalogUse, id: int) -> None:
    node.insert(use, id, 3, 3, 3)
    add_index(use, id, A, unique=True)


def _widen_and_rename(node: SchemaNode, use: CatalogUse, id: int) -> None:
    add_column(use, id)
    rename(use, id, "u")


def set_default(use: CatalogUse, id: int) -> None:
    """A change of one version."""
    alter(use.draft, use, id, SetDefault("a", constant(7)))


CHANGES: dict[str, Callable[[SchemaNode, CatalogUse, int], object]] = {
    "set default": lambda node, use, id: set_default(use, id),
    "add column": lambda node, use, id: add_column(use, id, default=7),
    "add index": lambda node, use, id: add_index(use, id, A),
    "rename": lambda node, use, id: rename(use, id, "u"),
    "rows and index": _insert_and_index,
    "empty": lambda node, use, id: empty(use.draft, use, id),
    "two changes": _widen_and_rename,
    "drop": lambda node, use, id: drop(use, id),
}


@pytest.mark.invariant("I33")
@pytest.mark.parametrize("name", CHANGES)
def test_with_other_nodes_a_change_unlocks_by_a_version_of_its_own(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int, name: str
) -> None:
    watch(node, id)
    cluster.settle()
    node.once(lambda use: CHANGES[name](node, use, id))
    cluster.settle()
    assert broken_locks(versions(node, id)) == []
    assert node.table(id).job == 0
    assert node.open_jobs() == list(node.table(id).watchers)
    lock(other)
    assert node.table(id).is_locked is (name != "drop")
    assert broken_locks(versions(node, id)) == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_node_that_is_alone_changes_a_watched_table_at_the_price_of_any_other(
    node: SchemaNode, id: int, name: str
) -> None:
    unwatched = created(node, "other")
    node.put_rows(unwatched, (1, 1, 1), (2, 2, 2))
    node.run(lambda use: rename(use, unwatched, "o"))
    watch(node, id)
    price = commits_of(node, lambda use: CHANGES[name](node, use, unwatched))
    if name != "drop":
        node.run(lambda use: rename(use, unwatched, "p"))
    assert commits_of(node, lambda use: CHANGES[name](node, use, id)) == price
    assert broken_locks(versions(node, id), alone=True) == []
    assert not node.table(id).is_locked


@pytest.mark.parametrize("is_other", [False, True])
def test_a_lock_between_declaration_and_commit_restarts_nothing(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int, is_other: bool
) -> None:
    job = watch(node, id)
    node.run(lambda use: add_column(use, id))
    assert not node.table(id).is_locked

    def work(use: CatalogUse) -> None:
        node.insert(use, id, 5, 5, 5)
        add_column(use, id, "d", default=1)
        cluster.settle()
        locker = other if is_other else node
        locker.locks.want(id, job)
        lock(locker)
        assert node.table(id).is_locked

    node.once(work)
    assert broken_locks(versions(node, id)) == []
    assert len(node.shown(id)) == 3


def test_a_comment_that_came_meanwhile_stays_with_a_change_that_was_carried(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int
) -> None:
    def work(use: CatalogUse) -> None:
        add_column(use, id, "d")
        other.run(lambda use: alter(use.draft, use, id, SetComment("people")))

    node.once(work)
    assert node.table(id).comment == "people"
    assert node.table(id).column_named("d") is not None


def test_comments_views_and_foreign_keys_to_a_table_unlock_nothing(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int
) -> None:
    watch(node, id)
    node.run(lambda use: alter(use.draft, use, id, SetComment("people")))
    node.run(lambda use: make_view(node, use, id, A))
    referring = created(node, "r")
    node.run(lambda use: add_foreign_key(use, referring, id))
    table = node.table(id)
    assert table.is_locked
    assert (table.comment, len(table.dependents), len(table.inbound)) == ("people", 1, 1)


def test_a_table_and_its_lock_may_come_with_one_commit(node: SchemaNode, other: SchemaNode) -> None:
    def work(use: CatalogUse) -> int:
        id = create(node, use, "n")
        add_column(use, id)
        alter(use.draft, use, id, SetLocked(True))
        return id

    id = node.run(work)
    lock(node)
    assert node.table(id).is_locked
    assert broken_locks(versions(node, id)) == []


def test_a_transaction_that_uses_a_table_holds_up_neither_unlock_nor_change(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int
) -> None:
    use = other.bind()
    other.insert(use, id, 8, 8, 8)
    watch(node, id)
    cluster.settle()
    node.once(lambda use: set_default(use, id))  # the use counts as one of the unlocked version
    other.changer.commit(use)
    assert node.table(id).column(A).default is not None
    assert (8, 8, 8) in node.shown(id)


# ── failures ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("with_rows", [False, True])
def test_a_change_that_fails_leaves_no_mark_and_the_lock_comes_back(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int, with_rows: bool
) -> None:
    job = watch(node, id)
    other.put_rows(id, (3, 1, 3))

    def work(use: CatalogUse) -> None:
        if with_rows:
            node.insert(use, id, 4, 9, 9)
        add_index(use, id, A, unique=True)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23505"
    cluster.settle()
    assert_whole(node, id)
    assert node.open_jobs() == [job]
    lock(node)
    assert node.table(id).is_locked
    assert broken_locks(versions(node, id)) == []


def is_locked_by(node: SchemaNode, id: int) -> bool:
    lock(node)
    return node.table(id).is_locked


@pytest.mark.invariant("I33")
@pytest.mark.parametrize("name", ["rename", "add index", "rows and index"])
def test_after_a_crash_at_any_commit_no_mark_is_left_and_the_lock_comes_back(name: str) -> None:
    crash_everywhere(name)


def crash_everywhere(name: str) -> None:
    """A change by a node that dies at its first commit, at its second, and so on."""
    for number in range(1, 30):
        env = SteppedEnv()
        cluster = Cluster(SqliteEngine(MEMORY, env), env)
        victim, heir = cluster.add(), cluster.add()
        id = created(heir)
        heir.put_rows(id, (1, 1, 1), (2, 2, 2))
        watch(heir, id)
        cluster.settle()
        victim.wire.crash_at(number, has_landed=number % 2 == 0)
        try:
            victim.once(lambda use: CHANGES[name](victim, use, id))  # noqa: B023
        except Crashed:
            pass
        is_over = not victim.wire.is_dead
        cluster.until(lambda: heir.table(id).job == 0)  # noqa: B023
        cluster.until(lambda: is_locked_by(heir, id))  # noqa: B023
        assert broken_locks(versions(heir, id)) == [], f"after a crash at commit {number}"
        assert heir.wrong_indexes(id) == []
        cluster.engine.close()
        if is_over:
            return
    raise AssertionError("it never came to its end")


# ── long stages ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def long_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stage counts as long."""
    monkeypatch.setattr(stage_locks, "LONG_ROWS", 1)


@pytest.mark.invariant("I33")
@pytest.mark.parametrize("is_unique", [False, True])
def test_while_many_rows_are_filled_or_proved_the_table_is_locked(
    cluster: Cluster, node: SchemaNode, other: SchemaNode, id: int, long_stages: None, is_unique: bool
) -> None:
    job = watch(node, id)
    other.put_rows(id, (3, 1, 3))
    with pytest.raises(TenureError, match="unique") if is_unique else nullcontext():
        node.run(lambda use: add_index(use, id, A, unique=is_unique))
    cluster.settle()
    listed = versions(node, id)
    assert any(each.is_locked and each.job and each.indexes[1:] for each in listed)
    assert broken_locks(listed) == []
    assert node.open_jobs() == [job]
    assert_whole(node, id)
    lock(node)
    assert node.table(id).is_locked


@pytest.mark.invariant("I33")
def test_a_job_that_another_node_takes_over_in_a_long_stage_unlocks_before_it_goes_on(
    long_stages: None,
) -> None:
    crash_everywhere("add index")


def test_a_node_that_starts_finds_tables_that_were_left_unlocked(
    cluster: Cluster, node: SchemaNode, id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_schedule, "LOOKS_MAX", 1)
    node.run(lambda use: alter(use.draft, use, id, SetLocked(True)))
    heir = cluster.add()
    cluster.until(lambda: is_locked_by(heir, id), seconds=60.0)
    assert node.table(id).is_lock_kept
