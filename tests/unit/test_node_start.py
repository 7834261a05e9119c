"""A node that takes long to start: its session lives, and if it does not, the node starts over."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.jobs.runs import JobKind
from tenure.cluster.sessions.session_records import ExistingSession, Sessions
from tenure.kv.store import Store
from tenure.node import Node, NodeOptions
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.pipeline.waiting import await_true


class Slow(Mapping[str, JobKind]):
    """Kinds of jobs for which something happens first, each time a node asks for them."""

    def __init__(self, first: Callable[[], None]) -> None:
        self._first = first

    def __iter__(self) -> Iterator[str]:
        self._first()
        return iter(("work",))

    def __len__(self) -> int:
        return 1

    def __getitem__(self, name: str) -> JobKind:
        return JobKind(lambda run: None)


class Outside:
    """Another process's look at the sessions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = SqliteEngine(str(path), SystemEnv())
        self.store = Store(self.engine, SystemEnv())
        self.sessions = Sessions(self.store.keyspace)

    def only(self) -> ExistingSession:
        (session,) = self.sessions.list(self.store.snapshot())
        return session

    def start(self, kinds: Slow, *, ttl: float, heartbeat: float) -> Node:
        settings = Settings(DEFINITIONS, {LIVENESS_TTL: ttl, LIVENESS_HEARTBEAT: heartbeat})
        return Node(NodeOptions(f"sqlite:{self.path}", settings=settings, kinds=kinds), SystemEnv())


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    made = Outside(tmp_path / "store.db")
    yield made
    made.store.close()
    made.engine.close()


def test_a_session_lives_while_its_node_starts(outside: Outside) -> None:
    def wait_for_a_heartbeat() -> None:
        first_at = outside.only().expires_at
        await_true(lambda: outside.only().expires_at > first_at)

    node = outside.start(Slow(wait_for_a_heartbeat), ttl=40.0, heartbeat=0.05)
    node.stop()


def test_a_node_whose_session_is_lost_before_it_is_ready_starts_over(outside: Outside) -> None:
    lost: list[ExistingSession] = []

    def lose_the_first() -> None:
        if not lost:
            lost.append(outside.only())
            outside.store.transact(lambda txn: outside.sessions.release(txn, lost[0].id))

    node = outside.start(Slow(lose_the_first), ttl=40.0, heartbeat=10.0)
    try:
        assert lost
        assert node.liveness.session().id == outside.only().id != lost[0].id
    finally:
        node.stop()
    assert list(outside.sessions.list(outside.store.snapshot())) == []
