"""The catalog's records: kept as they were, judged on their way, all in one span."""

from collections.abc import Iterator
from functools import partial

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import CorruptData
from tenure.base.timestamp import MAX_AT, Timestamp, to_bytes
from tenure.catalog.changes.drops import drop_schemas
from tenure.catalog.changes.object_changes import create_schema, rename_object
from tenure.catalog.descriptors.catalog_records import Catalog, NameEntry
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    AnyDescriptor,
    DescriptorState,
    EnumMember,
    EnumType,
    Expression,
    NameKey,
    SchemaEntry,
    next_version,
    place_of,
    replace,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.kv.keys import DESCRIPTORS, NAMES, SCHEMA_MAPS, Keyspace
from tenure.kv.records import UINT64, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.catalog.tables import Shelf, column, database, declared, schema, users

KEYS = Keyspace(DEFAULT_TENANT)


@pytest.fixture
def store() -> Iterator[Store]:
    env = ManualEnv()
    engine = SqliteEngine(MEMORY, env)
    yield Store(engine, env)
    engine.close()


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(KEYS)


def mood() -> EnumType:
    return EnumType(
        300,
        1,
        users().modified_at,
        "mood",
        "root",
        DescriptorState.PUBLIC,
        (),
        (),
        database=DEFAULT_DATABASE,
        schema=DEFAULT_SCHEMA,
        members=(EnumMember("low", b"\x55"), EnumMember("high", b"\xaa")),
        referents=(200,),
    )


def put(store: Store, catalog: Catalog, descriptor: AnyDescriptor) -> Timestamp:
    txn = store.begin()
    catalog.put(txn, descriptor)
    return txn.commit()


@pytest.mark.parametrize("descriptor", [database(), schema(), users(), mood()])
def test_every_kind_of_descriptor_comes_back_with_its_commit_timestamp(
    store: Store, catalog: Catalog, descriptor: AnyDescriptor
) -> None:
    at = put(store, catalog, descriptor)
    assert catalog.get(store.snapshot(), descriptor.id) == replace(descriptor, modified_at=at)


def test_a_descriptor_that_is_not_there_is_none(store: Store, catalog: Catalog) -> None:
    assert catalog.get(store.snapshot(), 200) is None


def test_all_descriptors_are_listed_by_their_ids(store: Store, catalog: Catalog) -> None:
    for descriptor in (mood(), users(), database()):
        put(store, catalog, descriptor)
    assert [each.id for each in catalog.list(store.snapshot())] == [100, 200, 300]


def test_a_deleted_descriptor_is_gone(store: Store, catalog: Catalog) -> None:
    put(store, catalog, users())
    store.transact(lambda txn: catalog.delete(txn, 200))
    assert catalog.get(store.snapshot(), 200) is None


def test_a_bad_descriptor_is_corrupt_data_when_it_is_read(store: Store, catalog: Catalog) -> None:
    records = Records(KEYS, DESCRIPTORS, type(users()), key=("id",))
    bad = users(primary=9)
    store.transact(lambda txn: records.put(txn, bad))
    with pytest.raises(CorruptData, match='descriptor 200 "users": it has no primary index'):
        catalog.get(store.snapshot(), 200)
    with pytest.raises(CorruptData):
        list(catalog.list(store.snapshot()))
    with pytest.raises(CorruptData):
        catalog.decode(records.encode(bad))


def test_bytes_that_are_no_descriptor_are_corrupt_data(store: Store, catalog: Catalog) -> None:
    store.transact(lambda txn: txn.put(catalog.key(200), b"\x01nonsense"))
    with pytest.raises(CorruptData):
        catalog.get(store.snapshot(), 200)


def test_a_bad_descriptor_is_never_written(store: Store, catalog: Catalog) -> None:
    with pytest.raises(AssertionError, match="it has no primary index"):
        put(store, catalog, users(primary=9))


def test_ids_are_given_out_once(store: Store, catalog: Catalog) -> None:
    first = store.transact(catalog.fresh_id)
    txn = store.begin()
    assert [catalog.fresh_id(txn), catalog.fresh_id(txn)] == [first + 1, first + 2]
    txn.commit()
    assert store.transact(catalog.fresh_id) == first + 3
    assert first > DEFAULT_SCHEMA


def test_names_stand_for_ids(store: Store, catalog: Catalog) -> None:
    place = place_of(users())
    store.transact(lambda txn: catalog.put_name(txn, place, 200))
    store.transact(lambda txn: catalog.put_name(txn, NameKey(0, 0, "defaultdb"), 100))
    snapshot = store.snapshot()
    assert catalog.id_at(snapshot, place) == 200
    assert list(catalog.names_in(snapshot, DEFAULT_DATABASE, DEFAULT_SCHEMA)) == [
        NameEntry(DEFAULT_DATABASE, DEFAULT_SCHEMA, "users", 200)
    ]
    assert [entry.id for entry in catalog.names(snapshot)] == [100, 200]
    store.transact(lambda txn: catalog.delete_name(txn, place))
    assert catalog.id_at(store.snapshot(), place) is None


def test_a_map_has_one_entry_for_each_schema(store: Store, catalog: Catalog) -> None:
    entry = SchemaEntry(DEFAULT_DATABASE, "app", 110, DescriptorState.PUBLIC)
    other = SchemaEntry(DEFAULT_DATABASE + 1, "app", 111, DescriptorState.PUBLIC)
    for each in (entry, other):
        store.transact(partial(catalog.put_schema_entry, entry=each))
    snapshot = store.snapshot()
    assert catalog.schema_entry(snapshot, DEFAULT_DATABASE, "app") == entry
    assert list(catalog.schema_map(snapshot, DEFAULT_DATABASE)) == [entry]
    store.transact(lambda txn: catalog.delete_schema_entry(txn, DEFAULT_DATABASE, "app"))
    assert catalog.schema_entry(store.snapshot(), DEFAULT_DATABASE, "app") is None


def test_one_span_holds_all_of_the_catalog_and_nothing_else(store: Store, catalog: Catalog) -> None:
    def fill(txn: Transaction) -> None:
        catalog.put(txn, users())
        catalog.put_name(txn, place_of(users()), 200)
        catalog.put_schema_entry(txn, SchemaEntry(DEFAULT_DATABASE, "app", 110, DescriptorState.PUBLIC))
        catalog.fresh_id(txn)

    store.transact(fill)
    found = [catalog.columns_of(key) for key, _ in store.snapshot().scan(catalog.span)]
    assert sorted(found, key=len) == [(200,), (DEFAULT_DATABASE, "app"), (100, 101, "users")]
    for table in (DESCRIPTORS, NAMES, SCHEMA_MAPS):
        span = KEYS.table_span(table)
        assert catalog.span.lo <= span.lo and span.hi <= catalog.span.hi


def test_keys_and_values_of_the_span_say_what_they_are(store: Store, catalog: Catalog) -> None:
    at = put(store, catalog, users())
    store.transact(lambda txn: catalog.put_name(txn, place_of(users()), 200))
    found = [catalog.record_of(key, value) for key, value in store.snapshot().scan(catalog.span)]
    assert users(modified_at=at) in found
    assert NameEntry(DEFAULT_DATABASE, DEFAULT_SCHEMA, "users", 200) in found


# ── names, maps and descriptors together ───────────────────────────────────────────────────────


def publish(store: Store, catalog: Catalog, draft: Draft) -> Timestamp:
    """Writes a draft as the schema changer does: descriptors, names and maps in one commit."""
    txn = store.begin()
    for descriptor in draft.declared.values():
        catalog.put(txn, descriptor if draft.is_new(descriptor.id) else next_version(descriptor))
    for place, id in draft.names.items():
        if id is not None:
            catalog.put_name(txn, place, id)
    for (parent, name), entry in draft.entries.items():
        if entry is None:
            catalog.delete_schema_entry(txn, parent, name)
        else:
            catalog.put_schema_entry(txn, entry)
    return txn.commit()


@pytest.mark.invariant("I38")
def test_a_name_stands_for_one_id_and_maps_change_with_the_names(store: Store, catalog: Catalog) -> None:
    shelf = Shelf()
    for each in (database(), schema()):
        shelf.draft.create(each)
    times = [publish(store, catalog, shelf.draft)]
    for step in (
        lambda: create_schema(shelf.draft, shelf, id=110, database=100, name="app", owner="ann"),
        lambda: rename_object(shelf.draft, shelf, 110, "web"),
        lambda: drop_schemas(shelf.draft, shelf, [110], ()),
    ):
        shelf.draft = Draft()
        step()
        times.append(publish(store, catalog, shelf.draft))
        shelf.commit()
    for at in times:
        _check_consistency(catalog, store.snapshot(at))
    versions = [catalog.get(store.snapshot(at), 100) for at in times]
    assert [each.version for each in versions if each is not None] == [1, 2, 3, 4]


def _check_consistency(catalog: Catalog, snapshot: Snapshot) -> None:
    descriptors = {each.id: each for each in catalog.list(snapshot)}
    names = {NameKey(each.database, each.schema, each.name): each.id for each in catalog.names(snapshot)}
    expected = {
        place: each.id
        for each in descriptors.values()
        for place in (
            *each.draining,
            *([place_of(each)] if each.state is not DescriptorState.DROPPED else []),
        )
    }
    assert names == expected
    mapped = {
        (entry.name, entry.id)
        for entry in catalog.schema_map(snapshot, 100)
        if entry.state is DescriptorState.PUBLIC
    }
    assert mapped == {
        (place.name, id)
        for place, id in names.items()
        if place.database == 100
        and not place.schema
        and place_of(descriptors[id]) == place
        and descriptors[id].state is DescriptorState.PUBLIC
    }


def test_a_descriptor_may_hold_any_bytes(store: Store, catalog: Catalog) -> None:
    stand_in = UINT64 + to_bytes(MAX_AT)
    table = declared(users(), column("a", filled=stand_in, default=Expression(stand_in, "x")))
    at = put(store, catalog, table)
    assert catalog.get(store.snapshot(), 200) == replace(table, modified_at=at)
