"""How a process is told to end, and how its end is enforced.

    SIGTERM, Ctrl-C    ─┐                              the drain is done  ──► exit 0
                        ├──► KeyboardInterrupt in ──► drain
    the parent is gone ─┘    the main thread           its time is up     ──► exit 1
                                                       a second signal    ──► exit 1

A process that another one started has the reading end of a pipe as its standard input; the parent has the
writing end and never writes. However the parent ends, the kernel closes its end, and the child reads the end
of the file, even if the parent was gone before the child looked.

The main thread may hang in a call to the store when the second signal comes, so it cannot act on it. A thread
of its own waits here: signals reach it through Python's wakeup descriptor, which is written even while the
main thread hangs.

Invariant (drain-ends): a process that was told to end is gone when the drain's time is up.

Walk: `cli` and `processes` make an `Ending` and run their work inside it.
"""

import logging
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from tenure.base.env import Env

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

DRAIN_SECONDS = 60.0
"""The default: longer than a drain waits for clients (10 s) and jobs (30 s) when all goes well."""

FORCED_EXIT_CODE = 1

_log = logging.getLogger(__name__)


class Ending:
    """While it is entered, signals interrupt the main thread once, and the time from then on is bounded."""

    def __init__(
        self,
        env: Env,
        *,
        drain_seconds: float | None,
        has_parent: bool = False,
        before_force: Callable[[], None] = lambda: None,
    ) -> None:
        self._env = env
        self._drain_seconds = drain_seconds
        """None does not bound the drain; a second signal still ends it."""
        self._has_parent = has_parent
        self._before_force = before_force
        """Called before a forced exit, for example to end the processes that were started."""
        self._is_told = False
        self._is_over = False

    def __enter__(self) -> Self:
        self._signals, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)  # Python requires it
        for number in STOP_SIGNALS:
            signal.signal(number, self._interrupt)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        self._env.spawn("ending", self._wait)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_told:
            return  # the interpreter waits for threads when it exits, and these may hang too
        self._is_over = True
        signal.set_wakeup_fd(-1)
        os.close(self._wakeup)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Interrupts the main thread's wait, once: a second signal is for the thread that waits here."""
        self._is_told = True
        for each in STOP_SIGNALS:
            # Not SIG_IGN: nothing would reach the wakeup descriptor.
            signal.signal(each, lambda number, frame: None)
        raise KeyboardInterrupt

    def _wait(self) -> None:
        self._await_first()
        if not self._is_over:
            why = self._why_forced()
            if not self._is_over:
                self._force(why)
        os.close(self._signals)

    def _await_first(self) -> None:
        sources: list[int] = [self._signals]
        if self._has_parent:
            sources.append(sys.stdin.fileno())
        while True:
            ready = select.select(sources, [], [])[0]
            if self._signals in ready:
                if self._was_told():
                    return
            elif _is_at_end(sys.stdin.fileno()):
                sources.pop()
                _log.warning("the process that started this one is gone: ending too")
                os.kill(os.getpid(), signal.SIGTERM)

    def _why_forced(self) -> str:
        """Returns when the drain's time is up or the drain is over."""
        until = None if self._drain_seconds is None else self._env.monotonic() + self._drain_seconds
        while True:
            left = None if until is None else max(0.0, until - self._env.monotonic())
            if not select.select([self._signals], [], [], left)[0]:
                return f"the drain did not end within {self._drain_seconds:.0f} s"
            if self._was_told():
                return "a second signal came during the drain"

    def _was_told(self) -> bool:
        """Whether a signal to stop came, or the parent's end of the pipe was closed."""
        # Read one at a time: two signals that came close together are still two.
        number = os.read(self._signals, 1)
        return not number or number[0] in STOP_SIGNALS

    def _force(self, why: str) -> None:
        _log.error("%s: this process ends now; its session expires by itself", why)
        with suppress(Exception):
            self._before_force()
        # Nothing is closed: closing would wait for the very call that hangs.
        os._exit(FORCED_EXIT_CODE)


def _is_at_end(input: int) -> bool:
    """Reads what is there; a parent writes nothing, so there is either the end or nothing."""
    return not os.read(input, 1)
