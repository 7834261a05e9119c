"""Random histories against a naive oracle: what every promised time shows stays, and nothing else does."""

import random
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
from uuid import uuid4

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import SnapshotTooOld
from tenure.base.timestamp import MAX_AT, Timestamp, add_seconds
from tenure.kv.protected_reads import ProtectedRead
from tenure.retention.protections.protection_records import Mode, record_key
from tenure.retention.sweeping import removal
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.postgres_server import Server, drop_schema
from tests.unit.retention.sweeping import SweptStore

TABLES = (200, 201)
KEYS = ("a", "b", "c", "d")
TTL = 100


class History:
    """Every revision that was ever written, by table and key, and the protections that are in force."""

    def __init__(self, node: SweptStore, rng: random.Random) -> None:
        self.node, self.rng = node, rng
        self.written: dict[tuple[int, str], list[tuple[Timestamp, str | None]]] = {
            (table, key): [] for table in TABLES for key in KEYS
        }
        self.protections: dict[bytes, tuple[Timestamp, Mode, int]] = {}
        self.times: list[Timestamp] = []
        for table in TABLES:
            node.create(table)
            node.set_ttl(TTL, table)

    def step(self) -> None:
        action = self.rng.choices(
            (self.write, self.wait, self.protect, self.release, self.sweep, self.check), (12, 6, 2, 1, 2, 1)
        )[0]
        action()

    def write(self) -> None:
        table, key = self.rng.choice(TABLES), self.rng.choice(KEYS)
        value = None if self.rng.random() < 0.25 else str(len(self.times))
        at = self.node.put(table, key, value)
        self.written[table, key].append((at, value))
        self.times.append(at)

    def wait(self) -> None:
        self.node.env.advance(self.rng.choice((1, 10, 40)))
        self.node.member.liveness.step()

    def protect(self) -> None:
        if not self.times:
            return
        at = self.rng.choice(self.times[-12:])
        mode, table = self.rng.choice((Mode.AT, Mode.AT, Mode.AFTER)), self.rng.choice(TABLES)
        try:
            self.protections[self.node.protect(at, mode, table)] = (at, mode, table)
        except SnapshotTooOld:
            assert add_seconds(at, TTL) <= self.node.store.clock.now() or at < self.node.threshold(
                self.node.head(table)
            )

    def release(self) -> None:
        if self.protections:
            id = self.rng.choice(sorted(self.protections))
            del self.protections[id]
            self.node.release(id)

    def sweep(self) -> None:
        self.node.sweep(self.rng.choice((0, *TABLES)))
        self.check()

    def check(self) -> None:
        for table in TABLES:
            threshold_at = self.node.threshold(self.node.head(table))
            for at in (*self.times, self.node.now()):
                if at >= threshold_at:
                    self._check_read(table, at)
            for id, (at, mode, protected) in self.protections.items():
                if protected == table:
                    self._check_protected(table, at, mode, id, threshold_at)

    def _check_protected(
        self, table: int, at: Timestamp, mode: Mode, id: bytes, threshold_at: Timestamp
    ) -> None:
        if mode is Mode.AFTER:
            assert threshold_at <= at
        key = record_key(self.node.keyspace, id)
        self._check_read(table, at, ProtectedRead(at, key, lambda head: True))

    def _check_read(self, table: int, at: Timestamp, protected: ProtectedRead | None = None) -> None:
        snapshot = self.node.store.snapshot(at, protected)
        found = {
            key: None if (value := snapshot.get(self.node.key(table, key))) is None else value.decode()
            for key in KEYS
        }
        assert found == {key: self._shown(table, key, at) for key in KEYS}

    def _shown(self, table: int, key: str, at: Timestamp) -> str | None:
        values = [value for written_at, value in self.written[table, key] if written_at <= at]
        return values[-1] if values else None

    def check_gone(self) -> None:
        """After all time has passed, only what is visible now or protected is left."""
        for id in sorted(self.protections)[1:]:
            self.node.release(id)
            del self.protections[id]
        self.node.wait(3 * TTL)
        self.node.sweep()
        self.check()
        for (table, key), written in self.written.items():
            kept = [value for value in self.node.kept(table, key) if value is not None]
            assert kept == self._needed(table, written), (table, key, written, self.protections)

    def _needed(self, table: int, written: list[tuple[Timestamp, str | None]]) -> list[str]:
        """The values that must be there; a deletion that nothing precedes may be left out."""
        times = [(at, mode) for at, mode, protected in self.protections.values() if protected == table]
        ends = [*(at for at, _ in written[1:]), MAX_AT]
        return [
            value
            for (at, value), until in zip(written, ends, strict=False)
            if value is not None
            and (until == MAX_AT or any(_is_held(at, until, time, mode) for time, mode in times))
        ]


def _is_held(at: Timestamp, until: Timestamp, time: Timestamp, mode: Mode) -> bool:
    return until > time if mode is Mode.AFTER else at <= time < until


@pytest.fixture
def node() -> Iterator[SweptStore]:
    node = SweptStore()
    yield node
    node.engine.close()


@pytest.mark.invariant("I30")
@pytest.mark.parametrize("seed", range(12))
def test_every_promised_time_shows_the_same_after_sweeps(
    node: SweptStore, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH_ROWS", 3)
    monkeypatch.setattr(removal, "CURSOR_BATCHES", 2)
    history = History(node, random.Random(seed))
    for _ in range(120):
        history.step()
    history.check_gone()


@pytest.fixture
def postgres_node(postgres: Server) -> Iterator[SweptStore]:
    schema = f"tenure_{uuid4().hex[:12]}"
    node = SweptStore(PostgresEngine(postgres.dsn, SystemEnv(), schema=schema))
    yield node
    node.engine.close()
    drop_schema(postgres, schema)


@pytest.mark.invariant("I30")
def test_every_promised_time_shows_the_same_after_sweeps_of_a_store_in_postgresql(
    postgres_node: SweptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH_ROWS", 3)
    history = History(postgres_node, random.Random(99))
    for _ in range(60):
        history.step()
    history.check_gone()


@pytest.mark.invariant("I30")
@pytest.mark.parametrize("revisions", [50_000, pytest.param(1_000_000, marks=pytest.mark.longer)])
def test_a_key_of_many_revisions_keeps_those_that_protections_need(node: SweptStore, revisions: int) -> None:
    """More than one commit removes, all of one key."""
    table, begun_at = TABLES[0], node.now()
    node.create(table)
    node.set_ttl(1_000, table)
    node.wait(300)
    newest_at = node.put(table, "k", "newest")
    times = _write_past(node, node.key(table, "k"), begun_at, newest_at, revisions)
    chosen = [times[0], times[1], times[revisions // 3] + 1, times[-2], times[-1]]
    ids = [node.protect(at, Mode.AT, table) for at in chosen[:-1]]
    node.set_ttl(1, table)
    node.wait(10)
    assert node.sweep(table).removed == revisions - 4
    assert node.kept(table, "k") == ["0", "1", str(revisions // 3), str(revisions - 2), "newest"]
    for id, at in zip(ids, chosen, strict=False):
        protected = node.protections.protected_read(node.protections.read(node.store.snapshot(), id))
        value = node.store.snapshot(at, protected).get(node.key(table, "k"))
        assert value == str(bisect_right(times, at) - 1).encode()
    assert node.refused_below(table, chosen[-1])


def _write_past(node: SweptStore, key: bytes, since_at: Timestamp, until_at: Timestamp, count: int) -> range:
    """Puts revisions below the newest as so many commits would have; returns their times."""
    assert isinstance(node.engine, SqliteEngine)
    times = range(since_at + 1, until_at, (until_at - since_at - 1) // count)[:count]
    ends = chain(times[1:], [until_at])
    with node.engine._section(node.engine._writer) as execute:
        for number, (at, end_at) in enumerate(zip(times, ends, strict=True)):
            execute("INSERT INTO past VALUES (?, ?, ?, ?)", (key, at, end_at, str(number).encode()))
    return times
