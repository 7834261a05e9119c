"""What tasks carry is for the kernels alone, `local[2]`."""

import base64
import os
import pickle
import shutil
from ipaddress import ip_address

import pytest

from tenure.pipeline.spark_tasks import SparkTasks
from tests.pipeline import kernels
from tests.pipeline.processes import descendants_of, listens_on
from tests.pipeline.waiting import go_on, ignore
from tests.spark_sessions import SparkSessions


@pytest.mark.invariant("S24-tasks")
def test_tasks_pass_through_no_file(spark_sessions: SparkSessions, spark_tasks: SparkTasks) -> None:
    directory = spark_sessions.session().sparkContext._temp_dir
    assert directory is not None
    shutil.rmtree(directory)  # where pyspark would write them
    try:
        assert spark_tasks.run(kernels.square, [3], on_done=ignore, check=go_on) == [9]
    finally:
        os.mkdir(directory, 0o700)


@pytest.mark.invariant("S24-tasks")
def test_no_plan_shows_tasks(spark_tasks: SparkTasks) -> None:
    frame = spark_tasks.frame(kernels.rows_below, [1, 2], "number long")
    work = base64.b85encode(pickle.dumps((kernels.rows_below, [1, 2], "task"))).decode()
    execution = frame._jdf.queryExecution()
    shown = execution.toString() + execution.stringWithStats() + execution.analyzed().toJSON()
    assert "tenure_tasks" in shown
    assert work[:40] not in shown


def test_spark_listens_on_loopback_only_and_has_no_page(
    spark_sessions: SparkSessions, spark_tasks: SparkTasks
) -> None:
    spark_tasks.run(kernels.square, [3], on_done=ignore, check=go_on)
    addresses = {str(each) for pid in descendants_of(os.getpid()) for each in listens_on(pid)}
    assert {each for each in addresses if not ip_address(each).is_loopback} == set()
    assert spark_sessions.session().sparkContext.uiWebUrl is None
