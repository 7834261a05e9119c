"""A store and its lake carry one id: on every engine, with the lake in a directory and in a bucket."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import InputOutput, WrongLake
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.store import Store
from tenure.storage.addresses import OpenEngine
from tenure.storage.files import Files, open_files
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.storage.tree import OutputStream
from tenure.table.lake.identity import LakeIdentity, Stage, lake_ids, store_lakes
from tenure.table.lake.manifests import File, FileShape, Manifest, Manifests
from tenure.table.lake.opening import open_lake, use_lake

LEFT_OVER = "1/104/1/j7-r1-0-ab-live-0.parquet"


class Side(NamedTuple):
    """A store as one process has it."""

    engine: OpenEngine
    store: Store
    jobs: Jobs
    sessions: Sessions

    def open(self, files: Files) -> LakeIdentity:
        return open_lake(self.store, files, self.jobs, self.engine.origin())

    def use(self, files: Files, *, with_unknown_files: bool = False) -> int:
        origin = self.engine.origin()
        return use_lake(
            self.store, files, self.jobs, self.sessions, origin, with_unknown_files=with_unknown_files
        )

    def name_files(self, *names: str) -> None:
        """Publishes a base of files with these names."""
        live = tuple(
            File(name, b"%02d" % n, b"%02d" % n, 1, 1, b"", 0) for n, name in enumerate(sorted(names))
        )
        manifest = Manifest(104, 1, 1, (FileShape(()),), live)
        self.store.transact(lambda txn: Manifests(self.store.keyspace).put(txn, manifest))

    def stage(self) -> Stage | None:
        stored = store_lakes(self.store.keyspace).get(self.store.snapshot())
        return None if stored is None else stored.stage

    def session(self, *, ttl_seconds: float = 60.0) -> None:
        self.store.transact(
            lambda txn: self.sessions.create(
                txn, ttl_seconds=ttl_seconds, lanes=(), address="", started_at=1, version=2
            )
        )


def side(engine: OpenEngine) -> Side:
    store = Store(engine, SystemEnv())
    sessions = Sessions(store.keyspace)
    return Side(engine, store, Jobs(store.keyspace, sessions, store.clock), sessions)


@pytest.fixture
def open_side(open_engine: Callable[[], OpenEngine]) -> Iterator[Callable[[], Side]]:
    opened: list[Side] = []

    def open_one() -> Side:
        opened.append(side(open_engine()))
        return opened[-1]

    yield open_one
    for each in opened:
        each.store.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Side]:
    """Another store."""
    engine = SqliteEngine(str(tmp_path / "other"), SystemEnv())
    made = side(engine)
    yield made
    made.store.close()
    engine.close()


def elsewhere(lake_address: str) -> str:
    place, mark, query = lake_address.partition("?")
    return f"{place}2{mark}{query}"


def put(files: Files, *names: str) -> None:
    for name in names:
        with files.create(name) as output:
            output.write(b"x")


def data(files: Files) -> list[str]:
    return [entry.name for page in files.list("1") for entry in page]


def test_a_new_store_and_a_new_lake_get_one_id(open_side: Callable[[], Side], files: Files) -> None:
    identity = open_side().open(files)
    assert lake_ids(files) == [identity.id]
    assert open_side().open(files).id == identity.id
    identity.check()


@pytest.mark.invariant("lake-id")
def test_a_lake_of_another_store_is_refused_and_loses_nothing(
    open_side: Callable[[], Side], other: Side, files: Files
) -> None:
    open_side().open(files)
    put(files, LEFT_OVER)
    with pytest.raises(WrongLake, match="belongs to another store") as refused:
        other.open(files)
    assert "--lake" in refused.value.hint
    with pytest.raises(WrongLake, match="belongs to another store"):
        other.use(files)
    assert data(files) == [LEFT_OVER] and other.stage() is None


@pytest.mark.invariant("one-lake")
def test_a_second_lake_of_one_store_is_refused(
    open_side: Callable[[], Side], files: Files, lake_address: str
) -> None:
    open_side().open(files)
    second = open_files(elsewhere(lake_address))
    with pytest.raises(WrongLake, match="is not the lake of this store") as refused:
        open_side().open(second)
    assert "--lake" in refused.value.hint
    assert lake_ids(second) == []


def test_nodes_that_open_both_for_the_first_time_at_once_agree(
    open_side: Callable[[], Side], lake_address: str
) -> None:
    sides = [open_side() for _ in range(4)]
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda each=each: ids.append(each.open(open_files(lake_address)).id))
        for each in sides
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4 and len(set(ids)) == 1
    assert lake_ids(open_files(lake_address)) == ids[:1]


def test_an_id_that_another_node_has_just_written_is_not_foreign(
    open_side: Callable[[], Side], lake_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes in between this one's look at the store, which has none yet, and that at the lake."""
    files, first = open_files(lake_address), open_side()
    real = files.names_in
    others: list[str] = []

    def names_in(directory: str) -> Iterator[str]:
        if not others:
            others.append(first.open(open_files(lake_address)).id)
        return real(directory)

    monkeypatch.setattr(files, "names_in", names_in)
    assert open_side().open(files).id == others[0]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_start_that_was_cut_off_is_finished_by_the_next(
    open_side: Callable[[], Side], files: Files, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off before the id is in the lake, or after that and before the store knows."""
    first = open_side()
    real = files.create

    def create(name: str) -> OutputStream:
        if when == "after":
            with real(name) as output:
                output.write(b"{}")
        raise InputOutput("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(files, "create", create)
        with pytest.raises(InputOutput):
            first.open(files)
    assert first.stage() is Stage.BEGUN and len(lake_ids(files)) == (when == "after")
    identity = open_side().open(files)
    assert lake_ids(files) == [identity.id] and first.stage() is Stage.SETTLED


def _break(*_: object) -> OutputStream:
    raise InputOutput("the power went")


def test_a_start_that_was_cut_off_does_not_hold_the_store_to_that_lake(
    open_side: Callable[[], Side], files: Files, lake_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "create", _break)
        with pytest.raises(InputOutput):
            open_side().open(files)
    second = open_files(elsewhere(lake_address))
    assert lake_ids(second) == [] and open_side().open(second).id in lake_ids(second)


def test_of_two_new_stores_that_are_given_one_lake_at_once_one_gives_way(
    open_side: Callable[[], Side], other: Side, lake_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other comes in between the first one's look at the lake and its id."""
    files, second = open_files(lake_address), open_files(lake_address)
    real = files.create
    winners: list[LakeIdentity] = []

    def create(name: str) -> OutputStream:
        winners.append(other.open(second))
        return real(name)

    monkeypatch.setattr(files, "create", create)
    with pytest.raises(WrongLake, match="belongs to another store"):
        open_side().open(files)
    assert lake_ids(second) == [winners[0].id]
    winners[0].check()


@pytest.mark.invariant("lake-id")
def test_a_lake_that_has_lost_its_id_is_refused_and_nothing_is_deleted(
    open_side: Callable[[], Side], files: Files, lake_address: str
) -> None:
    identity = open_side().open(files)
    put(files, LEFT_OVER)
    open_files(lake_address).delete([f"identity/{identity.id}.json"])
    with pytest.raises(WrongLake, match="has no id"):
        open_side().open(open_files(lake_address))
    for deletion in (lambda: files.delete([LEFT_OVER]), lambda: files.delete_unfinished(before_micros=1)):
        with pytest.raises(WrongLake, match="has no id"):
            deletion()
    assert data(files) == [LEFT_OVER]


@pytest.mark.invariant("lake-id")
def test_a_lake_with_two_ids_is_nobodys_to_delete_from(
    open_side: Callable[[], Side], files: Files, lake_address: str
) -> None:
    open_side().open(files)
    put(open_files(lake_address), "identity/ff.json", LEFT_OVER)
    with pytest.raises(WrongLake, match="claimed by two stores"):
        files.delete([LEFT_OVER])
    with pytest.raises(WrongLake, match="claimed by two stores"):
        open_side().open(open_files(lake_address))
    assert data(files) == [LEFT_OVER]


# ── a lake that was moved ──────────────────────────────────────────────────────────────────────


def moved(files: Files, lake_address: str) -> Files:
    """The same files in another place; the old ones stay."""
    target = open_files(elsewhere(lake_address))
    for page in files.list():
        for entry in page:
            with target.create(entry.name) as output:
                output.write(files.read(entry.name, bytes_max=1 << 20))
    return target


def test_a_lake_that_was_moved_is_taken_when_the_operator_says_so(
    open_side: Callable[[], Side], files: Files, lake_address: str
) -> None:
    running = open_side()
    former = running.open(files).id
    put(files, LEFT_OVER)
    running.name_files(LEFT_OVER)
    target = moved(files, lake_address)
    with pytest.raises(WrongLake, match="carries the same id") as refused:
        open_side().open(target)
    assert "tenure store use-lake" in refused.value.hint
    assert open_side().use(target) == 0
    identity = open_side().open(target)
    assert identity.id != former and lake_ids(target) == [identity.id]
    with pytest.raises(WrongLake, match="is not the lake of this store"):
        open_side().open(open_files(lake_address))
    with pytest.raises(WrongLake, match="no longer the lake of this store"):
        files.delete([LEFT_OVER])


def test_a_lake_is_not_taken_while_a_node_runs(
    open_side: Callable[[], Side], files: Files, lake_address: str
) -> None:
    running = open_side()
    running.open(files)
    running.session()
    with pytest.raises(WrongLake, match="node 1 is running") as refused:
        open_side().use(moved(files, lake_address))
    assert "Stop all nodes" in refused.value.hint
    assert running.open(files).id in lake_ids(files)


def test_the_session_of_a_node_that_was_killed_does_not_hold_the_lake_for_ever(
    open_side: Callable[[], Side], lake_address: str
) -> None:
    killed = open_side()
    killed.open(open_files(lake_address))
    killed.session(ttl_seconds=0.001)
    killed.store.env.sleep(0.002)
    open_side().use(open_files(lake_address))
    assert list(killed.sessions.list(killed.store.snapshot())) == []


def test_a_lake_that_lacks_named_files_is_not_taken(
    open_side: Callable[[], Side], files: Files, lake_address: str
) -> None:
    running = open_side()
    running.open(files)
    put(files, "1/104/1/a.parquet")
    target = moved(files, lake_address)
    running.name_files("1/104/1/a.parquet", "1/104/1/b.parquet")
    with pytest.raises(WrongLake, match=r'lacks 1 file \("1/104/1/b.parquet"\)'):
        open_side().use(target)


@pytest.mark.parametrize("failing", ["create", "delete"])
@pytest.mark.parametrize("finish", [Side.open, Side.use])
def test_a_change_of_lakes_that_was_cut_off_is_finished_by_a_start_or_said_again(
    open_side: Callable[[], Side],
    files: Files,
    lake_address: str,
    failing: str,
    finish: Callable[[Side, Files], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    open_side().open(files)
    target = moved(files, lake_address)
    with monkeypatch.context() as patch:
        patch.setattr(target, failing, _break)
        with pytest.raises(InputOutput):
            open_side().use(target)
    with pytest.raises(WrongLake, match="the lake of this store is"):
        open_side().open(open_files(lake_address))
    finish(open_side(), target)
    assert lake_ids(target) == [open_side().open(target).id]


# ── lakes and stores from before there were ids ────────────────────────────────────────────────


def test_a_lake_without_an_id_is_adopted_by_the_store_that_names_its_files(
    open_side: Callable[[], Side], files: Files
) -> None:
    put(files, "1/104/1/a.parquet", "1/104/1/b.parquet")
    former = open_side()
    former.name_files("1/104/1/a.parquet", "1/104/1/b.parquet")
    assert lake_ids(files) == [] and open_side().open(files).id in lake_ids(files)


def test_what_a_job_of_the_store_has_left_does_not_keep_it_from_its_lake(
    open_side: Callable[[], Side], files: Files
) -> None:
    former = open_side()
    job = former.store.transact(lambda txn: former.jobs.create(txn, kind="flush"))
    put(files, f"1/104/1/j{job.id}-r1-0-ab-live-0.parquet")
    assert open_side().open(files).id in lake_ids(files)


@pytest.mark.parametrize("named", [(), ("1/104/1/a.parquet",)])
def test_a_lake_with_files_that_the_store_does_not_know_is_not_adopted(
    open_side: Callable[[], Side], files: Files, named: tuple[str, ...]
) -> None:
    put(files, LEFT_OVER, *named)
    if named:
        open_side().name_files(*named)
    with pytest.raises(WrongLake, match="which this store does not know") as refused:
        open_side().open(files)
    assert "a lake of its own" in refused.value.hint
    assert lake_ids(files) == [] and open_side().stage() is None


@pytest.mark.parametrize("present", [(), ("1/104/1/a.parquet",)])
def test_a_store_that_names_files_does_not_begin_a_lake_without_them(
    open_side: Callable[[], Side], files: Files, present: tuple[str, ...]
) -> None:
    put(files, *present)
    open_side().name_files("1/104/1/a.parquet", "1/104/1/b.parquet")
    with pytest.raises(WrongLake, match="lacks"):
        open_side().open(files)
    with pytest.raises(WrongLake, match="lacks"):
        open_side().use(files)
    assert lake_ids(files) == []


def test_files_that_were_left_over_are_the_stores_when_the_operator_says_so(
    open_side: Callable[[], Side], files: Files
) -> None:
    put(files, LEFT_OVER, "1/104/1/a.parquet")
    open_side().name_files("1/104/1/a.parquet")
    with pytest.raises(WrongLake, match="which this store does not know") as refused:
        open_side().use(files)
    assert "--with-unknown-files" in refused.value.hint
    assert open_side().use(files, with_unknown_files=True) == 1
    open_side().open(files).check()
