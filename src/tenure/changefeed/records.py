"""The stored records of a changefeed: what it was asked for, and how far it has come.

    frontier_at    all changes of the table up to here are in the sink
    scan           rows that are to be emitted before the frontier can go on

The position of a feed is one record, so that a sink can keep it together with what it stands for.

Walk: `changefeed.job` stores a `FeedPayload` and saves `FeedPosition`s; `changefeed.table_stream` makes a
`TablePosition` from its state and goes on from one; `changefeed.sinks.files` writes positions beside the
rows.
"""

from enum import Enum

from tenure.base.timestamp import Timestamp
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

    @property
    def resolved_at(self) -> Timestamp:
        """All changes up to here are in the sink; zero while an initial scan is under way."""
        return min(each.frontier_at for each in self.tables)


class FeedTable(Record, frozen=True):
    id: int
    name: str
    """The name that its messages are filed under: its full name when the feed was created."""


class FeedPayload(Record, frozen=True):
    tables: tuple[FeedTable, ...]
    sink: str
    """The sink's location as written; in the job's record it is sealed if it has keys."""
    options: FeedOptions
    start: FeedPosition
    shown_sink: str = ""
    """The same without secrets."""
