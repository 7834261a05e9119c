"""Tables as columns in memory, at any recent time: analytical queries read these instead of the store.

    part 0   loaded at T0    keys  at  until │ columns          sorted by key
    part 1   changes since   keys  at  until │ columns          sorted by key
    ...                                         visible at T:  at <= T < until

A table's rows are read from the store once, as of a time. From then on each reader first fetches every
revision since the last read (the store's history, whose cost is the number of changes): new revisions become
a part of their own, and the ones they replace get their `until`. A loop does the same between queries
(`keep_up`), so that they seldom find much to do. So one copy serves readers at all times from the first load
on; earlier ones read the store.

Parts are never changed in place: a change makes a new `CachedParts` with new arrays where it writes, so a
reader keeps its parts while other threads change them. Bytes are bounded: the least recently used tables are
dropped first, and a table too large by itself is read as a stream of batches.

A column is identified by its id, type and `filled` value; versions of the table that agree on these share it.

Invariant (columnar-exact): a reader gets the rows that a scan of the primary index at its `read_at` would
return, its own uncommitted writes included.
Invariant (columnar-read): the whole primary index counts as read in the reader's transaction, and is checked
against the marks after its rows were read.

For a table that has a base in the lake, only newer rows are held, from the flush on. The reader of these
columns reads the base from its files; `Columns.base` says which of their rows are visible.
If the base has moved meanwhile, reading starts over with the newest one, at the same time.

Simplifications: a query for another column loads again, unless the table has a base; and so does a new base.

Walk: `sql.duck.engine` -> `Columnar.read` -> `table.column_batches` makes arrays; `kv.store` gives history;
`lake.hidden_rows` and `lake.visible_files` say what is to be read of a base.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from tenure.base.errors import BaseMoved, CorruptData, SnapshotTooOld
from tenure.base.settings import COLUMNS_MEMORY
from tenure.base.timestamp import MAX_AT, ZERO_AT, Timestamp
from tenure.kv.bases import Base, with_base
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.storage.engine import Revision
from tenure.table.arrays import Bools
from tenure.table.arrow import Unrepresentable
from tenure.table.column_batches import PAGE_ROWS, Builder, WantedColumns, batch, identity
from tenure.table.column_parts import CachedParts, RowPart, applied, piece, sorted_keys, together
from tenure.table.lake.base import LakeBase
from tenure.table.lake.hidden_rows import HiddenRows
from tenure.table.lake.visible_files import VisibleBase, visible_base, visible_files
from tenure.table.read import Source
from tenure.table.rows import Layout

BATCH_ROWS = 64_000
"""Rows per Arrow batch, about the size that DuckDB processes at once."""

KEEP_UP_SECONDS = 0.1
"""The pause between two looks for changes: without any, a look takes some ten microseconds."""

USED_SECONDS = 300.0
"""Tables without a query for so long are not kept up: they catch up with the next query."""

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
    base: VisibleBase | None = None
    """The rows to read from the lake's files besides."""


class Columnar:
    """One per node, for all its threads."""

    def __init__(self, store: Store, *, bytes_max: int = COLUMNS_MEMORY.default) -> None:
        self._store = store
        self._bytes_max = bytes_max
        self._lock = store.env.lock()
        self._slots: dict[tuple[Any, ...], _Slot] = {}
        """The most recently used one is last."""

    def read(
        self,
        layout: Layout,
        columns: Sequence[int],
        source: Source,
        check: Check,
        within: Span | None = None,
    ) -> Columns:
        """The rows that the source sees; of the base at least those `within` a span of the primary index.

        Raises Unrepresentable if Arrow cannot represent a value.
        """
        wanted = WantedColumns.of(layout, columns)

        def read(base: Base | None) -> Columns:
            assert base is None or isinstance(base, LakeBase)
            return self._read(base, wanted, source, check, within)

        return with_base(self._store.bases, layout.primary.head, read)

    def _read(
        self, base: LakeBase | None, wanted: WantedColumns, source: Source, check: Check, within: Span | None
    ) -> Columns:
        read_at = source.read_at
        if base is not None and read_at < base.flushed_at:
            cached: CachedParts | None = _nothing(wanted, ZERO_AT)
        else:
            cached = self._cached_parts(base, wanted, read_at, check)
        over = source.read_span(wanted.span, flushed_at=_flushed_at(base))
        if cached is None:
            found, hiding = self._stream(base, wanted, read_at, over, check)
        else:
            found, hiding = _visible(cached, wanted, read_at, over), cached.hiding
        if base is None:
            return found
        hidings = [hiding]
        if over:
            files = visible_files(base.manifest, read_at)
            hidings.append(HiddenRows().with_keys(base.groups, files, dict.fromkeys(over, ZERO_AT)))
        visible = visible_base(base.manifest, wanted, read_at, hidings, within)
        for scan in visible.scans:
            base.groups.files.check(scan.file, scan.columns(visible.kepts), check)
        return found._replace(base=visible)

    def has_moved(self, read: Iterable[Columns]) -> bool:
        """Whether one of the bases that the columns were read from is no longer the newest."""
        moved = False
        for columns in read:
            if columns.base is not None:
                manifest = columns.base.manifest
                head = self._store.keyspace.head(manifest.table, manifest.index)
                newest = self._store.bases.newer(head, None)
                assert isinstance(newest, LakeBase)
                moved = moved or newest.manifest != manifest
        return moved

    def rows(self, layout: Layout) -> int | None:
        """About how many rows a table has, if that is known here."""
        slot, base = self._slots.get(_key(layout)), self._store.bases.of(layout.primary.head)
        if slot is None and base is None:
            return None
        delta_rows = 0 if slot is None else slot.rows
        return delta_rows + (base.rows_within(layout.primary.span()) if base is not None else 0)

    def delta_rows(self, layout: Layout) -> int | None:
        """How many rows of a table are held, besides its base; None if that is not known."""
        slot = self._slots.get(_key(layout))
        return None if slot is None or slot.cached is None else slot.cached.rows

    def is_too_large(self, layout: Layout) -> bool:
        """Whether a table, or its rows above the base, was found too large to be held."""
        slot = self._slots.get(_key(layout))
        return slot is not None and slot.too_large_bytes > self._bytes_max

    def keep_up(self) -> float:
        """Applies changes of tables in use, so that the next query need not: a step for a loop."""
        used_since = self._store.env.monotonic() - USED_SECONDS
        with self._lock:
            slots = [each for each in self._slots.values() if each.used >= used_since]
        for slot in slots:
            # The next query does it, or reports the error; other tables are kept up meanwhile.
            with slot.lock, suppress(BaseMoved, CorruptData, Unrepresentable):
                if slot.cached is not None:
                    wanted, read_at = slot.cached.wanted, self._store.snapshot().at
                    base = self._store.bases.of(wanted.layout.primary.head)
                    assert base is None or isinstance(base, LakeBase)
                    if slot.takes(base):
                        self._bring_up(slot, wanted, read_at, lambda: None)
        return KEEP_UP_SECONDS

    @property
    def held_bytes(self) -> int:
        """The bytes held, of all tables."""
        with self._lock:
            return sum(slot.held_bytes for slot in self._slots.values())

    # ── tables in memory ────────────────────────────────────────────────────────────────────────

    def _cached_parts(
        self, base: LakeBase | None, wanted: WantedColumns, read_at: Timestamp, check: Check
    ) -> CachedParts | None:
        """The parts of a table, up to `read_at` at least; None if they cannot answer, or are too large."""
        slot = self._slot(_key(wanted.layout))
        with slot.lock:
            if not slot.takes(base):
                return None
            if slot.cached is not None and slot.cached.has(wanted) and read_at < slot.cached.loaded_at:
                return None
            self._bring_up(slot, wanted, read_at, check)
            cached = slot.cached
        self._evict(slot)
        return cached

    def _bring_up(self, slot: "_Slot", wanted: WantedColumns, read_at: Timestamp, check: Check) -> None:
        """Catches up, or loads, or finds the table too large."""
        cached, slot.cached = slot.cached, None
        try:
            if cached is not None and cached.has(wanted):
                with suppress(SnapshotTooOld, BaseMoved, Unrepresentable):
                    slot.cached = self._caught_up(slot.base, cached, read_at, check)
            if slot.cached is None and slot.too_large_bytes <= self._bytes_max:
                slot.cached = self._loaded_with_others(slot.base, wanted, cached, read_at, check)
        except _TooLarge as error:
            slot.rows, slot.too_large_bytes = error.rows, error.bytes
            pa.default_memory_pool().release_unused()
        if slot.cached is not None:
            slot.rows = slot.cached.rows

    def _loaded_with_others(
        self,
        base: LakeBase | None,
        wanted: WantedColumns,
        cached: CachedParts | None,
        read_at: Timestamp,
        check: Check,
    ) -> CachedParts | None:
        """With other columns, too, if they can be held: columns that were used once will be used again."""
        *larger, least = _with_others(base, wanted, cached)
        for columns in larger:
            with suppress(Unrepresentable, _TooLarge):
                return self._loaded(base, columns, read_at, check)
        return self._loaded(base, least, read_at, check)

    def _slot(self, key: tuple[Any, ...]) -> "_Slot":
        with self._lock:
            slot = self._slots.pop(key, None) or _Slot(self._store.env.lock())
            slot.used = self._store.env.monotonic()
            self._slots[key] = slot
            return slot

    def _loaded(
        self, base: LakeBase | None, wanted: WantedColumns, read_at: Timestamp, check: Check
    ) -> CachedParts | None:
        if base is not None:
            with suppress(SnapshotTooOld):  # history since the flush is incomplete: the visible rows are not
                return self._caught_up(base, _nothing(wanted, base.flushed_at), read_at, check)
            return None
        pieces: list[RowPart] = []
        used_bytes = 0
        for rows, keys, at in self._batches(wanted, read_at, check):
            pieces.append(piece(keys, at, rows))
            used_bytes += pieces[-1].held_bytes
            if used_bytes > self._bytes_max:
                raise _TooLarge(sum(len(each.at) for each in pieces), used_bytes)
        return CachedParts(wanted, (together(pieces, wanted.schema),), read_at, read_at)

    def _batches(
        self,
        wanted: WantedColumns,
        read_at: Timestamp,
        check: Check,
        *,
        since_at: Timestamp = ZERO_AT,
        without: Container[bytes] = (),
    ) -> Iterator[tuple[pa.RecordBatch, list[bytes], list[Timestamp]]]:
        """The rows visible at a time in batches, each with its keys and timestamps."""
        builder = Builder(wanted)
        keys: list[bytes] = []
        at: list[Timestamp] = []
        for page in self._store.snapshot(read_at).stored(wanted.span, PAGE_ROWS, since_at=since_at):
            check()
            if without or since_at:
                page = [each for each in page if each.value is not None and each.key not in without]
            keys += [key for key, _, _ in page]
            at += [each for _, each, _ in page]
            builder.add(page)
            if builder.rows >= BATCH_ROWS:
                yield builder.batch(), keys, at
                keys, at = [], []
        if builder.rows:
            yield builder.batch(), keys, at

    def _caught_up(
        self, base: LakeBase | None, cached: CachedParts, read_at: Timestamp, check: Check
    ) -> CachedParts:
        """With everything that happened up to `read_at`; raises if the history is incomplete."""
        span = cached.wanted.span
        while cached.through_at < read_at:
            check()
            interval = self._store.history(span, since_at=cached.through_at, limit=HISTORY_ROWS)
            cached = applied(cached, interval.revisions, interval.through_at, read_at)
            if not interval.revisions:
                continue
            if base is not None:
                hiding = cached.hiding.with_revisions(base.groups, base.manifest.live, interval.revisions)
                cached = cached._replace(hiding=hiding)
            if cached.held_bytes > self._bytes_max:
                raise _TooLarge(cached.rows, cached.held_bytes)
        return cached

    def _evict(self, used: "_Slot") -> None:
        with self._lock:
            total = sum(slot.held_bytes for slot in self._slots.values())
            for key, slot in list(self._slots.items()):
                if total <= self._bytes_max:
                    return
                if slot is not used:
                    total -= slot.held_bytes
                    del self._slots[key]

    # ── streamed tables ─────────────────────────────────────────────────────────────────────────

    def _stream(
        self,
        base: LakeBase | None,
        wanted: WantedColumns,
        read_at: Timestamp,
        over: Mapping[bytes, bytes | None],
        check: Check,
    ) -> tuple[Columns, HiddenRows]:
        """Rows as they are read from the store, once; the rows of a base that they hide are found before."""
        since_at = _flushed_at(base)
        hiding = HiddenRows() if base is None else self._hidden(base, wanted, read_at, check)

        def batches() -> Iterator[pa.RecordBatch]:
            for rows, _, _ in self._batches(wanted, read_at, check, since_at=since_at, without=over):
                yield rows
            yield batch(wanted, _own(over))

        reader = pa.RecordBatchReader.from_batches(wanted.schema, batches())
        return Columns(reader, has_dead=not wanted.columns), hiding

    def _hidden(self, base: LakeBase, wanted: WantedColumns, read_at: Timestamp, check: Check) -> HiddenRows:
        hiding = HiddenRows()
        snapshot = self._store.snapshot(read_at)
        for page in snapshot.stored(wanted.span, HISTORY_ROWS, since_at=base.flushed_at):
            check()
            hiding = hiding.with_revisions(base.groups, base.manifest.live, page)
        return hiding


class _TooLarge(Exception):
    def __init__(self, rows: int, bytes: int) -> None:
        self.rows = rows
        self.bytes = bytes


class _Slot:
    """A table's slot: its parts, or the note that it is too large."""

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self.lock = lock
        self.base: LakeBase | None = None
        self.cached: CachedParts | None = None
        """For a table with a base, the rows above it."""
        self.rows = 0
        self.too_large_bytes = 0
        self.used = 0.0
        self._counted: tuple[tuple[RowPart, ...], HiddenRows, int] | None = None
        """What was counted last: every read asks, and few have changed anything."""

    @property
    def held_bytes(self) -> int:
        cached, counted = self.cached, self._counted
        if cached is None:
            return 0
        if counted is None or counted[0] is not cached.parts or counted[1] is not cached.hiding:
            self._counted = counted = (cached.parts, cached.hiding, cached.held_bytes)
        return counted[2]

    def takes(self, base: LakeBase | None) -> bool:
        """Makes room for the rows above a base, if that is another one; not if it is an older one."""
        if _flushed_at(base) < _flushed_at(self.base):
            return False
        if base is not self.base and (
            base is None or self.base is None or base.manifest != self.base.manifest
        ):
            self.base, self.cached, self.rows, self.too_large_bytes = base, None, 0, 0
        return True


def _flushed_at(base: LakeBase | None) -> Timestamp:
    return ZERO_AT if base is None else base.flushed_at


def _nothing(wanted: WantedColumns, at: Timestamp) -> CachedParts:
    return CachedParts(wanted, (together([], wanted.schema),), at, at)


def _with_others(
    base: LakeBase | None, wanted: WantedColumns, cached: CachedParts | None
) -> list[WantedColumns]:
    """Which columns to load, the largest set first. All columns of a delta: reading it is what takes time."""
    most = (
        []
        if base is None
        else [wanted.with_columns_of(WantedColumns.of(wanted.layout, [*wanted.layout.public]))]
    )
    choices = [] if cached is None else [wanted.with_columns_of(cached.wanted)]
    larger = [each for each in (*most, *choices) if each.columns != wanted.columns]
    return [*larger, wanted]


def _key(layout: Layout) -> tuple[Any, ...]:
    primary = layout.primary
    parts = tuple((identity(kept), is_descending) for kept, is_descending in primary.parts)
    return layout.table.id, primary.id, parts


def _own(over: Mapping[bytes, bytes | None]) -> list[Revision]:
    return [Revision(key, MAX_AT, value) for key, value in over.items() if value is not None]


def _visible(
    cached: CachedParts, wanted: WantedColumns, read_at: Timestamp, over: Mapping[bytes, bytes | None]
) -> Columns:
    masks = [_mask(part, read_at, over) for part in cached.parts]
    tables = [part.table.select(wanted.names) for part in cached.parts]
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


def _mask(part: RowPart, read_at: Timestamp, over: Mapping[bytes, bytes | None]) -> Bools:
    mask: Bools = (part.at <= read_at) & (part.until > read_at)
    if over:
        keys = sorted_keys(over, part.keys)
        first = np.searchsorted(part.keys, keys, "left")
        end = np.searchsorted(part.keys, keys, "right")
        for lo, hi in zip(first[first < end], end[first < end], strict=True):
            mask[lo:hi] = False
    return mask
