"""Waits that end when their thread's check says so."""

import threading

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import UserError
from tenure.base.interruptible import abandonable, checked_by, current_check, patient, unchecked


class Canceled(UserError):
    sqlstate = "57014"


def refuse() -> None:
    raise Canceled("canceled")


def test_the_check_is_that_of_the_thread_and_of_the_moment() -> None:
    seen: list[object] = []
    with checked_by(refuse):
        assert current_check() is refuse
        other = threading.Thread(target=lambda: seen.append(current_check()))
        other.start()
        other.join()
    assert seen == [unchecked]
    assert current_check() is unchecked


def test_a_patient_check_raises_when_it_would_have_for_so_long() -> None:
    env = ManualEnv()
    check = patient(refuse, env, 0.5)
    check()
    env.advance(0.4)
    check()
    env.advance(0.2)
    with pytest.raises(Canceled):
        check()


def test_a_call_that_is_abandoned_goes_on_and_what_comes_of_it_is_disposed_of() -> None:
    go, disposed = threading.Event(), threading.Event()

    def work() -> str:
        go.wait(60)
        return "late"

    with checked_by(refuse), pytest.raises(Canceled):
        abandonable(SystemEnv(), "late", work, lambda result: disposed.set())
    assert not disposed.is_set()
    go.set()
    assert disposed.wait(60)


def test_a_call_that_ends_gives_what_came_of_it() -> None:
    def fail() -> None:
        raise Canceled("by itself")

    with checked_by(lambda: None):
        assert abandonable(SystemEnv(), "quick", lambda: 7) == 7
        with pytest.raises(Canceled, match="by itself"):
            abandonable(SystemEnv(), "quick", fail)
