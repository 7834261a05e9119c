"""The one loop that drives every background activity.

    start -> step -> wait -> step -> ... -> stop            an ordinary round
               |
               +-- error --------> logged; wait, ever longer up to a bound; step again
               +-- CorruptData --> the loop ends; `failure` keeps it, `on_failure` is told

An activity is a bounded `step()`: it does a limited piece of work and says in how many seconds
it wants to be called again: 0 for at once, None for the loop's interval. The loop waits in
between; `wake()` ends the wait. A wake that comes during a step counts: another step follows.

Invariant (loop-lives): no ordinary error ends a loop; only `stop` and CorruptData do.
Invariant (loop-wakes): after `wake()`, a step begins that had not begun before it.

Waits for the interval and after errors are spread by `jitter` so that many nodes do not move in
step. Simplification: a wake cuts a wait after an error short too.

Walk: `composition.lifecycle` makes a `Loops`, starts it, stops it last thing; tests call `run_once` by hand.
"""

import logging
from collections.abc import Callable, Sequence

from tenure.base.env import Env, Task
from tenure.base.errors import CorruptData, TenureError, for_operator
from tenure.base.retries import grown_seconds

BACKOFF_FIRST_SECONDS = 0.1
"""A passing error, such as a broken connection, is often gone by then."""

BACKOFF_MAX_SECONDS = 30.0
"""Below the session ttl of 40 s: after an outage every loop is back within one ttl."""

Step = Callable[[], float | None]


class Loop:
    def __init__(
        self,
        name: str,
        step: Step,
        env: Env,
        *,
        interval_seconds: float,
        log: logging.Logger,
        jitter: float = 0.1,
        backoff_max_seconds: float = BACKOFF_MAX_SECONDS,
        on_failure: Callable[[CorruptData], None] | None = None,
        interrupt: Callable[[], None] = lambda: None,
    ) -> None:
        assert interval_seconds > 0
        assert 0 <= jitter < 1
        self.name = name
        self.failure: CorruptData | None = None
        self._step = step
        self._env = env
        self._interval_seconds = interval_seconds
        self._log = log
        self._jitter = jitter
        self._backoff_max_seconds = backoff_max_seconds
        self._on_failure = on_failure
        self._interrupt = interrupt
        """Ends a wait inside the step, for a step that waits by itself."""
        self._errors_in_a_row = 0
        self._wake = env.event()
        self._stopping = env.event()
        self._task: Task | None = None

    def start(self) -> None:
        assert self._task is None, f'loop "{self.name}" was started before'
        self._task = self._env.spawn(self.name, self._run)

    def wake(self) -> None:
        """Makes the next step begin at once; from any thread, from the step too."""
        self._wake.set()

    def request_stop(self) -> None:
        """Lets no further step begin, and waits for nothing: a step may call this of its own loop."""
        self._stopping.set()
        self._wake.set()
        self._interrupt()

    def stop(self) -> None:
        """Lets no further step begin and waits for the one in progress."""
        self.request_stop()
        if self._task is not None:
            self._task.join()

    def _run(self) -> None:
        while True:
            # Cleared before looking: a wake or stop that comes later leaves it set for the wait.
            self._wake.clear()
            if self._stopping.is_set() or self.failure is not None:
                return
            self._wake.wait(self.run_once())

    def run_once(self) -> float:
        """Runs one step and catches its errors; returns the seconds to wait before the next."""
        try:
            wanted_seconds = self._step()
        except CorruptData as error:
            return self._fail(error)
        except TenureError as error:
            return self._back_off(error, is_expected=True)
        except Exception as error:
            return self._back_off(error, is_expected=False)
        self._errors_in_a_row = 0
        return self._spread(self._interval_seconds) if wanted_seconds is None else max(0.0, wanted_seconds)

    def _fail(self, error: CorruptData) -> float:
        self.failure = error
        self._log.critical('loop "%s" ends: its data is corrupt', self.name, exc_info=True)
        if self._on_failure is not None:
            self._on_failure(error)
        return 0.0

    def _back_off(self, error: Exception, *, is_expected: bool) -> float:
        """An error of our own tree says everything in its message; any other is a bug, so its traceback is
        logged.
        """
        self._errors_in_a_row += 1
        longest_seconds = min(self._backoff_max_seconds, backoff_seconds(self._errors_in_a_row))
        seconds = self._spread(longest_seconds)
        self._log.error(
            'loop "%s": a step failed (%d in a row), next in %.1f s: %s',
            self.name,
            self._errors_in_a_row,
            seconds,
            for_operator(error),
            exc_info=not is_expected,
        )
        return seconds

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + self._jitter * self._env.rng.uniform(-1, 1))


def backoff_seconds(errors_in_a_row: int) -> float:
    return grown_seconds(errors_in_a_row - 1, BACKOFF_FIRST_SECONDS, BACKOFF_MAX_SECONDS)


class Loops:
    """Loops that live together: started in order, stopped in reverse order, one after the other.

    So a loop may rely on those before it for as long as it runs.
    """

    def __init__(self, loops: Sequence[Loop]) -> None:
        self._loops = tuple(loops)

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        for loop in reversed(self._loops):
            loop.stop()
