"""A node's clock: hybrid logical readings, and how far the wall clock may be off.

    reading = max(wall clock, greatest timestamp seen) and always above the last reading

Invariant (I1): readings strictly increase, also when the wall clock jumps back, and a reading
after `observe(at)` is above `at`.
Invariant (I6): a wall clock more than `max_offset` ahead of the engine's commits nothing. The
offset is measured against the engine's wall clock, never against the store clock, which stands
still when nobody writes. A clock that is behind is harmless: the store clock carries it along.

A commit takes `wall_at`, the bare wall clock, because the store clock is itself the hybrid
clock that all nodes share: `commit_at = max(store clock + 1, wall_at)`. A reading that a
forward jump has spoiled therefore spoils no commit once the wall clock is right again.

Walk: `kv.commits` sends `wall_at` with each group; all of `kv` observes the timestamps it gets back.
"""

from collections.abc import Callable

from tenure.base.env import Env
from tenure.base.errors import ClockAhead
from tenure.base.timestamp import Timestamp, from_micros


class Clock:
    def __init__(self, env: Env, wall_micros: Callable[[], int] | None = None) -> None:
        """`wall_micros`: another wall clock than the machine's."""
        self._wall_micros = wall_micros or env.wall_micros
        self._lock = env.lock()
        self._last_at: Timestamp = 0

    def wall_at(self) -> Timestamp:
        return from_micros(self._wall_micros())

    def now(self) -> Timestamp:
        with self._lock:
            self._last_at = max(self._last_at + 1, self.wall_at())
            return self._last_at

    def observe(self, at: Timestamp) -> None:
        # Most reads bring nothing new; it only ever rises, so the first look needs no lock.
        if at > self._last_at:
            with self._lock:
                self._last_at = max(self._last_at, at)


def check_offset(*, node_micros: int, engine_micros: int, max_offset_micros: int) -> None:
    """Raises ClockAhead if the node's wall clock is too far ahead of the engine's."""
    ahead_micros = node_micros - engine_micros
    if ahead_micros > max_offset_micros:
        raise ClockAhead(
            f"this node's clock is {ahead_micros / 1000:.3f} ms ahead of the store's, "
            f"more than max_offset ({max_offset_micros / 1000:.3f} ms): commits are refused",
            hint="Correct this machine's clock (run NTP or chrony); commits go on by themselves then.",
        )
