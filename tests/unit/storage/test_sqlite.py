"""The SQLite engine's file and connections. What all engines share is elsewhere."""

import os
from pathlib import Path

import apsw
import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import (
    CorruptData,
    InputOutput,
    NewerFormat,
    for_operator,
)
from tenure.base.timestamp import from_micros
from tenure.kv.store import Store
from tenure.storage.engine import (
    FORMAT,
    HEAD_BYTES,
    Commit,
    CommitStatus,
    Group,
    Removal,
    Removes,
    Write,
)
from tenure.storage.sqlite import reads as sqlite_reads
from tenure.storage.sqlite.database_file import APPLICATION_ID, SCHEMA
from tenure.storage.sqlite.reads import HEADS_MAX
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.storage.sqlite_stores import TABLE, row, write


def test_a_new_file_that_somebody_else_switches_over_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.storage.sqlite.database_file.BUSY_MILLISECONDS", 20)
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


def test_a_file_of_the_version_before_gets_what_it_lacks(path: Path) -> None:
    """That version's processes go on writing to it; what they write is not in the head clock."""
    old = apsw.Connection(str(path))
    old.execute(SCHEMA)
    old.pragma("application_id", APPLICATION_ID)
    old.pragma("user_version", FORMAT)
    old.execute("INSERT INTO live VALUES (?, 1, NULL)", (row("a"),))
    old.execute("UPDATE clock SET at = 1")
    engine = SqliteEngine(str(path), SystemEnv())
    assert engine.moved_heads(1) == (1, None)
    old.execute("INSERT INTO live VALUES (?, 2, NULL)", (row("b"),))
    old.execute("UPDATE clock SET at = 2")
    old.close()
    assert engine.moved_heads(1) == (2, None)
    store = Store(engine, SystemEnv())
    txn = store.begin()
    txn.remove(Removal(row("a"), row("c"), Removes.GARBAGE, 2, 10))
    txn.commit()
    assert txn.removed == 2
    store.close()
    engine.close()


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
