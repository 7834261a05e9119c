"""Rows that a transaction has in memory as of its `read_at`: read ahead, or kept since they were read.

Rows that were read ahead do not count as read until they are used. A few rows that were used are kept: an
UPDATE finds its row and then reads it, and each read of a store in PostgreSQL is a round trip.

Walk: `kv.store_reads` looks here before it asks the store.
"""

from collections.abc import Callable, Container, Iterable, Sequence

KEPT_KEYS_MAX, KEPT_BYTES_MAX = 64, 8 * 1024
"""The most rows that are kept, and their size: half a megabyte for each transaction."""


class RowsAhead(dict[bytes, bytes | None]):
    """By key; None where there is no row."""

    __slots__ = ()

    def take(self, key: bytes, read: Callable[[], bytes | None]) -> bytes | None:
        """Returns a row, reading it if it is not in memory; it is kept unless there are many."""
        if key in self:
            return self[key] if len(self) <= KEPT_KEYS_MAX else self.pop(key)
        value = read()
        if len(self) < KEPT_KEYS_MAX and (value is None or len(value) <= KEPT_BYTES_MAX):
            self[key] = value
        return value

    def take_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Those of keys that are all in hand; they are kept unless there are many."""
        values = [self[key] for key in keys]
        if len(self) > KEPT_KEYS_MAX:
            for key in keys:
                self.pop(key, None)
        return values

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        return [key for key in keys if key not in self]

    def keep_only(self, proved: Container[bytes]) -> None:
        """Called when the time has moved up: only these keys are proved to be unchanged."""
        for key in [key for key in self if key not in proved]:
            del self[key]
