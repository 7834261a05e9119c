"""The cache against a full read: random histories, every older version, lookups meanwhile."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Database, DescriptorState, NameKey, SchemaEntry
from tenure.catalog.leases.catalog_cache import Cache, CatalogView
from tenure.kv.store import Store
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.kv.waiting import Call

IDS = range(200, 206)
NAMES = ("a", "b", "c")

Change = tuple[str, int, str]
changes = st.tuples(
    st.sampled_from(["put", "delete", "name", "unname", "enter", "leave"]),
    st.sampled_from(list(IDS)),
    st.sampled_from(NAMES),
)
histories = st.lists(st.tuples(st.lists(changes, max_size=6), st.booleans()), min_size=1, max_size=12)


class Bench:
    def __init__(self) -> None:
        env = ManualEnv()
        self.engine = SqliteEngine(MEMORY, env)
        self.store = Store(self.engine, env)
        self.catalog = Catalog(self.store.keyspace)
        self.cache = Cache(self.catalog)

    def apply(self, change: Change) -> None:
        self.store.transact(lambda txn: self._apply(txn, *change))

    def _apply(self, txn: Transaction, kind: str, id: int, name: str) -> None:
        match kind:
            case "put":
                former = self.catalog.get(txn, id)
                version = 1 if former is None else former.version + 1
                self.catalog.put(
                    txn, Database(id, version, ZERO_AT, name, "root", DescriptorState.PUBLIC, (), ())
                )
            case "delete":
                self.catalog.delete(txn, id)
            case "name":
                self.catalog.put_name(txn, NameKey(1, 2, name), id)
            case "unname":
                self.catalog.delete_name(txn, NameKey(1, 2, name))
            case "enter":
                self.catalog.put_schema_entry(txn, SchemaEntry(1, name, id, DescriptorState.PUBLIC))
            case _:
                self.catalog.delete_schema_entry(txn, 1, name)

    def advance(self) -> CatalogView:
        self.cache.advance(self.store.snapshot())
        return self.cache.newest

    def read(self, at: int) -> list[object]:
        """What a full read at a time says."""
        snapshot = self.store.snapshot(at)
        found: list[object] = [self.catalog.get(snapshot, id) for id in IDS]
        found += [self.catalog.id_at(snapshot, NameKey(1, 2, name)) for name in NAMES]
        return found + [self.catalog.schema_entry(snapshot, 1, name) for name in NAMES]


def looked_up(version: CatalogView) -> list[object]:
    found: list[object] = [version.descriptor(id) for id in IDS]
    found += [version.id_at(NameKey(1, 2, name)) for name in NAMES]
    return found + [version.schema_entry(1, name) for name in NAMES]


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.engine.close()


@pytest.mark.invariant("I17")
@given(histories)
@settings(max_examples=60, deadline=None)
def test_every_version_answers_what_a_full_read_at_its_time_would(
    history: list[tuple[list[Change], bool]],
) -> None:
    bench = Bench()
    versions: list[CatalogView] = []
    for batch, is_kept in history:
        for change in batch:
            bench.apply(change)
        version = bench.advance()
        if is_kept:
            versions.append(version)
        for each in [*versions, version]:
            assert looked_up(each) == bench.read(each.at)
    bench.engine.close()


@pytest.mark.invariant("I17")
@given(histories)
@settings(max_examples=30, deadline=None)
def test_the_same_when_the_history_in_between_is_gone(history: list[tuple[list[Change], bool]]) -> None:
    bench = Bench()
    head = bench.catalog.descriptors_head
    for batch, is_collected in history:
        version = bench.advance()
        for change in batch:
            bench.apply(change)
        at = bench.store.snapshot().at
        expected = bench.read(version.at)
        if is_collected:
            bench.store.transact(
                lambda txn, at=at: publish_threshold(txn, bench.store.keyspace, head, at)  # type: ignore[misc]
            )
        assert looked_up(version) == expected
        assert looked_up(bench.advance()) == bench.read(bench.cache.newest.at)
        assert looked_up(version) == expected
    bench.engine.close()


def test_a_descriptor_is_the_same_until_it_is_written_again(bench: Bench) -> None:
    bench.apply(("put", 200, "a"))
    bench.apply(("put", 201, "b"))
    first = bench.advance()
    bench.apply(("put", 201, "b"))
    second = bench.advance()
    assert first.is_same(200, second)
    assert not first.is_same(201, second)
    assert first.is_same(299, second)


def test_an_advance_reads_only_what_has_changed(bench: Bench) -> None:
    for id in IDS:
        bench.apply(("put", id, "a"))
    bench.advance()
    bench.apply(("put", 200, "b"))
    older = bench.cache.newest
    bench.advance()
    assert set(older.before) == {200}


@pytest.mark.invariant("I17")
def test_lookups_under_an_older_lease_are_steady_while_the_cache_goes_on(bench: Bench) -> None:
    for id in IDS:
        bench.apply(("put", id, "a"))
    version = bench.advance()
    expected = looked_up(version)
    is_over = threading.Event()

    def look() -> int:
        count = 0
        while not is_over.is_set() or not count:
            assert looked_up(version) == expected
            count += 1
        return count

    readers = [Call(look) for _ in range(3)]
    for n in range(150):
        bench.apply(("put", 200 + n % 6, "abc"[n % 3]))
        bench.apply(("delete" if n % 7 == 0 else "name", 200 + n % 5, "b"))
        bench.advance()
    is_over.set()
    assert all(reader.result() > 0 for reader in readers)
