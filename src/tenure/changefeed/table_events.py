"""Table events: what the step from one version of a table to the next means for those who read its rows.

    version 7 ──► version 8      at M, the modification time of version 8
        kinds       which of the table's visible parts have changed
        response    what a feed does about it at M: nothing, a scan, an end

Most versions change nothing that readers see: stages of a change, grants, comments, indexes. They are events
without kinds, because rows from M on are read with the new version all the same.

What existing rows contain changes when a column goes, when one comes that has a value in old rows, and when a
column's type changes. A column that is renamed has the same values: its rows are not emitted again. A new
primary index takes the rows over at M: rows below M are those of the old index, from M on those of the new
one. TRUNCATE is a new primary index without rows. If the key columns change, every row leaves its old key and
appears under the new one.

Walk: `changefeed.schema_feed` makes a `TableEvent` per version; `changefeed.table_stream` asks `response_to`.
"""

from enum import Enum
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import (
    Column,
    DescriptorState,
    Index,
    Table,
    is_dropped,
    visible,
)
from tenure.changefeed.options import FeedOptions, SchemaEvents, SchemaPolicy
from tenure.changefeed.records import FeedScope, ScanKind, ScanPosition
from tenure.pipeline.remote_handles import TableVersion


class EventKind(Enum):
    ADD_COLUMN = "add column"
    FILL_COLUMN = "add column with values"
    """A new column that is not NULL in rows that were there before."""
    DROP_COLUMN = "drop column"
    CHANGE_TYPE = "change type"
    WIDEN_TYPE = "widen type"
    """The stored values are unchanged."""
    RENAME_COLUMN = "rename column"
    RENAME = "rename"
    MOVE = "move"
    NEW_PRIMARY_INDEX = "new primary index"
    CHANGE_KEY = "change primary key"
    OFFLINE = "offline"
    ONLINE = "online"
    DROP = "drop"


class TableEvent(NamedTuple):
    at: Timestamp
    """The modification time of the new version, or of a new version of a type that it uses."""
    before: TableVersion
    after: TableVersion
    kinds: frozenset[EventKind]


def event_between(at: Timestamp, before: TableVersion, after: TableVersion) -> TableEvent:
    return TableEvent(at, before, after, frozenset(kinds_between(before.table, after.table)))


def kinds_between(before: Table, after: Table) -> set[EventKind]:
    kinds = _of_columns(before, after)
    if before.name != after.name:
        kinds.add(EventKind.RENAME)
    if (before.database, before.schema) != (after.database, after.schema):
        kinds.add(EventKind.MOVE)
    if before.primary != after.primary:
        kinds.add(EventKind.NEW_PRIMARY_INDEX)
        if primary_of(before).parts != primary_of(after).parts:
            kinds.add(EventKind.CHANGE_KEY)
    if before.state is not after.state and DescriptorState.OFFLINE in (before.state, after.state):
        kinds.add(EventKind.OFFLINE if after.state is DescriptorState.OFFLINE else EventKind.ONLINE)
    if is_gone(after):
        kinds.add(EventKind.DROP)
    return kinds


def is_gone(table: Table) -> bool:
    """Dropped for good: writers on the version before the drop commit until its names are drained."""
    return is_dropped(table) and not table.draining


def primary_of(table: Table) -> Index:
    return table.index(table.primary)


def shown_columns(table: Table) -> list[Column]:
    """The columns of a table's messages."""
    return [each for each in visible(table.columns) if not each.is_hidden]


def _of_columns(before: Table, after: Table) -> set[EventKind]:
    kinds = set()
    old = {each.id: each for each in shown_columns(before)}
    new = {each.id: each for each in shown_columns(after)}
    gone = {each.name for id, each in old.items() if id not in new}
    for id, column in new.items():
        if id in old:
            if old[id].name != column.name:
                kinds.add(EventKind.RENAME_COLUMN)
            if old[id].type != column.type:
                kinds.add(EventKind.WIDEN_TYPE)
        elif column.name in gone:
            gone.discard(column.name)
            kinds.add(EventKind.CHANGE_TYPE)
        else:
            kinds.add(EventKind.FILL_COLUMN if _has_values(column) else EventKind.ADD_COLUMN)
    if gone:
        kinds.add(EventKind.DROP_COLUMN)
    return kinds


def _has_values(column: Column) -> bool:
    """Whether rows that were there before may have a value in a new column."""
    return column.filled is not None or column.default is not None or column.generated is not None


# ── what a feed does ───────────────────────────────────────────────────────────────────────────

_CHANGES_OLD_ROWS = frozenset({EventKind.FILL_COLUMN, EventKind.DROP_COLUMN, EventKind.CHANGE_TYPE})
_CHANGES_COLUMNS = _CHANGES_OLD_ROWS | {EventKind.ADD_COLUMN}
_STOPS_TOO = frozenset({EventKind.RENAME_COLUMN, EventKind.CHANGE_KEY})
"""What a feed that is to stop stops at besides: rows look different to their consumers."""


class Ending(Enum):
    DROPPED = "dropped"
    LEFT = "left"
    """It was moved out of the schema or database that the feed follows."""
    STOPPED = "stopped"


class Response(NamedTuple):
    ending: Ending | None = None
    scan: ScanPosition | None = None


def response_to(event: TableEvent, options: FeedOptions, scope: FeedScope | None = None) -> Response:
    """What a feed does at the time of an event, before it goes on."""
    if EventKind.DROP in event.kinds:
        return Response(Ending.DROPPED)
    if scope is not None and not scope.covers(event.after.table):
        return Response(Ending.LEFT)
    watched = _CHANGES_OLD_ROWS if options.events is SchemaEvents.DEFAULT else _CHANGES_COLUMNS
    if options.policy is SchemaPolicy.STOP and event.kinds & (watched | _STOPS_TOO):
        return Response(Ending.STOPPED)
    is_changed = bool(event.kinds & (watched | {EventKind.CHANGE_KEY}))
    is_full = is_changed and options.policy is SchemaPolicy.BACKFILL
    if EventKind.NEW_PRIMARY_INDEX in event.kinds:
        return Response(scan=ScanPosition(ScanKind.TAKEOVER, event.at, is_full=is_full))
    # Compared with the rows before: what is deleted at that very time is in no scan of it.
    return Response(scan=ScanPosition(ScanKind.TAKEOVER, event.at, is_full=True) if is_full else None)
