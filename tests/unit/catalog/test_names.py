"""Names and maps: derived from descriptors, draining before anybody else may have them."""

import pytest

from tenure.base.errors import Duplicate, ObjectInUse, RetryError
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DEFAULT_SCHEMA, DescriptorState, replace
from tenure.catalog.descriptors.name_entries import map_entries, move_names, places
from tenure.catalog.leases.catalog_use import CatalogUse
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import (
    create,
    create_schema,
    created,
    drop,
    inconsistent_names,
    new_table,
    place,
    rename,
    schema_place,
    set_schema,
)


def test_a_descriptor_has_its_name_and_those_that_drain() -> None:
    table = new_table(200, "t")
    assert places(None) == frozenset()
    assert places(table) == {place("t")}
    renamed = replace(table, name="u", draining=(place("t"),))
    assert places(renamed) == {place("t"), place("u")}
    assert places(replace(renamed, state=DescriptorState.DROPPED)) == {place("t")}


@pytest.mark.invariant("I38")
def test_only_schemas_are_in_maps_and_what_drains_there_is_dropped(node: SchemaNode) -> None:
    id = node.run(lambda use: create_schema(node, use, "s"))
    schema = node.stored(id)
    assert schema is not None
    assert map_entries(new_table(200, "t")) == {}
    moved = replace(schema, name="r", draining=(schema_place("s"),))
    states = {name: entry.state for (_, name), entry in map_entries(moved).items()}
    assert states == {"r": DescriptorState.PUBLIC, "s": DescriptorState.DROPPED}


@pytest.mark.invariant("I38")
def test_moving_names_writes_the_difference_and_says_whose_map_changed(node: SchemaNode) -> None:
    id = node.run(lambda use: create_schema(node, use, "s"))
    schema = node.stored(id)
    assert schema is not None
    txn = node.store.begin()
    renamed = replace(schema, name="r")
    assert move_names(txn, node.catalog, [(schema, renamed)]) == {DEFAULT_DATABASE}
    assert move_names(txn, node.catalog, [(renamed, renamed)]) == frozenset()
    assert node.catalog.id_at(txn, schema_place("s")) is None
    assert node.catalog.id_at(txn, schema_place("r")) == id
    assert node.catalog.schema_entry(txn, DEFAULT_DATABASE, "s") is None
    txn.rollback()


def test_a_name_that_is_taken_is_refused_with_the_sqlstate_of_its_kind(node: SchemaNode) -> None:
    created(node, "t")
    with pytest.raises(Duplicate) as caught:
        node.once(lambda use: create(node, use, "t"))
    assert caught.value.sqlstate == "42P07"
    with pytest.raises(Duplicate) as caught:
        node.once(lambda use: create_schema(node, use, "public"))
    assert caught.value.sqlstate == "42P06"
    assert inconsistent_names(node) == []


@pytest.mark.invariant("I39")
def test_a_name_that_drains_is_nobody_elses(cluster: Cluster, node: SchemaNode, other: SchemaNode) -> None:
    id = created(node, "t")
    cluster.settle()
    table = node.table(id)
    renamed = replace(table, name="u", draining=(place("t"),))
    node.transact(lambda txn: node.publisher.publish(txn, [renamed], {id: table.modified_at}))
    with pytest.raises(ObjectInUse) as caught:
        node.run(lambda use: create(node, use, "t"))
    assert caught.value.sqlstate == "55006"
    # Both names give the same table, whichever a node's lease has.
    assert node.names()["t"] == node.names()["u"] == id


# ── on several nodes ───────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I39")
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_two_renames_that_pass_a_name_on(cluster: Cluster, nodes: int) -> None:
    members = [cluster.add() for _ in range(nodes)]
    node, last = members[0], members[-1]
    first, second = created(node, "a"), created(node, "c")
    node.run(lambda use: rename(use, first, "b"))
    last.run(lambda use: rename(use, second, "a"))
    cluster.settle(1.0)
    for each in members:
        use = each.bind()
        assert (use.id_at(place("a")), use.id_at(place("b")), use.id_at(place("c"))) == (second, first, None)
        use.close()
    assert inconsistent_names(node) == []
    assert node.table(first).draining == node.table(second).draining == ()


@pytest.mark.invariant("I39")
def test_while_the_first_rename_drains_the_second_is_refused_and_a_lookup_gives_the_old_id(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    first, second = created(node, "a"), created(node, "c")
    cluster.settle()
    reader = other.bind()
    reader.descriptor(first)
    renamed = replace(node.table(first), name="b", draining=(place("a"),))
    settled = {first: node.table(first).modified_at}
    node.transact(lambda txn: node.publisher.publish(txn, [renamed], settled))
    with pytest.raises(ObjectInUse):
        other.run(lambda use: rename(use, second, "a"))
    assert reader.id_at(place("a")) == first  # never a third object
    reader.close()


@pytest.mark.invariant("I39")
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_table_dropped_and_made_again_gets_no_writes_of_the_old_one(cluster: Cluster, nodes: int) -> None:
    members = [cluster.add() for _ in range(nodes)]
    node, last = members[0], members[-1]
    old = created(node, "t")
    late = last.bind()
    assert late.id_at(place("t")) == old
    node.run(lambda use: drop(use, old))
    new = created(node, "t")
    with pytest.raises(RetryError):
        last.insert(late, old, 1, 1, 1)
    late.close()
    last.put_rows(new, (1, 1, 1))
    assert new != old
    assert node.shown(new) == [(1, 1, 1)]
    assert inconsistent_names(node) == []


@pytest.mark.invariant("I38")
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_table_moves_to_another_schema(cluster: Cluster, nodes: int) -> None:
    node, *_ = [cluster.add() for _ in range(nodes)]
    id = created(node, "t")
    schema = node.run(lambda use: create_schema(node, use, "s"))
    node.run(lambda use: set_schema(use, id, schema))
    snapshot = node.store.snapshot()
    assert node.catalog.id_at(snapshot, place("t")) is None
    assert node.catalog.id_at(snapshot, place("t", schema)) == id
    assert inconsistent_names(node) == []


@pytest.mark.invariant("I38")
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_schema_goes_with_its_entry_in_the_map(cluster: Cluster, nodes: int) -> None:
    node, *_ = [cluster.add() for _ in range(nodes)]
    before = node.stored(DEFAULT_DATABASE)
    id = node.run(lambda use: create_schema(node, use, "s"))
    node.run(lambda use: drop(use, id))
    assert node.catalog.schema_entry(node.store.snapshot(), DEFAULT_DATABASE, "s") is None
    assert node.names().get("s") is None
    assert inconsistent_names(node) == []
    after = node.stored(DEFAULT_DATABASE)
    assert before is not None and after is not None and after.version >= before.version + 2


@pytest.mark.invariant("I38")
def test_a_schema_that_is_dropped_accepts_no_new_table(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    schema = node.run(lambda use: create_schema(node, use, "s"))
    cluster.settle()
    late = other.bind()
    create(other, late, "t", schema=schema)
    node.run(lambda use: drop(use, schema))
    with pytest.raises(RetryError):
        other.changer.commit(late)
    assert inconsistent_names(node) == []


@pytest.mark.invariant("I38")
def test_a_schema_that_has_got_a_table_is_not_dropped(
    cluster: Cluster, node: SchemaNode, other: SchemaNode
) -> None:
    schema = node.run(lambda use: create_schema(node, use, "s"))
    cluster.settle()
    late = other.bind()
    drop(late, schema)
    created(node, "t", schema=schema)
    with pytest.raises(RetryError):
        other.changer.commit(late)
    assert inconsistent_names(node) == []


@pytest.mark.invariant("I38")
def test_a_schema_and_all_that_is_in_it_go_together(node: SchemaNode, other: SchemaNode) -> None:
    schema = node.run(lambda use: create_schema(node, use, "s"))
    table = created(node, "t", schema=schema)

    def cascade(use: CatalogUse) -> None:
        drop(use, table)
        drop(use, schema)

    node.run(cascade)
    assert inconsistent_names(node) == []
    assert {"s", "t"}.isdisjoint(node.names())
    assert created(node, "t", schema=DEFAULT_SCHEMA) != table
