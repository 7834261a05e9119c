"""Committing transactions that change the catalog: alone, with other nodes, and with rows."""

import pytest

from tenure.base.errors import RetryError, TenureError
from tenure.catalog.changes import (
    AddCheck,
    AddForeignKey,
    AddIndex,
    AlterPrimaryKey,
    AlterType,
    DropConstraint,
    Part,
    SetNotNull,
    ValidateConstraint,
    alter,
)
from tenure.catalog.changes import Change as TableChange
from tenure.catalog.descriptors import DEFAULT_DATABASE, ElementState
from tenure.catalog.uses import Use
from tenure.table.read import get
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import (
    ID,
    INT,
    A,
    add_check,
    add_column,
    add_foreign_key,
    add_index,
    create,
    create_schema,
    created,
    inconsistent_names,
    place,
    rename,
)
from tests.unit.table.trees import above, column_value

PUBLIC = ElementState.PUBLIC


def commits_of(node: SchemaNode, work: object) -> int:
    """How many commits the node waits for until the statement answers."""
    before = len(node.wire.groups)
    with node.store.env.still():  # type: ignore[attr-defined]
        node.once(work)  # type: ignore[arg-type]
    return len(node.wire.groups) - before


def index_states(node: SchemaNode, id: int) -> dict[str, ElementState]:
    return {index.name: index.state for index in node.table(id).indexes}


def assert_whole(node: SchemaNode, id: int) -> None:
    assert node.wrong_indexes(id) == []
    assert inconsistent_names(node) == []
    assert node.table(id).job == 0


# ── nobody else is there ───────────────────────────────────────────────────────────────────────


def test_creating_a_table_alone_is_one_commit(node: SchemaNode) -> None:
    assert commits_of(node, lambda use: create(node, use)) == 1
    assert node.names()["t"] == node.leases.newest.id_at(place("t"))


def test_creating_a_schema_alone_is_one_commit(node: SchemaNode) -> None:
    assert commits_of(node, lambda use: create_schema(node, use, "s")) == 1
    entry = node.leases.newest.schema_entry(DEFAULT_DATABASE, "s")
    assert entry is not None and entry.id == node.names()["s"]
    assert inconsistent_names(node) == []


def test_an_index_on_an_empty_table_alone_is_one_commit(node: SchemaNode) -> None:
    id = created(node)
    assert commits_of(node, lambda use: add_index(use, id, A)) == 1
    assert index_states(node, id)["t_a"] is PUBLIC


def test_a_column_with_a_constant_default_alone_is_one_commit(node: SchemaNode) -> None:
    id = created(node)
    node.put_rows(id, (1, 1, 1), (2, 2, 2))
    assert commits_of(node, lambda use: add_column(use, id, default=7)) == 1
    assert node.shown(id) == [(1, 1, 1, 7), (2, 2, 2, 7)]


def test_the_same_one_commit_each_time_however_often(node: SchemaNode) -> None:
    id = created(node)
    counts = [commits_of(node, lambda use, n=n: add_index(use, id, A, name=f"i{n}")) for n in range(5)]
    assert counts == [1] * 5


def test_a_small_table_alone_gets_its_index_in_the_same_commit(node: SchemaNode) -> None:
    id = created(node)
    node.put_rows(id, (1, 1, 1), (2, 1, 2))
    node.once(lambda use: add_index(use, id, A))
    assert_whole(node, id)
    assert node.table(id).version == 2


def test_a_node_that_is_alone_again_needs_one_commit(cluster: Cluster, node: SchemaNode) -> None:
    other = cluster.add()
    id = created(node)
    other.leases.release()
    other.wire.is_dead = True
    assert commits_of(node, lambda use: add_index(use, id, A)) == 1


def test_a_new_index_covers_rows_of_a_table_made_in_the_same_transaction(node: SchemaNode) -> None:
    def work(use: Use) -> int:
        id = create(node, use)
        node.insert(use, id, 1, 10, 100)
        add_index(use, id, A)
        node.insert(use, id, 2, 20, 200)
        return id

    assert_whole(node, node.once(work))


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_new_table_is_asked_for_all_that_was_declared_after_its_rows(cluster: Cluster, nodes: int) -> None:
    """Changes of a new table are finished at once: nobody has looked at the rows that were there."""
    node, *_ = [cluster.add() for _ in range(nodes)]
    parent = created(node, "parent")
    index = AddIndex("i", (Part("a"),))
    for change, sqlstate in (
        (AddIndex("u", (Part("b"),), is_unique=True), "23505"),
        (AddCheck("c", above(A, 10)), "23514"),
        (AddForeignKey("f", ("a",), parent, (ID,)), "23503"),
    ):

        def work(use: Use, change: TableChange = change) -> int:
            id = create(node, use)
            node.insert(use, id, 1, 10, 100)
            alter(use.draft, use, id, index)
            node.insert(use, id, 2, 20, 100)
            alter(use.draft, use, id, change)
            return id

        with pytest.raises(TenureError) as caught:
            node.run(work)
        assert caught.value.sqlstate == sqlstate
        cluster.until(lambda: not node.open_jobs())
        assert "t" not in node.names()

    def good(use: Use) -> int:
        id = create(node, use)
        node.insert(use, id, 1, 10, 100)
        alter(use.draft, use, id, index)
        node.insert(use, id, 2, 20, 100)
        return id

    assert_whole(node, node.run(good))


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(
    "change",
    [AlterType("a", INT, computed=column_value(A)), AlterPrimaryKey("t_key", (Part("b"),))],
    ids=["type", "primary key"],
)
def test_a_new_table_with_rows_is_not_rewritten_by_the_transaction_that_made_it(
    cluster: Cluster, nodes: int, change: TableChange
) -> None:
    """It would be finished at once, and the rows would be lost."""
    node, *_ = [cluster.add() for _ in range(nodes)]

    def work(use: Use, *, with_rows: bool) -> int:
        id = create(node, use)
        if with_rows:
            node.insert(use, id, 1, 10, 100)
        alter(use.draft, use, id, SetNotNull("b"))
        alter(use.draft, use, id, change)
        return id

    with pytest.raises(TenureError) as caught:
        node.run(lambda use: work(use, with_rows=True))
    assert caught.value.sqlstate == "0A000"
    id = node.run(lambda use: work(use, with_rows=False))
    node.put_rows(id, (1, 10, 100))
    assert_whole(node, id)


def test_the_same_with_another_node_there(node: SchemaNode, other: SchemaNode) -> None:
    def work(use: Use) -> int:
        id = create(node, use)
        node.insert(use, id, 1, 10, 100)
        add_index(use, id, A)
        return id

    assert_whole(node, node.run(work))


def test_a_unique_index_over_equal_rows_of_the_same_new_table_fails(node: SchemaNode) -> None:
    def work(use: Use) -> None:
        id = create(node, use)
        node.insert(use, id, 1, 10, 100)
        node.insert(use, id, 2, 10, 100)
        add_index(use, id, A, unique=True)

    with pytest.raises(TenureError) as caught:
        node.once(work)
    assert caught.value.sqlstate == "23505"
    assert "t" not in node.names()
    assert node.user_keys() == []


# ── others are there ───────────────────────────────────────────────────────────────────────────


def test_with_another_node_a_job_walks_one_version_per_stage(node: SchemaNode, other: SchemaNode) -> None:
    id = created(node)
    other.put_rows(id, (1, 1, 1), (2, 1, 2))
    node.run(lambda use: add_index(use, id, A))
    assert node.table(id).version == 4
    assert_whole(node, id)
    assert node.open_jobs() == []


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_what_a_statement_changed_the_next_one_on_its_node_sees(cluster: Cluster, nodes: int) -> None:
    node, *_ = [cluster.add() for _ in range(nodes)]
    id = created(node)
    node.run(lambda use: add_column(use, id, default=7))
    use = node.bind()
    found = use.descriptor(id)
    use.close()
    assert found == node.table(id)


def test_who_creates_returns_when_the_other_nodes_know_of_it(node: SchemaNode, other: SchemaNode) -> None:
    id = created(node)
    assert other.leases.newest.id_at(place("t")) == id
    assert other.leases.newest.descriptor(id) == node.table(id)


def test_a_unique_index_that_rows_are_in_the_way_of_leaves_no_trace(
    node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    node.put_rows(id, (1, 5, 1), (2, 5, 2))
    before = node.table(id)
    with pytest.raises(TenureError) as caught:
        node.run(lambda use: add_index(use, id, A, unique=True))
    assert caught.value.sqlstate == "23505"
    assert 'could not create unique index "t_a"' in str(caught.value)
    after = node.table(id)
    assert after.indexes == before.indexes
    assert_whole(node, id)
    assert node.open_jobs() == []


def test_rows_of_the_same_transaction_in_the_way_leave_neither_rows_nor_index(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)
    node.put_rows(id, (1, 5, 1))

    def work(use: Use) -> None:
        node.insert(use, id, 2, 5, 2)
        add_index(use, id, A, unique=True)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23505"
    cluster.until(lambda: not node.open_jobs())
    assert node.shown(id) == [(1, 5, 1)]
    assert list(index_states(node, id)) == ["t_pkey"]
    assert_whole(node, id)


def test_rows_and_index_of_one_transaction_come_together(node: SchemaNode, other: SchemaNode) -> None:
    id = created(node)
    other.put_rows(id, (1, 1, 1), (2, 2, 2), (3, 3, 3))

    def work(use: Use) -> None:
        node.insert(use, id, 4, 4, 4)
        with node.writer(use, id) as writer:
            row, gone = (get(use.txn, writer.layout, [key]) for key in (1, 2))
            assert row is not None and gone is not None
            writer.update(use.txn, row, {A: 11})
            writer.delete(use.txn, gone)
        add_index(use, id, A, unique=True)

    node.run(work)
    assert node.shown(id) == [(1, 11, 1), (3, 3, 3), (4, 4, 4)]
    assert index_states(node, id)["t_a"] is PUBLIC
    assert_whole(node, id)


def test_a_check_is_asked_of_rows_that_its_own_transaction_wrote_before_it(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    id = created(node)

    def work(use: Use) -> None:
        node.insert(use, id, 1, -1, 1)
        add_check(use, id)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23514"
    cluster.until(lambda: not node.open_jobs())
    assert node.table(id).checks == ()
    assert node.shown(id) == []


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_foreign_key_is_asked_of_rows_that_its_own_transaction_wrote_before_it(
    cluster: Cluster, nodes: int
) -> None:
    node, *_ = [cluster.add() for _ in range(nodes)]
    parent, child = created(node, "parent"), created(node, "child")

    def work(use: Use) -> None:
        node.insert(use, child, 1, 99, 1)
        add_foreign_key(use, child, parent)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23503"
    cluster.until(lambda: not node.open_jobs())
    assert node.shown(child) == []
    assert node.table(child).foreign_keys == ()


def test_a_parent_deleted_before_the_foreign_key_was_declared_is_missed(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    parent, child = created(node, "parent"), created(node, "child")
    node.put_rows(parent, (1, 1, 1))
    node.put_rows(child, (1, 1, 1))

    def work(use: Use) -> None:
        with node.writer(use, parent) as writer:
            row = get(use.txn, writer.layout, [1])
            assert row is not None
            writer.delete(use.txn, row)
        add_foreign_key(use, child, parent)

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23503"
    cluster.until(lambda: not node.open_jobs())
    assert node.shown(parent) == [(1, 1, 1)]


def test_a_new_table_that_never_came_leaves_nothing_with_what_it_refers_to(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    parent = created(node, "parent")
    node.put_rows(parent, (1, 1, 1))

    def work(use: Use) -> None:
        child = create(node, use, "child")
        add_foreign_key(use, child, parent)
        node.insert(use, child, 1, 1, 1)
        use.txn.deadline_at = 1  # its own commit will come too late

    with pytest.raises(TenureError):
        node.once(work)
    cluster.until(lambda: not node.open_jobs())
    assert node.table(parent).inbound == ()
    assert "child" not in node.names()
    node.run(lambda use: _delete(node, use, parent, 1))
    assert node.shown(parent) == []


def _delete(node: SchemaNode, use: Use, id: int, key: int) -> None:
    with node.writer(use, id) as writer:
        row = get(use.txn, writer.layout, [key])
        assert row is not None
        writer.delete(use.txn, row)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_foreign_key_waits_for_those_who_use_its_target_without_it(
    node: SchemaNode, other: SchemaNode, is_new: bool
) -> None:
    """Such a one deletes the row referred to, and looks at nobody's rows."""
    parent = created(node, "parent")
    child = 0 if is_new else created(node, "child")
    node.put_rows(parent, (1, 1, 1))
    old = other.bind()
    _delete(other, old, parent, 1)

    def work(use: Use) -> int:
        id = create(node, use, "child") if is_new else child
        add_foreign_key(use, id, parent)
        return id

    node.run(work)  # others are ended when they have been waited for long enough
    child = node.names()["child"]
    assert node.table(child).foreign_keys[0].state is PUBLIC
    node.put_rows(child, (1, 1, 1))
    with pytest.raises(RetryError):
        old.commit()
    assert node.shown(parent) == [(1, 1, 1)]


def test_a_failed_foreign_key_leaves_nothing_with_its_target(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    parent, child = created(node, "parent"), created(node, "child")
    node.put_rows(child, (1, 99, 1))
    with pytest.raises(TenureError) as caught:
        node.run(lambda use: add_foreign_key(use, child, parent))
    assert caught.value.sqlstate == "23503"
    cluster.until(lambda: not node.open_jobs())
    assert node.table(child).foreign_keys == ()
    assert node.table(parent).inbound == ()


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("with_rows", [False, True])
def test_validating_a_constraint_looks_at_the_rows_from_before_it(
    cluster: Cluster, nodes: int, with_rows: bool
) -> None:
    node, *_ = [cluster.add() for _ in range(nodes)]
    parent, child = created(node, "parent"), created(node, "child")
    node.put_rows(child, (1, 99, 1))
    node.run(
        lambda use: alter(
            use.draft, use, child, AddForeignKey("f", ("a",), parent, (ID,), is_validated=False)
        )
    )

    def validate(use: Use) -> None:
        if with_rows:
            node.insert(use, parent, 5, 5, 5)
        alter(use.draft, use, child, ValidateConstraint("f"))

    with pytest.raises(TenureError) as caught:
        node.run(validate)
    assert caught.value.sqlstate == "23503"
    cluster.until(lambda: not node.open_jobs())
    (key,) = node.table(child).foreign_keys
    assert (key.state, key.is_validated) == (PUBLIC, False)
    assert node.table(parent).inbound != ()
    node.put_rows(parent, (99, 9, 9))
    node.run(validate)
    (key,) = node.table(child).foreign_keys
    assert (key.state, key.is_validated) == (PUBLIC, True)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("with_rows", [False, True])
def test_a_dropped_foreign_key_is_back_with_its_mark_if_the_rest_of_the_change_fails(
    cluster: Cluster, nodes: int, with_rows: bool
) -> None:
    node, *_ = [cluster.add() for _ in range(nodes)]
    parent, child = created(node, "parent"), created(node, "child")
    node.run(lambda use: add_foreign_key(use, child, parent, name="f"))
    node.put_rows(parent, (1, 1, 1))
    node.put_rows(child, (1, 1, 7), (2, 1, 7))
    before = node.table(child).foreign_keys, node.table(parent).inbound

    def work(use: Use) -> None:
        if with_rows:
            node.insert(use, child, 3, 1, 8)
        alter(use.draft, use, child, DropConstraint("f"))
        alter(use.draft, use, child, AddIndex("u", (Part("b"),), is_unique=True))

    with pytest.raises(TenureError) as caught:
        node.run(work)
    assert caught.value.sqlstate == "23505"
    cluster.until(lambda: not node.open_jobs())
    assert (node.table(child).foreign_keys, node.table(parent).inbound) == before
    with pytest.raises(TenureError) as caught:
        node.run(lambda use: _delete(node, use, parent, 1))
    assert caught.value.sqlstate == "23503"


def test_constraints_that_go_and_rows_and_an_index_come_together(node: SchemaNode, other: SchemaNode) -> None:
    id = created(node)
    node.run(lambda use: add_check(use, id, name="positive"))

    def work(use: Use) -> None:
        alter(use.draft, use, id, DropConstraint("positive"))
        node.insert(use, id, 1, -1, 1)
        add_index(use, id, A)

    node.run(work)
    assert node.table(id).checks == ()
    assert node.shown(id) == [(1, -1, 1)]
    assert_whole(node, id)


# ── several changes ────────────────────────────────────────────────────────────────────────────


def test_a_long_transaction_on_one_table_delays_no_change_of_another(
    node: SchemaNode, other: SchemaNode
) -> None:
    a, b = created(node, "a"), created(node, "b")
    long = other.bind()
    long.descriptor(a)
    node.run(lambda use: add_index(use, b, A))
    node.run(lambda use: rename(use, b, "b2"))
    assert index_states(node, b)["t_a"] is PUBLIC
    assert node.store.env.monotonic() < 5
    long.close()


def test_a_transaction_that_used_an_older_version_than_it_changes_restarts(node: SchemaNode) -> None:
    id = created(node)
    use = node.bind()
    add_index(use, id, A)
    use.give_up([id])
    node.once(lambda other: add_column(other, id))
    with pytest.raises(RetryError):
        node.changer.commit(use)
    assert list(index_states(node, id)) == ["t_pkey"]


def test_a_stale_change_beside_rows_overwrites_nothing(node: SchemaNode, other: SchemaNode) -> None:
    """What children publish is made of what is stored and what was declared."""
    id = created(node)
    use = node.bind()
    node.insert(use, id, 1, 1, 1)
    add_index(use, id, A)
    use.give_up([id])
    other.run(lambda elsewhere: add_column(elsewhere, id, "c", default=7))
    with pytest.raises(RetryError):
        node.changer.commit(use)
    assert [column.name for column in node.table(id).columns] == ["id", "a", "b", "c"]
    assert list(index_states(node, id)) == ["t_pkey"]
    assert node.open_jobs() == []
