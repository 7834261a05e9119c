"""Sweeps of an index that has a base: past files go or are rewritten, and promised times show the same."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.errors import SnapshotTooOld
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.zones import Zone, zones
from tenure.kv.protected_reads import ProtectedRead
from tenure.retention.protections.protection_records import Mode, Targets, record_key
from tenure.retention.protections.protection_store import ProtectionStore
from tenure.retention.sweeping.sweep_records import sweep_records
from tenure.table.lake.manifests import Manifest
from tenure.table.lake.publishing import clean_some
from tests.unit.bulk.flushing import FlushingNode
from tests.unit.lake_nodes import lake_options

LONG = 3_600


class SweptLake(FlushingNode):
    def __init__(self, directory: Path) -> None:
        super().__init__(lake_options(directory))
        self.store = self.node.store
        self.protections = ProtectionStore(self.store, self.node.catalog, self.node.settings.current)
        self.table = 0

    def create(self, name: str) -> None:
        self.name = name
        self.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)")
        ((self.table,),) = self.run(f"SELECT '{name}'::regclass::oid::int8")

    def ttl(self, seconds: int) -> None:
        """Below a second, too: then all that is over may go at once."""
        keyspace = self.store.keyspace
        self.store.transact(lambda txn: zones(keyspace).put(txn, Zone(self.table, 0, seconds)))

    def sweep(self) -> int:
        """Sweeps with all history over; returns how many revisions left the store."""
        self.ttl(0)
        ((_, _, removed, _),) = self.run(f"RUN GC NOW FOR TABLE {self.name}")
        self.ttl(LONG)
        return int(removed)

    def protect(self, at: Timestamp, mode: Mode = Mode.AT) -> bytes:
        targets = Targets((self.table,))
        return self.store.transact(lambda txn: self.protections.protect(txn, at, mode, "job", b"1", targets))

    def release(self, id: bytes) -> None:
        self.store.transact(lambda txn: self.protections.release(txn, id))

    def base(self) -> Manifest:
        found = self.lake.manifests.get(self.store.snapshot(), self.table, 1)
        assert found is not None
        return found

    def rows_at(self, at: Timestamp, id: bytes = b"") -> list[tuple[bytes, bytes]]:
        key = record_key(self.store.keyspace, id or bytes(16))
        protected = ProtectedRead(at, key, lambda head: True) if id else None
        span = self.store.keyspace.index_span(self.table, 1)
        return list(self.store.snapshot(at, protected).scan(span))

    def now(self) -> tuple[Timestamp, list[tuple[bytes, bytes]]]:
        at = self.store.snapshot().at
        return at, self.rows_at(at)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SweptLake]:
    served = SweptLake(tmp_path_factory.mktemp("sweeps"))
    yield served
    served.close()


def test_past_files_that_ended_go_by_an_edit_of_the_manifest(lake: SweptLake) -> None:
    lake.create("edited")
    lake.run("INSERT INTO edited SELECT g, 0 FROM generate_series(1, 50) g")
    at, _ = lake.now()
    lake.run("UPDATE edited SET v = 1")
    lake.flush("edited")
    before = lake.base()
    assert sum(file.rows for file in before.past) == 50
    lake.sweep()
    after = lake.base()
    assert after.past == () and after.live == before.live and after.flushed_at == before.flushed_at
    assert lake.run("SELECT count(*), min(v) FROM edited") == [(50, 1)]
    with pytest.raises(SnapshotTooOld):
        lake.rows_at(at)


def test_past_files_go_when_the_store_has_no_trace_of_them_any_more(lake: SweptLake) -> None:
    lake.create("cleaned")
    lake.run("INSERT INTO cleaned SELECT g, 0 FROM generate_series(1, 50) g")
    lake.run("UPDATE cleaned SET v = 1")
    lake.flush("cleaned")
    manifest = lake.base()
    lake.store.transact(
        lambda txn: clean_some(txn, lake.store.keyspace, manifest, manifest.flushed_at, limit=1_000)
    )
    lake.sweep()
    assert lake.base().past == ()


@pytest.mark.invariant("edit-claim")
def test_a_manifest_is_not_edited_while_a_merge_has_claimed_the_index(lake: SweptLake) -> None:
    lake.create("claimed")
    lake.run("INSERT INTO claimed VALUES (1, 0)")
    lake.run("UPDATE claimed SET v = 1")
    lake.flush("claimed")
    before = lake.base()
    jobs, merges = lake.node.jobs, lake.lake.merges
    job = lake.store.transact(lambda txn: jobs.create(txn, kind="flush", needs=("nothing that anybody has",)))
    lake.store.transact(lambda txn: merges.claim(txn, lake.table, 1, job.id))
    lake.sweep()
    assert lake.base() == before
    lake.store.transact(lambda txn: merges.release(txn, lake.table, 1, job.id))
    lake.run("UPDATE claimed SET v = 2")
    lake.sweep()
    assert lake.base().past == ()


def test_a_file_with_a_kept_point_inside_is_rewritten_without_the_rest(lake: SweptLake) -> None:
    lake.create("pointed")
    lake.run("INSERT INTO pointed SELECT g, 0 FROM generate_series(1, 40) g")
    for number in range(1, 6):
        lake.run(f"UPDATE pointed SET v = {number}")
        if number == 2:
            at, rows = lake.now()
    id = lake.protect(at)
    lake.flush("pointed")
    assert sum(file.rows for file in lake.base().past) == 200
    lake.sweep()
    assert sum(file.rows for file in lake.base().past) == 40
    assert lake.rows_at(at, id) == rows
    record = sweep_records(lake.store.keyspace).get(
        lake.store.snapshot(), lake.store.keyspace.head(lake.table, 1)
    )
    assert record is not None and record.files_keep.points == (at,)
    names = [file.name for file in lake.base().past]
    lake.run("UPDATE pointed SET v = 9 WHERE id = 1")
    lake.sweep()
    assert [file.name for file in lake.base().past] == names, "nothing new has ended in it"
    lake.release(id)
    lake.sweep()
    assert lake.base().past == ()


def test_deleted_rows_do_not_come_back_by_a_flush_after_a_sweep(lake: SweptLake) -> None:
    lake.create("deleted")
    lake.run("INSERT INTO deleted SELECT g, 0 FROM generate_series(1, 20) g")
    lake.flush("deleted")
    lake.run("DELETE FROM deleted WHERE id <= 10")
    lake.sweep()
    assert lake.run("SELECT count(*) FROM deleted") == [(10,)]
    lake.flush("deleted")
    lake.sweep()
    assert lake.run("SELECT count(*), min(id) FROM deleted") == [(10, 11)]
    assert lake.base().past == ()


@pytest.mark.invariant("I30")
@pytest.mark.parametrize("seed", range(3))
def test_every_promised_time_of_both_tiers_shows_the_same_after_sweeps(lake: SweptLake, seed: int) -> None:
    rng = random.Random(seed)
    lake.create(f"history_{seed}")
    name = lake.name
    shown: dict[Timestamp, list[tuple[bytes, bytes]]] = {}
    held: dict[bytes, Timestamp] = {}
    for _ in range(40):
        action = rng.randrange(10)
        key = rng.randrange(12)
        if action < 5:
            lake.run(f"UPSERT INTO {name} VALUES ({key}, {rng.randrange(1_000)})")
        elif action < 6:
            lake.run(f"DELETE FROM {name} WHERE id < {key}")
        elif action < 7:
            lake.flush(name)
        elif action < 8 and shown:
            at = max(shown)
            held[lake.protect(at)] = at
        elif held and rng.random() < 0.5:
            lake.release(held.popitem()[0])
        else:
            lake.sweep()
            shown = {at: rows for at, rows in shown.items() if at in held.values()}
            for id, at in held.items():
                assert lake.rows_at(at, id) == shown[at]
        at, rows = lake.now()
        shown[at] = rows
    for id in list(held)[1:]:
        lake.release(id)
        del held[id]
    lake.flush(name)
    lake.sweep()
    for id, at in held.items():
        assert lake.rows_at(at, id) == shown[at]
    if not held:
        assert lake.base().past == ()
