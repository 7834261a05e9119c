"""Tasks on Spark under this process, `local[2]`."""

import os
import signal
import time
from pathlib import Path

import pytest

from tenure.base.errors import KernelFailed, SparkLost, Unavailable
from tenure.pipeline.executor import FAILURES_MAX
from tenure.pipeline.frames import as_raised
from tenure.pipeline.spark_tasks import SparkTasks
from tenure.pipeline.tasks import status
from tests.pipeline import kernels
from tests.pipeline.kernels import Place
from tests.pipeline.waiting import Told, await_true, go_on, ignore, is_running
from tests.spark_sessions import SparkSessions

MARKS = ("begun-", "written-")
SOON_SECONDS = 20.0
"""Well below what the kernels would take that are to be stopped."""


def test_results_come_in_the_order_of_the_tasks(spark_tasks: SparkTasks) -> None:
    numbers = list(range(20, 0, -1))
    results = spark_tasks.run(kernels.square, numbers, on_done=ignore, check=go_on)
    assert results == [number**2 for number in numbers]


def test_a_worker_looks_through_no_modules_for_garbage_and_keeps_its_memory(spark_tasks: SparkTasks) -> None:
    for modules, memory in spark_tasks.run(kernels.spared, [1, 2], on_done=ignore, check=go_on):
        assert modules > 10_000
        assert memory == "system"


def test_no_tasks_give_no_results(spark_tasks: SparkTasks) -> None:
    assert spark_tasks.run(kernels.square, [], on_done=ignore, check=go_on) == []


def test_progress_moves_and_ends_with_all(spark_tasks: SparkTasks, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    places = [Place(number, str(tmp_path)) for number in range(4)]
    spark_tasks.run(
        kernels.slow_square, places, on_done=lambda done, total: told.append((done, total)), check=go_on
    )
    assert told == sorted(set(told))
    assert told[-1] == (4, 4)
    assert len(told) > 1


def test_an_error_of_the_user_comes_out_as_itself(spark_tasks: SparkTasks) -> None:
    with pytest.raises(kernels.OddInput, match='"3" is odd') as caught:
        spark_tasks.run(kernels.refuse_odd, [2, 3], on_done=ignore, check=go_on)
    error = caught.value
    assert (error.sqlstate, error.hint, error.detail, error.number) == (
        "22P02",
        "Give even ones.",
        "All others are even.",
        3,
    )


def test_an_error_of_the_user_ends_the_whole_at_once(spark_tasks: SparkTasks) -> None:
    begun = time.monotonic()
    with pytest.raises(kernels.OddInput):
        spark_tasks.run(kernels.refuse_odd_and_wait, [2, 3], on_done=ignore, check=go_on)
    assert time.monotonic() - begun < SOON_SECONDS


def test_a_bug_comes_out_as_an_internal_error_that_shows_where(spark_tasks: SparkTasks) -> None:
    with pytest.raises(KernelFailed, match=r"divide_by.*ZeroDivisionError") as caught:
        spark_tasks.run(kernels.divide_by, [1, 0], on_done=ignore, check=go_on)
    assert "kernels.py" in caught.value.detail


def test_a_failure_that_may_pass_is_tried_again_and_then_comes_out_as_itself(
    spark_tasks: SparkTasks, tmp_path: Path
) -> None:
    place = Place(1, str(tmp_path))
    with pytest.raises(Unavailable, match="cannot be reached"):
        spark_tasks.run(kernels.unreachable, [place], on_done=ignore, check=go_on)
    assert len(place.marks()) == FAILURES_MAX


@pytest.mark.invariant("attempts")
def test_a_task_that_fails_once_is_done_by_another_attempt_with_another_name(
    spark_tasks: SparkTasks, tmp_path: Path
) -> None:
    places = [Place(number, str(tmp_path)) for number in range(3)]
    names = spark_tasks.run(kernels.fail_once, places, on_done=ignore, check=go_on, label="j1-r2")
    marks = places[0].marks()
    assert len(marks) == len({mark.split("-", 1)[1] for mark in marks}) == 6
    assert all(name.startswith("j1-r2-") for name in names)
    assert {f"{number}-{name}" for number, name in enumerate(names)} < set(marks)


def test_tasks_that_fail_at_random_lose_nothing(spark_tasks: SparkTasks) -> None:
    numbers = list(range(10))
    assert spark_tasks.run(kernels.fail_at_random, numbers, on_done=ignore, check=go_on) == numbers


def test_told_to_stop_it_stops_the_tasks(spark_tasks: SparkTasks, tmp_path: Path) -> None:
    place = Place(0, str(tmp_path))

    def check() -> None:
        if len(place.marks("begun-")) == 2:
            raise Told

    with pytest.raises(Told):
        spark_tasks.run(kernels.wait_for_long, [place] * 4, on_done=ignore, check=check)
    pids = [int(mark.removeprefix("begun-")) for mark in place.marks("begun-")]
    await_true(lambda: not any(map(is_running, pids)), seconds=SOON_SECONDS)
    assert len(pids) == 2


def test_told_to_stop_it_waits_until_no_task_writes_any_more(spark_tasks: SparkTasks, tmp_path: Path) -> None:
    place = Place(0, str(tmp_path))

    def check() -> None:
        if len(place.marks("begun-")) == 2:
            raise Told

    def may_write() -> list[int]:
        """Who is still at it."""
        begun, written = ({mark.partition("-")[2] for mark in place.marks(start)} for start in MARKS)
        return [int(pid) for pid in begun - written if is_running(int(pid))]

    with pytest.raises(Told):
        spark_tasks.run(kernels.write_in_a_while, [place] * 2, on_done=ignore, check=check)
    await_true(lambda: not may_write(), seconds=0.3)  # who was killed a moment ago may yet have to vanish


def test_a_job_that_is_stopped_before_it_begins_runs_nothing(spark_tasks: SparkTasks, tmp_path: Path) -> None:
    def check() -> None:
        raise Told

    place = Place(0, str(tmp_path))
    with pytest.raises(Told):
        spark_tasks.run(kernels.wait_for_long, [place], on_done=ignore, check=check)
    assert place.marks() == []


def test_the_status_names_engine_tasks_and_executors(spark_tasks: SparkTasks) -> None:
    assert status(spark_tasks, 5, 12) == "spark: 5 of 12 tasks, 1 executor"


def test_a_frame_has_the_rows_of_the_tasks_in_their_order(spark_tasks: SparkTasks) -> None:
    frame = spark_tasks.frame(kernels.rows_below, [2, 0, 3], "number long")
    assert [row.number for row in frame.collect()] == [0, 1, 0, 1, 2]
    assert frame.rdd.getNumPartitions() == 3


def test_a_frame_of_no_tasks_is_empty(spark_tasks: SparkTasks) -> None:
    assert spark_tasks.frame(kernels.rows_below, [], "number long").collect() == []


def test_an_error_in_a_frame_comes_out_as_itself(spark_tasks: SparkTasks) -> None:
    with pytest.raises(kernels.OddInput) as caught, as_raised():
        spark_tasks.frame(kernels.odd_rows, [2, 5], "number long").collect()
    assert (caught.value.number, caught.value.hint) == (5, "Give even ones.")


@pytest.mark.longer
def test_when_java_is_killed_the_work_may_be_tried_again_and_the_next_has_a_new_one(
    spark_sessions: SparkSessions, tmp_path: Path
) -> None:
    place = Place(0, str(tmp_path))

    def kill_java() -> None:
        for mark in place.marks():
            os.kill(int(mark.split("-")[0]), signal.SIGKILL)

    tasks = spark_sessions.tasks()
    with pytest.raises(SparkLost):
        tasks.run(
            kernels.slow_square,
            [place._replace(number=n) for n in range(20)],
            on_done=ignore,
            check=kill_java,
        )
    with pytest.raises(SparkLost):
        status(tasks, 5, 20)
    assert spark_sessions.tasks().run(kernels.square, [3], on_done=ignore, check=go_on) == [9]
