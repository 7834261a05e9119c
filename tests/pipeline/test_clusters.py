"""Tasks on executors that are processes of their own: a local cluster, and a standalone one."""

import os
import signal
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from tenure.pipeline.tasks import status
from tests.pipeline import kernels
from tests.pipeline.clusters import Standalone
from tests.pipeline.kernels import Place
from tests.pipeline.processes import command_line, descendants_of, listens_on
from tests.pipeline.waiting import await_true, go_on, ignore
from tests.spark_sessions import SparkSessions

LOCAL_CLUSTER = "local-cluster[2,1,1024]"

pytestmark = pytest.mark.longer  # clusters start slowly


def test_an_executor_that_is_killed_loses_nothing(spark_sessions: SparkSessions, tmp_path: Path) -> None:
    tasks = spark_sessions.tasks(LOCAL_CLUSTER)
    await_true(lambda: tasks.executors() == 2)
    assert status(tasks, 1, 8) == "spark: 1 of 8 tasks, 2 executors"
    places = [Place(number, str(tmp_path)) for number in range(8)]
    killed: list[int] = []

    def kill_one() -> None:
        marks = places[0].marks()
        if not killed and len({mark.split("-")[0] for mark in marks}) == 2:
            killed.append(int(marks[0].split("-")[0]))
            os.kill(killed[0], signal.SIGKILL)

    results = tasks.run(kernels.slow_square, places, on_done=ignore, check=kill_one)
    assert results == [number**2 for number in range(8)]
    assert killed
    assert len(places[0].marks()) > 8  # what the dead one was at was begun again


@pytest.mark.invariant("S24-tasks")
def test_the_processes_of_a_local_cluster_share_a_secret_that_no_command_line_has(
    spark_sessions: SparkSessions,
) -> None:
    tasks = spark_sessions.tasks(LOCAL_CLUSTER)
    await_true(lambda: tasks.executors() == 2)
    conf = spark_sessions.session().sparkContext.getConf()
    secret = conf.get("spark.authenticate.secret")
    assert secret is not None and len(secret) == 64
    assert conf.get("spark.authenticate") == conf.get("spark.network.crypto.enabled") == "true"
    lines = [line for pid in descendants_of(os.getpid()) if (line := command_line(pid))]
    assert sum("CoarseGrainedExecutorBackend" in line for line in lines) >= 2
    assert not any(secret in line for line in lines)


def test_the_processes_of_a_local_cluster_listen_on_loopback_only(spark_sessions: SparkSessions) -> None:
    tasks = spark_sessions.tasks(LOCAL_CLUSTER)
    await_true(lambda: tasks.executors() == 2)
    addresses = {str(each) for pid in descendants_of(os.getpid()) for each in listens_on(pid)}
    assert "127.0.0.1" in addresses
    assert {each for each in addresses if not ip_address(each).is_loopback} == set()


@pytest.fixture(scope="module")
def standalone(
    spark_sessions: SparkSessions, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster
        spark_sessions.close()


@pytest.mark.invariant("attempts")
def test_a_slow_task_and_its_twin_have_names_of_their_own(
    spark_sessions: SparkSessions, standalone: Standalone, tmp_path: Path
) -> None:
    tasks = spark_sessions.tasks(standalone.master, {"spark.executor.memory": "512m"})
    await_true(lambda: tasks.executors() == 2)
    places = [Place(number, str(tmp_path)) for number in range(10)]
    names = tasks.run(kernels.wait_for_twin, places, on_done=ignore, check=go_on)
    twins = places[0].marks()
    assert len(twins) == 2
    assert names[0] in twins
    assert len(set(names)) == 10
