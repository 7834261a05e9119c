"""Tables as columns in memory, at any recent time: what analytical queries read instead of the store.

    part 0   loaded at T0    keys  at  until │ columns          sorted by key
    part 1   changes since   keys  at  until │ columns          sorted by key
    ...                                         visible at T:  at <= T < until

A table's rows are read from the store once, as of a time. From then on each reader first fetches
every revision since the last one did (the store's history, whose cost is the number of changes):
new revisions become a part of their own, and the ones they replace get their `until`. A loop does the
same between queries (`keep_up`), so that they seldom find much to do. So one copy
serves readers at all times from the first load on; earlier ones read the store.

What is held is never changed in place: a change makes a new `Held` with arrays of its own where it
writes, so a reader goes on with what it got, whatever other threads do. Bytes are bounded: the tables
not used for longest go first, and a table too large by itself is read as a stream of batches.

A column is known by its id, type and `filled` value; versions of the table that agree on these share it.

Invariant (columnar-exact): what a reader gets are the rows that a scan of the primary index at its
`read_at` would give, its own uncommitted writes included.
Invariant (columnar-read): the whole primary index counts as read in the reader's transaction, and is
judged by the marks after its rows are there.

Simplifications: all rows are in the store (no lake yet); another column wanted means loading again.

Walk: `sql.duck.engine` -> `Columnar.read` -> `table.column_batches` makes arrays; `kv.store` gives history.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from tenure.base.errors import BaseMoved, SnapshotTooOld
from tenure.base.settings import COLUMNS_MEMORY
from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.kv.store import Store
from tenure.storage.engine import Revision
from tenure.table.column_batches import PAGE_ROWS, Builder, Wanted, batch, identity
from tenure.table.parts import Held, Part, applied, piece, sorted_keys, together
from tenure.table.read import Source
from tenure.table.rows import Layout

BATCH_ROWS = 64_000
"""Rows per Arrow batch, about what DuckDB takes in one go."""

KEEP_UP_SECONDS = 0.2
"""Between two looks at what has changed: seldom enough to cost nothing where nothing does."""

USED_SECONDS = 300.0
"""Tables that no query has asked for as long are not kept up: they catch up when one does."""

HISTORY_ROWS = 50_000
"""Revisions per read while catching up."""

Check: TypeAlias = Callable[[], None]
"""Raises if the query was canceled."""


class Columns(NamedTuple):
    """A table's visible rows: columns c1, c2, ... by column id."""

    data: Any
    """An Arrow table; or a reader of batches that can be read once."""
    has_dead: bool
    """Whether a column `alive` says which rows are visible; otherwise all are."""


class Columnar:
    """One per node, for all its threads."""

    def __init__(self, store: Store, *, bytes_max: int = COLUMNS_MEMORY.default) -> None:
        self._store = store
        self._bytes_max = bytes_max
        self._lock = store.env.lock()
        self._slots: dict[tuple[Any, ...], _Slot] = {}
        """The one used last comes last."""

    def read(self, layout: Layout, columns: Sequence[int], source: Source, check: Check) -> Columns:
        """The rows that the source sees. Raises Unrepresentable if a value has no place in Arrow."""
        wanted = Wanted.of(layout, columns)
        read_at = source.read_at
        held = self._held(wanted, read_at, check)
        if held is None:
            return self._stream(wanted, read_at, source.read_span(wanted.span), check)
        return _visible(held, wanted, read_at, source.read_span(wanted.span))

    def rows(self, layout: Layout) -> int | None:
        """About how many rows a table has, if that is known here."""
        slot = self._slots.get(_key(layout))
        return None if slot is None else slot.rows

    def is_too_large(self, layout: Layout) -> bool:
        """Whether a table was found too large to be held."""
        slot = self._slots.get(_key(layout))
        return slot is not None and slot.too_large_bytes > self._bytes_max

    def keep_up(self) -> float:
        """Takes in what has changed of tables in use, so that the next query need not: a step for a loop."""
        used_since = self._store.env.monotonic() - USED_SECONDS
        with self._lock:
            slots = [each for each in self._slots.values() if each.used >= used_since]
        for slot in slots:
            with slot.lock:
                if slot.held is not None:
                    slot.held = self._caught_up(slot.held, self._store.snapshot().at, lambda: None)
        return KEEP_UP_SECONDS

    @property
    def held_bytes(self) -> int:
        """How much is held, of all tables."""
        with self._lock:
            return sum(slot.held_bytes for slot in self._slots.values())

    # ── what is held ───────────────────────────────────────────────────────────────────────────

    def _held(self, wanted: Wanted, read_at: Timestamp, check: Check) -> Held | None:
        """What is held of a table, up to `read_at` at least; None if it cannot tell, or is too large."""
        slot = self._slot(_key(wanted.layout))
        with slot.lock:
            if slot.held is not None and slot.held.has(wanted):
                if read_at < slot.held.loaded_at:
                    return None
                slot.held = self._caught_up(slot.held, read_at, check)
            if slot.held is None or not slot.held.has(wanted):
                self._load(slot, wanted, read_at, check)
            held = slot.held
        self._evict(slot)
        return held

    def _slot(self, key: tuple[Any, ...]) -> "_Slot":
        with self._lock:
            slot = self._slots.pop(key, None) or _Slot(self._store.env.lock())
            slot.used = self._store.env.monotonic()
            self._slots[key] = slot
            return slot

    def _load(self, slot: "_Slot", wanted: Wanted, read_at: Timestamp, check: Check) -> None:
        if slot.too_large_bytes > self._bytes_max:
            return
        wanted = wanted.with_columns_of(None if slot.held is None else slot.held.wanted)
        slot.held = None
        pieces: list[Part] = []
        used_bytes = 0
        for made, keys, at in self._batches(wanted, read_at, check):
            pieces.append(piece(keys, at, made))
            used_bytes += pieces[-1].held_bytes
            if used_bytes > self._bytes_max:
                slot.rows, slot.too_large_bytes = sum(len(each.at) for each in pieces), used_bytes
                pieces.clear()
                pa.default_memory_pool().release_unused()
                return
        slot.held = Held(wanted, (together(pieces, wanted.schema),), read_at, read_at)
        slot.rows = len(slot.held.parts[0].at)

    def _batches(
        self, wanted: Wanted, read_at: Timestamp, check: Check, without: Mapping[bytes, object] | None = None
    ) -> Iterator[tuple[Any, list[bytes], list[Timestamp]]]:
        """The rows visible at a time in batches, each with its keys and timestamps."""
        builder = Builder(wanted)
        keys: list[bytes] = []
        at: list[Timestamp] = []
        for page in self._store.snapshot(read_at).stored(wanted.span, PAGE_ROWS):
            check()
            if without:
                page = [each for each in page if each.key not in without]
            keys += [key for key, _, _ in page]
            at += [each for _, each, _ in page]
            builder.add(page)
            if builder.rows >= BATCH_ROWS:
                yield builder.batch(), keys, at
                keys, at = [], []
        if builder.rows:
            yield builder.batch(), keys, at

    def _caught_up(self, held: Held, read_at: Timestamp, check: Check) -> Held | None:
        """With all that happened up to `read_at`; None if that is no longer all there."""
        span = held.wanted.span
        while held.through_at < read_at:
            check()
            try:
                interval = self._store.history(span, since_at=held.through_at, limit=HISTORY_ROWS)
            except (SnapshotTooOld, BaseMoved):
                return None
            held = applied(held, interval.revisions, interval.through_at, read_at)
        return held

    def _evict(self, used: "_Slot") -> None:
        with self._lock:
            total = sum(slot.held_bytes for slot in self._slots.values())
            for key, slot in list(self._slots.items()):
                if total <= self._bytes_max:
                    return
                if slot is not used:
                    total -= slot.held_bytes
                    del self._slots[key]

    # ── what is not ────────────────────────────────────────────────────────────────────────────

    def _stream(
        self, wanted: Wanted, read_at: Timestamp, over: Mapping[bytes, bytes | None], check: Check
    ) -> Columns:
        def batches() -> Iterator[Any]:
            for made, _, _ in self._batches(wanted, read_at, check, without=over):
                yield made
            yield batch(wanted, _own(over))

        return Columns(
            pa.RecordBatchReader.from_batches(wanted.schema, batches()), has_dead=not wanted.columns
        )


class _Slot:
    """A table's place: what is held of it, or that it is too large."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.held: Held | None = None
        self.rows = 0
        self.too_large_bytes = 0
        self.used = 0.0

    @property
    def held_bytes(self) -> int:
        held = self.held
        return 0 if held is None else held.held_bytes


def _key(layout: Layout) -> tuple[Any, ...]:
    primary = layout.primary
    parts = tuple((identity(kept), is_descending) for kept, is_descending in primary.parts)
    return layout.table.id, primary.id, parts


def _own(over: Mapping[bytes, bytes | None]) -> list[Revision]:
    return [Revision(key, MAX_AT, value) for key, value in over.items() if value is not None]


def _visible(held: Held, wanted: Wanted, read_at: Timestamp, over: Mapping[bytes, bytes | None]) -> Columns:
    masks = [_mask(part, read_at, over) for part in held.parts]
    tables = [part.table.select(wanted.names) for part in held.parts]
    own = _own(over)
    if own:
        tables.append(pa.Table.from_batches([batch(wanted, own)]))
        masks.append(np.ones(len(own), dtype=bool))
    has_dead = not all(mask.all() for mask in masks) or not wanted.names
    data = pa.concat_tables(tables) if wanted.names else pa.table({})
    if has_dead:
        alive = pa.chunked_array([pa.array(mask) for mask in masks], pa.bool_())
        data = data.append_column("alive", alive) if wanted.names else pa.table({"alive": alive})
    return Columns(data, has_dead)


def _mask(part: Part, read_at: Timestamp, over: Mapping[bytes, bytes | None]) -> Any:
    mask = (part.at <= read_at) & (part.until > read_at)
    if over:
        keys = sorted_keys(over, part.keys)
        first = np.searchsorted(part.keys, keys, "left")
        end = np.searchsorted(part.keys, keys, "right")
        for lo, hi in zip(first[first < end], end[first < end], strict=True):
            mask[lo:hi] = False
    return mask
