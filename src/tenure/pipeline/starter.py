"""Starts a worker when a job needs Spark and no process has it.

    a job lacks Spark here ──► has any instance got it? ──► no: wait for this node's turn ──► start a worker

Nodes take turns by their instance ids: the first starts one at once, the next only if there is still none
after a while. So as a rule one serves all; two would do no harm, since jobs are claimed.

The worker is a process of its own: it holds its jobs by its own session, and if it is killed the next one
adopts them. It ends when it has been idle for a while, and with the node that started it.

`trouble` reports why no worker runs, for SHOW JOBS and for statements that wait for such a job.

Walk: `composition.background` runs `step` in a loop and calls `stop` when it drains; the command is `cli`'s.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Protocol

from tenure.base.errors import NoJava
from tenure.base.retries import grown_seconds
from tenure.base.timestamp import Timestamp
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import Instance, SessionId, Sessions
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.pipeline.java import find_java
from tenure.pipeline.tasks import SPARK

LOOK_SECONDS = 0.5
TURN_SECONDS = 5.0
"""How long a node waits for the one before it: a worker registers within a second or two."""

AGAIN_SECONDS, AGAIN_SECONDS_MAX = 5.0, 300.0
"""The pause before another worker is started after one that failed: doubled each time, up to the second."""

STOP_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Process(Protocol):
    @property
    def pid(self) -> int: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class WorkerStarter:
    def __init__(
        self,
        store: Store,
        sessions: Sessions,
        session: Callable[[], NodeSession],
        lacks: Callable[[str], bool],
        start: Callable[[], Process],
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._session = session
        self._lacks = lacks
        self._start = start
        self._worker: Process | None = None
        self._lacking_since: float | None = None
        self._not_before = 0.0
        self._failures = 0
        self.trouble = ""
        """Why the last worker could not be started, or failed; empty once there is one, or none is wanted."""

    def step(self) -> float:
        """Checks whether a worker is needed, and starts one; returns the seconds to the next check."""
        self._notice_end()
        now = self._store.env.monotonic()
        if not self._lacks(SPARK):
            self._lacking_since, self.trouble = None, ""
            return LOOK_SECONDS
        if self._lacking_since is None:
            self._lacking_since = now
        waited = now - self._lacking_since
        if self._worker is None and now >= self._not_before and self._is_our_turn(waited):
            self._try_to_start()
        return LOOK_SECONDS

    def _is_our_turn(self, waited_seconds: float) -> bool:
        snapshot, now_at = self._store.snapshot(), self._store.clock.now()
        instances = list(self._sessions.instances.scan(snapshot))
        present = [each for each in instances if not each.draining and self._is_there(snapshot, each, now_at)]
        if any(SPARK in each.has for each in present):
            self.trouble = ""
            return False
        before = sum(each.id < self._session().id.instance for each in present)
        return waited_seconds >= before * TURN_SECONDS

    def _is_there(self, snapshot: Snapshot, instance: Instance, now_at: Timestamp) -> bool:
        present = self._sessions.find(snapshot, SessionId(instance.id, instance.epoch_at))
        return present is not None and present.expires_at > now_at

    def _try_to_start(self) -> None:
        try:
            find_java(os.environ)
            self._worker = self._start()
        except (NoJava, OSError) as error:
            hint = getattr(error, "hint", "")
            self._put_off(f"{error}. {hint}".strip())
        else:
            _log.info("started a worker for jobs that need Spark, process %d", self._worker.pid)

    def _notice_end(self) -> None:
        if self._worker is None or (code := self._worker.poll()) is None:
            return
        _log.info("the worker, process %d, ended with %d", self._worker.pid, code)
        _close_input(self._worker)
        self._worker = None
        if code:
            self._put_off(f"the worker that was started ended with {code}, its log says why")
        else:
            self._failures, self.trouble = 0, ""

    def _put_off(self, why: str) -> None:
        self.trouble = why
        _log.warning("a job waits for a process with Spark, and none can be started: %s", why)
        pause_seconds = grown_seconds(self._failures, AGAIN_SECONDS, AGAIN_SECONDS_MAX)
        self._not_before = self._store.env.monotonic() + pause_seconds
        self._failures += 1

    def stop(self) -> None:
        """Drains the worker that was started here: stopping a node leaves none of its processes running."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.terminate()
        try:
            worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        _close_input(worker)


def _close_input(worker: Process) -> None:
    """Closes the pipe by which the worker knows that this process lives."""
    if worker.stdin is not None:
        worker.stdin.close()


def spawn(command: Sequence[str], environ: Mapping[str, str]) -> Process:
    # A group of its own: Ctrl-C reaches the node alone, which then stops its worker. Its log is the node's.
    # Its input is a pipe that this process holds: when it is killed, the worker ends too.
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environ, start_new_session=True
    )
