"""Trying again: attempts, pauses, interruption."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import QueryCanceled, RetryError
from tenure.base.retries import DOUBLINGS_MAX, UNLIMITED, Pauses, Retries, grown_seconds

PAUSES = Pauses(0.1, 1.0)


def test_the_last_attempt_raises_its_own_error() -> None:
    retries = Retries(3)
    retries.failed(RetryError("first"))
    retries.failed(RetryError("second"))
    with pytest.raises(RetryError, match="third"):
        retries.failed(RetryError("third"))


def test_attempts_without_a_limit_never_raise() -> None:
    retries = Retries(UNLIMITED)
    for _ in range(1_000):
        retries.failed(RetryError("again"))


def test_pauses_double_up_to_a_bound() -> None:
    retries = Retries(UNLIMITED, PAUSES._replace(spread=0.0), ManualEnv())
    assert [retries.next_seconds() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_pauses_begin_anew_after_a_success() -> None:
    retries = Retries(UNLIMITED, PAUSES._replace(spread=0.0), ManualEnv())
    retries.next_seconds()
    retries.next_seconds()
    retries.succeeded()
    assert retries.next_seconds() == 0.1


def test_pauses_are_spread_at_random() -> None:
    env = ManualEnv()
    drawn = {Retries(UNLIMITED, PAUSES._replace(spread=0.5), env).next_seconds() for _ in range(50)}
    assert len(drawn) > 40
    assert all(0.05 <= seconds <= 0.1 for seconds in drawn)


def test_a_pause_sleeps_in_the_environment() -> None:
    env = ManualEnv()
    Retries(UNLIMITED, PAUSES._replace(spread=0.0), env).pause()
    assert env.monotonic() == pytest.approx(0.1)


def test_without_pauses_it_needs_no_environment() -> None:
    Retries(2).pause()


def test_a_pause_can_be_interrupted() -> None:
    def sleep(seconds: float) -> None:
        raise QueryCanceled("canceling statement due to user request")

    with pytest.raises(QueryCanceled):
        Retries(UNLIMITED, PAUSES, ManualEnv(), sleep=sleep).pause()


def test_the_longest_pause_is_reached_after_any_number_of_failures() -> None:
    assert grown_seconds(DOUBLINGS_MAX, 0.1, 30.0) == grown_seconds(10**9, 0.1, 30.0) == 30.0
