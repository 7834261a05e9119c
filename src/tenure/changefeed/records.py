"""The stored records of a changefeed: what it was asked for, and how far it has come.

    frontier_at    all changes of the table up to here are in the sink
    scan           rows that are to be emitted before the frontier can go on
    scope_at       all tables that came under a feed's schema or database up to here are among its tables

The position of a feed is one record, so that a sink can keep it together with what it stands for.

Walk: `changefeed.job` stores a `FeedPayload` and saves `FeedPosition`s; `changefeed.table_stream` makes a
`TablePosition` from its state and goes on from one; `changefeed.sinks.files` writes positions beside the
rows.
"""

from enum import Enum

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.descriptors.definitions import Expression, Table, TypeRef
from tenure.changefeed.options import FeedOptions
from tenure.kv.records import Record


class ScanKind(Enum):
    ROWS = "rows"
    """All rows visible at a time."""
    TAKEOVER = "takeover"
    """The difference that a new version makes at a time."""
    CHANGES = "changes"
    """All revisions after the frontier, up to a time, from the lake."""


class ScanPosition(Record, frozen=True):
    kind: ScanKind
    at: Timestamp
    is_full: bool = False
    """For a takeover: rows that look the same are emitted too."""
    cursor: bytes = b""
    """Where the scan goes on; empty: at its start."""


class TablePosition(Record, frozen=True):
    table: int
    frontier_at: Timestamp
    scan: ScanPosition | None = None
    name: str = ""
    """The name that its messages are filed under, of a table that came later; else see `FeedTable`."""


class FeedPosition(Record, frozen=True):
    tables: tuple[TablePosition, ...]
    batch: int = 0
    """The number of the sink's last committed batch."""
    rows: int = 0
    """Messages emitted so far, without resolved timestamps."""
    bytes: int = 0
    fast_rows: int = 0
    """Changes whose schema a lease on a locked table has proved, since the feed began."""
    slow_rows: int = 0
    """Other changes found by the watch, likewise."""
    scope_at: Timestamp = MAX_AT
    """For a schema or database; the tables of a list do not change."""
    altered: int = 0
    """The number of the alteration that it goes by."""

    @property
    def resolved_at(self) -> Timestamp:
        """All changes up to here are in the sink; zero while an initial scan is under way."""
        return min(self.scope_at, *(each.frontier_at for each in self.tables), MAX_AT)

    @property
    def needed_at(self) -> Timestamp:
        """The earliest time that the feed reads at, from here on."""
        times = (
            each.scan.at if each.scan is not None and not each.frontier_at else each.frontier_at
            for each in self.tables
        )
        return min(self.scope_at, *times, MAX_AT)


class FeedTable(Record, frozen=True):
    id: int
    name: str
    """The name that its messages are filed under: its full name when the feed was created."""


class FeedScope(Record, frozen=True):
    """A schema or a database whose tables a feed follows, also those that come later."""

    id: int
    name: str
    is_database: bool = False

    @property
    def noun(self) -> str:
        return "database" if self.is_database else "schema"

    def covers(self, table: Table) -> bool:
        return self.id == (table.database if self.is_database else table.schema)


class AddedTable(Record, frozen=True):
    number: int
    """Of the alteration."""
    table: int
    at: Timestamp
    is_scanned: bool


class SelectedColumn(Record, frozen=True):
    name: str
    expression: Expression
    type: TypeRef


class FeedSelection(Record, frozen=True):
    """The query of a feed of one table: see `changefeed.selection`."""

    columns: tuple[SelectedColumn, ...]
    condition: Expression | None
    text: str

    @property
    def expressions(self) -> tuple[Expression, ...]:
        condition = () if self.condition is None else (self.condition,)
        return (*(each.expression for each in self.columns), *condition)


class FeedPayload(Record, frozen=True):
    tables: tuple[FeedTable, ...]
    sink: str
    """The sink's location as written; in the job's record it is sealed if it has keys."""
    options: FeedOptions
    start: FeedPosition
    shown_sink: str = ""
    """The same without secrets."""
    scope: FeedScope | None = None
    given: tuple[tuple[str, str | None], ...] = ()
    """The options as they were written."""
    number: int = 0
    """How often it was altered."""
    added: tuple[AddedTable, ...] = ()
    """The tables that came by alterations."""
    selection: FeedSelection | None = None
