"""Committing transactions that change the catalog where no other node is there."""

import pytest

from tenure.base.errors import TenureError
from tenure.catalog.changes.table_changes import (
    AddCheck,
    AddForeignKey,
    AddIndex,
    AlterPrimaryKey,
    AlterType,
    NamedKeyColumn,
    SetNotNull,
    TableChange,
    alter,
)
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE
from tenure.catalog.leases.catalog_use import CatalogUse
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.committing import PUBLIC, assert_whole, commits_of, index_states
from tests.unit.schema_change.declared import (
    ID,
    INT,
    A,
    add_column,
    add_index,
    create,
    create_schema,
    created,
    inconsistent_names,
    place,
)
from tests.unit.table.trees import above, column_value


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
    def work(use: CatalogUse) -> int:
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
    index = AddIndex("i", (NamedKeyColumn("a"),))
    for change, sqlstate in (
        (AddIndex("u", (NamedKeyColumn("b"),), is_unique=True), "23505"),
        (AddCheck("c", above(A, 10)), "23514"),
        (AddForeignKey("f", ("a",), parent, (ID,)), "23503"),
    ):

        def work(use: CatalogUse, change: TableChange = change) -> int:
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

    def good(use: CatalogUse) -> int:
        id = create(node, use)
        node.insert(use, id, 1, 10, 100)
        alter(use.draft, use, id, index)
        node.insert(use, id, 2, 20, 100)
        return id

    assert_whole(node, node.run(good))


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(
    "change",
    [AlterType("a", INT, computed=column_value(A)), AlterPrimaryKey("t_key", (NamedKeyColumn("b"),))],
    ids=["type", "primary key"],
)
def test_a_new_table_with_rows_is_not_rewritten_by_the_transaction_that_made_it(
    cluster: Cluster, nodes: int, change: TableChange
) -> None:
    """It would be finished at once, and the rows would be lost."""
    node, *_ = [cluster.add() for _ in range(nodes)]

    def work(use: CatalogUse, *, with_rows: bool) -> int:
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
    def work(use: CatalogUse) -> int:
        id = create(node, use)
        node.insert(use, id, 1, 10, 100)
        add_index(use, id, A)
        return id

    assert_whole(node, node.run(work))


def test_a_unique_index_over_equal_rows_of_the_same_new_table_fails(node: SchemaNode) -> None:
    def work(use: CatalogUse) -> None:
        id = create(node, use)
        node.insert(use, id, 1, 10, 100)
        node.insert(use, id, 2, 10, 100)
        add_index(use, id, A, unique=True)

    with pytest.raises(TenureError) as caught:
        node.once(work)
    assert caught.value.sqlstate == "23505"
    assert "t" not in node.names()
    assert node.user_keys() == []
