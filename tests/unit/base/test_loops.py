import logging
from collections.abc import Callable

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import CorruptData, Unavailable
from tenure.base.loops import BACKOFF_MAX_SECONDS, Loop, Loops, Step, backoff_seconds

LOG = logging.getLogger("test.loops")


class Script:
    """A step that does what each entry says and asks its loop to stop after the last."""

    def __init__(self, env: ManualEnv, *acts: float | Exception | Callable[[], None] | None) -> None:
        self.env = env
        self.acts = list(acts)
        self.began: list[float] = []
        self.loop: Loop | None = None

    def __call__(self) -> float | None:
        self.began.append(self.env.monotonic())
        act = self.acts.pop(0)
        if not self.acts and self.loop is not None:
            self.loop.request_stop()
        if isinstance(act, Exception):
            raise act
        if callable(act):
            act()
            return None
        return act


def run(env: ManualEnv, script: Script, *, interval_seconds: float = 10.0, jitter: float = 0.0) -> Loop:
    loop = manual_loop(env, script, interval_seconds=interval_seconds, jitter=jitter)
    script.loop = loop
    loop.start()
    return loop


def manual_loop(env: ManualEnv, step: Step, *, interval_seconds: float = 10.0, jitter: float = 0.0) -> Loop:
    return Loop("test", step, env, interval_seconds=interval_seconds, jitter=jitter, log=LOG)


def test_a_step_without_a_wish_is_called_again_after_the_interval() -> None:
    env = ManualEnv()
    script = Script(env, None, None, None)
    run(env, script)
    assert script.began == [0.0, 10.0, 20.0]


def test_a_step_says_when_it_wants_to_be_called_again() -> None:
    env = ManualEnv()
    script = Script(env, 3.0, 0, 0.5, None)
    run(env, script)
    assert script.began == [0.0, 3.0, 3.0, 3.5]


def test_a_wish_that_lies_in_the_past_means_at_once() -> None:
    env = ManualEnv()
    script = Script(env, -5.0, None)
    run(env, script)
    assert script.began == [0.0, 0.0]


def test_the_interval_is_spread_by_the_jitter() -> None:
    loop = manual_loop(ManualEnv(), lambda: None, jitter=0.1)
    waits = [loop.run_once() for _ in range(200)]
    assert 9.0 <= min(waits) < 9.2
    assert 10.8 < max(waits) <= 11.0


def test_a_wish_is_not_spread() -> None:
    loop = manual_loop(ManualEnv(), lambda: 4.0, jitter=0.5)
    assert {loop.run_once() for _ in range(10)} == {4.0}


@pytest.mark.invariant("loop-wakes")
def test_a_wake_during_a_step_makes_another_step_follow_at_once() -> None:
    env = ManualEnv()
    script = Script(env, lambda: loop.wake(), None, None)
    loop = script.loop = manual_loop(env, script)
    loop.start()
    assert script.began == [0.0, 0.0, 10.0]


@pytest.mark.invariant("loop-wakes")
def test_a_wake_from_another_thread_ends_the_wait() -> None:
    env = SystemEnv()
    began = env.event()
    rounds: list[int] = []

    def step() -> None:
        rounds.append(len(rounds))
        began.set()

    loop = Loop("test", step, env, interval_seconds=3600, log=LOG)
    loop.start()
    for expected in ([0], [0, 1], [0, 1, 2]):
        assert began.wait(10)
        assert rounds == expected
        began.clear()
        loop.wake()
    loop.stop()


@pytest.mark.invariant("loop-lives")
def test_an_ordinary_error_is_logged_and_the_loop_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    env = ManualEnv()
    script = Script(env, Unavailable("no route"), ZeroDivisionError(), None, OSError("disk"), None)
    loop = run(env, script)
    assert script.began == pytest.approx([0.0, 0.1, 0.3, 10.3, 10.4])
    assert loop.failure is None
    assert [record.getMessage() for record in caplog.records] == [
        'loop "test": a step failed (1 in a row), next in 0.1 s: no route',
        'loop "test": a step failed (2 in a row), next in 0.2 s: ',
        'loop "test": a step failed (1 in a row), next in 0.1 s: disk',
    ]
    # An error of our own tree says all in its message; any other shows where it came from.
    assert [bool(record.exc_info) for record in caplog.records] == [False, True, True]


def test_stopping_ends_a_wait_inside_the_step() -> None:
    env = SystemEnv()
    began, interrupted = env.event(), env.event()

    def step() -> None:
        began.set()
        assert interrupted.wait(10)

    loop = Loop("test", step, env, interval_seconds=3600, log=LOG, interrupt=interrupted.set)
    loop.start()
    assert began.wait(10)
    loop.stop()
    assert interrupted.is_set()


def test_waits_after_errors_grow_up_to_a_bound() -> None:
    waits = [backoff_seconds(errors) for errors in range(1, 13)]
    assert waits == sorted(waits)
    assert waits[0] == 0.1
    assert backoff_seconds(10) == backoff_seconds(10**9) == BACKOFF_MAX_SECONDS


def test_corrupt_data_ends_the_loop_and_is_kept_for_its_owner(caplog: pytest.LogCaptureFixture) -> None:
    env = ManualEnv()
    error = CorruptData("bad page")
    script = Script(env, None, error, None)
    told: list[CorruptData] = []
    loop = Loop("test", script, env, interval_seconds=1, jitter=0, log=LOG, on_failure=told.append)
    loop.start()
    assert script.began == [0.0, 1.0]
    assert loop.failure is error
    assert told == [error]
    assert 'loop "test" ends' in caplog.text


def test_a_step_by_hand_behaves_as_in_the_loop() -> None:
    env = ManualEnv()
    loop = manual_loop(env, Script(env, 2.0, OSError(), None, CorruptData("bad")))
    assert [loop.run_once() for _ in range(4)] == [2.0, 0.1, 10.0, 0.0]
    assert loop.failure is not None


def test_stop_waits_for_the_step_in_progress_and_lets_no_other_begin() -> None:
    env = SystemEnv()
    began, may_end = env.event(), env.event()
    seen: list[str] = []

    def step() -> float:
        began.set()
        may_end.wait(10)
        seen.append("step ended")
        return 0

    loop = Loop("test", step, env, interval_seconds=1, log=LOG)
    loop.start()
    assert began.wait(10)

    def stop() -> None:
        loop.stop()
        seen.append("stopped")

    stopper = env.spawn("stopper", stop)
    stopper.join(0.02)
    assert stopper.is_alive()
    assert seen == []
    may_end.set()
    stopper.join(10)
    assert seen[-2:] == ["step ended", "stopped"]


def test_a_loop_that_was_stopped_first_runs_no_step() -> None:
    env = ManualEnv()
    script = Script(env, None)
    loop = manual_loop(env, script)
    loop.stop()
    loop.start()
    loop.stop()
    assert script.began == []


def test_a_loop_starts_only_once() -> None:
    loop = manual_loop(ManualEnv(), lambda: None)
    loop.stop()
    loop.start()
    with pytest.raises(AssertionError, match="was started before"):
        loop.start()


def test_a_group_starts_in_order_and_stops_in_reverse_order() -> None:
    seen: list[str] = []

    class Noted(Loop):
        def start(self) -> None:
            seen.append(f"start {self.name}")

        def stop(self) -> None:
            seen.append(f"stop {self.name}")

    group = Loops([Noted(n, lambda: None, ManualEnv(), interval_seconds=1, log=LOG) for n in "abc"])
    group.start()
    group.stop()
    assert seen == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]
