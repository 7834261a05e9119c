"""What a transaction has written and not committed: its newest write of each key, and the way back.

    mark ──► savepoint 0     put a, put b     mark ──► savepoint 1     put a, delete c
             undo[0]: a was ..., b was ...             undo[1]: a was ..., c was ...

Each savepoint opens a layer of what the keys were when they were first written after it. Going back
puts that back, newest layer first, so it costs what has changed since and not what was written before.
Without a savepoint nothing is noted.

Walk: `kv.transaction` keeps one per transaction.
"""

from bisect import bisect_left, insort
from typing import NamedTuple

from tenure.base.errors import CommitTooLarge
from tenure.kv.keys import KEY_BYTES_MAX, Span
from tenure.storage.engine import Removal, Write


class Limits(NamedTuple):
    """How much one commit may write; more is bulk work."""

    rows_max: int
    bytes_max: int


class Savepoint(NamedTuple):
    """A place in a transaction to go back to; gone once it went back to, or released, an earlier one."""

    depth: int
    removals: int


class Buffer:
    __slots__ = ("_bytes", "_limits", "_order", "_undo", "removals", "writes")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.writes: dict[bytes, Write] = {}
        self._order: list[bytes] = []
        """The keys of `writes`, sorted: a scan finds its part without walking them all."""
        self.removals: list[Removal] = []
        self._bytes = 0
        self._undo: list[dict[bytes, Write | None]] = []

    def write(self, write: Write) -> None:
        if len(write.key) > KEY_BYTES_MAX:
            raise CommitTooLarge(f"a key of {len(write.key)} bytes is longer than {KEY_BYTES_MAX}")
        former = self.writes.get(write.key)
        size = self._bytes + _size(write) - (0 if former is None else _size(former))
        rows = len(self.writes) + (former is None)
        if rows > self._limits.rows_max or size > self._limits.bytes_max:
            raise CommitTooLarge(
                f"a transaction may write {self._limits.rows_max} rows and {self._limits.bytes_max} bytes",
                hint="Split it, or use the bulk way: IMPORT, or a write from Spark.",
            )
        if self._undo:
            self._undo[-1].setdefault(write.key, former)
        if former is None:
            insort(self._order, write.key)
        self.writes[write.key] = write
        self._bytes = size

    def within(self, span: Span) -> dict[bytes, bytes | None]:
        """The writes of a span that can be read back: all but those whose key is not known yet."""
        first, end = (bisect_left(self._order, bound) for bound in span)
        writes = (self.writes[key] for key in self._order[first:end])
        return {write.key: write.value for write in writes if write.key_stamp is None}

    def mark(self) -> Savepoint:
        self._undo.append({})
        return Savepoint(len(self._undo) - 1, len(self.removals))

    def back_to(self, savepoint: Savepoint) -> None:
        """Forgets what was written since; the savepoint stays."""
        assert savepoint.depth < len(self._undo), "the savepoint is gone"
        while len(self._undo) > savepoint.depth:
            for key, former in self._undo.pop().items():
                self._restore(key, former)
        self._undo.append({})
        del self.removals[savepoint.removals :]

    def _restore(self, key: bytes, former: Write | None) -> None:
        self._bytes -= _size(self.writes[key])
        if former is None:
            del self.writes[key]
            del self._order[bisect_left(self._order, key)]
        else:
            self.writes[key] = former
            self._bytes += _size(former)

    def release(self, savepoint: Savepoint) -> None:
        """Keeps what was written since, and forgets the savepoint and those after it."""
        assert savepoint.depth < len(self._undo), "the savepoint is gone"
        while len(self._undo) > savepoint.depth:
            newer = self._undo.pop()
            if self._undo:
                for key, former in newer.items():
                    self._undo[-1].setdefault(key, former)


def _size(write: Write) -> int:
    return len(write.key) + len(write.value or b"")
