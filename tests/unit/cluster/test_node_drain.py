"""A node with its loops, as one process: it runs jobs, and leaves in order when it is drained."""

import os
import socket
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, Settings
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import NOBODY, Jobs
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.cluster.sessions.session_records import Sessions
from tenure.front import Listen
from tenure.kv.store import Store
from tenure.node import Node, NodeOptions
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.pipeline.waiting import await_true
from tests.unit.kv.waiting import PATIENCE_SECONDS

SETTINGS = Settings(DEFINITIONS).with_value(LIVENESS_HEARTBEAT, 0.1)


def test_a_drained_node_leaves_neither_a_claim_nor_a_session(tmp_path: Path) -> None:
    env, began = SystemEnv(), threading.Event()
    was_draining: list[bool] = []

    def work(run: Run) -> None:
        began.set()
        try:
            run.sleep(PATIENCE_SECONDS)
        finally:
            instance = sessions.instances.get(store.snapshot(), run.fence.session.instance)
            was_draining.append(instance is not None and instance.draining)

    path = str(tmp_path / "store.db")
    node = Node(NodeOptions(f"sqlite:{path}", settings=SETTINGS, kinds={"work": JobKind(work)}), env)
    engine = SqliteEngine(path, env)
    store = Store(engine, env)
    sessions = Sessions(store.keyspace)
    jobs = Jobs(store.keyspace, sessions, store.clock)
    try:
        job = store.transact(lambda txn: jobs.create(txn, kind="work"))
        assert began.wait(PATIENCE_SECONDS)
    finally:
        node.stop()
    control = jobs.control(store.snapshot(), job.id)
    assert control is not None
    assert (control.state, control.claim) == (JobState.PENDING, NOBODY)
    assert was_draining == [True]
    assert list(sessions.list(store.snapshot())) == []
    store.close()
    engine.close()


def _connect(node: Node) -> "psycopg.Connection[tuple[object, ...]]":
    assert node.front is not None
    return psycopg.connect(
        host="127.0.0.1", port=node.front.port, user="root", dbname="defaultdb", autocommit=True
    )


def test_while_a_node_drains_statements_can_be_canceled_through_another_at_its_port(tmp_path: Path) -> None:
    store, env = f"sqlite:{tmp_path}/store.db", SystemEnv()
    said: list[str | None] = []

    def sleep() -> None:
        with pytest.raises(psycopg.Error) as raised:
            sleeping.execute(f"SELECT pg_sleep({PATIENCE_SECONDS})".encode())
        said.append(raised.value.sqlstate)

    def has_ended() -> bool:
        sleeping.cancel_safe()  # one that comes before the statement does nothing
        return not statement.is_alive()

    port = socket.create_server(("127.0.0.1", 0))
    port.setblocking(False)
    draining = Node(
        NodeOptions(store, settings=SETTINGS, listen=Listen(inherited=os.dup(port.fileno()))), env
    )
    drain = threading.Thread(target=draining.stop)
    with closing(_connect(draining)) as idle, closing(_connect(draining)) as sleeping:
        other = Node(NodeOptions(store, settings=SETTINGS, listen=Listen(inherited=port.detach())), env)
        sleeping.execute("BEGIN")
        statement = threading.Thread(target=sleep)
        statement.start()
        drain.start()
        with pytest.raises(psycopg.OperationalError):  # it is told, once nobody is let in any more
            next(idle.notifies(timeout=PATIENCE_SECONDS))
        await_true(has_ended)
    drain.join()
    other.stop()
    assert said == ["57014"]
