"""Pairs of protect and release, 16 clients, beside 16 clients that increment one record, on SQLite.

Every protection and every release writes the one meta record, so a pair is two increments of that record at
least: half the rate of increments is what can be reached. `protect` reads besides the zones, the thresholds
and the versions of its table. Each transaction is durable; one that meets another is run again.

Walk: `bench.__main__` -> `run` -> `ProtectionStore.protect`, `release`.
"""

import threading
from collections.abc import Callable

from bench.leases.places import fill, table
from bench.ratio import Bar, Ratio, compare
from bench.store.places import OTHER_TABLE, row_key, sqlite_store, store_path
from bench.store.rounds import alternate, note
from tenure.base.settings import DEFINITIONS, Settings
from tenure.catalog.bootstrap import bootstrap
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import DEFAULT_DATABASE, DEFAULT_SCHEMA
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_catalog import ProtectionCatalog
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.retention.protections.protection_store import ProtectionStore

CLIENTS = 16
ATTEMPTS = 1_000
"""Nobody gives up: all clients want the same record."""
PROTECTED_TABLE = 1_000
PAIRS, ROUNDS = 1_600, 5
PAIRS_QUICK = 48
BAR = 0.5


def run(quick: bool) -> list[Ratio]:
    pairs, rounds = (PAIRS_QUICK, 1) if quick else (PAIRS, ROUNDS)
    with store_path() as path, sqlite_store(path) as store:
        clients = Clients(store)
        mine, theirs = alternate(rounds, lambda: clients.protect(pairs), lambda: clients.increment(pairs))
        clients.verify()
    note(f"gc.protections: {mine.cpu_micros:.0f} us of CPU a pair, {theirs.cpu_micros:.0f} us an increment")
    return [
        compare(
            "gc.protections.pairs",
            ours=mine.rate,
            peer=theirs.rate,
            unit="1/s",
            bar=Bar.AT_LEAST,
            limit=BAR,
        )
    ]


class Clients:
    """Threads that protect and release a table, or increment a record, and what they have done so far."""

    def __init__(self, store: Store) -> None:
        self._store = store
        catalog = Catalog(store.keyspace)
        settings = Settings(DEFINITIONS)
        self._protections = ProtectionStore(store, catalog, lambda: settings)
        store.transact(lambda txn: bootstrap(txn, store.keyspace, catalog))
        fill(store, catalog, [table(PROTECTED_TABLE, "hot", DEFAULT_DATABASE, DEFAULT_SCHEMA)])
        self._counter = row_key(store, 0, OTHER_TABLE)
        self._pairs = self._increments = 0

    def protect(self, pairs: int) -> int:
        self._pairs += _in_threads(pairs // CLIENTS, self._protect_and_release)
        return pairs

    def _protect_and_release(self) -> None:
        def protect(txn: Transaction) -> bytes:
            targets = Targets((PROTECTED_TABLE,))
            return self._protections.protect(txn, txn.read_at, Mode.AT, "job", b"1", targets)

        id = self._store.transact(protect, attempts=ATTEMPTS)
        self._store.transact(lambda txn: self._protections.release(txn, id), attempts=ATTEMPTS)

    def increment(self, count: int) -> int:
        self._increments += _in_threads(count // CLIENTS, self._increment)
        return count

    def _increment(self) -> None:
        def add_one(txn: Transaction) -> None:
            value = txn.get(self._counter) or bytes(8)
            txn.put(self._counter, (int.from_bytes(value, "big") + 1).to_bytes(8, "big"))

        self._store.transact(add_one, attempts=ATTEMPTS)

    def verify(self) -> None:
        snapshot = self._store.snapshot()
        meta = ProtectionCatalog(self._store.keyspace).list_all(snapshot).meta
        assert (meta.version, meta.records, meta.objects, meta.bytes) == (2 * self._pairs, 0, 0, 0), meta
        assert int.from_bytes(snapshot.get(self._counter) or b"", "big") == self._increments


def _in_threads(times: int, run: Callable[[], None]) -> int:
    """Runs it so many times in each of the clients' threads; returns how often that is together."""
    done = [0] * CLIENTS

    def repeat(client: int) -> None:
        for _ in range(times):
            run()
            done[client] += 1

    threads = [threading.Thread(target=repeat, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == times * CLIENTS, "a client has failed"
    return sum(done)
