"""The pace of a round: pauses after its commits, its time, and its reports.

Others are busy if the store's clock has moved between the end of a commit and the end of the pause after it:
every commit moves it, in all processes. While they are, a pause lasts as long as the commit before it. While
nobody else commits, a pause is short, and long enough for a commit that has waited to be noticed.

Walk: `retention.sweeping.job` makes one for each run; rounds commit within `commit`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.cluster.jobs.runs import Run
from tenure.kv.store import Store

BUSY_SHARE, QUIET_SHARE = 1.0, 0.1
"""A pause lasts so many times the commit before it: others have the section at least half of the time if they
use it.
"""

PAUSE_SECONDS_MAX = 0.5
"""A commit that had to wait for the section itself must not stop the round for long."""

TELL_SECONDS = 2.0
"""The time between two reports: each is a revision that must be removed, too."""


class SweepPace:
    def __init__(self, store: Store, run: Run, seconds_max: float | None = None) -> None:
        """`seconds_max`: how long the round may take; None: as long as it needs."""
        self._env = env = store.env
        self._clock_at = store.engine.clock_at
        self._run = run
        self._ends = None if seconds_max is None else env.monotonic() + seconds_max
        self._last_report = env.monotonic()
        self.is_busy = True
        """Whether others have committed since the commit before; until that is known, they may."""
        self.seconds = 0.0
        """How long the last commit took."""

    @contextmanager
    def commit(self) -> Iterator[None]:
        began = self._env.monotonic()
        yield
        self.seconds = self._env.monotonic() - began
        ended_at = self._clock_at()
        share = BUSY_SHARE if self.is_busy else QUIET_SHARE
        self._run.sleep(min(self.seconds * share, PAUSE_SECONDS_MAX))
        self.is_busy = self._clock_at() > ended_at

    def has_time(self) -> bool:
        return self._ends is None or self._env.monotonic() < self._ends

    def tell(self, status: str) -> None:
        """Reports how far the round is, now and then."""
        if self._env.monotonic() >= self._last_report + TELL_SECONDS:
            self._last_report = self._env.monotonic()
            self._run.checkpoint(fraction=0.5, status=status)
