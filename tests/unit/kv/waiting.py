"""Threads whose waits can be seen, so that a test knows who stands in line without sleeping."""

import threading
from collections.abc import Callable
from typing import Any

from tenure.base.env import SystemEnv

PATIENCE_SECONDS = 30.0
"""How long a test waits for another thread before it fails."""


class SeenWaits(SystemEnv):
    """Real threads; `await_waits` returns once so many endless waits have begun."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = threading.Semaphore(0)
        self.interrupts_next_wait = False

    def event(self) -> threading.Event:
        return _SeenEvent(self)

    def note_wait(self) -> None:
        self._begun.release()
        if self.interrupts_next_wait:
            self.interrupts_next_wait = False
            raise KeyboardInterrupt

    def await_waits(self, count: int) -> None:
        for _ in range(count):
            assert self._begun.acquire(timeout=PATIENCE_SECONDS), "nobody came to wait"


class _SeenEvent(threading.Event):
    def __init__(self, env: SeenWaits) -> None:
        super().__init__()
        self._env = env

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is None:
            self._env.note_wait()
        return super().wait(timeout)


class Call:
    """A function at work in a thread of its own; `result` gives or raises what came of it."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self._run = run
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._value = self._run()
        except BaseException as error:
            self._error = error

    def result(self, timeout: float = PATIENCE_SECONDS) -> Any:
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the call does not return"
        if self._error is not None:
            raise self._error
        return self._value

    def error(self) -> BaseException:
        self._thread.join(PATIENCE_SECONDS)
        assert self._error is not None, "the call did not fail"
        return self._error
