"""Reading the store, and the lake's rows beneath it, as of a time: for a transaction and for its views.

    get, scan ──► what was read ahead, else `kv.bases` ──► accept: is the answer complete at this time?
                                                             │
    what lies over the store (`kv.layers`) ──────────────────┴──► the rows of a page

Keys that are about to be asked for one by one can be read ahead, many in one engine call. What was read ahead
counts as read when it is asked for; counting is the caller's part.

`StoreReads` reads at a fixed time, as a view does. `MovingReads` is a transaction's: its time is the store
clock at its first read, and moves up with a refresh.

Walk: `kv.transaction` and `kv.view` keep one -> `kv.bases` -> `snapshot.judge_retryable`.
"""

from collections.abc import Callable, Iterable, Iterator

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv import bases
from tenure.kv.bases import Accept
from tenure.kv.keys import Span
from tenure.kv.rows_ahead import RowsAhead
from tenure.kv.scope import Scope
from tenure.kv.snapshot import judge_retryable, marks, page_rows
from tenure.storage.engine import ReadResult

LaidOver = Callable[[Span], dict[bytes, bytes | None]]
"""What lies over the store within a span: values by key, None where the row is gone."""


class StoreReads:
    __slots__ = ("_bases", "_engine", "_keyspace", "ahead", "at")

    def __init__(self, scope: Scope, at: Timestamp | None) -> None:
        self._engine, self._keyspace, _, _, self._bases, _ = scope
        self.at = at
        self.ahead = RowsAhead()

    def get(self, key: bytes, flushed_at: Timestamp) -> bytes | None:
        """`flushed_at`: the caller has a base up to there itself, and wants what the store has above it."""
        if flushed_at > ZERO_AT:
            return self.get_stored(key, flushed_at)  # not kept: a read without that base wants more
        return self.ahead.take(key, lambda: self.get_stored(key, flushed_at))

    def get_stored(self, key: bytes, flushed_at: Timestamp) -> bytes | None:
        """Asks the store, also for a row that is in hand."""
        accept = self._accepting(flushed_at)
        return bases.get(self._engine, self._keyspace, self._bases, key, self._asked_at, accept)

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        wanted = self.ahead.missing(keys)
        assert all(map(self._keyspace.owns, wanted)), "a key of another tenant"
        self.ahead |= bases.get_many(
            self._engine, self._keyspace, self._bases, wanted, self._asked_at, self._accepting(ZERO_AT)
        )

    def scan(
        self,
        span: Span,
        limit: int | None,
        reverse: bool,
        flushed_at: Timestamp,
        laid_over: LaidOver,
        count: Callable[[Span], object],
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the rows of a span, page by page; `count` is given the part that each page answers for."""
        if limit == 0:
            return
        asked = page_rows(None if limit is None else limit + len(laid_over(span)))
        rows = 0
        for page in bases.pages(
            *(self._engine, self._keyspace, self._bases, span, self._asked_at, asked),
            self._accepting(flushed_at),
            reverse=reverse,
        ):
            count(page.answered)
            for row in bases.merged(page, laid_over(page.answered), reverse=reverse):
                yield row
                rows += 1
                if rows == limit:
                    return

    def check_span(self, span: Span, flushed_at: Timestamp) -> None:
        """Raises if rows of a span that the caller has from elsewhere may be incomplete by now."""
        self.accept(marks(self._engine, self._keyspace, span), flushed_at)

    def accept(self, found: ReadResult, flushed_at: Timestamp) -> Timestamp:
        """Judges an answer by its marks; returns the time that is read at."""
        assert self.at is not None
        judge_retryable(found, read_at=self.at, flushed_at=flushed_at)
        return self.at

    def _asked_at(self) -> Timestamp | None:
        return self.at

    def _accepting(self, flushed_at: Timestamp) -> Accept:
        def accept(found: ReadResult, base_at: Timestamp) -> Timestamp:
            return self.accept(found, max(base_at, flushed_at))

        return accept


class MovingReads(StoreReads):
    __slots__ = ("_clock", "on_move")

    def __init__(self, scope: Scope, at: Timestamp | None) -> None:
        self._engine, self._keyspace, self._clock, _, self._bases, _ = scope
        self.at = at
        self.ahead = RowsAhead()
        self.on_move: Callable[[], None] | None = None
        """Called when the time was set or moved: raises if so late a time may not be read."""

    def read_at(self) -> Timestamp:
        """The time that it reads at; if nothing was read yet, that is now."""
        return self.move(self._engine.clock_at()) if self.at is None else self.at

    def move(self, clock_at: Timestamp) -> Timestamp:
        self.at = clock_at
        self._clock.observe(clock_at)
        if self.on_move is not None:
            self.on_move()
        return clock_at

    def accept(self, found: ReadResult, flushed_at: Timestamp) -> Timestamp:
        at = self.at
        if at is None:
            at = self.move(found.clock_at)
        if found.threshold_at > at or found.cleaned_at > flushed_at:
            judge_retryable(found, read_at=at, flushed_at=flushed_at)
        return at
