import pytest

from tenure.base.env import Env, ManualEnv, SystemEnv

BOTH = pytest.mark.parametrize("env", [SystemEnv(), ManualEnv()], ids=["system", "manual"])


def test_manual_time_stands_still_until_it_is_moved() -> None:
    env = ManualEnv(wall_micros=5_000_000)
    assert (env.wall_micros(), env.monotonic()) == (5_000_000, 0.0)
    env.advance(1.5)
    assert (env.wall_micros(), env.monotonic()) == (6_500_000, 1.5)


def test_manual_sleep_moves_both_clocks() -> None:
    env = ManualEnv(wall_micros=0)
    env.sleep(2)
    assert (env.wall_micros(), env.monotonic()) == (2_000_000, 2.0)


def test_a_jump_moves_the_wall_clock_alone() -> None:
    env = ManualEnv(wall_micros=5_000_000)
    env.jump(-2)
    assert (env.wall_micros(), env.monotonic()) == (3_000_000, 0.0)


def test_manual_time_never_goes_back() -> None:
    env = ManualEnv()
    with pytest.raises(AssertionError, match="does not go back"):
        env.advance(-1)
    with pytest.raises(AssertionError, match="does not go back"):
        env.sleep(-1)


@BOTH
def test_a_wait_that_is_over_already_takes_no_time(env: Env) -> None:
    before = env.monotonic()
    assert env.event().wait(-1) is False
    assert 0 <= env.monotonic() - before < 0.5


def test_a_manual_wait_takes_its_whole_time_unless_the_event_is_set() -> None:
    env = ManualEnv()
    event = env.event()
    assert event.wait(3) is False
    assert env.monotonic() == 3.0
    event.set()
    assert event.wait(3) is True
    assert env.monotonic() == 3.0


def test_a_manual_wait_without_a_bound_is_a_mistake_unless_the_event_is_set() -> None:
    event = ManualEnv().event()
    with pytest.raises(AssertionError, match="would never end"):
        event.wait()
    event.set()
    assert event.wait() is True


@BOTH
def test_an_event_stays_set_until_it_is_cleared(env: Env) -> None:
    event = env.event()
    assert not event.is_set()
    event.set()
    assert event.is_set()
    assert event.wait(0)
    event.clear()
    assert not event.is_set()


@BOTH
def test_a_task_has_ended_once_it_was_joined(env: Env) -> None:
    seen: list[str] = []
    task = env.spawn("task", lambda: seen.append("ran"))
    task.join(10)
    assert seen == ["ran"]
    assert not task.is_alive()


@BOTH
def test_a_lock_is_free_again_after_an_error(env: Env) -> None:
    lock = env.lock()
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    with lock:
        pass


def test_a_manual_lock_taken_twice_fails_instead_of_hanging() -> None:
    lock = ManualEnv().lock()
    with lock, pytest.raises(AssertionError, match="holds the lock already"), lock:
        pass
    with lock:
        pass


def test_a_manual_lock_keeps_threads_apart() -> None:
    lock, system = ManualEnv().lock(), SystemEnv()
    entered = system.event()

    def enter() -> None:
        with lock:
            entered.set()

    with lock:
        task = system.spawn("other", enter)
        assert not entered.wait(0.02)
    task.join(10)
    assert entered.is_set()


def test_manual_randomness_follows_the_seed() -> None:
    assert ManualEnv(seed=4).rng.random() == ManualEnv(seed=4).rng.random()
    assert ManualEnv(seed=4).rng.random() != ManualEnv(seed=5).rng.random()


def test_system_clocks_move_forward() -> None:
    env = SystemEnv()
    wall, monotonic = env.wall_micros(), env.monotonic()
    env.sleep(0.002)
    assert env.monotonic() - monotonic >= 0.002
    assert env.wall_micros() > wall > 1_600_000_000_000_000
