"""Worker processes of one side, ours or the peer's, and what they report.

    the benchmark ──► start ──► process: serve(duty, pipe) ──► "ready"
                  ◄── Claimed, one for each run that begins
                  ──► stop, or SIGKILL, SIGSTOP, SIGCONT

What a job does is the worker's duty: COUNT adds one to the worker's own counter and is over, HOLD
says that it was claimed and lasts until its worker dies (a later run of it is over at once),
EFFECT says so too, waits, and then has its effect. Counters lie in shared memory without a lock, and
each worker has a pipe of its own, so a worker that is killed leaves nothing locked.

Walk: the modules of `bench.jobs` make one `Crew` for each side; `ours.serve`, `peer.serve` run in it.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from ctypes import c_int64
from enum import Enum
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple, Protocol

LOST_SECONDS = 60.0
"""Longer than anything that is waited for takes, by far."""

_context = multiprocessing.get_context("spawn")


class Work(Enum):
    COUNT = "count"
    HOLD = "hold"
    EFFECT = "effect"


class Duty(NamedTuple):
    """What a worker gets; all of it goes to another process."""

    address: str
    work: Work
    runs_max: int
    ttl_seconds: float
    heartbeat_seconds: float


class Claimed(NamedTuple):
    """A run began."""

    job: int
    pid: int
    at_seconds: float
    """On the clock that all processes of a machine share."""


class Side(Protocol):
    """What a benchmark asks of ours and of the peer."""

    name: str

    def create(self, count: int) -> None:
        """Makes so many jobs in one transaction."""

    def tidy(self) -> None:
        """Vacuums and analyzes, as the server would do in its own time."""

    def unfinished(self) -> int: ...
    def effects(self) -> list[int]:
        """The job of every effect there is."""

    def close(self) -> None: ...


class Report:
    """The worker's end: tells the benchmark what its jobs do."""

    def __init__(self, pipe: "Connection[Any, Any]", counter: Any) -> None:
        self._pipe = pipe
        self._counter = counter
        self._lock = threading.Lock()

    def ready(self) -> None:
        self._pipe.send(None)

    def count(self) -> None:
        with self._lock:
            self._counter.value += 1

    def claimed(self, job: int) -> None:
        with self._lock:
            self._pipe.send(Claimed(job, os.getpid(), time.monotonic()))

    def await_stop(self) -> None:
        self._pipe.recv()


Serve = Callable[[Duty, "Connection[Any, Any]", Any], None]


class Worker(NamedTuple):
    process: SpawnProcess
    pipe: "Connection[Any, Any]"
    counter: Any

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


class Crew:
    """So many workers; they are stopped, or killed if they do not stop, with the crew."""

    def __init__(self, serve: Serve, duty: Duty) -> None:
        self._serve = serve
        self._duty = duty
        self.workers: list[Worker] = []

    def hire(self, count: int) -> list[Worker]:
        """Starts workers and waits until all of them are at work."""
        hired = [self._start() for _ in range(count)]
        for worker in hired:
            assert worker.pipe.poll(LOST_SECONDS), "a worker did not start"
            worker.pipe.recv()
        self.workers += hired
        return hired

    def _start(self) -> Worker:
        here, there = _context.Pipe()
        counter = _context.RawValue(c_int64, 0)
        process = _context.Process(target=self._serve, args=(self._duty, there, counter))
        process.start()
        there.close()
        return Worker(process, here, counter)

    def counted(self) -> int:
        return sum(worker.counter.value for worker in self.workers)

    def await_claims(self, count: int) -> list[Claimed]:
        """The next so many runs that begin, whoever begins them."""
        claims = self.claims_within(LOST_SECONDS, count)
        assert len(claims) == count, f"{count - len(claims)} jobs were not claimed"
        return claims

    def claims_within(self, seconds: float, count: int) -> list[Claimed]:
        claims: list[Claimed] = []
        deadline = time.monotonic() + seconds
        while len(claims) < count:
            pipes = wait([worker.pipe for worker in self.workers], max(0.0, deadline - time.monotonic()))
            if not pipes:
                break
            claims += [pipe.recv() for pipe in pipes if isinstance(pipe, Connection)]
        return claims

    def by_pid(self, pid: int) -> Worker:
        return next(worker for worker in self.workers if worker.process.pid == pid)

    def kill(self, worker: Worker) -> None:
        worker.signal(signal.SIGKILL)
        self.workers.remove(worker)
        worker.process.join()
        worker.pipe.close()

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.signal(signal.SIGCONT)
            worker.pipe.send(None)
        for worker in self.workers:
            worker.process.join(LOST_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self.workers.clear()


def await_finished(side: Side) -> None:
    deadline = time.monotonic() + LOST_SECONDS
    while side.unfinished():
        assert time.monotonic() < deadline, f"{side.name}: {side.unfinished()} jobs were not finished"
        time.sleep(0.005)
