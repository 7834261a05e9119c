"""A transaction's uncommitted writes: the newest write of each key, and the former ones for savepoints.

    mark ──► savepoint 0     put a, put b     mark ──► savepoint 1     put a, delete c
             undo[0]: a was ..., b was ...             undo[1]: a was ..., c was ...

Each savepoint opens a layer that keeps the former write of each key that is first written after it. Going
back restores these, newest layer first, so it costs as much as was changed since the savepoint. Without a
savepoint no former writes are kept.

A **view** is the buffer as it was at one moment, for a cursor that reads on while the transaction writes.
Opening one costs nothing: each later change of a key, going back to a savepoint too, first notes the key's
former write in the newest view. An older view looks into its own notes, then into those of the views after
it, then into the buffer.

    view 1                  put a           view 2                  put a, put b
    notes: a was ...                        notes: a was ..., b was ...

The buffer reports its size before it grows (`account_to`): its writes, and the former writes that savepoints
and views keep. So a session that writes too much can be refused.

Walk: `kv.transaction` keeps one per transaction; `kv.view` reads a `BufferView`.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, KeysView, Sequence
from typing import NamedTuple
from weakref import ref

from tenure.base.errors import CommitTooLarge
from tenure.kv.keys import KEY_BYTES_MAX, Span
from tenure.storage.engine import Removal, Write

ENTRY_BYTES = 300
"""The memory of a write besides its key and value: objects, and its dictionary slots."""

KEYS_FEW = 16
"""Up to so many keys are put in their order one by one."""

GROWTH_BYTES = 256 * 1024
"""The growth after which the memory account is told again."""


class CommitLimits(NamedTuple):
    """How much one commit may write; more is bulk work."""

    rows_max: int
    bytes_max: int


class BufferMark(NamedTuple):
    """A point of a transaction to go back to; invalid after going back to, or releasing, an earlier one."""

    depth: int
    removals: int


class Buffer:
    __slots__ = (
        *("_bytes", "_limits", "_newest_view", "_noted_bytes", "_order", "_told_bytes", "_undo"),
        *("_undo_bytes", "_on_growth", "removals", "writes"),
    )

    def __init__(self, limits: CommitLimits) -> None:
        self._limits = limits
        self.writes: dict[bytes, Write] = {}
        self._order: list[bytes] = []
        """The keys of `writes`, sorted: a scan finds its span without walking them all."""
        self.removals: list[Removal] = []
        self._bytes = 0
        self._undo: list[dict[bytes, Write | None]] = []
        self._undo_bytes = 0
        self._noted_bytes = 0
        """The bytes of the views' notes."""
        self._on_growth: Callable[[int], None] | None = None
        self._told_bytes = GROWTH_BYTES
        """The size up to which it may grow without telling the account."""
        self._newest_view: ref[BufferView] | None = None
        """Weak: views without a reader need no notes. Older views keep the newer ones alive."""

    def account_to(self, on_growth: Callable[[int], None] | None) -> None:
        """From now on `on_growth` is told, now and then, how many bytes the buffer is about to hold; it
        raises if they are too many.
        """
        self._on_growth = on_growth

    def write(self, write: Write) -> None:
        if len(write.key) > KEY_BYTES_MAX:
            raise CommitTooLarge(f"a key of {len(write.key)} bytes is longer than {KEY_BYTES_MAX}")
        former = self.writes.get(write.key)
        size = self._bytes + _size(write) - (0 if former is None else _size(former))
        rows = len(self.writes) + (former is None)
        if rows > self._limits.rows_max or size > self._limits.bytes_max:
            raise self._too_large()
        if size + ENTRY_BYTES * rows + self._undo_bytes + self._noted_bytes > self._told_bytes:
            self._tell_growth(size + ENTRY_BYTES * rows)
        if self._undo:
            self._keep(write.key, former)
        if self._newest_view is not None:
            self._note(write.key, former)
        if former is None:
            insort(self._order, write.key)
        self.writes[write.key] = write
        self._bytes = size

    def write_all(self, writes: Sequence[Write]) -> None:
        """As `write` of one after the other; keys that it has not written before cost less together."""
        fresh = {write.key: write for write in writes}
        values = [write.value for write in writes]
        size = self._bytes + sum(map(len, fresh)) + sum(map(len, filter(None, values)))
        rows = len(self.writes) + len(fresh)
        if (
            self._newest_view is not None
            or len(fresh) < len(writes)
            or not self.writes.keys().isdisjoint(fresh)
            or (rows > self._limits.rows_max or size > self._limits.bytes_max)
            or max(map(len, fresh), default=0) > KEY_BYTES_MAX
        ):
            for write in writes:
                self.write(write)
            return
        undo_bytes = (_kept_size(None) if self._undo else 0) * len(fresh)
        if size + ENTRY_BYTES * rows + undo_bytes + self._undo_bytes + self._noted_bytes > self._told_bytes:
            self._tell_growth(size + ENTRY_BYTES * rows + undo_bytes)
        if self._undo:
            self._keep_absent(fresh.keys())
        self._add_order(sorted(fresh))
        self.writes.update(fresh)
        self._bytes = size

    def _add_order(self, keys: list[bytes]) -> None:
        if not self._order or (keys and keys[0] > self._order[-1]):
            self._order += keys
            return
        if len(keys) > KEYS_FEW:
            self._order += keys
            self._order.sort()  # two sorted runs: one pass
            return
        for key in keys:
            insort(self._order, key)

    def _tell_growth(self, written_bytes: int) -> None:
        held_bytes = written_bytes + self._undo_bytes + self._noted_bytes
        if self._on_growth is not None:
            self._on_growth(held_bytes)
        self._told_bytes = held_bytes + GROWTH_BYTES

    def _keep(self, key: bytes, former: Write | None) -> None:
        """Keeps the former write for going back to the newest savepoint."""
        layer = self._undo[-1]
        if key not in layer:
            layer[key] = former
            self._undo_bytes += _kept_size(former)

    def _keep_absent(self, keys: KeysView[bytes]) -> None:
        """Keeps for all these keys that they were not written before."""
        layer = self._undo[-1]
        fresh = keys - layer.keys()
        layer.update(dict.fromkeys(fresh))
        self._undo_bytes += _kept_size(None) * len(fresh)

    @property
    def rows_max(self) -> int:
        """The most different keys that it can hold."""
        return self._limits.rows_max

    def check_rows(self, rows: int) -> None:
        """Raises CommitTooLarge (54000) if it can never hold so many different keys."""
        if rows > self._limits.rows_max:
            raise self._too_large()

    def _too_large(self) -> CommitTooLarge:
        rows_max, bytes_max = self._limits
        return CommitTooLarge(
            f"a transaction may write {rows_max} rows, entries of indexes among them, and {bytes_max} bytes",
            hint="Split it into several transactions, or raise the cluster settings kv.transaction.max_rows "
            "and kv.transaction.max_bytes. The bulk way, for any number of rows from files, is IMPORT INTO.",
        )

    def forget(self, span: Span) -> None:
        """Removes the writes of a span as if they had never happened; `back_to` an earlier savepoint still
        works.
        """
        keys = _between(self._order, span)
        for key in keys:
            former = self.writes[key]
            if self._undo:
                self._keep(key, former)
            if self._newest_view is not None:
                self._note(key, former)
            self._bytes -= _size(former)
            del self.writes[key]
        if keys:
            self._order = [key for key in self._order if key in self.writes]

    def within(self, span: Span) -> dict[bytes, bytes | None]:
        """The writes of a span that can be read back: all but those whose key is not known yet."""
        writes = (self.writes[key] for key in _between(self._order, span))
        return {write.key: write.value for write in writes if write.key_stamp is None}

    def keys_within(self, span: Span) -> list[bytes]:
        """The keys of these writes, sorted."""
        writes = self.writes
        return [key for key in _between(self._order, span) if writes[key].key_stamp is None]

    def view(self) -> "BufferView":
        """The current writes; later changes do not affect it."""
        newest = None if self._newest_view is None else self._newest_view()
        if newest is not None and not newest.notes:
            return newest
        view = BufferView(self)
        if newest is not None:
            newest.later = view
        self._newest_view = ref(view)
        return view

    def _note(self, key: bytes, former: Write | None) -> None:
        assert self._newest_view is not None
        view = self._newest_view()
        if view is None:
            self._newest_view = None  # so no older view has a reader either
            self._noted_bytes = 0
        elif view.note(key, former):
            self._noted_bytes += _kept_size(former)

    def mark(self) -> BufferMark:
        self._undo.append({})
        return BufferMark(len(self._undo) - 1, len(self.removals))

    def back_to(self, savepoint: BufferMark | None) -> None:
        """Undoes the writes since the savepoint, which stays. None: since the start."""
        if savepoint is None:
            self._undo.clear()
            self._undo_bytes = 0
            self._restore(dict.fromkeys(self.writes))
            self.removals.clear()
        else:
            assert savepoint.depth < len(self._undo), "the savepoint is gone"
            while len(self._undo) > savepoint.depth:
                layer = self._undo.pop()
                self._undo_bytes -= sum(map(_kept_size, layer.values()))
                self._restore(layer)
            self._undo.append({})
            del self.removals[savepoint.removals :]
        if self._told_bytes > GROWTH_BYTES:
            self._tell_growth(self._bytes + ENTRY_BYTES * len(self.writes))

    def _restore(self, formers: dict[bytes, Write | None]) -> None:
        """Restores the former write of each key."""
        has_forgotten = False
        for key, former in formers.items():
            current = self.writes.pop(key, None)
            has_forgotten = has_forgotten or current is None
            if self._newest_view is not None:
                self._note(key, current)
            self._bytes -= 0 if current is None else _size(current)
            if former is not None:
                self.writes[key] = former
                self._bytes += _size(former)
        if has_forgotten:
            self._order = sorted(self.writes)
        elif len(self._order) > len(self.writes):
            self._order = [key for key in self._order if key in self.writes]

    def clear(self) -> None:
        """Called when the transaction is over: nothing is read from it any more, not by views either."""
        self.writes.clear()
        self._order.clear()
        self._undo.clear()
        self._newest_view = None

    def release(self, savepoint: BufferMark | None) -> None:
        """Keeps the writes since the savepoint, and removes it and those after it. None: all savepoints."""
        if savepoint is None:
            self._undo.clear()
            self._undo_bytes = 0
            return
        assert savepoint.depth < len(self._undo), "the savepoint is gone"
        while len(self._undo) > savepoint.depth:
            newer = self._undo.pop()
            self._undo_bytes -= sum(map(_kept_size, newer.values()))
            if self._undo:
                for key, former in newer.items():
                    self._keep(key, former)


class BufferView:
    """The content of a buffer at one moment."""

    __slots__ = ("__weakref__", "_buffer", "_order", "later", "notes")

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self.notes: dict[bytes, Write | None] = {}
        """Former writes of the keys that have changed since, up to the next view."""
        self._order: list[bytes] = []
        """The keys of the notes; sorted on demand."""
        self.later: BufferView | None = None

    def note(self, key: bytes, former: Write | None) -> bool:
        """Returns whether the key had no note yet."""
        if key in self.notes:
            return False
        self.notes[key] = former
        self._order.append(key)
        return True

    def get(self, key: bytes) -> Write | None:
        for view in self._onward():
            if key in view.notes:
                return view.notes[key]
        return self._buffer.writes.get(key)

    def has_changed(self, key: bytes) -> bool:
        """Whether a key was written since, and the write was not undone."""
        return self.get(key) is not self._buffer.writes.get(key)

    def within(self, span: Span) -> dict[bytes, bytes | None]:
        """As `Buffer.within`."""
        found = self._buffer.within(span)
        for view in reversed(list(self._onward())):
            view._order.sort()  # mostly sorted already: costs one pass
            for key in _between(view._order, span):
                former = view.notes[key]
                found.pop(key, None)
                if former is not None and former.key_stamp is None:
                    found[key] = former.value
        return found

    def _onward(self) -> "Iterator[BufferView]":
        view: BufferView | None = self
        while view is not None:
            yield view
            view = view.later


def _between(keys: list[bytes], span: Span) -> list[bytes]:
    first, end = (bisect_left(keys, bound) for bound in span)
    return keys[first:end]


def _kept_size(former: Write | None) -> int:
    """The size of a former write that a savepoint or a view keeps."""
    return ENTRY_BYTES + (0 if former is None else _size(former))


def _size(write: Write) -> int:
    return len(write.key) + len(write.value or b"")
