"""The schema feed: the versions of one table, in time order, and which of them is in force at a time.

    peek(T)   the events up to T that were not popped yet
    pop(T)    the same, and they are behind the feed now
    at(T)     the version in force at T: the newest with a modification time at or below T

A row is read with the version in force at its own timestamp, even if its writer used the version before. So a
row may be read only when all events up to its time are known. Three implementations prove that:

    PolledSchema    reads the history of the descriptors, with each call that asks beyond what it knows
    WatchedSchema   learns of descriptors from the same watch as the rows: both come in one order, so the
                    batch that has a row has every descriptor up to it, and nothing is read. Where the watch
                    has said nothing yet, it polls
    LeasedSchema    asks this node's newest lease first, which proves it if the table is locked
                    (`changefeed.leased_schema`); otherwise it polls

A version that changes nothing that rows are read by is no event: a lock, an owner, a view on the table.

Only the times of changes come from there; the version itself is the catalog as of that time. The types that a
table uses count too: a new label of an enum is an event of the tables that use it.

Invariant (schema-at-row): a row is read with the version of its table in force at the row's timestamp.

Walk: `changefeed.table_stream` keeps one per table: `note` with each batch of its watch, then `peek` and
`pop`.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from tenure.base.errors import UndefinedTable
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.equal_versions import row_of
from tenure.changefeed.table_events import EventKind, TableEvent, event_between
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.pipeline.remote_handles import TableVersion, version_of
from tenure.storage.engine import Revision


def version_in_force(store: Store, catalog: Catalog, table: int, at: Timestamp) -> TableVersion:
    """A table and its types as they were at a time."""
    snapshot = store.snapshot(at)
    version = version_of(table, lambda id: catalog.get(snapshot, id))
    if version is None:
        raise UndefinedTable(f"table {table} does not exist any more")
    return version


def rows_of(version: TableVersion) -> tuple[int, ...]:
    """The `row` of a table and its types: versions that have the same read rows in the same way."""
    return (row_of(version.table), *(row_of(each) for each in version.enums))


class SchemaFeed(Protocol):
    is_fast: bool
    """Whether the last answer of `peek` was found without looking at any descriptor's history."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans that the watch of the rows must have besides: without a change there is no event."""
        ...

    def note(self, revisions: Iterable[Revision], through_at: Timestamp) -> None:
        """Takes in a batch of the watch, which is complete up to a time."""
        ...

    def peek(self, until_at: Timestamp) -> Sequence[TableEvent]: ...

    def pop(self, until_at: Timestamp) -> Sequence[TableEvent]: ...

    def at(self, at: Timestamp) -> TableVersion:
        """The version in force at a time that no popped event comes after."""
        ...


class PolledSchema:
    is_fast = False

    def __init__(self, store: Store, catalog: Catalog, table: int, since_at: Timestamp) -> None:
        """Gives the events after a time."""
        self._store = store
        self._catalog = catalog
        self._table = table
        self._through_at = since_at
        """All events up to here are known."""
        self._current = self._version(since_at)
        self._events: list[TableEvent] = []
        self.spans = self._descriptor_spans()

    def note(self, revisions: Iterable[Revision], through_at: Timestamp) -> None:
        """It reads the descriptors itself."""

    def peek(self, until_at: Timestamp) -> Sequence[TableEvent]:
        while self._through_at < until_at:
            at = self._next_change(until_at)
            if at is not None:
                self._add(at)
            self._through_at = until_at if at is None else at
        return [event for event in self._events if event.at <= until_at]

    def pop(self, until_at: Timestamp) -> Sequence[TableEvent]:
        popped = self.peek(until_at)
        self._events = self._events[len(popped) :]
        if popped:
            self._current = popped[-1].after
            self.spans = self._descriptor_spans()
        return popped

    def at(self, at: Timestamp) -> TableVersion:
        events = self.peek(at)
        return events[-1].after if events else self._current

    def _next_change(self, until_at: Timestamp) -> Timestamp | None:
        """The first time up to then at which a descriptor has changed; what is dropped is not followed."""
        if self._events and EventKind.DROP in self._events[-1].kinds:
            return None
        found = []
        for span in self._descriptor_spans():
            page = self._store.history(span, since_at=self._through_at, until_at=until_at, limit=1)
            found += [revision.at for revision in page.revisions[:1]]
        return min(found, default=None)

    def _descriptor_spans(self) -> tuple[Span, ...]:
        """Of the table and its types, by the newest version that is known."""
        version = self._events[-1].after if self._events else self._current
        ids = [self._table, *(enum.id for enum in version.enums)]
        return tuple(Span(key, key + b"\0") for key in map(self._catalog.key, ids))

    def _add(self, at: Timestamp) -> None:
        before = self._events[-1].after if self._events else self._current
        after = self._version(at)
        if rows_of(after) != rows_of(before):  # otherwise rows are read with either in the same way
            self._events.append(event_between(at, before, after))

    def _version(self, at: Timestamp) -> TableVersion:
        return version_in_force(self._store, self._catalog, self._table, at)


class WatchedSchema(PolledSchema):
    def note(self, revisions: Iterable[Revision], through_at: Timestamp) -> None:
        keys = {span.lo for span in self.spans}
        for at in sorted({each.at for each in revisions if each.key in keys and each.at > self._through_at}):
            self._add(at)
            self._through_at = at
            if self._descriptor_spans() != self.spans:
                # From here on other types count, which this watch says nothing about.
                self.spans = self._descriptor_spans()
                return
        self._through_at = max(self._through_at, through_at)
