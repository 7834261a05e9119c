"""When a node starts a worker, and when it leaves that to others."""

from io import BytesIO
from pathlib import Path
from typing import IO

import pytest

from tenure.base.env import ManualEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_TTL, Settings
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.store import Store
from tenure.pipeline.starter import AGAIN_SECONDS, TURN_SECONDS, WorkerStarter
from tenure.storage.sqlite.sqlite_engine import SqliteEngine

TTL_SECONDS = 40.0


class Child:
    """A process that runs until a test says how it ended."""

    pid = 1

    def __init__(self) -> None:
        self.code: int | None = None
        self.stdin: IO[bytes] | None = BytesIO()

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.code = -15

    def kill(self) -> None:
        self.code = -9

    def wait(self, timeout: float | None = None) -> int:
        assert self.code is not None
        return self.code


class World:
    """Nodes over one store, and the workers they start."""

    def __init__(self, path: Path) -> None:
        self.env = ManualEnv()
        self.store = Store(SqliteEngine(str(path), self.env), self.env)
        self.sessions = Sessions(self.store.keyspace)
        self.lacks = True
        self.children: list[Child] = []

    def join(self, *, has: tuple[str, ...] = ()) -> Liveness:
        settings = Settings(DEFINITIONS, {LIVENESS_TTL: TTL_SECONDS})
        liveness = Liveness(self.store, self.sessions, lambda: settings, address="", version=2, has=has)
        liveness.step()
        return liveness

    def starter(self, node: Liveness) -> WorkerStarter:
        return WorkerStarter(self.store, self.sessions, node.session, lambda need: self.lacks, self.start)

    def start(self) -> Child:
        self.children.append(Child())
        return self.children[-1]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store.db")


def test_no_worker_is_started_while_no_job_needs_one(world: World) -> None:
    world.lacks = False
    world.starter(world.join()).step()
    assert world.children == []


def test_one_worker_is_started_for_a_job_that_needs_it(world: World) -> None:
    starter = world.starter(world.join())
    for _ in range(3):
        starter.step()
    assert len(world.children) == 1


def test_no_worker_is_started_where_an_instance_has_spark(world: World) -> None:
    starter = world.starter(world.join())
    world.join(has=("spark",))
    starter.step()
    assert world.children == []


def test_a_worker_that_is_draining_does_not_count(world: World) -> None:
    starter = world.starter(world.join())
    world.join(has=("spark",)).drain()
    starter.step()
    assert len(world.children) == 1


def test_a_worker_whose_session_has_expired_does_not_count(world: World) -> None:
    world.join(has=("spark",))
    world.env.advance(TTL_SECONDS + 1)
    world.starter(world.join()).step()
    assert len(world.children) == 1


def test_the_next_node_has_its_turn_after_a_while(world: World) -> None:
    world.join()
    second = world.starter(world.join())
    second.step()
    assert world.children == []
    world.env.advance(TURN_SECONDS)
    second.step()
    assert len(world.children) == 1


def test_after_a_worker_that_failed_the_next_comes_later_each_time(world: World) -> None:
    starter = world.starter(world.join())
    starter.step()
    for pause_seconds in (AGAIN_SECONDS, 2 * AGAIN_SECONDS):
        started = len(world.children)
        world.children[-1].code = 1
        starter.step()
        world.env.advance(pause_seconds - 1)
        starter.step()
        assert len(world.children) == started
        world.env.advance(1)
        starter.step()
        assert len(world.children) == started + 1


def test_a_worker_that_ended_for_want_of_work_is_replaced_at_once_when_there_is_some(world: World) -> None:
    starter = world.starter(world.join())
    starter.step()
    world.children[-1].code = 0
    starter.step()
    assert len(world.children) == 2


def test_without_java_nothing_is_started_and_the_log_says_why(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    starter = world.starter(world.join())
    starter.step()
    starter.step()
    assert world.children == []
    (record,) = caplog.records
    assert "openjdk-17-jre-headless" in record.getMessage()
    assert starter.trouble.startswith("Spark needs Java, and JAVA_HOME names none")


def test_what_is_in_the_way_is_forgotten_when_no_job_needs_a_worker_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    starter = world.starter(world.join())
    starter.step()
    world.lacks = False
    starter.step()
    assert starter.trouble == ""


def test_a_worker_that_failed_is_in_the_way_until_there_is_one(world: World) -> None:
    starter = world.starter(world.join())
    starter.step()
    world.children[-1].code = 1
    starter.step()
    assert starter.trouble == "the worker that was started ended with 1, its log says why"
    world.env.advance(AGAIN_SECONDS)
    world.join(has=("spark",))
    starter.step()
    assert starter.trouble == ""


def test_the_worker_ends_with_the_node_that_started_it(world: World) -> None:
    starter = world.starter(world.join())
    starter.step()
    starter.stop()
    assert world.children[0].code is not None
    (child,) = world.children
    assert child.stdin is not None and child.stdin.closed
