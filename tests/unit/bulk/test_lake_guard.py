"""A lake that is not the store's any more while a node runs: nothing is deleted, flushed or cleaned there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.base.errors import WrongLake
from tenure.base.settings import CLEAN_AFTER
from tenure.bulk import flush
from tenure.bulk.upkeep import Upkeep
from tenure.pipeline import remote_handles
from tests.unit.bulk.flushing import FlushingNode
from tests.unit.lake_nodes import lake_options


@pytest.fixture
def served(tmp_path: Path) -> Iterator[FlushingNode]:
    served = FlushingNode(lake_options(tmp_path))
    served.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    served.run("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 500) g")
    served.flush()
    yield served
    served.close()


@pytest.fixture
def other(served: FlushingNode, tmp_path: Path) -> Path:
    return _mount_another(tmp_path)


def _mount_another(tmp_path: Path) -> Path:
    """Puts another store's lake in the place of the node's own; a file in it looks like a stray."""
    (tmp_path / "lake").rename(tmp_path / "own")
    stray = tmp_path / "lake" / "1" / "104" / "1" / "j1-r1-0-ab-live-0.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_text("another store's")
    (tmp_path / "lake" / "identity").mkdir()
    (tmp_path / "lake" / "identity" / "ff.json").write_text("{}")
    return stray


def _mount_again(tmp_path: Path) -> None:
    (tmp_path / "lake").rename(tmp_path / "other")
    (tmp_path / "own").rename(tmp_path / "lake")


@pytest.mark.invariant("lake-id")
def test_strays_of_another_lake_are_left_alone(served: FlushingNode, other: Path) -> None:
    with pytest.raises(WrongLake, match="belongs to another store"):
        Upkeep(served.lake).delete_strays()
    assert other.exists()


@pytest.mark.invariant("lake-id")
@pytest.mark.parametrize(
    "act",
    [
        lambda served: Upkeep(served.lake)._delete_dropped(),
        lambda served: served.lake.files.delete_unfinished(before_micros=1 << 60),
        lambda served: Upkeep(served.lake)._clean(served.manifest()),
    ],
    ids=["files that were replaced", "files half-written", "rows that were flushed"],
)
def test_nothing_is_deleted_while_another_lake_is_there(
    served: FlushingNode, tmp_path: Path, act: Callable[[FlushingNode], None]
) -> None:
    served.run("UPDATE t SET v = 'new'")
    served.flush()
    (tmp_path / "lake").rename(tmp_path / "own")
    (tmp_path / "lake").mkdir()
    for setting in ("lake.file_grace = '0s'", "lake.clean_after = '0s'"):
        served.run(f"SET CLUSTER SETTING {setting}")
    served.until(lambda: served.lake.settings()[CLEAN_AFTER] == 0)
    rows = served.node.store.engine.spread(*_span(served), 0, 1 << 40).keys
    with pytest.raises(WrongLake, match="has no id"):
        act(served)
    assert rows == served.node.store.engine.spread(*_span(served), 0, 1 << 40).keys == 500
    assert len(list(served.lake.manifests.dropped(served.node.store.snapshot()))) == 1


def _span(served: FlushingNode) -> tuple[bytes, bytes]:
    span = served.node.store.keyspace.index_span(served.manifest().table, 1)
    return span.lo, span.hi


def test_a_flush_waits_until_its_lake_is_there_again(served: FlushingNode, tmp_path: Path) -> None:
    before = served.manifest()
    served.run("UPDATE t SET v = 'new'")
    _mount_another(tmp_path)
    store, jobs = served.node.store, served.node.jobs
    job = store.transact(lambda txn: flush.start(txn, served.lake, before.table, 1, rows=1, name="t"))
    assert job is not None
    served.until(lambda: "another store" in _error(served, job.id))
    assert served.manifest() == before and jobs.is_open(store.snapshot(), job.id)
    _mount_again(tmp_path)
    served.until(lambda: not jobs.is_open(store.snapshot(), job.id))
    assert served.manifest() != before
    assert served.run("SELECT count(*) FROM t WHERE v = 'new'") == [(500,)]


def _error(served: FlushingNode, job: int) -> str:
    ((error,),) = served.run(f"SELECT coalesce(error, '') FROM system.jobs WHERE id = {job}")
    return str(error)


def test_an_executor_refuses_another_lake_at_the_same_path(
    served: FlushingNode, tmp_path: Path, other: Path
) -> None:
    with pytest.raises(WrongLake, match="belongs to another store"):
        remote_handles.opened(served.lake.place)
    _mount_again(tmp_path)
    assert remote_handles.opened(served.lake.place).lake.address == served.lake.files.address
    remote_handles.close(served.lake.place)
