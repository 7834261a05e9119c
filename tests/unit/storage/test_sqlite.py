"""The SQLite engine's own: its file, its disk, its neighbours. What all engines share is elsewhere."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import (
    CorruptData,
    DiskFull,
    InputOutput,
    NewerFormat,
    OutcomeUnknown,
    TenureError,
    for_operator,
)
from tenure.base.timestamp import from_micros
from tenure.kv.keys import USER_TABLES, Keyspace
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage import sqlite_reads
from tenure.storage.engine import FORMAT, HEAD_BYTES, Commit, CommitStatus, Group, Write
from tenure.storage.sqlite import MEMORY, SqliteEngine
from tenure.storage.sqlite_reads import HEADS_MAX
from tests.unit.storage.disk import Disk, failing_disk

KEYS = Keyspace(1)
TABLE = KEYS.index_span(USER_TABLES)
PATIENCE_SECONDS = 30.0


def row(name: str | int) -> bytes:
    return KEYS.key(USER_TABLES, [name])


def write(store: Store, name: str | int, value: bytes = b"v") -> None:
    store.transact(lambda txn: txn.put(row(name), value))


def names(store: Store) -> set[bytes]:
    return {key for key, _ in store.snapshot().scan(TABLE)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(str(path), ManualEnv())
    yield engine
    engine.close()


# the file


def test_a_new_file_that_somebody_else_switches_over_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.storage.sqlite_file.BUSY_MILLISECONDS", 20)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    class Waiting(ManualEnv):
        def sleep(self, seconds: float) -> None:
            other.close()

    engine = SqliteEngine(str(path), Waiting())
    write(Store(engine, ManualEnv()), "a")
    engine.close()


def test_the_file_and_its_companions_are_for_the_owner_alone(path: Path) -> None:
    former = os.umask(0)
    try:
        engine = SqliteEngine(str(path), ManualEnv())
        write(Store(engine, ManualEnv()), "a")
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        engine.close()
    finally:
        os.umask(former)
    assert {"store.db", "store.db-wal", "store.db-shm"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_every_connection_is_durable_and_distrusts_the_schema(engine: SqliteEngine, path: Path) -> None:
    engine.clock_at()
    connections = [each for each in apsw.connections() if each.filename == str(path)]
    assert len(connections) == 4
    for connection in connections:
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("trusted_schema") == 0
        assert connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1


def test_no_connection_loads_code_or_reaches_another_file(engine: SqliteEngine, path: Path) -> None:
    engine.clock_at()
    for connection in [each for each in apsw.connections() if each.filename == str(path)]:
        with pytest.raises(apsw.SQLError, match="too many attached databases"):
            connection.execute("ATTACH ? AS other", (str(path.parent / "other.db"),))
        with pytest.raises(apsw.SQLError, match="not authorized"):
            connection.execute("SELECT load_extension('anything')")
        with pytest.raises(apsw.ExtensionLoadingError):
            connection.load_extension("anything")
    assert not (path.parent / "other.db").exists()


def test_what_was_committed_is_there_after_a_restart(path: Path) -> None:
    env = ManualEnv()
    first = SqliteEngine(str(path), env)
    write(Store(first, env), "a", b"1")
    clock_at = first.clock_at()
    first.close()
    second = SqliteEngine(str(path), env)
    assert second.clock_at() == clock_at
    assert Store(second, env).begin().get(row("a")) == b"1"
    second.close()


@pytest.mark.invariant("I1")
def test_timestamps_go_on_upward_after_a_restart_with_a_clock_that_went_back(path: Path) -> None:
    env = ManualEnv()
    first = SqliteEngine(str(path), env)
    write(Store(first, env), "a")
    clock_at = first.clock_at()
    first.close()
    earlier = ManualEnv(wall_micros=env.wall_micros() - 3_600_000_000, seed=1)
    second = SqliteEngine(str(path), earlier)
    txn = Store(second, earlier).begin()
    txn.put(row("a"), b"2")
    assert txn.commit() > clock_at
    second.close()


def test_a_file_of_a_newer_format_is_refused_and_left_as_it_is(path: Path) -> None:
    SqliteEngine(str(path), ManualEnv()).close()
    change(path, f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    with pytest.raises(NewerFormat) as caught:
        SqliteEngine(str(path), ManualEnv())
    assert caught.value.sqlstate == "0A000"
    assert str(path) in for_operator(caught.value) and str(path) not in str(caught.value)
    assert path.read_bytes() == before


def change(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def test_a_foreign_sqlite_file_is_refused(path: Path) -> None:
    change(path, "CREATE TABLE theirs (a)")
    with pytest.raises(CorruptData, match="not a Tenure store"):
        SqliteEngine(str(path), ManualEnv())


def test_a_foreign_sqlite_file_is_left_as_it_is(path: Path) -> None:
    change(path, "CREATE TABLE theirs (a)")
    before = path.read_bytes()
    with pytest.raises(CorruptData):
        SqliteEngine(str(path), ManualEnv())
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_corrupt_and_left_as_it_is(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(CorruptData) as caught:
        SqliteEngine(str(path), ManualEnv())
    assert caught.value.sqlstate == "XX001"
    assert path.read_bytes() == b"no database" * 1000


def test_damaged_pages_are_reported_as_corrupt(path: Path) -> None:
    env = ManualEnv()
    engine = SqliteEngine(str(path), env)
    for number in range(200):
        write(Store(engine, env), number, bytes(500))
    engine.checkpoint()
    engine.close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = os.urandom(len(data) - 4096 * 3)
    path.write_bytes(data)
    with pytest.raises(CorruptData):
        read_everything(path, env)


def read_everything(path: Path, env: ManualEnv) -> None:
    engine = SqliteEngine(str(path), env)
    try:
        list(Store(engine, env).snapshot().scan(TABLE))
    finally:
        engine.close()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "store.db"
    with pytest.raises(InputOutput) as caught:
        SqliteEngine(str(path), ManualEnv())
    assert str(path) in for_operator(caught.value) and str(path) not in str(caught.value)
    assert "directory" in caught.value.hint


def test_a_directory_in_the_files_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputOutput):
        SqliteEngine(str(tmp_path), ManualEnv())


def test_a_refused_file_leaves_no_descriptor_open(path: Path) -> None:
    change(path, "CREATE TABLE theirs (a)")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(CorruptData):
            SqliteEngine(str(path), ManualEnv())
    assert len(os.listdir("/proc/self/fd")) == before


# the disk


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    with failing_disk(f"disk-of-{request.node.name}") as disk:
        yield disk


class Failing:
    """A store on a disk that can fail."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.env = ManualEnv()
        self.engine = SqliteEngine(str(path), self.env, vfs=disk.name)
        self.store = Store(self.engine, self.env)


@pytest.fixture
def failing(path: Path, disk: Disk) -> Iterator[Failing]:
    failing = Failing(path, disk)
    yield failing
    disk.is_full = disk.loses_syncs = False
    failing.engine.close()


@pytest.mark.invariant("I5")
def test_a_commit_is_on_disk_before_it_is_acknowledged(failing: Failing, disk: Disk) -> None:
    disk.synced.clear()
    write(failing.store, "a")
    assert [Path(name).suffix for name in disk.synced] == [".db-wal"]


def test_a_group_in_which_nothing_committed_costs_no_fsync(failing: Failing, disk: Disk) -> None:
    txn = failing.store.begin()
    txn.get(row("a"))
    txn.put(row("b"), b"1")
    write(failing.store, "a")
    disk.synced.clear()
    with pytest.raises(TenureError):
        txn.commit()
    assert disk.synced == []


def test_a_full_disk_refuses_the_commit_and_nothing_else(failing: Failing, disk: Disk) -> None:
    write(failing.store, "a")
    disk.is_full = True
    with pytest.raises(DiskFull) as caught:
        write(failing.store, "b")
    assert caught.value.sqlstate == "53100"
    assert "space" in caught.value.hint
    assert names(failing.store) == {row("a")}


@pytest.mark.invariant("I5")
def test_when_there_is_space_again_commits_go_on_and_nothing_is_lost(
    failing: Failing, disk: Disk, path: Path
) -> None:
    write(failing.store, "a")
    disk.is_full = True
    for _ in range(3):
        with pytest.raises(DiskFull):
            write(failing.store, "b", bytes(100_000))
    disk.is_full = False
    write(failing.store, "c")
    other = SqliteEngine(str(path), failing.env)
    assert names(Store(other, failing.env)) == {row("a"), row("c")}
    other.close()


@pytest.mark.invariant("I5")
def test_a_failed_fsync_leaves_the_outcome_unknown_and_the_engine_refusing(
    failing: Failing, disk: Disk, path: Path
) -> None:
    write(failing.store, "a")
    disk.loses_syncs = True
    with pytest.raises(OutcomeUnknown) as unknown:
        write(failing.store, "b")
    assert "fsync" in str(unknown.value)
    disk.loses_syncs = False
    for use in (
        lambda: write(failing.store, "c"),
        lambda: failing.store.begin().get(row("a")),
        lambda: names(failing.store),
        failing.engine.clock_at,
    ):
        with pytest.raises(InputOutput) as caught:
            use()
        assert caught.value.sqlstate == "58030"
        assert str(path) in for_operator(caught.value) and str(path) not in str(caught.value)
        assert "start this process again" in caught.value.hint


def test_a_failed_fsync_of_a_checkpoint_is_fatal_too(failing: Failing, disk: Disk) -> None:
    write(failing.store, "a")
    disk.loses_syncs = True
    with pytest.raises(TenureError):
        failing.engine.checkpoint()
    disk.loses_syncs = False
    with pytest.raises(InputOutput):
        write(failing.store, "b")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, where the machine allows to make one."""
    directory = tmp_path / "small"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_disk_that_is_really_full_loses_nothing_and_goes_on_after(small_disk: Path) -> None:
    env = ManualEnv()
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(600_000))
    engine = SqliteEngine(str(small_disk / "store.db"), env)
    store = Store(engine, env)
    written = fill(store)
    assert written
    assert names(store) == written
    ballast.unlink()
    write(store, "after")
    assert names(store) == written | {row("after")}
    engine.close()


def fill(store: Store) -> set[bytes]:
    """Writes rows until the disk is full; returns those that were acknowledged."""
    written: set[bytes] = set()
    while True:
        try:
            write(store, len(written), bytes(20_000))
        except DiskFull:
            return written
        written.add(row(len(written)))


def test_a_checkpoint_moves_the_log_into_the_file(engine: SqliteEngine, path: Path) -> None:
    env = ManualEnv()
    store = Store(engine, env)
    for number in range(50):
        write(store, number, b"needle" * 100)
    assert b"needle" not in path.read_bytes()
    engine.checkpoint()
    assert b"needle" in path.read_bytes()
    assert len(names(store)) == 50


def test_a_checkpoint_of_a_store_in_memory_does_nothing() -> None:
    engine = SqliteEngine(":memory:", ManualEnv())
    engine.checkpoint()
    engine.close()


# several on one file


@pytest.fixture
def pair(path: Path) -> Iterator[tuple[SqliteEngine, SqliteEngine]]:
    env = SystemEnv()
    one, other = SqliteEngine(str(path), env), SqliteEngine(str(path), env)
    yield one, other
    one.close()
    other.close()


def test_two_engines_on_one_file_see_each_others_commits(pair: tuple[SqliteEngine, SqliteEngine]) -> None:
    env = SystemEnv()
    one, other = (Store(engine, env) for engine in pair)
    write(one, "a", b"1")
    assert other.begin().get(row("a")) == b"1"
    write(other, "a", b"2")
    assert one.begin().get(row("a")) == b"2"


def test_a_commit_signals_the_other_engine(pair: tuple[SqliteEngine, SqliteEngine]) -> None:
    one, other = pair
    store = Store(one, SystemEnv())
    woken = threading.Event()
    stop = other.subscribe(woken.set)
    assert woken.wait(PATIENCE_SECONDS), "the first look counts as a change"
    woken.clear()
    write(store, "a")
    assert woken.wait(PATIENCE_SECONDS)
    stop()


def test_of_another_engines_commits_only_those_hear_whose_spans_they_write_to(
    pair: tuple[SqliteEngine, SqliteEngine],
) -> None:
    one, other = pair
    store = Store(one, SystemEnv())
    write(store, "a")
    here, elsewhere = threading.Event(), threading.Event()
    other.subscribe(elsewhere.set, [(b"\xff" * HEAD_BYTES, b"\xff" * HEAD_BYTES + b"\xff")])
    other.subscribe(here.set, [(row("a"), row("b"))])
    assert here.wait(PATIENCE_SECONDS), "the first look counts as a change"
    for _ in range(3):
        here.clear()
        elsewhere.clear()
        write(store, "a")
        assert here.wait(PATIENCE_SECONDS)
        assert not elsewhere.is_set()


def test_a_span_of_many_indexes_counts_as_changed() -> None:
    engine = SqliteEngine(MEMORY, ManualEnv())
    writes = tuple(Write(number.to_bytes(HEAD_BYTES, "big") + b"k", b"") for number in range(HEADS_MAX))
    group = Group(engine.open_lane(), 1, from_micros(1), 500_000, (Commit(read_at=0, writes=writes),))
    (outcome,) = engine.commit(group)
    execute = engine._writer.execute
    head = writes[3].key[:HEAD_BYTES]
    assert sqlite_reads.changed(execute, [(head, head + b"z")], outcome.at) == set()
    assert sqlite_reads.changed(execute, [(head, head + b"z")], outcome.at - 1) == {head}
    assert sqlite_reads.changed(execute, [(b"", b"\xff")], outcome.at) == {b""}


@pytest.mark.invariant("I2")
def test_increments_through_two_engines_are_all_counted(pair: tuple[SqliteEngine, SqliteEngine]) -> None:
    env = SystemEnv()
    stores = [Store(engine, env) for engine in pair]

    def count(store: Store) -> None:
        for _ in range(25):
            store.transact(increment, attempts=1_000)

    threads = [threading.Thread(target=count, args=(store,)) for store in stores for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert stores[0].begin().get(row("count")) == b"100"


def increment(txn: Transaction) -> None:
    txn.put(row("count"), b"%d" % (int(txn.get(row("count")) or 0) + 1))


def test_an_urgent_lane_has_a_writer_of_its_own(engine: SqliteEngine) -> None:
    env = ManualEnv()
    ordinary, urgent = engine.open_lane(), engine.open_lane(urgent=True)
    commit = Commit(read_at=0, writes=(Write(row("a"), b"1"),))
    for lane in (ordinary, urgent):
        group = Group(lane, 1, from_micros(env.wall_micros()), 500_000, (commit,))
        assert engine.commit(group)[0].status is CommitStatus.COMMITTED


def test_a_closed_engine_leaves_no_connection_open(path: Path) -> None:
    engine = SqliteEngine(str(path), SystemEnv())
    engine.subscribe(lambda: None)
    engine.clock_at()
    engine.close()
    assert [each for each in apsw.connections() if each.filename == str(path)] == []
