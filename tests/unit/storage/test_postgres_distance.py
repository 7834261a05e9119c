"""Waits for a server: whether a statement's thread keeps its place meanwhile."""

import pytest

from tenure.base.env import SystemEnv
from tenure.storage.postgres.distance import FAR_SECONDS, Distance


class MovedEnv(SystemEnv):
    """Time that a test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class NotedPlace:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def leave(self) -> None:
        self.notes.append("leave")

    def come_back(self, *, at_once: bool) -> None:
        self.notes.append("back at once" if at_once else "back")


@pytest.fixture
def env() -> MovedEnv:
    return MovedEnv()


@pytest.fixture
def distance(env: MovedEnv) -> Distance:
    return Distance(env)


def _cross(env: MovedEnv, distance: Distance, seconds: float, times: int = 1) -> list[str]:
    """What becomes of a thread's place while it waits so long for each of some answers."""
    place = NotedPlace()
    with env.holding(place):
        for _ in range(times):
            with distance.crossed():
                env.now += seconds
    return place.notes


@pytest.mark.invariant("far-holds-no-place")
def test_a_wait_for_a_far_server_gives_up_the_place_and_takes_it_again_at_once(
    env: MovedEnv, distance: Distance
) -> None:
    _cross(env, distance, 0.05, times=20)
    assert _cross(env, distance, 0.05) == ["leave", "back at once"]


def test_a_wait_for_a_near_server_keeps_its_place(env: MovedEnv, distance: Distance) -> None:
    assert _cross(env, distance, FAR_SECONDS / 10, times=100) == []


def test_one_slow_statement_does_not_make_a_near_server_far(env: MovedEnv, distance: Distance) -> None:
    _cross(env, distance, FAR_SECONDS / 10, times=20)
    _cross(env, distance, 5 * FAR_SECONDS)
    assert not distance.is_far


def test_a_server_that_has_come_near_again_is_near(env: MovedEnv, distance: Distance) -> None:
    _cross(env, distance, 0.05, times=20)
    assert distance.is_far
    _cross(env, distance, FAR_SECONDS / 10, times=40)
    assert not distance.is_far


def test_a_thread_whose_wait_fails_has_its_place_again(env: MovedEnv, distance: Distance) -> None:
    _cross(env, distance, 0.05, times=20)
    place = NotedPlace()
    with env.holding(place), pytest.raises(OSError, match="broken"), distance.crossed():
        raise OSError("broken")
    assert place.notes == ["leave", "back at once"]
