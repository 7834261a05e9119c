"""Jobs of a node that is stopped in their middle for longer than history is kept, and goes on.

A quiet machine does a job in less time than it takes to see it. So while the work is under way its node runs
in slices of some milliseconds, and its jobs are looked at, in the store, only while it is stopped: what is
seen then stays so.

    slice ─ stop ─ look: not yet ─ slice ─ stop ─ look: in its middle ─ the ttl passes, a sweep ─ continue

Any node may adopt a job. Where nothing of the other node is needed, it is stopped until the job is caught.
The sweep at the end of a stop is asked for after the node was stopped, so the other node does it.

Walk: `sql_short_history` -> `Outlasting.job` -> `node_stops.stop_outside_section`.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tenure.base.env import SystemEnv
from tenure.cluster.jobs.job_records import JobProgress
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tests.faults.harness import Result
from tests.faults.node_stops import stop_outside_section
from tests.faults.sql_nodes import SqlNodes

SLICE_SECONDS = 0.01
ATTEMPTS = 20
"""How often a piece of work is begun: its job may end within a slice, or be adopted by the other node."""

Begin = Callable[[int], threading.Thread]
"""Begins a piece of work, with a new number each time; returns the thread that waits for its end."""


class Outlasting:
    def __init__(self, nodes: SqlNodes, result: Result, *, front: str, worker: str, seconds: float) -> None:
        """`worker` is stopped for so many seconds; `front` sweeps."""
        self._nodes, self._result = nodes, result
        self._front, self._worker, self._seconds = front, worker, seconds
        self._store = Store(open_engine(nodes.store, SystemEnv()), SystemEnv())
        self._jobs = Jobs(self._store.keyspace, Sessions(self._store.keyspace), self._store.clock)
        self._begun = 0
        self.stops = 0

    def close(self) -> None:
        self._store.close()
        self._store.engine.close()

    def job(
        self, kind: str, begin: Begin, is_in_its_middle: Callable[[JobProgress], bool], *, alone: bool = False
    ) -> None:
        """Begins a piece of work until a job of it was stopped in its middle; `alone`: without the front."""
        for _ in range(ATTEMPTS):
            self._begun += 1
            with self._stopped(self._front) if alone else nullcontext():
                thread = begin(self._begun)
                is_caught = self._catch(thread, lambda: any(map(is_in_its_middle, self._running(kind))))
            try:
                if is_caught:
                    self._outlast()
                    return
            finally:
                self._nodes.signal(self._worker, signal.SIGCONT)
                thread.join()
        self._result.require(False, f"no {kind} could be stopped in its middle")

    def has_open(self, kind: str) -> bool:
        """Whether a job of a kind has not ended, whoever runs it."""
        return any(control.kind == kind for control in self._jobs.open(self._store.snapshot()))

    def _catch(self, thread: threading.Thread, is_in_its_middle: Callable[[], bool]) -> bool:
        """Runs the worker in slices until the work has ended, or it is stopped in its middle."""
        while thread.is_alive():
            self._nodes.signal(self._worker, signal.SIGCONT)
            time.sleep(SLICE_SECONDS)
            self._stop(self._worker)
            if is_in_its_middle():
                return True
        return False

    def _running(self, kind: str) -> Iterator[JobProgress]:
        """The jobs of a kind that the worker runs."""
        snapshot, worker = self._store.snapshot(), self._nodes.instances[self._worker]
        for control in self._jobs.open(snapshot):
            if (control.kind, control.state, control.claim_instance) == (kind, JobState.RUNNING, worker):
                yield self._jobs.progress(snapshot, control.id)

    def _outlast(self) -> None:
        time.sleep(self._seconds)
        self._nodes.execute(self._front, "RUN GC NOW")
        self.stops += 1

    @contextmanager
    def _stopped(self, name: str) -> Iterator[None]:
        self._stop(name)
        try:
            yield
        finally:
            self._nodes.signal(name, signal.SIGCONT)

    def _stop(self, name: str) -> None:
        stop_outside_section(self._nodes.process(name), self._nodes.store)


class NewFiles:
    """Whether files have come to a directory since this was made."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._former = self._files()

    def __call__(self, progress: JobProgress) -> bool:
        return bool(self._files() - self._former)

    def _files(self) -> frozenset[Path]:
        return frozenset(self._directory.rglob("*.parquet*"))
