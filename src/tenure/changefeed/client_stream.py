"""A changefeed as rows for one client: CREATE CHANGEFEED without INTO.

    take(count)   rows that are there, at most so many and some more; none: there is nothing now
    await_news    calls back when there may be rows, so that who waits needs no thread
    close         the client has enough

A row is the table, the key and the value of a message; a resolved timestamp is a row without table and key.
The stream is no job: it lives as long as its client. Until it has given a row it needs the history from there
on; a client that is slow keeps that history for a while, by a protection of the node
(`retention.long_reads`).

Memory is bounded: the feed steps on only when the rows of the last step were taken, and leaves the node's
tail when too much waits for it.

Walk: `sql.statements.jobs.changefeed_streams` makes one per statement, and calls `take`; this calls
`Feed.step`.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tenure.base.timestamp import Timestamp, seconds_between
from tenure.catalog.descriptors.definitions import Table
from tenure.changefeed.feed import Admit, Feed
from tenure.changefeed.messages import Message, resolved_text
from tenure.changefeed.options import FeedOptions
from tenure.changefeed.ordering import OrderedSink
from tenure.changefeed.records import FeedPayload, FeedPosition
from tenure.changefeed.table_stream import FeedSources
from tenure.kv.protected_reads import ProtectedRead

STREAM_BYTES = 2 << 20
"""What may wait for one client, in the queue and as messages."""

CHECK_SECONDS = 1.0
"""How often the stream looks whether its user may still have it, and without a signal for news."""

YOUNG_SECONDS = 0.2
"""A stream that is so close to the present needs no protection of history."""

Follow = Callable[["StreamRead"], Callable[[], None]]
"""Counts a read among those whose history is protected when they get old; returns what ends that."""


class StreamRow(NamedTuple):
    table: str | None
    key: str | None
    value: str | None


class _RowSink:
    """Keeps the messages until the client takes them."""

    def __init__(self) -> None:
        self.rows: deque[StreamRow] = deque()
        self.bytes = 0

    def resume(self, position: FeedPosition) -> FeedPosition:
        return position

    def emit(self, messages: Sequence[Message]) -> int:
        self.rows.extend(StreamRow(each.topic, each.key, each.value) for each in messages)
        size = sum(len(each.key) + len(each.value or "") for each in messages)
        self.bytes += size
        return size

    def commit(self, position: FeedPosition) -> FeedPosition:
        return position

    def close(self) -> None:
        self.rows.clear()

    def take(self, count: int) -> Iterator[StreamRow]:
        for _ in range(min(count, len(self.rows))):
            row = self.rows.popleft()
            self.bytes -= len(row.key or "") + len(row.value or "")
            yield row


class StreamRead:
    """The stream as a read that may get old: what comes after its frontier is kept."""

    may_write = True
    """It needs all later revisions, and not one moment."""

    def __init__(self, feed: Feed, role: str, tables: Callable[[], Collection[Table]]) -> None:
        self._feed = feed
        self.role = role
        self.tables = tables

    @property
    def at(self) -> Timestamp | None:
        return self._feed.position.needed_at

    def allow(self, protected: ProtectedRead) -> None:
        """Thresholds stay below a protection of all later times."""


class ClientStream:
    def __init__(
        self,
        sources: FeedSources,
        payload: FeedPayload,
        *,
        role: str,
        admit: Admit,
        check: Callable[[FeedPosition], None],
        follow: Follow,
    ) -> None:
        """`role` has logged in; `check` raises if the user may not have the stream any more."""
        sources = sources._replace(node=None)  # no job asks for locks in its name
        self._store, self._catalog = sources.store, sources.catalog
        self._options: FeedOptions = payload.options
        self._check = check
        self._follow = follow
        self._sink = _RowSink()
        self._ordered = OrderedSink(self._sink) if payload.options.is_ordered else None
        self._lock = self._store.env.lock()
        self._on_news: Callable[[], None] | None = None
        self._feed = Feed(
            *(sources, payload.tables, payload.options, payload.start, self._ordered or self._sink),
            scope=payload.scope,
            selection=payload.selection,
            admit=admit,
            on_wake=self._tell,
            queue_bytes=STREAM_BYTES,
        )
        self._read = StreamRead(self._feed, role, self._tables)
        self._unfollow = follow(self._read)
        self._was_old = False
        self._has_more = True
        """Whether the last step has said that there may be more at once."""
        self._resolved_at = payload.start.resolved_at
        self._resolved_due = self._check_due = self._store.env.monotonic()

    @property
    def is_done(self) -> bool:
        return not self._sink.rows and self._feed.is_done and self._feed.ending is None

    @property
    def is_busy(self) -> bool:
        """Whether the next `take` has something at once, or an error."""
        return bool(self._sink.rows) or self._has_more or self._feed.ending is not None

    @property
    def waiting_bytes(self) -> int:
        """What waits in memory for the client."""
        return self._feed.queued_bytes + self._sink.bytes

    @property
    def pause_seconds(self) -> float:
        """After which time to ask again, without news."""
        due = self._check_due
        if self._options.resolved_seconds is not None:
            due = min(due, self._resolved_due)
        return max(0.01, due - self._store.env.monotonic())

    def take(self, count: int) -> list[StreamRow]:
        """Raises why the feed has ended, when all rows before that were taken."""
        self._check_now_and_then()
        self._has_more = True
        while self._has_more and len(self._sink.rows) < count and self._is_open:
            self._has_more = self._feed.step(is_full=self._is_full)
        if self._ordered is not None:
            self._ordered.flush(self._feed.position.resolved_at)
        self._tell_resolved()
        rows = list(self._sink.take(count))
        if not rows and self._feed.ending is not None:
            raise self._feed.ending
        return rows

    @property
    def _is_open(self) -> bool:
        return not self._feed.is_done and self._feed.ending is None and not self._is_full()

    def _is_full(self) -> bool:
        return self._sink.bytes > STREAM_BYTES

    def _tell_resolved(self) -> None:
        seconds, now = self._options.resolved_seconds, self._store.env.monotonic()
        if seconds is None or now < self._resolved_due:
            return
        at = self._feed.position.resolved_at
        if at > self._resolved_at:
            self._resolved_at = at
            self._sink.rows.append(StreamRow(None, None, resolved_text(at)))
        self._resolved_due = now + seconds

    def _check_now_and_then(self) -> None:
        now = self._store.env.monotonic()
        if now < self._check_due:
            return
        self._check_due = now + CHECK_SECONDS
        position = self._feed.position
        self._check(position)
        age = seconds_between(position.needed_at, self._store.clock.now())
        if age > YOUNG_SECONDS:
            self._was_old = True
        elif self._was_old:
            # What was protected when it was old is not needed any more: it counts as another read.
            self._unfollow()
            self._unfollow, self._was_old = self._follow(self._read), False

    def _tables(self) -> Collection[Table]:
        now = self._store.snapshot()
        found = (self._catalog.get(now, each.table) for each in self._feed.position.tables)
        return [each for each in found if isinstance(each, Table)]

    # ── waiting ────────────────────────────────────────────────────────────────────────────────

    def await_news(self, on_news: Callable[[], None]) -> None:
        """Calls back once, from any thread, when there may be rows."""
        with self._lock:
            self._on_news = on_news
        if self._feed.has_news:
            self._tell()

    def _tell(self) -> None:
        with self._lock:
            on_news, self._on_news = self._on_news, None
        if on_news is not None:
            on_news()

    def close(self) -> None:
        with self._lock:
            self._on_news = None
        self._unfollow()
        self._feed.close()
        (self._ordered or self._sink).close()
