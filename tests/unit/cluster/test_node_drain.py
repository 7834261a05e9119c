"""A node with its loops, as one process: it runs jobs, and leaves in order when it is drained."""

import threading
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, Settings
from tenure.cluster.job_states import State
from tenure.cluster.jobs import NOBODY, Jobs
from tenure.cluster.runner import Kind, Run
from tenure.cluster.sessions import Sessions
from tenure.kv.store import Store
from tenure.node import Node
from tenure.storage.sqlite import SqliteEngine
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
    node = Node(f"sqlite:{path}", env, settings=SETTINGS, kinds={"work": Kind(work)})
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
    assert (control.state, control.claim) == (State.PENDING, NOBODY)
    assert was_draining == [True]
    assert list(sessions.list(store.snapshot())) == []
    store.close()
    engine.close()
