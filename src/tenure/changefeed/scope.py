"""The tables of a schema or a database, as they come: for feeds that follow all of them.

    CREATE TABLE s.a            arrives at M, the modification time of its first public version
    ALTER TABLE x SET SCHEMA s  arrives at M, with the rows that it has
    DROP, a move elsewhere      the table's own stream ends, when it has come to this event

A table that arrives at M has the frontier M - 1 and a scan of its rows at M. So rows that were committed with
the table are emitted, and the resolved timestamp of the feed does not go back: M is above the time up to
which all arrivals were known before. Temporary tables are not in the catalog, and never arrive.

Invariant (scope-complete): a table that is public under the scope at a time up to `scope_at` is among the
tables of the feed then, unless it has ended.

Walk: `changefeed.feed` calls `step`, and starts a `TableStream` for each arrival; this reads a `TailWatch`
over all descriptors.
"""

from collections.abc import Iterable

from tenure.base.errors import SnapshotTooOld, WrongState
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    DescriptorState,
    Table,
    is_dropped,
)
from tenure.changefeed.records import FeedScope, ScanKind, ScanPosition, TablePosition
from tenure.changefeed.table_events import is_gone
from tenure.changefeed.tail import FeedQueue, Tail, TailWatch
from tenure.kv.gaps import Gap
from tenure.kv.keys import Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.storage.engine import Revision


def tables_under(catalog: Catalog, snapshot: Snapshot, scope: FeedScope) -> list[Table]:
    """The public tables of a schema or database at a time."""
    return [
        each
        for each in catalog.list(snapshot)
        if isinstance(each, Table) and scope.covers(each) and each.state is DescriptorState.PUBLIC
    ]


def full_name(catalog: Catalog, snapshot: Snapshot, table: Table) -> str:
    """Tables of several schemas may have the same name."""
    parents = (catalog.get(snapshot, id) for id in (table.database, table.schema))
    return ".".join(quoted(each.name) for each in (*parents, table) if each is not None)


def quoted(name: str) -> str:
    """A part of a topic's name, so that the dots between the parts can be told from those in names."""
    is_plain = name.replace("_", "a").isalnum() and name.islower() and not name[0].isdigit()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


class ScopeTables:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        tail: Tail,
        queue: FeedQueue,
        scope: FeedScope,
        *,
        since_at: Timestamp,
        following: Iterable[int],
    ) -> None:
        """`following`: the tables that the feed has by then, which may be offline for a while."""
        self._store = store
        self._catalog = catalog
        self._scope = scope
        self._key = catalog.key(scope.id)
        self.spans: tuple[Span, ...] = (store.keyspace.head_span(catalog.descriptors_head),)
        self._watch = TailWatch(tail, queue, self.spans, since_at=since_at)
        self._watch.owner = self
        now = store.snapshot(since_at)
        self._members = {each.id for each in tables_under(catalog, now, scope)}
        for id in following:
            found = catalog.get(now, id)
            if isinstance(found, Table) and scope.covers(found) and not is_gone(found):
                self._members.add(id)
        self.ending: WrongState | None = None
        """Set when the schema or database itself is dropped."""

    @property
    def scope_at(self) -> Timestamp:
        return self._watch.frontier_at

    @property
    def is_waiting(self) -> bool:
        return self._watch.is_idle

    def step(self) -> list[TablePosition]:
        """The tables that have arrived since the last step."""
        found = self._watch.next()
        if isinstance(found, Gap):
            raise SnapshotTooOld(
                f'the history of the tables of {self._scope.noun} "{self._scope.name}" is gone',
                hint="Create the changefeed anew.",
            )
        return [position for each in found.revisions for position in self._met(each)]

    def close(self) -> None:
        self._watch.close()

    def _met(self, revision: Revision) -> Iterable[TablePosition]:
        if revision.value is None:
            return
        descriptor = self._catalog.decode(revision.value)
        if revision.key == self._key:
            self._see_scope(descriptor, revision.at)
        if not isinstance(descriptor, Table):
            return
        if is_gone(descriptor) or not self._scope.covers(descriptor):
            self._members.discard(descriptor.id)
        elif descriptor.state is DescriptorState.PUBLIC and descriptor.id not in self._members:
            self._members.add(descriptor.id)
            yield self._arrival(descriptor, revision.at)

    def _see_scope(self, descriptor: AnyDescriptor, at: Timestamp) -> None:
        if is_dropped(descriptor):
            self.ending = WrongState(f'{self._scope.noun} "{self._scope.name}" was dropped at {to_text(at)}')

    def _arrival(self, table: Table, at: Timestamp) -> TablePosition:
        name = full_name(self._catalog, self._store.snapshot(at), table)
        return TablePosition(table.id, at - 1, ScanPosition(ScanKind.ROWS, at), name)
