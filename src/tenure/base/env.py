"""The environment of all product code: time, waiting, randomness and threads.

Product code is handed an `Env` and reaches the outside only through it. So the same code runs on the wall
clock and real threads (`SystemEnv`), on a clock that a test moves by hand (`ManualEnv`), and on greenlets
with virtual time in the simulator. This is the only module of the core that reads a clock, sleeps, draws
random numbers or starts a thread; a tidy test checks that.

Two clocks, for two purposes: `wall_micros` may jump and is only ever compared with other
wall clocks; `monotonic` never goes back and measures waits.

A pool that bounds how many threads run at once gives each of its threads a `Place` (`holding`). A thread that
has to wait for other threads waits inside `waiting`, which gives the place up for that time.

Walk: `node.py` makes one and hands it to every part; nothing below imports upward.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol


class Event(Protocol):
    def set(self) -> None: ...
    def clear(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class Task(Protocol):
    def join(self, timeout: float | None = None) -> None: ...
    def is_alive(self) -> bool: ...


class Place(Protocol):
    """A thread's right to run, given out by a pool that bounds how many threads run at once."""

    def leave(self) -> None: ...
    def come_back(self, *, at_once: bool) -> None:
        """Blocks until the pool has room again; with `at_once` it returns immediately, even if the pool is
        full.
        """


class Env(Protocol):
    rng: random.Random

    def wall_micros(self) -> int: ...
    def monotonic(self) -> float: ...
    def thread_seconds(self) -> float:
        """How long the calling thread has computed: without what it has waited."""
        ...

    def sleep(self, seconds: float) -> None: ...
    def event(self) -> Event: ...
    def lock(self) -> AbstractContextManager[object]: ...
    def reentrant_lock(self) -> AbstractContextManager[object]: ...
    def spawn(self, name: str, run: Callable[[], None]) -> Task: ...
    def holding(self, place: Place) -> AbstractContextManager[object]:
        """The calling thread runs under this place while the context is entered."""
        ...

    def waiting(self, *, holds: bool = False) -> AbstractContextManager[object]:
        """Wraps a wait for other threads that may take long. The thread gives its place up meanwhile and
        queues for one afterwards. With `holds`, the thread holds something that all others need, and does not
        queue.
        """
        ...


NO_PLACE = nullcontext()


class SystemEnv:
    """The machine's clocks, threads and entropy."""

    def __init__(self) -> None:
        self.rng: random.Random = random.SystemRandom()
        self._thread = threading.local()

    def wall_micros(self) -> int:
        return time.time_ns() // 1000

    # Bound directly, without a method around it: every statement reads the clock several times.
    monotonic = staticmethod(time.monotonic)
    thread_seconds = staticmethod(time.thread_time)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def event(self) -> Event:
        return threading.Event()

    def lock(self) -> AbstractContextManager[object]:
        return threading.Lock()

    def reentrant_lock(self) -> AbstractContextManager[object]:
        """For code that a destructor may call: a destructor can run while its thread holds the lock."""
        return threading.RLock()

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    @contextmanager
    def holding(self, place: Place) -> Iterator[None]:
        self._thread.place = place
        try:
            yield
        finally:
            self._thread.place = None

    def waiting(self, *, holds: bool = False) -> AbstractContextManager[object]:
        place = getattr(self._thread, "place", None)
        return NO_PLACE if place is None else self._away_from(place, at_once=holds)

    @contextmanager
    def _away_from(self, place: Place, *, at_once: bool) -> Iterator[None]:
        """Meanwhile the thread has no place, so a wait within this one gives up nothing."""
        self._thread.place = None
        place.leave()
        try:
            yield
        except BaseException:
            at_once = True  # the thread has little left to do
            raise
        finally:
            place.come_back(at_once=at_once)
            self._thread.place = place


class ManualEnv:
    """Time that stands still until a test moves it; every wait is over at once.

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

    def thread_seconds(self) -> float:
        return 0.0

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

    def reentrant_lock(self) -> AbstractContextManager[object]:
        return threading.RLock()

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        run()
        return _EndedTask()

    def holding(self, place: Place) -> AbstractContextManager[object]:
        return NO_PLACE

    def waiting(self, *, holds: bool = False) -> AbstractContextManager[object]:
        return NO_PLACE


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
