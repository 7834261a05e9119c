"""Time that others use: whoever waits lets every other part of the cluster take a step first.

    a client waits ──► every node's loops take a step ──► woken? if not, time passes

All of it is one thread, so a test that fails fails again. A part that is in the middle of a step is
not entered once more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenure.base.env import Event, ManualEnv

Part = Callable[[], object]


class SteppedEnv(ManualEnv):
    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self._parts: list[Part] = []
        self._at_work: list[Part] = []
        self.is_still = False
        """While true nobody takes a step by itself: time just passes."""

    def add(self, part: Part) -> None:
        self._parts.append(part)

    def event(self) -> Event:
        return _SteppedEvent(self)

    def sleep(self, seconds: float) -> None:
        self.give_way()
        self.advance(seconds)

    def give_way(self) -> None:
        if self.is_still:
            return
        for part in list(self._parts):
            if part not in self._at_work:
                with self._working(part):
                    part()

    @contextmanager
    def _working(self, part: Part) -> Iterator[None]:
        self._at_work.append(part)
        try:
            yield
        finally:
            self._at_work.remove(part)

    @contextmanager
    def still(self) -> Iterator[None]:
        former, self.is_still = self.is_still, True
        try:
            yield
        finally:
            self.is_still = former


class _SteppedEvent:
    def __init__(self, env: SteppedEnv) -> None:
        self._env = env
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._env.give_way()
        if not self._set:
            assert timeout is not None, "a wait without a bound would never end on a clock moved by hand"
            self._env.advance(max(0.0, timeout))
        return self._set
