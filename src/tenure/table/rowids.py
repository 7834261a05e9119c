"""Row ids for tables without a primary key: unique, and roughly in the order of insertion.

    | 48 bits: tens of microseconds since 1970 | 15 bits: instance |

Two nodes never make the same one while their instance ids differ, and one node never makes one
twice: it goes on from the last if its clock has not moved. A node that makes many at a time may run ahead of
its clock, but not far: a process that takes over its instance id must find a later time.

Walk: `composition.table_layer` makes one `RowIds` per node; unique_rowid() in a column's default calls it,
and writers of many rows take many at a time.
"""

from collections.abc import Callable, Sequence

from tenure.base.clock import Clock
from tenure.base.env import Env
from tenure.base.timestamp import micros_of

INSTANCE_BITS = 15
TICK_MICROS = 10

LEAD_MICROS_MAX = 500_000
"""How far ids may run ahead of the clock: less than a process needs to start."""


class RowIds:
    def __init__(self, env: Env, clock: Clock, instance: Callable[[], int]) -> None:
        self._env = env
        self._lock = env.lock()
        self._clock = clock
        self._instance = instance
        self._last = 0

    def __call__(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> Sequence[int]:
        """So many new ids, in order; waits if that would run too far ahead of the clock."""
        with self._lock:
            now_tick = micros_of(self._clock.now()) // TICK_MICROS
            first = max(now_tick, self._last + 1)
            self._last = first + count - 1
            instance = self._instance() & ((1 << INSTANCE_BITS) - 1)
            lead_micros = (self._last - now_tick) * TICK_MICROS
        if lead_micros > LEAD_MICROS_MAX:
            self._env.sleep((lead_micros - LEAD_MICROS_MAX) / 1e6)
        step = 1 << INSTANCE_BITS
        return range(first * step + instance, (first + count) * step + instance, step)
