"""Deletes ended jobs after a while: one bounded batch per step.

Walk: `composition.background` runs `step` in a loop; it calls `Jobs.forget_ended`.
"""

from collections.abc import Callable

from tenure.base.errors import TooEarly
from tenure.base.settings import JOBS_RETENTION, Settings
from tenure.base.timestamp import add_seconds, from_micros
from tenure.cluster.jobs.job_table import Jobs
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

BATCH_JOBS = 200
"""Jobs read in one transaction: a short one, since others may be ending jobs meanwhile."""


class JobRetention:
    def __init__(self, store: Store, jobs: Jobs, settings: Callable[[], Settings]) -> None:
        self._store = store
        self._jobs = jobs
        self._settings = settings
        self._after = 0

    def step(self) -> float | None:
        """Checks the next batch; returns 0 while there is more, None at the end of a round."""
        # By the clock that is behind: this node's own clock may have jumped ahead.
        now_at = min(from_micros(self._store.engine.wall_micros()), self._store.clock.wall_at())
        before_at = add_seconds(now_at, -self._settings()[JOBS_RETENTION])

        def forget(txn: Transaction) -> int | None:
            after = self._jobs.forget_ended(txn, before_at, after=self._after, limit=BATCH_JOBS)
            if txn.has_writes:  # else it is decided as of the store clock, which may stand still
                txn.not_before_at = now_at - 1
            return after

        try:
            after = self._store.transact(forget)
        except TooEarly:
            return None  # the clock went back; deleting can wait
        self._after = after or 0
        return None if after is None else 0.0
