"""The schedule of sweeps: every node asks now and then whether one is due, and one of them starts it.

Walk: `composition.background` runs `step` in a loop -> `job.start_round`.
"""

from collections.abc import Callable

from tenure.base.settings import GC_INTERVAL
from tenure.retention.sweeping.job import start_round
from tenure.retention.sweeping.services import SweepServices

LOOK_SECONDS = 1.0
"""How soon a shorter interval counts."""


class SweepSchedule:
    def __init__(self, services: SweepServices, is_finalized: Callable[[], bool]) -> None:
        """Nodes of an older version do not know collected objects: until `is_finalized`, nothing is swept."""
        self._services = services
        self._is_finalized = is_finalized
        self._env = services.store.env
        self._last_look = self._env.monotonic()

    def step(self) -> float:
        """Starts a round if one is due; a node that has just started waits for an interval first."""
        interval = self._services.settings()[GC_INTERVAL]
        left = self._last_look + interval - self._env.monotonic()
        if left > 0:
            return min(left, LOOK_SECONDS)
        self._last_look = self._env.monotonic()
        if self._is_finalized():
            self._services.store.transact(lambda txn: start_round(txn, self._services))
        return min(interval, LOOK_SECONDS)
