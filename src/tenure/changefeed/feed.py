"""A feed: the streams of its tables, encoded into one sink.

Each step asks every table for a piece of its changes, so a table that is scanned, or far behind, holds back
no other. The position of the feed is that of all its tables; its resolved timestamp is the least frontier.

Between steps a feed waits for commits to the spans that its tables watch. It looks at them now and then in
any case, because a signal may be lost, and the resolved timestamp moves with commits of others.

Walk: `changefeed.job` calls `step`, then `wait` ->
`TableStream.step`, `Encoder.message`, `Sink.emit`.
"""

from collections.abc import Callable, Sequence

from tenure.base.errors import WrongState
from tenure.changefeed.messages import Encoder
from tenure.changefeed.options import FeedOptions
from tenure.changefeed.records import FeedPosition, FeedTable
from tenure.changefeed.sinks.sink import Sink
from tenure.changefeed.table_stream import FeedSources, TableStream
from tenure.kv.keys import Span
from tenure.kv.records import replace


class Feed:
    def __init__(
        self,
        sources: FeedSources,
        tables: Sequence[FeedTable],
        options: FeedOptions,
        position: FeedPosition,
        sink: Sink,
    ) -> None:
        self._engine = sources.store.engine
        self._topics = {each.id: each.name for each in tables}
        self._sink = sink
        self._encoder = Encoder(options)
        self._streams = [TableStream(sources, options, each) for each in position.tables]
        self._position = self._start = position
        self._signal = sources.store.env.event()
        self._spans: tuple[Span, ...] = ()
        self._unsubscribe: Callable[[], None] = lambda: None

    @property
    def position(self) -> FeedPosition:
        return replace(
            self._position,
            tables=tuple(each.position for each in self._streams),
            fast_rows=self._start.fast_rows + sum(each.fast_rows for each in self._streams),
            slow_rows=self._start.slow_rows + sum(each.slow_rows for each in self._streams),
        )

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to emit: its end time has come, or it was to scan only."""
        return all(each.is_done for each in self._streams)

    @property
    def ending(self) -> WrongState | None:
        """Why it has to end: a table was dropped, or its schema has changed and the feed is to stop then."""
        return next((each.ending for each in self._streams if each.ending is not None), None)

    def step(self) -> bool:
        """Emits a piece of changes; returns whether there may be more at once."""
        self._signal.clear()  # before looking, so that a commit after the look is not missed
        self._subscribe()
        is_busy = False
        for stream in self._streams:
            if stream.is_done or stream.ending is not None:
                continue
            topic = self._topics[stream.position.table]
            messages = [self._encoder.message(topic, change) for change in stream.step()]
            is_busy = is_busy or not stream.is_waiting
            if messages:
                self._count(len(messages), self._sink.emit(messages))
        return is_busy

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

    def _count(self, rows: int, size: int) -> None:
        former = self._position
        self._position = replace(former, rows=former.rows + rows, bytes=former.bytes + size)

    def _subscribe(self) -> None:
        spans = tuple(span for stream in self._streams for span in stream.spans)
        if spans != self._spans:
            self._unsubscribe()
            self._spans = spans
            self._unsubscribe = self._engine.subscribe(self._signal.set, spans)
