"""The SQLite engine on a disk that is full, or loses what was written; and its checkpoints."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import (
    DiskFull,
    InputOutput,
    OutcomeUnknown,
    TenureError,
    for_operator,
)
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.unit.storage.disk import Disk, failing_disk
from tests.unit.storage.sqlite_stores import names, row, write


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
