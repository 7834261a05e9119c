"""Failed flushes are retried, but not at once: a damaged file does not improve by reading it.

    a flush of an index fails      the next is due after a minute, then two, four, ... at most an hour
    one succeeds                   the failures are forgotten

Each node records the flushes that it has started itself. Other indexes do not wait.

Walk: `bulk.upkeep` calls `may_try` before it starts a flush, then `started`, and looks again at indexes that
are `due`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tenure.base.env import Env
from tenure.base.retries import grown_seconds
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Jobs
from tenure.kv.store import Store

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 60.0, 3_600.0

_FAILED = (JobState.FAILED, JobState.REVERT_FAILED)


class _Flush(NamedTuple):
    """The last flush of an index."""

    job: int
    failures: int = 0
    """The number of consecutive failures before this one."""
    due: float | None = None
    """When the next may be tried, by the monotonic clock; None as long as it is not known to have failed."""


class FlushPauses:
    def __init__(self, env: Env, store: Store, jobs: Jobs) -> None:
        self._env = env
        self._store = store
        self._jobs = jobs
        self._flushes: dict[bytes, _Flush] = {}

    def may_try(self, head: bytes) -> bool:
        flush = self._flushes.get(head)
        if flush is None:
            return True
        if flush.due is None:
            control = self._jobs.control(self._store.snapshot(), flush.job)
            if control is None or control.state not in _FAILED:
                if not self._jobs.is_open(self._store.snapshot(), flush.job):
                    del self._flushes[head]
                return True
            seconds = grown_seconds(flush.failures, PAUSE_SECONDS, PAUSE_SECONDS_MAX)
            flush = self._flushes[head] = flush._replace(due=self._env.monotonic() + seconds)
        assert flush.due is not None
        return self._env.monotonic() >= flush.due

    def started(self, head: bytes, job: int) -> None:
        former = self._flushes.get(head)
        has_failed = former is not None and former.due is not None
        self._flushes[head] = _Flush(job, former.failures + 1 if former and has_failed else 0)

    def due(self) -> Iterator[bytes]:
        """Indexes whose pause is over: there may be no writes to them meanwhile that would trigger a
        flush.
        """
        now = self._env.monotonic()
        for head, flush in list(self._flushes.items()):
            if flush.due is not None and flush.due <= now:
                yield head
