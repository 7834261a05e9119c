"""The hub: one thread, greenlets for tasks, and a clock that jumps from event to event.

    heap of (t, tie-break, seq, task) ──► the earliest task runs until it waits ──► heap

Tasks that are due at the same time run in the order of a tie-break from the tape: that is the
explorer of interleavings. A task gives way at its waits only, so whatever lies between two of
them is atomic.

A machine (a node's computer) has a wall clock of its own, which may be off, jump, drift or stand
still; it can be paused (all its events are put off) and can lose power: then its tasks are
forgotten as they stand, no `finally` runs, and what was in memory is gone.

Walk: `cluster.run` makes a `Hub`, spawns tasks and calls `run`; product code gets `SimEnv`.
"""

import hashlib
import random
import struct
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from heapq import heappop, heappush
from typing import NoReturn

from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]

from tenure.base.env import Place
from tests.simulation.tape import Tape, TapeRandom

EPOCH_MICROS = 1_700_000_000_000_000
"""What the hosts' right clocks show when a run begins."""

STEPS_AT_ONCE_MAX = 20_000
"""Steps without any time passing: more means that tasks wake one another for ever."""

_STEP = struct.Struct("<dI")


DOOMED_SITES = frozenset({"event", "commit", "commit answered"})
"""Where a task that is doomed may be stopped: in these waits a commit spends its time."""


class Cancelled(BaseException):
    """Thrown into a client's task at one of its waits."""


class Task:
    """A greenlet, the machine it runs on, and what it waits for."""

    def __init__(self, hub: "Hub", machine: "Machine | None", name: str, run: Callable[[], None]) -> None:
        self.hub = hub
        self.machine = machine
        self.name = name
        self.site = "start"
        self.token = 0
        self.is_over = False
        self.thrown: BaseException | None = None
        self.is_doomed = False
        """Whether it is to be stopped at one of the next waits of a commit."""
        self._run = run
        self._joiners: list[SimEvent] = []
        self.greenlet = greenlet(self._main, hub.main)

    def _main(self) -> None:
        try:
            self._run()
        except (Cancelled, GreenletExit):
            pass
        except BaseException as error:
            self.hub.crashed.append((self.name, error))
        self.is_over = True
        if self.machine is not None:
            self.machine.tasks.discard(self)
        for event in self._joiners:
            event.set()

    def is_alive(self) -> bool:
        return not self.is_over

    def join(self, timeout: float | None = None) -> None:
        if not self.is_over:
            event = SimEvent(self.hub)
            self._joiners.append(event)
            event.wait(timeout)


class _Call:
    """An event of the world outside the machines: a message that arrives, a fault that begins."""

    machine = None
    site = "call"
    is_over = False
    token = 0

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run


class Hub:
    current: "Hub | None" = None
    """The hub of the run under way, for mutants that need a switch where product code has none."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.t = 0.0
        self.steps = 0
        self._steps_then = 0
        self.main = getcurrent()
        self.task: Task | None = None
        self.is_closed = False
        self.crashed: list[tuple[str, BaseException]] = []
        self._heap: list[tuple[float, float, int, Task | _Call, int]] = []
        self._seq = 0
        self._trace = bytearray()
        self._tasks: list[Task] = []
        """All there ever were: a greenlet that is freed would run its finally blocks."""
        Hub.current = self

    def spawn(self, machine: "Machine | None", name: str, run: Callable[[], None]) -> Task:
        task = Task(self, machine, name, run)
        self._tasks.append(task)
        if machine is not None:
            machine.tasks.add(task)
        self.schedule(0.0, task)
        return task

    def call_later(self, delay: float, run: Callable[[], None]) -> None:
        self.schedule(delay, _Call(run))

    def schedule(self, delay: float, task: "Task | _Call") -> None:
        self._seq += 1
        # A tie-break matters among equals only; delays that were drawn differ by themselves.
        tie = self.tape.draw("tie") if delay == 0.0 else 0.0
        heappush(self._heap, (self.t + delay, tie, self._seq, task, task.token))

    def run(self, until: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until:
            t, tie, seq, task, token = heappop(heap)
            if task.is_over or task.token != token:
                continue  # it was woken otherwise, or its machine lost power
            machine = task.machine
            if machine is not None and machine.paused_until > t:
                heappush(heap, (machine.paused_until, tie, seq, task, token))
                continue
            if t > self.t:
                self._steps_then = self.steps
            elif self.steps - self._steps_then > STEPS_AT_ONCE_MAX:
                self.crashed.append((getattr(task, "name", "call"), RuntimeError("time stands still")))
                heap.clear()
                break
            self.t = t
            self.steps += 1
            self._trace += _STEP.pack(t, seq)
            self._trace += task.site.encode()
            if isinstance(task, Task):
                task.token += 1
                self.task = task
                task.greenlet.switch()
                self.task = None
            else:
                task.run()
        self.t = max(self.t, until)

    def sleep(self, seconds: float, site: str) -> None:
        task = self.task
        assert task is not None, f"{site}: nothing outside a task can wait"
        self.schedule(seconds, task)
        self._give_way(task, site)

    def park(self, site: str, timeout: float | None) -> None:
        """Waits until somebody schedules this task again, or for `timeout`."""
        task = self.task
        assert task is not None, f"{site}: nothing outside a task can wait"
        if timeout is not None:
            self.schedule(max(timeout, 0.0), task)
        self._give_way(task, site)

    def _give_way(self, task: Task, site: str) -> None:
        if self.is_closed:
            raise GreenletExit
        task.site = site
        self.main.switch()
        if task.is_doomed and site in DOOMED_SITES and self.tape.chance(f"{task.name}.stopped", 0.4):
            task.is_doomed, task.thrown = False, Cancelled()
        if task.thrown is not None:
            error, task.thrown = task.thrown, None
            raise error

    def cut_power(self, machine: "Machine") -> None:
        """Forgets the machine's tasks. Does not return if the one that calls is among them."""
        machine.is_up = False
        machine.generation += 1
        for task in machine.tasks:
            task.is_over = True
        machine.tasks.clear()
        if self.task is not None and self.task.machine is machine:
            self._vanish()

    def _vanish(self) -> NoReturn:
        self.main.switch()
        raise GreenletExit

    def close(self) -> None:
        """Ends what is left, so that nothing of this run is alive in the next."""
        self.is_closed = True
        for task in self._tasks:
            if not task.greenlet.dead:
                self.task = task
                task.greenlet.throw(GreenletExit)
        self.task = None
        self._heap.clear()
        self._tasks.clear()

    def trace_hash(self) -> str:
        return hashlib.blake2b(bytes(self._trace), digest_size=16).hexdigest()


class Machine:
    """A node's computer: its power, its pauses and its wall clock."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.hub = hub
        self.name = name
        self.tasks: set[Task] = set()
        self.is_up = True
        self.generation = 0
        self.paused_until = 0.0
        self._since = 0.0
        self._wall_then = 0.0
        self._rate = 1.0
        self._ahead_seconds = 0.0

    def wall_seconds(self) -> float:
        return self._wall_then + (self.hub.t - self._since) * self._rate

    def ahead_seconds(self) -> float:
        """How far ahead of the right time it has been at most: its readings do not come back from there."""
        self._ahead_seconds = max(self._ahead_seconds, self.wall_seconds() - self.hub.t)
        return self._ahead_seconds

    def set_clock(self, *, jump: float = 0.0, rate: float = 1.0) -> None:
        self.ahead_seconds()
        self._wall_then = self.wall_seconds() + jump
        self._since = self.hub.t
        self._rate = rate
        self.ahead_seconds()

    def set_right(self) -> None:
        self.ahead_seconds()
        self._wall_then, self._since, self._rate = self.hub.t, self.hub.t, 1.0


class SimEnv:
    """What product code on a simulated machine gets: see `tenure.base.env`."""

    def __init__(self, hub: Hub, machine: Machine) -> None:
        self._hub = hub
        self._machine = machine
        self.rng: random.Random = TapeRandom(hub.tape, f"{machine.name}.rng")

    def wall_micros(self) -> int:
        return EPOCH_MICROS + int(self._machine.wall_seconds() * 1_000_000)

    def monotonic(self) -> float:
        return self._hub.t

    def thread_seconds(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self._hub.sleep(seconds, "sleep")

    def event(self) -> "SimEvent":
        return SimEvent(self._hub)

    def lock(self) -> "SimLock":
        return SimLock(self._hub)

    def reentrant_lock(self) -> "SimLock":
        return self.lock()  # no destructor runs under one here

    def spawn(self, name: str, run: Callable[[], None]) -> Task:
        return self._hub.spawn(self._machine, f"{self._machine.name}.{name}", run)

    def holding(self, place: Place) -> AbstractContextManager[object]:
        return nullcontext()

    def waiting(self, *, holds: bool = False) -> AbstractContextManager[object]:
        return nullcontext()


class HostEnv(SimEnv):
    """The environment of the shared engine: the right time, and lane names that never collide."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub, Machine(hub, "host"))
        self.rng = random.Random(hub.tape.seed)


class SimEvent:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._is_set = False
        self._waiters: list[Task] = []

    def set(self) -> None:
        self._is_set = True
        waiters, self._waiters = self._waiters, []
        for task in waiters:
            self._hub.schedule(0.0, task)

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            task = self._hub.task
            assert task is not None
            self._waiters.append(task)
            try:
                self._hub.park("event", timeout)
            finally:
                if task in self._waiters:
                    self._waiters.remove(task)
        return self._is_set


class SimLock:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._is_held = False
        self._waiters: deque[Task] = deque()

    def __enter__(self) -> None:
        while self._is_held:
            task = self._hub.task
            assert task is not None
            self._waiters.append(task)
            self._hub.park("lock", None)
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        while self._waiters:
            task = self._waiters.popleft()
            if not task.is_over:
                self._hub.schedule(0.0, task)
                return
