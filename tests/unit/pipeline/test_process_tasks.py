import pickle
from collections.abc import Sequence
from typing import TypeVar

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import KernelFailed
from tenure.pipeline.failures import Failure
from tenure.pipeline.tasks import Attempt, Check, Kernel, OnDone, ProcessTasks, status
from tests.pipeline import kernels

R = TypeVar("R")


class Told(Exception):
    """The job was told to stop."""


def go_on() -> None:
    return None


def ignore(done: int, total: int) -> None:
    return None


def run(
    kernel: Kernel[int, R],
    tasks: Sequence[int],
    *,
    on_done: OnDone = ignore,
    check: Check = go_on,
    label: str = "task",
) -> list[R]:
    return ProcessTasks(SystemEnv()).run(kernel, tasks, on_done=on_done, check=check, label=label)


def test_results_come_in_the_order_of_the_tasks() -> None:
    assert run(kernels.square, [3, 1, 2]) == [9, 1, 4]


def test_no_tasks_give_no_results() -> None:
    assert run(kernels.square, []) == []


def test_progress_is_told_after_each_task() -> None:
    told: list[tuple[int, int]] = []
    run(kernels.square, [1, 2, 3], on_done=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.invariant("attempts")
def test_attempts_have_names_of_their_own_after_the_label() -> None:
    names = run(kernels.name_of, [1] * 1000, label="j12-r3")
    assert len(set(names)) == 1000
    assert all(name.startswith("j12-r3-") and name.replace("-", "").isalnum() for name in names)


def test_an_error_of_the_user_comes_out_as_itself() -> None:
    with pytest.raises(kernels.OddInput, match='"3" is odd') as caught:
        run(kernels.refuse_odd, [2, 3])
    assert (caught.value.sqlstate, caught.value.hint) == ("22P02", "Give even ones.")


def test_a_bug_comes_out_as_an_internal_error_that_shows_where() -> None:
    with pytest.raises(KernelFailed, match=r"divide_by.*ZeroDivisionError") as caught:
        run(kernels.divide_by, [0])
    assert caught.value.sqlstate == "XX000"
    assert "kernels.py" in caught.value.detail


def test_nothing_more_is_begun_once_the_job_was_told_to_stop() -> None:
    begun: list[int] = []

    def note(task: int, attempt: Attempt) -> None:
        begun.append(task)

    def check() -> None:
        if len(begun) == 2:
            raise Told

    with pytest.raises(Told):
        run(note, [1, 2, 3, 4], check=check)
    assert begun == [1, 2]


def test_a_failure_is_the_same_error_after_a_journey() -> None:
    failure = Failure.of(kernels.OddInput(5), kernels.refuse_odd)
    error = pickle.loads(pickle.dumps(failure)).error()
    assert type(error) is kernels.OddInput
    assert (str(error), error.hint, error.detail, error.number) == (
        '"5" is odd',
        "Give even ones.",
        "All others are even.",
        5,
    )


def test_a_failure_leaves_behind_what_cannot_travel() -> None:
    error = kernels.OddInput(5)
    error.number = lambda: 5  # type: ignore[assignment]
    assert not hasattr(pickle.loads(pickle.dumps(Failure.of(error, kernels.refuse_odd))).error(), "number")


def test_the_status_names_the_engine_and_how_far_it_is() -> None:
    assert status(ProcessTasks(ManualEnv()), 5, 12) == "process: 5 of 12 tasks"
