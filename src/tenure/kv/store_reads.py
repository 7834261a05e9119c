"""Reading the store, and the lake's rows beneath it, as of a time: for a transaction and for its views.

    get, scan ──► the rows read ahead, else `kv.bases` ──► accept: is the answer complete at this time?
                                                             │
    the layers over the store (`kv.layers`) ─────────────────┴──► the rows of a page

Keys that are about to be read one by one can be read ahead, many in one engine call. A row that was read
ahead counts as read when it is used; the caller does the counting.

`StoreReads` reads at a fixed time, as a view does. `MovingReads` is a transaction's: its time is the store
clock at its first read, and moves up with a refresh.

Walk: `kv.transaction` and `kv.view` keep one -> `kv.bases` -> `snapshot.judge_retryable`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv import bases
from tenure.kv.bases import Accept
from tenure.kv.keys import Span
from tenure.kv.rows_ahead import RowsAhead
from tenure.kv.scope import Scope
from tenure.kv.snapshot import judge_retryable, marks, page_rows
from tenure.storage.engine import ReadResult

LaidOver = Callable[[Span], dict[bytes, bytes | None]]
"""The layers over the store within a span: values by key, None where the row is deleted."""


class StoreReads:
    __slots__ = ("_bases", "_engine", "_keyspace", "ahead", "at")

    def __init__(self, scope: Scope, at: Timestamp | None) -> None:
        self._engine, self._keyspace, _, _, self._bases, _ = scope
        self.at = at
        self.ahead = RowsAhead()

    def get(self, key: bytes, flushed_at: Timestamp) -> bytes | None:
        """`flushed_at`: the caller has a base up to this time itself, and needs only the store's rows above
        it.
        """
        if flushed_at > ZERO_AT:
            return self.get_stored(key, flushed_at)  # not kept: a read without that base needs more
        return self.ahead.take(key, lambda: self.get_stored(key, flushed_at))

    def get_stored(self, key: bytes, flushed_at: Timestamp) -> bytes | None:
        """Reads the store, also for a row that is in memory."""
        accept = self._accepting(flushed_at)
        return bases.get(self._engine, self._keyspace, self._bases, key, self._asked_at, accept)

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        wanted = self.ahead.missing(keys)
        assert all(map(self._keyspace.owns, wanted)), "a key of another tenant"
        self.ahead |= bases.get_many(
            self._engine, self._keyspace, self._bases, wanted, self._asked_at, self._accepting(ZERO_AT)
        )

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.read_ahead(keys)
        return self.ahead.take_all(keys)

    def is_empty(self, span: Span) -> bool:
        """Whether a span of one index is known to hold no row after a look at its first key."""
        asked = self._engine, self._keyspace, self._bases, span, self._asked_at, 1
        page = next(bases.pages(*asked, self._accepting(ZERO_AT), reverse=False))
        return page.answered == span and not page.rows

    def scan(
        self,
        span: Span,
        limit: int | None,
        reverse: bool,
        flushed_at: Timestamp,
        laid_over: LaidOver,
        count: Callable[[Span], object],
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the rows of a span, page by page; `count` receives the part of the span that each page
        covers.
        """
        if limit == 0:
            return
        rows_wanted = page_rows(None if limit is None else limit + len(laid_over(span)))
        rows = 0
        for page in bases.pages(
            *(self._engine, self._keyspace, self._bases, span, self._asked_at, rows_wanted),
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
        """Raises if rows of a span that the caller has from another source may be incomplete by now."""
        self.accept(marks(self._engine, self._keyspace, span), flushed_at)

    def accept(self, found: ReadResult, flushed_at: Timestamp) -> Timestamp:
        """Checks an answer against its marks; returns the read time."""
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
        """Called when the time was set or moved: raises if that time is too late to read at."""

    def read_at(self) -> Timestamp:
        """The read time; if nothing was read yet, it becomes now."""
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
