from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.clock import Clock, check_offset
from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import ClockAhead
from tenure.base.timestamp import from_micros

START_MICROS = 1_700_000_000_000_000

jumps = st.floats(-1000, 1000).map(lambda seconds: ("jump", seconds))
observations = st.integers(-(10**9), 10**9).map(lambda micros: ("observe", micros))


def test_a_reading_follows_the_wall_clock() -> None:
    env = ManualEnv(wall_micros=START_MICROS)
    clock = Clock(env)
    assert clock.now() == from_micros(START_MICROS)
    env.advance(2)
    assert clock.now() == from_micros(START_MICROS + 2_000_000)


@pytest.mark.invariant("I1")
def test_readings_within_a_microsecond_count_up() -> None:
    clock = Clock(ManualEnv(wall_micros=START_MICROS))
    assert [clock.now() for _ in range(3)] == [from_micros(START_MICROS, logical) for logical in range(3)]


@pytest.mark.invariant("I1")
def test_readings_increase_when_the_wall_clock_jumps_back() -> None:
    env = ManualEnv(wall_micros=START_MICROS)
    clock = Clock(env)
    before = clock.now()
    env.jump(-3600)
    assert clock.now() == before + 1


@pytest.mark.invariant("I1")
@given(st.lists(jumps | observations, max_size=20))
def test_readings_strictly_increase_whatever_happens(happenings: list[tuple[str, float]]) -> None:
    env = ManualEnv(wall_micros=START_MICROS)
    clock = Clock(env)
    last = clock.now()
    for kind, amount in happenings:
        if kind == "jump":
            env.jump(amount)
        else:
            last = max(last, from_micros(START_MICROS + int(amount)))
            clock.observe(from_micros(START_MICROS + int(amount)))
        reading = clock.now()
        assert reading > last
        last = reading


@pytest.mark.invariant("I1")
def test_readings_of_many_threads_are_all_different() -> None:
    env = SystemEnv()
    clock = Clock(env)
    readings: list[list[int]] = [[] for _ in range(4)]

    def read(into: list[int]) -> None:
        into.extend(clock.now() for _ in range(2000))

    tasks = [env.spawn("reader", partial(read, into)) for into in readings]
    for task in tasks:
        task.join()
    assert all(each == sorted(each) for each in readings)
    assert len({at for each in readings for at in each}) == 8000


@pytest.mark.invariant("I1")
def test_a_reading_lies_above_what_was_observed() -> None:
    clock = Clock(ManualEnv(wall_micros=START_MICROS))
    ahead = from_micros(START_MICROS + 400_000, 9)
    clock.observe(ahead)
    assert clock.now() == ahead + 1


def test_observing_the_past_changes_nothing() -> None:
    clock = Clock(ManualEnv(wall_micros=START_MICROS))
    clock.observe(from_micros(START_MICROS - 1))
    assert clock.now() == from_micros(START_MICROS)


def test_the_bare_wall_clock_ignores_what_was_observed() -> None:
    env = ManualEnv(wall_micros=START_MICROS)
    clock = Clock(env)
    clock.observe(from_micros(START_MICROS + 10**9))
    assert clock.wall_at() == from_micros(START_MICROS)
    env.jump(-1)
    assert clock.wall_at() == from_micros(START_MICROS - 1_000_000)


@pytest.mark.invariant("I6")
@pytest.mark.parametrize("ahead_micros", [500_000, 0, -(10**12)])
def test_a_clock_within_the_offset_or_behind_may_commit(ahead_micros: int) -> None:
    check_offset(
        node_micros=START_MICROS + ahead_micros, engine_micros=START_MICROS, max_offset_micros=500_000
    )


@pytest.mark.invariant("I6")
def test_a_clock_too_far_ahead_is_refused_with_both_numbers() -> None:
    with pytest.raises(ClockAhead) as caught:
        check_offset(
            node_micros=START_MICROS + 500_001, engine_micros=START_MICROS, max_offset_micros=500_000
        )
    assert str(caught.value) == (
        "this node's clock is 500.001 ms ahead of the store's, "
        "more than max_offset (500.000 ms): commits are refused"
    )
    assert "NTP" in caught.value.hint
    assert caught.value.sqlstate == "58000"
