"""Workers as processes: started by hand, by a node for a job, and again when one is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, LIVENESS_TTL, Settings
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind
from tenure.node import Node, NodeOptions
from tenure.pipeline.starter import Process, spawn
from tenure.worker import _work
from tests.faults.spark_worker import KIND, Order, create, total_of
from tests.pipeline.waiting import await_true, children_of, is_running
from tests.spark_sessions import ROOT

TTL_SECONDS, HEARTBEAT_SECONDS = 2.0, 0.4
SETTINGS = Settings(DEFINITIONS, {LIVENESS_TTL: TTL_SECONDS, LIVENESS_HEARTBEAT: HEARTBEAT_SECONDS})
ENVIRON = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def has_spark(node: Node) -> list[tuple[str, ...]]:
    instances = node.cluster.sessions.instances.scan(node.store.snapshot())
    return [instance.has for instance in instances if instance.has]


def test_a_worker_says_when_it_is_ready_and_drains(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/store.db"
    command = [sys.executable, "-m", "tenure.cli", "worker", "--store", store, "--spark-master", "local[1]"]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRON, cwd=tmp_path)
    node = Node(NodeOptions(store, settings=SETTINGS), SystemEnv())
    try:
        assert worker.stdout is not None
        line = worker.stdout.readline()
        assert line.startswith("ready worker instance=")
        assert "spark=local[1]" in line
        assert has_spark(node) == [("spark",)]
        children = children_of(worker.pid)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
        assert has_spark(node) == []
        assert not any(map(is_running, children))
        assert worker.stdout.read() == ""
        worker.stdout.close()
    finally:
        worker.kill()
        node.stop()


@pytest.mark.longer
def test_a_node_starts_a_worker_for_a_job_and_another_when_that_is_killed(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/store.db"
    started: list[Process] = []

    def start() -> Process:
        name = f"w.{len(started)}"
        times = ("--ttl", str(TTL_SECONDS), "--heartbeat", str(HEARTBEAT_SECONDS))
        places = ("--store", store, "--log", str(tmp_path), "--name", name)
        command = [sys.executable, "-m", "tests.faults.spark_worker", *places, *times]
        started.append(spawn(command, ENVIRON))
        return started[-1]

    kinds = {KIND: JobKind(lambda run: None)}
    node = Node(NodeOptions(store, settings=SETTINGS, kinds=kinds, start_worker=start), SystemEnv())
    try:
        order = Order(rounds=10, pace_seconds=0.1)
        job = create(node.store, node.jobs, order)
        await_true(lambda: fraction(node, job) >= 0.3)
        os.kill(started[0].pid, signal.SIGKILL)
        await_true(lambda: state(node, job) is JobState.SUCCEEDED, seconds=120)
        assert total_of(node.store.snapshot(), job.id) == order.total()
        assert len(started) == 2
        progress = node.jobs.progress(node.store.snapshot(), job.id)
        assert progress.status == "spark: 40 of 40 tasks, 1 executor"
    finally:
        node.stop()
    assert not any(is_running(each.pid) for each in started)


def state(node: Node, job: Job) -> JobState:
    control = node.jobs.control(node.store.snapshot(), job.id)
    assert control is not None
    return control.state


def fraction(node: Node, job: Job) -> float:
    return node.jobs.progress(node.store.snapshot(), job.id).fraction


def test_a_worker_that_has_nothing_to_do_for_long_enough_ends(tmp_path: Path) -> None:
    node = Node(NodeOptions(f"sqlite:{tmp_path}/store.db"), SystemEnv())
    try:
        env = ManualEnv()
        _work(node, env, idle_seconds=300.0)
        assert 300.0 <= env.monotonic() < 310.0
    finally:
        node.stop()
