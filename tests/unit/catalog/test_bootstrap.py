"""What a new store starts with."""

from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    SYSTEM_DATABASE,
    SYSTEM_SCHEMA,
    DescriptorState,
    NameKey,
)
from tenure.catalog.descriptors.zones import zones
from tests.unit.schema_change.clusters import Cluster, SchemaNode
from tests.unit.schema_change.declared import created, inconsistent_names


def test_a_new_store_has_two_databases_with_their_public_schemas(node: SchemaNode) -> None:
    snapshot = node.store.snapshot()
    ids = [each.id for each in node.catalog.list(snapshot)]
    assert ids == [SYSTEM_DATABASE, SYSTEM_SCHEMA, DEFAULT_DATABASE, DEFAULT_SCHEMA]
    assert node.catalog.id_at(snapshot, NameKey(0, 0, "defaultdb")) == DEFAULT_DATABASE
    entry = node.catalog.schema_entry(snapshot, DEFAULT_DATABASE, "public")
    assert entry is not None and (entry.id, entry.state) == (DEFAULT_SCHEMA, DescriptorState.PUBLIC)
    assert inconsistent_names(node) == []


def test_it_is_written_once_whoever_starts(node: SchemaNode, other: SchemaNode) -> None:
    before = list(node.catalog.list(node.store.snapshot()))
    created(node)
    assert not node.transact(lambda txn: bootstrap(txn, node.store.keyspace, node.catalog))
    after = list(node.catalog.list(node.store.snapshot()))
    assert after[: len(before)] == before


def test_two_nodes_that_start_at_once_write_it_once(cluster: Cluster, node: SchemaNode) -> None:
    first, second = node.store.begin(), node.store.begin()
    keyspace = node.store.keyspace
    assert not bootstrap(first, keyspace, node.catalog)
    assert not bootstrap(second, keyspace, node.catalog)
    first.rollback()
    second.rollback()


def test_there_is_a_zone_that_all_others_inherit_from(node: SchemaNode) -> None:
    assert len(list(zones(node.store.keyspace).scan(node.store.snapshot()))) == 1
