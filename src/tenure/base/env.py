"""What the outside gives: time, waiting, randomness and threads.

All product code gets an `Env` and takes nothing by itself, so the same code runs on the wall
clock and real threads (`SystemEnv`), on a clock that a test moves by hand (`ManualEnv`), and
on greenlets with virtual time in the simulator. This is the only module of the core that
reads a clock, sleeps, draws random numbers or starts a thread; a tidy test holds it to that.

Two clocks, for two purposes: `wall_micros` may jump and is only ever compared with other
wall clocks; `monotonic` never goes back and measures waits.

Walk: `node.py` makes one and hands it to every part; nothing below imports upward.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Event(Protocol):
    def set(self) -> None: ...
    def clear(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Task(Protocol):
    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


class Env(Protocol):
    rng: random.Random

    def wall_micros(self) -> int: ...
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    def event(self) -> Event: ...
    def lock(self) -> AbstractContextManager[object]: ...
    def spawn(self, name: str, run: Callable[[], None]) -> Task: ...


class SystemEnv:
    """The machine's clocks, threads and entropy."""

    def __init__(self) -> None:
        self.rng: random.Random = random.SystemRandom()

    def wall_micros(self) -> int:
        return time.time_ns() // 1000

    # Itself, and not a method around it: every statement asks several times.
    monotonic = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def event(self) -> Event:
        return threading.Event()

    def lock(self) -> AbstractContextManager[object]:
        return threading.Lock()

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread


class ManualEnv:
    """Time that stands still until somebody moves it; every wait is over at once.

    Sleeping moves both clocks, so a loop under test runs through its waits without one. Tasks
    run to their end inside `spawn`: a test that needs real concurrency uses `SystemEnv`.
    """

    def __init__(self, *, wall_micros: int = 1_700_000_000_000_000, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self._wall_micros = wall_micros
        self._monotonic = 0.0

    def wall_micros(self) -> int:
        return self._wall_micros

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        assert seconds >= 0, "time that is waited for does not go back; jump() moves the wall clock"
        self._wall_micros += round(seconds * 1_000_000)
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Moves the wall clock alone, forward or back, as an administrator would."""
        self._wall_micros += round(seconds * 1_000_000)

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def event(self) -> Event:
        return _ManualEvent(self)

    def lock(self) -> AbstractContextManager[object]:
        return _ManualLock()

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        run()
        return _EndedTask()


class _ManualEvent:
    def __init__(self, env: ManualEnv) -> None:
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
            assert timeout is not None, "a wait without a bound would never end on a manual clock"
            self._env.advance(max(0.0, timeout))
        return self._set


class _ManualLock:
    """Like a system lock, but taking it twice in one thread fails where that one would hang."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_held = False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._is_held:
            self._lock.release()
            raise AssertionError("this thread holds the lock already: it would wait for itself for ever")
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        self._lock.release()


class _EndedTask:
    def join(self, timeout: float | None = None) -> None:
        return None

    def is_alive(self) -> bool:
        return False
