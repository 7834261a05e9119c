"""`tenure store copy`: copies that are made while a node runs are whole, and are stores of their own."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import CorruptData, FileExists, FileMissing, NotSupported, TenureError, WrongLake
from tenure.bulk import store_copy
from tenure.bulk.store_copy import CopiedStore, copy_store
from tenure.bulk.upkeep import Upkeep
from tenure.node import Node, NodeOptions
from tenure.storage.files import Files, open_files
from tenure.table.lake.identity import lake_ids
from tests.unit.bulk.flushing import FlushingNode
from tests.unit.lake_nodes import lake_options

ACCOUNTS, START = 300, 100


@pytest.fixture
def served(tmp_path: Path) -> Iterator[FlushingNode]:
    served = FlushingNode(lake_options(tmp_path / "original"))
    served.run("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)")
    served.run(f"INSERT INTO t SELECT g, {START} FROM generate_series(1, {ACCOUNTS}) g")
    served.flush()
    yield served
    served.close()


def copied(tmp_path: Path, name: str = "copy", lake: str = "") -> CopiedStore:
    source, target = tmp_path / "original", tmp_path / name
    store, to = f"sqlite:{source}/store.db", f"sqlite:{target}/store.db"
    return copy_store(store, f"{source}/lake", to, lake or f"{target}/lake", SystemEnv())


@contextmanager
def started(directory: Path) -> Iterator[FlushingNode]:
    served = FlushingNode(lake_options(directory))
    try:
        yield served
    finally:
        served.close()


def clean(served: FlushingNode) -> None:
    served.run("SET CLUSTER SETTING lake.clean_after = '0s'")
    span = served.node.store.keyspace.index_span(served.manifest().table, 1)
    served.until(lambda: served.node.store.engine.spread(*span, 0, 1 << 40).keys == 0)


def test_a_copy_has_what_the_store_and_the_lake_have(served: FlushingNode, tmp_path: Path) -> None:
    clean(served)
    served.run("UPDATE t SET v = v + 1 WHERE id <= 10")
    said = copied(tmp_path)
    assert (said.files, said.bytes) == (len(served.manifest().files), served.manifest().live[0].size)
    with started(tmp_path / "copy") as copy:
        assert copy.run("SELECT count(*), sum(v) FROM t") == [(ACCOUNTS, ACCOUNTS * START + 10)]
        copy.run("UPDATE t SET v = 0")
        copy.run("CREATE TABLE u (id int PRIMARY KEY)")
        copy.flush()
    assert served.run("SELECT sum(v) FROM t") == [(ACCOUNTS * START + 10,)]


@pytest.mark.invariant("whole-copy")
def test_copies_made_under_writes_flushes_and_deletions_of_files_add_up(
    served: FlushingNode, tmp_path: Path
) -> None:
    for setting in ("lake.file_grace = '0s'", "lake.clean_after = '0s'"):
        served.run(f"SET CLUSTER SETTING {setting}")
    with _during(lambda: _transfer(served)), _during(lambda: _flush_and_delete(served)):
        for number in range(3):
            copied(tmp_path, f"copy{number}")
    for number in range(3):
        with started(tmp_path / f"copy{number}") as copy:
            total = copy.run("SELECT count(*), sum(v), min(id), max(id) FROM t")
            assert total == [(ACCOUNTS, ACCOUNTS * START, 1, ACCOUNTS)]


@contextmanager
def _during(step: Callable[[], None]) -> Iterator[None]:
    """Repeats something in another thread."""
    stop, failures = threading.Event(), []

    def run() -> None:
        try:
            while not stop.is_set():
                step()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert failures == []


def _transfer(served: FlushingNode) -> None:
    door = served.node.front
    assert door is not None
    with psycopg.connect(host=door.host, port=door.port, user="root", dbname="defaultdb") as client:
        for one in range(1, ACCOUNTS, 7):
            with client.transaction():
                client.execute("UPDATE t SET v = v - 1 WHERE id = %s", [one])
                client.execute("UPDATE t SET v = v + 1 WHERE id = %s", [ACCOUNTS + 1 - one])


def _flush_and_delete(served: FlushingNode) -> None:
    served.flush()
    Upkeep(served.lake)._delete_dropped()


def test_a_file_that_goes_while_it_is_copied_makes_the_copy_begin_again(
    served: FlushingNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.run("SET CLUSTER SETTING lake.file_grace = '0s'")
    real = store_copy.OpenStore.named
    merges: list[object] = []

    def named(opened: store_copy.OpenStore) -> list[Any]:
        found = real(opened)
        if len(merges) < 2:
            merges.append(served.run("UPDATE t SET v = v + 1"))
            _flush_and_delete(served)
        return found

    monkeypatch.setattr(store_copy.OpenStore, "named", named)
    said = copied(tmp_path)
    assert {entry.name for page in open_files(said.lake).list("1") for entry in page} == {
        file.name for file in served.manifest().files
    }
    with started(tmp_path / "copy") as copy:
        assert copy.run("SELECT sum(v) FROM t") == [(ACCOUNTS * (START + 2),)]


def test_original_and_copy_cannot_take_one_anothers_lake(served: FlushingNode, tmp_path: Path) -> None:
    copied(tmp_path)
    ids = [lake_ids(open_files(str(tmp_path / name / "lake"))) for name in ("original", "copy")]
    assert len(ids[0]) == len(ids[1]) == 1 and ids[0] != ids[1]
    for store, lake in (("original", "copy"), ("copy", "original")):
        with pytest.raises(WrongLake):
            Node(
                NodeOptions(f"sqlite:{tmp_path}/{store}/store.db", lake=str(tmp_path / lake / "lake")),
                SystemEnv(),
            )
    assert served.run("SELECT sum(v) FROM t") == [(ACCOUNTS * START,)]


def test_a_copy_has_none_of_the_nodes_of_the_original(served: FlushingNode, tmp_path: Path) -> None:
    copied(tmp_path)
    with started(tmp_path / "copy") as copy:
        assert copy.run("SELECT id FROM system.sql_instances") == [(1,)]


def test_nothing_is_left_beside_a_copy(served: FlushingNode, tmp_path: Path) -> None:
    copied(tmp_path)
    assert sorted(os.listdir(tmp_path / "copy")) == ["lake", "store.db"]


@pytest.mark.invariant("whole-copy")
@pytest.mark.parametrize("failing", ["copy", "identify", "publish"])
def test_a_copy_that_fails_leaves_nothing(
    served: FlushingNode, tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(store_copy._Copy, failing)

    def fail(copy: Any) -> None:
        if failing != "publish":
            real(copy)
        raise TenureError("no")

    monkeypatch.setattr(store_copy._Copy, failing, fail)
    with pytest.raises(TenureError):
        copied(tmp_path)
    assert [path for path in (tmp_path / "copy").rglob("*") if path.is_file()] == []


@pytest.mark.invariant("whole-copy")
@pytest.mark.parametrize("killed_in", ["identify", "publish"])
def test_a_copy_that_was_killed_is_no_store(
    served: FlushingNode, tmp_path: Path, killed_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy._Copy, "remove", lambda copy: None)
    monkeypatch.setattr(store_copy._Copy, killed_in, _kill)
    with pytest.raises(KeyboardInterrupt):
        copied(tmp_path)
    with pytest.raises(FileExists, match=r"store.db.unfinished"):
        copied(tmp_path)
    with pytest.raises(WrongLake):
        FlushingNode(lake_options(tmp_path / "copy"))


def _kill(copy: object) -> None:
    raise KeyboardInterrupt


def test_damage_is_not_copied(served: FlushingNode, tmp_path: Path) -> None:
    (file,) = served.manifest().live
    path = tmp_path / "original" / "lake" / file.name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptData, match=f'"{file.name}" of table {served.manifest().table}, index 1'):
        copied(tmp_path)
    assert not (tmp_path / "copy" / "store.db").exists()


def test_what_is_there_is_not_overwritten(served: FlushingNode, tmp_path: Path) -> None:
    (tmp_path / "copy" / "lake").mkdir(parents=True)
    (tmp_path / "copy" / "store.db").write_text("mine")
    with pytest.raises(FileExists, match=r"store\.db"):
        copied(tmp_path)
    assert (tmp_path / "copy" / "store.db").read_text() == "mine"
    (tmp_path / "copy" / "store.db").unlink()
    (tmp_path / "copy" / "lake" / "a").write_text("mine")
    with pytest.raises(FileExists, match="is not empty"):
        copied(tmp_path)


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match="does not exist"):
        copied(tmp_path)
    assert not (tmp_path / "original").exists()


def test_a_copy_into_a_bucket(served: FlushingNode, tmp_path: Path, bucket_address: str) -> None:
    target = tmp_path / "copy"
    copied(tmp_path, lake=bucket_address)
    files: Files = open_files(bucket_address)
    assert {entry.name for page in files.list("1") for entry in page} == served.files()
    node = Node(NodeOptions(f"sqlite:{target}/store.db", lake=bucket_address), SystemEnv())
    node.stop()


@pytest.mark.parametrize("address", ["postgresql://ann:secret@h/d", "postgres://ann:secret@h/d"])
def test_a_store_in_postgresql_is_refused_by_name(address: str) -> None:
    with pytest.raises(NotSupported, match="PostgreSQL") as refused:
        copy_store(address, "lake", "sqlite:x.db", "lake2", SystemEnv())
    assert refused.value.sqlstate == "0A000" and "pg_dump" in refused.value.hint
    assert "secret" not in str(refused.value)


# ── copies that were made by hand ──────────────────────────────────────────────────────────────


def test_a_store_file_copied_by_hand_does_not_share_the_lake(tmp_path: Path) -> None:
    """Nor where the lake is beside both files, nor where it is far from both."""
    for name, lake in (("near", tmp_path / "near" / "lake"), ("far", tmp_path / "away")):
        original, by_hand = tmp_path / name / "store.db", tmp_path / name / "copy.db"
        Node(NodeOptions(f"sqlite:{original}", lake=str(lake)), SystemEnv()).stop()
        shutil.copy(original, by_hand)
        with pytest.raises(WrongLake, match="moved or copied") as refused:
            Node(NodeOptions(f"sqlite:{by_hand}", lake=str(lake)), SystemEnv())
        assert "tenure store copy" in refused.value.hint
        Node(NodeOptions(f"sqlite:{original}", lake=str(lake)), SystemEnv()).stop()


def test_a_directory_that_was_moved_with_store_and_lake_is_still_right(tmp_path: Path) -> None:
    Node(NodeOptions(f"sqlite:{tmp_path}/a/store.db", lake=f"{tmp_path}/a/lake"), SystemEnv()).stop()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    Node(NodeOptions(f"sqlite:{tmp_path}/b/store.db", lake=f"{tmp_path}/b/lake"), SystemEnv()).stop()


def test_a_store_that_was_renamed_is_known_by_its_file_and_a_copy_at_the_old_place_is_not(
    tmp_path: Path,
) -> None:
    one, other, lake = tmp_path / "a.db", tmp_path / "b.db", f"{tmp_path}/lake"
    Node(NodeOptions(f"sqlite:{one}", lake=lake), SystemEnv()).stop()
    one.rename(other)
    Node(NodeOptions(f"sqlite:{other}", lake=lake), SystemEnv()).stop()
    shutil.copy(other, one)
    with pytest.raises(WrongLake, match="moved or copied"):
        Node(NodeOptions(f"sqlite:{one}", lake=lake), SystemEnv())
