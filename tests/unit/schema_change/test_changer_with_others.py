"""Committing transactions that change the catalog beside other nodes, and with rows."""

import pytest

from tenure.base.errors import RetryError, TenureError
from tenure.catalog.changes.table_changes import (
    AddForeignKey,
    AddIndex,
    DropConstraint,
    NamedKeyColumn,
    ValidateConstraint,
    alter,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.table.read import get
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.committing import PUBLIC, assert_whole, index_states
from tests.unit.schema_change.declared import (
    ID,
    A,
    add_check,
    add_column,
    add_foreign_key,
    add_index,
    create,
    created,
    place,
)


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

    def work(use: CatalogUse) -> None:
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

    def work(use: CatalogUse) -> None:
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

    def work(use: CatalogUse) -> None:
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

    def work(use: CatalogUse) -> None:
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

    def work(use: CatalogUse) -> None:
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

    def work(use: CatalogUse) -> None:
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


def _delete(node: SchemaNode, use: CatalogUse, id: int, key: int) -> None:
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

    def work(use: CatalogUse) -> int:
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

    def validate(use: CatalogUse) -> None:
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

    def work(use: CatalogUse) -> None:
        if with_rows:
            node.insert(use, child, 3, 1, 8)
        alter(use.draft, use, child, DropConstraint("f"))
        alter(use.draft, use, child, AddIndex("u", (NamedKeyColumn("b"),), is_unique=True))

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

    def work(use: CatalogUse) -> None:
        alter(use.draft, use, id, DropConstraint("positive"))
        node.insert(use, id, 1, -1, 1)
        add_index(use, id, A)

    node.run(work)
    assert node.table(id).checks == ()
    assert node.shown(id) == [(1, -1, 1)]
    assert_whole(node, id)
