"""One table's part of a changefeed: its changes in order, and how far they are complete.

    scan ──► watch ──► an event at M: the frontier stops just below M ──► scan at M, or nothing ──► watch
               └─ a gap ──► the changes of the gap from the lake ──► watch

Each step does a bounded piece of work and returns the changes to emit, and the events that consumers are
told. The frontier moves when all changes up to it were returned. A watch starts at the frontier; after every
event a new one starts just below M, so rows that were committed together with the descriptor are read with
the new version.

A watch that has caught up takes from the node's tail. While nothing comes, the stream is idle: it is not
stepped, and its frontier is that of the tail.

While the version in force has a column on its way, and at its very beginning, a fill may rewrite rows: one
that looks to readers as it did before is not emitted.

Invariant (I35): every committed revision after the frontier that the stream began with is returned before the
frontier passes it, except a rewrite of a column's fill that equals its predecessor for readers.

Walk: `changefeed.feed` calls `step` of each of its streams that is not idle; this reads `TailWatch.next`,
`SchemaFeed.peek` and the scans.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tenure.base.errors import SnapshotTooOld, UndefinedTable, WrongState
from tenure.base.timestamp import ZERO_AT, Timestamp, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.changefeed.lake_changes import scan_changes
from tenure.changefeed.leased_schema import FeedLeases, LeasedSchema
from tenure.changefeed.options import FeedOptions, InitialScan
from tenure.changefeed.records import FeedScope, ScanKind, ScanPosition, TablePosition
from tenure.changefeed.schema_feed import SchemaFeed, WatchedSchema, version_in_force
from tenure.changefeed.table_events import Ending, TableEvent, response_to
from tenure.changefeed.table_scan import Scanned, scan_rows, scan_takeover
from tenure.changefeed.tail import FeedQueue, Tail, TailBatch, TailWatch
from tenure.changefeed.version_rows import RowChange, Values, VersionRows
from tenure.kv.gaps import Gap, GapReason
from tenure.kv.keys import Span
from tenure.kv.records import replace
from tenure.kv.store import Store
from tenure.kv.watch import ChangeBatch
from tenure.storage.engine import HEAD_BYTES, Revision

if TYPE_CHECKING:
    from tenure.table.lake.checked_files import CheckedFiles

PAGE_ROWS = 1_000
"""Rows of a scan per step: as many as a batch of a watch has."""


class FeedSources(NamedTuple):
    """What streams read from."""

    store: Store
    catalog: Catalog
    files: "CheckedFiles | None"
    """The lake's files; None without a lake."""
    tail: Tail
    node: FeedLeases | None = None
    """The leases of this node; None where there are none: then the schema comes with the watch."""


def schema_feed(sources: FeedSources, table: int, since_at: Timestamp) -> SchemaFeed:
    """The versions of a table after a time."""
    of_table = sources.store, sources.catalog, table, since_at
    return WatchedSchema(*of_table) if sources.node is None else LeasedSchema(*of_table, sources.node)


class StreamStep(NamedTuple):
    changes: Sequence[RowChange | TableEvent]
    batch: TailBatch | None = None
    """The batch of the tail that these changes are, as any feed of the table reads it."""
    version: Hashable = None
    """By which version then."""


class TableStream:
    def __init__(
        self,
        sources: FeedSources,
        options: FeedOptions,
        position: TablePosition,
        *,
        queue: FeedQueue | None = None,
        scope: FeedScope | None = None,
    ) -> None:
        """`queue`: that of its feed."""
        self._store, self._catalog, self._files, self._tail, _ = sources
        self._queue = FeedQueue() if queue is None else queue
        self._options = options
        self._scope = scope
        self._table = position.table
        self._name = position.name
        self._frontier_at = position.frontier_at
        self._scan = position.scan
        self._pages: Iterator[list[Scanned]] | None = None
        """The pages of the scan that are left, once it has begun."""
        self._watch: TailWatch | None = None
        self._shared: TailBatch | None = None
        """The batch whose changes the present step returns unchanged."""
        self.ending: WrongState | None = None
        """Why it cannot go on: all changes before were returned."""
        self.fast_rows, self.slow_rows = 0, 0
        """Changes that the watch has found, by whether the lease proved their schema."""
        self.is_over = False
        """Whether it has ended because its table is gone, which does not concern other tables."""
        self.is_waiting = False
        """Whether the last step has found nothing, so that the next may wait for a commit."""
        # All events up to the time of a scan were met before it began.
        since_at = self._frontier_at if self._scan is None else self._scan.at
        self._schema = schema_feed(sources, self._table, since_at)
        self._rows = self._rows_at(since_at)
        self._former = self._former_rows()
        """The version before, for rows of the moment of the change."""

    @property
    def table(self) -> int:
        return self._table

    @property
    def position(self) -> TablePosition:
        return TablePosition(self._table, self.frontier_at, self._scan, self._name)

    @property
    def frontier_at(self) -> Timestamp:
        if self._scan is not None or self._watch is None or not self._watch.is_idle:
            return self._frontier_at
        return max(self._frontier_at, min(self._watch.frontier_at, self._options.end_at))

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do until the tail has something."""
        return self._watch is not None and self._watch.is_idle

    @property
    def is_done(self) -> bool:
        is_scanned = self._scan is None and self._options.initial_scan is InitialScan.ONLY
        return is_scanned or self.frontier_at >= self._options.end_at

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans whose changes are a reason to call `step` again."""
        return (self._rows.span, *self._schema.spans)

    def step(self) -> StreamStep:
        """The next changes; none may come with a frontier that has moved."""
        self.is_waiting, self._shared = False, None
        if self._scan is not None:
            return StreamStep(self._scan_page(self._scan))
        changes = self._look()
        # An event alone moves no frontier: who starts over after each step would meet it for ever.
        while self._watch is None and self._scan is None and self.ending is None:
            more = self._look()
            changes, self._shared = [*changes, *more], None
            if any(isinstance(each, RowChange) for each in more):
                break
        return StreamStep(changes, self._shared, self._rows.identity)

    def _look(self) -> Sequence[RowChange | TableEvent]:
        if self._watch is None:
            self._watch = TailWatch(self._tail, self._queue, self.spans, since_at=self._frontier_at)
            self._watch.owner = self
        found = self._watch.next()
        if isinstance(found, Gap):
            return self._meet_gap(found)
        return self._take(found)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    # ── watching ───────────────────────────────────────────────────────────────────────────────

    def _take(self, batch: TailBatch | ChangeBatch) -> Sequence[RowChange | TableEvent]:
        self._schema.note(batch.revisions, batch.resolved_at)
        until_at = min(batch.resolved_at, self._options.end_at)
        event = next(iter(self._schema.peek(until_at)), None)
        if event is not None:
            until_at = event.at - 1
        changes = self._changes(batch, until_at)
        if self._schema.is_fast:
            self.fast_rows += len(changes)
        else:
            self.slow_rows += len(changes)
        self._frontier_at = max(self._frontier_at, until_at)
        if event is None:
            self.is_waiting = self.is_idle
            return changes
        return [*changes, *self._meet(event)]

    def _changes(self, batch: TailBatch | ChangeBatch, until_at: Timestamp) -> Sequence[RowChange]:
        def decoded() -> Sequence[RowChange]:
            head = self._rows.span.lo[:HEAD_BYTES]
            return [
                change
                for each in batch.revisions
                if each.at <= until_at and each.key.startswith(head)
                if (change := self._changed(each)) is not None
            ]

        if not isinstance(batch, TailBatch) or until_at < batch.resolved_at or not self._is_plain(batch):
            return decoded()
        self._shared = batch
        return batch.shared(self._rows.identity, decoded)

    def _is_plain(self, batch: TailBatch) -> bool:
        """Whether each revision is a change by itself, which is the same for every feed."""
        rows = self._rows
        is_later = bool(batch.revisions) and batch.revisions[0].at > self._schema_since_at
        return is_later and rows.is_key_exact and not rows.has_moving_columns and not self._options.diff

    def _changed(self, revision: Revision) -> RowChange | None:
        key, at, value = revision
        values = None if value is None else self._rows.decode(key, value)
        return self._change(key, at, values)

    def _change(self, key: bytes, at: Timestamp, values: Values | None) -> RowChange | None:
        """One revision as a change; None if it is not emitted."""
        rows = self._rows
        key_values = rows.key_in(key) if values is None else rows.key_of(values)
        is_first = at == self._schema_since_at
        may_be_fill = rows.has_moving_columns or is_first
        if not self._options.diff and key_values is not None and not may_be_fill:
            return RowChange(rows, at, key_values, values)
        stored = self._store.snapshot(at - 1).get(key)
        if (
            may_be_fill
            and stored is not None
            and values is not None
            and self._looks_same(key, stored, values)
        ):
            return None
        former = self._former if is_first else rows
        before = None if stored is None else former.decode(key, stored)
        if key_values is None:
            if before is None:
                return None  # a deletion of what was not there
            key_values = former.key_of(before)
        return RowChange(rows, at, key_values, values, before, former)

    def _looks_same(self, key: bytes, stored: bytes | None, values: Values | None) -> bool:
        """Whether a row is to readers what it was before, so that a fill may have rewritten it.

        By the present version: a column that has just come has its value in old rows too. A new generated
        column says nothing that the others do not say.
        """
        if stored is None or values is None:
            return False
        rows = self._rows
        new = rows.generated_ids.difference(self._former.read_ids)
        before = rows.decode(key, stored)
        # By their texts: equal numbers may look different.
        return all(
            id in new or repr(old) == repr(value)
            for id, old, value in zip(rows.read_ids, before, values, strict=True)
        )

    # ── events ─────────────────────────────────────────────────────────────────────────────────

    def _meet(self, event: TableEvent) -> Sequence[TableEvent]:
        """Goes over to a new version; the frontier is just below it. Returns what consumers are told."""
        self.close()
        self._schema.pop(event.at)
        self._former, self._rows = self._rows, VersionRows(event.after, self._store.keyspace)
        response = response_to(event, self._options, self._scope)
        self._scan = response.scan
        if response.ending is not None:
            self.ending = _ended(response.ending, event)
            self.is_over = response.ending is not Ending.STOPPED
        is_told = bool(event.kinds) and (self._options.ddl_events or self.is_over)
        return [event] if is_told else []

    @property
    def _schema_since_at(self) -> Timestamp:
        """When the version in force began."""
        version = self._rows.version
        return max(version.table.modified_at, *(enum.modified_at for enum in version.enums), ZERO_AT)

    def _former_rows(self) -> VersionRows:
        if not self._frontier_at:
            return self._rows
        try:
            return self._rows_at(self._frontier_at)
        except UndefinedTable:
            return self._rows  # it has come just after

    def _rows_at(self, at: Timestamp) -> VersionRows:
        version = version_in_force(self._store, self._catalog, self._table, at)
        return VersionRows(version, self._store.keyspace)

    # ── gaps ───────────────────────────────────────────────────────────────────────────────────

    def _meet_gap(self, gap: Gap) -> Sequence[TableEvent]:
        """Changes up to a time are missing from the watch: they are read from the lake, up to the next
        event.
        """
        if gap.reason is GapReason.BELOW_THRESHOLD or self._files is None:
            raise SnapshotTooOld(
                f'the changes of table "{self._rows.version.table.name}" after '
                f"{to_text(self._frontier_at)} are gone",
                hint="Create the changefeed anew, with an initial scan.",
            )
        until_at = min(gap.at, self._options.end_at)
        event = next(iter(self._schema.peek(until_at)), None)
        if event is not None and event.at == self._frontier_at + 1:
            return self._meet(event)
        self.close()
        self._scan = ScanPosition(ScanKind.CHANGES, until_at if event is None else event.at - 1)
        return []

    # ── scans ──────────────────────────────────────────────────────────────────────────────────

    def _scan_page(self, scan: ScanPosition) -> list[RowChange]:
        if self._pages is None:
            self._pages = self._begin(scan)
        page = next(self._pages, None)
        if page is None:
            self._pages, self._scan, self._frontier_at = None, None, scan.at
            return []
        self._scan = replace(scan, cursor=page[-1].cursor)
        return [each.change for each in page if each.change is not None]

    def _begin(self, scan: ScanPosition) -> Iterator[list[Scanned]]:
        if scan.kind is ScanKind.CHANGES:
            return self._lake_pages(scan)
        if scan.kind is ScanKind.ROWS:
            found = scan_rows(self._store, self._rows, scan.at, scan.cursor)
        else:
            found = scan_takeover(
                *(self._store, self._former, self._rows, scan.at, scan.cursor), is_full=scan.is_full
            )
        return iter(lambda: list(islice(found, PAGE_ROWS)), [])

    def _lake_pages(self, scan: ScanPosition) -> Iterator[list[Scanned]]:
        assert self._files is not None, "there is no lake that the changes could have moved to"
        head = self._rows.span.lo[:HEAD_BYTES]
        for piece in scan_changes(
            *(self._store, self._files, self._rows, scan.cursor),
            since_at=self._frontier_at,
            until_at=scan.at,
        ):
            yield [
                Scanned(self._change(head + each.suffix, each.at, each.values), each.suffix + b"\0")
                for each in piece
            ]


def first_position(table: int, options: FeedOptions, now_at: Timestamp) -> TablePosition:
    """Where a new feed begins, for one table."""
    start_at = options.cursor_at or now_at
    if options.initial_scan is InitialScan.NO:
        return TablePosition(table, start_at)
    return TablePosition(table, ZERO_AT, ScanPosition(ScanKind.ROWS, start_at))


def _ended(ending: Ending, event: TableEvent) -> WrongState:
    name, at = event.before.table.name, to_text(event.at)
    if ending is Ending.DROPPED:
        return WrongState(f'table "{name}" was dropped at {at}')
    if ending is Ending.LEFT:
        return WrongState(f'table "{name}" was moved away at {at}')
    what = ", ".join(sorted(kind.value for kind in event.kinds))
    return WrongState(
        f'the schema of table "{name}" has changed at {at}: {what}',
        hint=f"The changefeed has emitted all changes before; go on with cursor = '{to_text(event.at - 1)}'.",
    )
