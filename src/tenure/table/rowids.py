"""Row ids for tables without a primary key: unique, and roughly in the order of insertion.

    | 48 bits: tens of microseconds since 1970 | 15 bits: instance |

Two nodes never make the same one while their instance ids differ, and one node never makes one
twice: it goes on from the last if its clock has not moved.

Walk: `composition.table_layer` makes one `RowIds` per node; unique_rowid() in a column's default calls it.
"""

from collections.abc import Callable

from tenure.base.clock import Clock
from tenure.base.env import Env
from tenure.base.timestamp import micros_of

INSTANCE_BITS = 15
TICK_MICROS = 10


class RowIds:
    def __init__(self, env: Env, clock: Clock, instance: Callable[[], int]) -> None:
        self._lock = env.lock()
        self._clock = clock
        self._instance = instance
        self._last = 0

    def __call__(self) -> int:
        with self._lock:
            tick = micros_of(self._clock.now()) // TICK_MICROS
            self._last = max(tick, self._last + 1)
            return self._last << INSTANCE_BITS | self._instance() & ((1 << INSTANCE_BITS) - 1)
