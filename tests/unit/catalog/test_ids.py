"""Ids for new descriptors."""

import pytest

from tenure.base.env import ManualEnv
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import DEFAULT_SCHEMA
from tenure.catalog.descriptors.ids import BLOCK_IDS, OIDS_OF_CATALOGS, DescriptorIds
from tenure.kv.store import Store
from tenure.sql.tables.pg_catalog.shapes import shapes
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine


@pytest.mark.invariant("id-once")
def test_no_id_is_given_twice_by_whichever_node() -> None:
    env = ManualEnv()
    store = Store(SqliteEngine(MEMORY, env), env)
    catalog = Catalog(store.keyspace)
    nodes = [DescriptorIds(store, catalog) for _ in range(3)]
    given = [node.next() for _ in range(3 * BLOCK_IDS) for node in nodes]
    assert len(set(given)) == len(given)
    assert min(given) > DEFAULT_SCHEMA
    given.append(store.transact(catalog.fresh_id))
    assert len(set(given)) == len(given)


def test_no_object_gets_the_number_of_a_catalog() -> None:
    env = ManualEnv()
    store = Store(SqliteEngine(MEMORY, env), env)
    catalog = Catalog(store.keyspace)
    store.transact(lambda txn: catalog.fresh_ids(txn, 1_100))
    ids = DescriptorIds(store, catalog)
    given = [ids.next() for _ in range(200)]
    assert max(given) > 1262
    assert not {*given} & OIDS_OF_CATALOGS
    assert {each.oid for each in shapes().values() if not each.is_view} == OIDS_OF_CATALOGS
