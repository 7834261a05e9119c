"""Trying again: how many attempts a piece of work has, and how long it pauses between them.

    attempt ──► done
       │ failed: `failed(error)` raises the error if that was the last attempt
       └──► pause, ever longer up to a bound, spread at random so that rivals part ──► attempt

The loop itself stays with its owner, which knows what an attempt is and what to undo after it:

    retries = Retries(10, PAUSES, env)
    while True:
        try:
            return attempt()
        except RetryError as error:
            retries.failed(error)
        retries.pause()

A wait that can be interrupted is the owner's `sleep`: a statement that is canceled during a pause raises from
it. An owner that waits for an event calls `next_seconds` and waits itself.

Walk: `kv.store`, `kv.commits`, `storage.postgres.listener`, `schema_change.in_transaction` and the SQL
session make a `Retries` each; `base.loops` and `cluster.jobs.attempts` call `grown_seconds`.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenure.base.env import Env

DOUBLINGS_MAX = 30
"""The exponent is bounded as well: after days of failures the power would not fit a float."""


class Pauses(NamedTuple):
    """How long the pauses between attempts are: each twice as long as the one before."""

    first_seconds: float
    seconds_max: float
    spread: float = 1.0
    """The fraction of a pause that is random, from 0 to 1."""


NO_PAUSES = Pauses(0.0, 0.0)

UNLIMITED = -1


class Retries:
    """The attempts of one piece of work."""

    __slots__ = ("_env", "_failures", "_left", "_pauses", "_sleep")

    def __init__(
        self,
        attempts: int,
        pauses: Pauses = NO_PAUSES,
        env: Env | None = None,
        *,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """`env` may be left out if there are no pauses."""
        assert env is not None or pauses is NO_PAUSES
        self._left = attempts
        self._pauses = pauses
        self._env = env
        self._sleep = sleep
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Counts a failed attempt; raises its error if no attempt is left."""
        self._left -= 1
        if self._left == 0:
            raise error

    def pause(self) -> None:
        """Waits before the next attempt."""
        if self._env is not None:
            (self._sleep or self._env.sleep)(self.next_seconds())

    def next_seconds(self) -> float:
        """How long to wait before the next attempt; each call is a longer pause."""
        assert self._env is not None
        first_seconds, seconds_max, spread = self._pauses
        longest_seconds = grown_seconds(self._failures, first_seconds, seconds_max)
        self._failures += 1
        return longest_seconds * (1.0 - self._env.rng.uniform(0.0, spread))

    def succeeded(self) -> None:
        """Lets the pauses begin anew, for work that is done again and again."""
        self._failures = 0


def grown_seconds(failures: int, first_seconds: float, seconds_max: float) -> float:
    """How long to wait after so many earlier failures in a row."""
    return min(seconds_max, first_seconds * 2.0 ** min(failures, DOUBLINGS_MAX))
