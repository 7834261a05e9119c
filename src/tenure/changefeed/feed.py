"""A feed: the streams of its tables, encoded into one sink.

Each step asks every table that may have something for a piece of its changes, so a table that is scanned, or
far behind, holds back no other; a table that is idle is not asked. The position of the feed is that of all
its tables; its resolved timestamp is the least frontier.

A table that is dropped, or leaves the schema that the feed follows, ends with an event, and the feed goes on
with the others. A feed of named tables ends with the last of them, a feed of a schema when that is dropped.

Between steps a feed waits for commits to the spans that its tables watch. It looks at them now and then in
any case, because a signal may be lost, and the resolved timestamp moves with commits of others.

Walk: `changefeed.job` calls `step`, then `wait` ->
`ScopeTables.step`, `TableStream.step`, `Encoder.message`, `Sink.emit`.
"""

from collections.abc import Callable, Sequence

from tenure.base.errors import WrongState
from tenure.base.timestamp import MAX_AT, ZERO_AT
from tenure.changefeed.event_messages import event_message
from tenure.changefeed.messages import Encoder, Message
from tenure.changefeed.options import FeedOptions, InitialScan, SchemaEvents, SchemaPolicy
from tenure.changefeed.records import FeedPosition, FeedScope, FeedSelection, FeedTable, TablePosition
from tenure.changefeed.scope import ScopeTables
from tenure.changefeed.selection import Selection
from tenure.changefeed.sinks.sink import Sink
from tenure.changefeed.table_stream import FeedSources, StreamStep, TableStream
from tenure.changefeed.tail import FeedQueue
from tenure.changefeed.version_rows import RowChange
from tenure.kv.keys import Span
from tenure.kv.records import replace

Admit = Callable[[TablePosition], None]
"""Raises if the feed may not follow a table that has come."""


class Feed:
    def __init__(
        self,
        sources: FeedSources,
        tables: Sequence[FeedTable],
        options: FeedOptions,
        position: FeedPosition,
        sink: Sink,
        *,
        scope: FeedScope | None = None,
        selection: FeedSelection | None = None,
        admit: Admit = lambda position: None,
        on_wake: Callable[[], None] = lambda: None,
        queue_bytes: int | None = None,
    ) -> None:
        """`on_wake` is called from any thread when there may be changes."""
        self._sources = sources
        self._selection = None if selection is None else Selection(selection)
        # Whether a row has matched is seen from what it was before.
        self._options = options if selection is None else replace(options, diff=True)
        self._scope = scope
        self._admit = admit
        self._names = {each.id: each.name for each in tables}
        self._sink = sink
        self._encoder = Encoder(options)
        self._wishes = _wishes(options)
        self._on_wake = on_wake
        self._queue = FeedQueue(queue_bytes)
        self._streams: list[TableStream] = []
        self._active: dict[TableStream, None] = {}
        """The streams that may have something; a set that keeps its order."""
        self._arrivals: list[TablePosition] = []
        """Tables that have come back, while the stream of their former stay has not ended yet."""
        self._position = position
        self._signal = sources.store.env.event()
        self._spans: dict[TableStream, tuple[Span, ...]] = {}
        self._began: dict[TableStream, TablePosition] = {}
        self._is_subscribed = False
        self._unsubscribe: Callable[[], None] = lambda: None
        self.ending: WrongState | None = None
        """Why it has to end: its tables are gone, or a schema has changed and the feed is to stop then."""
        for each in position.tables:
            self._begin(each)
        self._scope_tables = self._scope_watch(position)

    def _scope_watch(self, position: FeedPosition) -> ScopeTables | None:
        if self._scope is None or self._options.initial_scan is InitialScan.ONLY:
            return None
        store, catalog, _, tail, _ = self._sources
        return ScopeTables(
            *(store, catalog, tail, self._queue, self._scope),
            since_at=position.scope_at,
            following=[each.table for each in position.tables],
        )

    @property
    def position(self) -> FeedPosition:
        scope = self._scope_tables
        # The scope first: a table that it has told of is among the streams.
        scope_at = self._position.scope_at if scope is None else scope.scope_at
        tables = (*(each.position for each in self._streams), *self._arrivals)
        return replace(
            self._position,
            tables=tables,
            scope_at=min(scope_at, self._scope_limit),
            fast_rows=self._position.fast_rows + sum(each.fast_rows for each in self._streams),
            slow_rows=self._position.slow_rows + sum(each.slow_rows for each in self._streams),
        )

    @property
    def _scope_limit(self) -> int:
        """How far a feed of a schema counts, though it may have no table."""
        return MAX_AT if self._scope is None else self._options.end_at

    @property
    def beginnings(self) -> tuple[TablePosition, ...]:
        """Where each table of `position` began in this run."""
        return (*(self._began[each] for each in self._streams), *self._arrivals)

    @property
    def bytes(self) -> int:
        """The bytes emitted so far."""
        return self._position.bytes

    @property
    def queued_bytes(self) -> int:
        """What waits for this feed in memory."""
        return self._queue.bytes

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to emit: its end time has come, or it was to scan only."""
        if self._arrivals or not all(each.is_done for each in self._streams):
            return False
        return self._scope_tables is None or self._scope_tables.scope_at >= self._options.end_at

    @property
    def has_news(self) -> bool:
        """Whether there may be changes since the last step."""
        return self._signal.is_set() or bool(self._queue.ready)

    def step(self, is_full: Callable[[], bool] = lambda: False) -> bool:
        """Emits a piece of changes; returns whether there may be more at once.

        When the sink is full, the other tables have their turn in the next step.
        """
        self._signal.clear()  # before looking, so that a commit after the look is not missed
        self._subscribe()
        self._sources.tail.advance()
        while self._queue.ready:
            owner = self._queue.ready.popleft().owner
            if owner in self._spans:
                self._active[owner] = None
        is_busy = self._step_scope()
        for stream in [*self._active]:
            if is_full():
                return True
            del self._active[stream]
            self._active[stream] = None
            is_busy = self._step_stream(stream) or is_busy
        return is_busy or bool(self._queue.ready)

    def _step_scope(self) -> bool:
        scope = self._scope_tables
        if scope is None:
            return False
        self._arrivals += [each for each in scope.step() if each.frontier_at < self._options.end_at]
        for arrival in [*self._arrivals]:
            if all(each.table != arrival.table for each in self._streams):
                self._admit(arrival)
                self._arrivals.remove(arrival)
                self._begin(arrival)
        if scope.ending is not None and not self._streams:
            self.ending = scope.ending
        return not scope.is_waiting

    def _begin(self, position: TablePosition) -> None:
        stream = TableStream(self._sources, self._options, position, queue=self._queue, scope=self._scope)
        if position.name:
            self._names[position.table] = position.name
        self._streams.append(stream)
        self._active[stream] = None
        self._spans[stream] = stream.spans
        self._began[stream] = position
        self._is_subscribed = False

    def _step_stream(self, stream: TableStream) -> bool:
        """Returns whether the stream may have more at once."""
        if stream.is_done or stream.ending is not None:
            del self._active[stream]
            return False
        messages = self._messages(stream, stream.step())
        if messages:
            self._count(len(messages), self._sink.emit(messages))
        if self._spans[stream] != stream.spans:
            self._spans[stream], self._is_subscribed = stream.spans, False
        if stream.ending is not None:
            self._end(stream, stream.ending)
            return True
        if stream.is_idle:
            del self._active[stream]
        return not stream.is_waiting

    def _messages(self, stream: TableStream, step: StreamStep) -> Sequence[Message]:
        topic, changes = self._names[stream.table], step.changes
        if self._selection is not None:
            changes, self.ending = self._selection.selected(changes)

        def encoded() -> Sequence[Message]:
            return [
                self._encoder.message(topic, each)
                if isinstance(each, RowChange)
                else event_message(topic, each, is_over=stream.is_over)
                for each in changes
            ]

        if step.batch is None or self._selection is not None:
            return encoded()
        return step.batch.shared((step.version, topic, self._wishes), encoded)

    def _end(self, stream: TableStream, ending: WrongState) -> None:
        self._active.pop(stream, None)
        is_last = self._scope is None and len(self._streams) == 1
        if is_last or not stream.is_over:
            self.ending = ending
            return
        stream.close()
        self._streams.remove(stream)
        former = self._position
        self._position = replace(
            former,
            fast_rows=former.fast_rows + stream.fast_rows,
            slow_rows=former.slow_rows + stream.slow_rows,
        )
        del self._spans[stream], self._began[stream]

    def wait(self, seconds: float) -> None:
        """Returns when there may be changes, or after so many seconds."""
        self._signal.wait(seconds)

    def committed(self, position: FeedPosition) -> None:
        """The sink has committed: the feed goes on with the number of that batch."""
        self._position = replace(self._position, batch=position.batch)

    def close(self) -> None:
        self._unsubscribe()
        for stream in self._streams:
            stream.close()
        if self._scope_tables is not None:
            self._scope_tables.close()

    def _count(self, rows: int, size: int) -> None:
        former = self._position
        self._position = replace(former, rows=former.rows + rows, bytes=former.bytes + size)

    def _subscribe(self) -> None:
        if self._is_subscribed:
            return
        self._unsubscribe()
        spans = [span for found in self._spans.values() for span in found]
        if self._scope_tables is not None:
            spans += self._scope_tables.spans
        self._unsubscribe = self._sources.store.engine.subscribe(self._wake, spans)
        self._is_subscribed = True

    def _wake(self) -> None:
        self._sources.tail.touch()
        self._signal.set()
        self._on_wake()


def _wishes(options: FeedOptions) -> FeedOptions:
    """What of the options concerns the messages: feeds that agree in it share them."""
    return replace(
        options,
        resolved_seconds=None,
        checkpoint_seconds=None,
        initial_scan=InitialScan.YES,
        cursor_at=ZERO_AT,
        end_at=MAX_AT,
        policy=SchemaPolicy.BACKFILL,
        events=SchemaEvents.DEFAULT,
        ddl_events=False,
    )
