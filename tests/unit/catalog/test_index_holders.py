"""Tables by the names of their indexes, as the cache moves from version to version."""

from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import DEFAULT_SCHEMA, Table, replace
from tenure.catalog.descriptors.index_holders import IndexHolders
from tenure.catalog.leases.catalog_cache import Cache
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.catalog.tables import users


class Shelf:
    def __init__(self) -> None:
        env = ManualEnv()
        self.engine = SqliteEngine(MEMORY, env)
        self.store = Store(self.engine, env)
        self.catalog = Catalog(self.store.keyspace)
        self.cache = Cache(self.catalog)

    def put(self, table: Table) -> None:
        self.store.transact(lambda txn: self.catalog.put(txn, table))
        self.cache.advance(self.store.snapshot())

    def delete(self, id: int) -> None:
        self.store.transact(lambda txn: self.catalog.delete(txn, id))
        self.cache.advance(self.store.snapshot())

    def holders(self, name: str) -> frozenset[int]:
        return self.cache.newest.index_holders(DEFAULT_SCHEMA, name)


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    shelf = Shelf()
    yield shelf
    shelf.engine.close()


def with_index_named(table: Table, name: str) -> Table:
    first, second, *rest = table.indexes
    return replace(table, version=table.version + 1, indexes=(first, replace(second, name=name), *rest))


def test_a_table_is_found_by_the_names_of_its_indexes(shelf: Shelf) -> None:
    shelf.put(users())
    assert shelf.holders("users_name") == {200}
    assert shelf.holders("users_nick") == frozenset()


def test_a_renamed_index_is_found_by_its_new_name_alone(shelf: Shelf) -> None:
    shelf.put(users())
    assert shelf.holders("users_name") == {200}
    shelf.put(with_index_named(users(), "users_nick"))
    assert shelf.holders("users_nick") == {200}
    assert shelf.holders("users_name") == frozenset()


def test_two_tables_may_have_an_index_of_the_same_name(shelf: Shelf) -> None:
    shelf.put(users())
    assert shelf.holders("users_name") == {200}
    shelf.put(users(id=201, name="others"))
    assert shelf.holders("users_name") == {200, 201}
    shelf.delete(200)
    assert shelf.holders("users_name") == {201}


def test_what_is_kept_up_with_changes_is_what_a_fresh_pass_finds(shelf: Shelf) -> None:
    shelf.put(users())
    kept = shelf.cache.index_holders()
    for number in range(5):
        shelf.put(with_index_named(users(id=201 + number % 3, version=number), f"i{number}"))
    assert shelf.cache.index_holders() is kept
    fresh = IndexHolders(shelf.cache.newest.descriptors())
    for name in ("users_name", *(f"i{number}" for number in range(5))):
        assert kept.of(DEFAULT_SCHEMA, name) == fresh.of(DEFAULT_SCHEMA, name)
