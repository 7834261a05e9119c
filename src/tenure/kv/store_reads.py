"""Reading the store, and the lake's rows beneath it, as of a time: for a transaction and for its views.

    get, scan ──► the rows read ahead, else `kv.bases` ──► accept: is the answer complete at this time?
                                                             │
    the layers over the store (`kv.layers`) ─────────────────┴──► the rows of a page

Keys that are about to be read one by one can be read ahead, many in one engine call. A row that was read
ahead counts as read when it is used; the caller does the counting.

`StoreReads` reads at a fixed time, as a view does. `MovingReads` is a transaction's: its time is the store
clock at its first read, and moves up with a refresh. Below the threshold both read only in the name of a
protection of their time.

Walk: `kv.transaction` and `kv.view` keep one -> `kv.bases` -> `snapshot.judge_retryable`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from tenure.base.errors import BelowMark
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv import bases
from tenure.kv.bases import Accept
from tenure.kv.encoding import prefix_end
from tenure.kv.keys import Span
from tenure.kv.protected_reads import ProtectedRead, is_protected
from tenure.kv.rows_ahead import RowsAhead
from tenure.kv.scope import ReadAhead, Scope
from tenure.kv.snapshot import judge_retryable, marks, page_rows
from tenure.storage.engine import HEAD_BYTES, ReadResult, head_of

LaidOver = Callable[[Span], dict[bytes, bytes | None]]
"""The layers over the store within a span: values by key, None where the row is deleted."""


class StoreReads:
    __slots__ = ("_bases", "_edges", "_engine", "_keyspace", "ahead", "at", "protected")

    def __init__(self, scope: Scope, at: Timestamp | None) -> None:
        self._engine, self._keyspace, _, _, self._bases, _ = scope
        self.at = at
        self.ahead = RowsAhead()
        self._edges: dict[bytes, tuple[Timestamp | None, bytes]] = {}
        """By head: from which key on an index was empty, and at which time that was read."""
        self.protected: list[ProtectedRead] = []
        """In whose name it may read below the threshold."""

    def get(self, key: bytes, flushed_at: Timestamp) -> bytes | None:
        """`flushed_at`: the caller has a base up to this time itself, and needs only the store's rows above
        it.
        """
        if flushed_at > ZERO_AT:
            return self.get_stored(key, flushed_at)  # not kept: a read without that base needs more
        return self.ahead.take(key, lambda: self.get_stored(key, flushed_at))

    def get_stored(self, key: bytes, flushed_at: Timestamp) -> bytes | None:
        """Reads the store, also for a row that is in memory."""
        accept = self._accepting(flushed_at, key)
        return bases.get(self._engine, self._keyspace, self._bases, key, self._asked_at, accept)

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        wanted = self.ahead.missing(keys)
        assert all(map(self._keyspace.owns, wanted)), "a key of another tenant"
        for keys_together in self._by_index(wanted) if self.protected else [wanted]:
            accept = self._accepting(ZERO_AT, keys_together[0] if keys_together else b"")
            self.ahead |= bases.get_many(
                self._engine, self._keyspace, self._bases, keys_together, self._asked_at, accept
            )

    def _by_index(self, keys: Iterable[bytes]) -> list[list[bytes]]:
        return [list(together) for _, together in groupby(sorted(keys, key=head_of), head_of)]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.read_ahead(keys)
        return self.ahead.take_all(keys)

    def present(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of some keys that have a row. Their values are not kept: a base has not made them."""
        found: set[bytes] = set()
        for together in self._by_index(keys) if self.protected else [keys]:
            accept = self._accepting(ZERO_AT, together[0] if together else b"")
            found |= bases.present(
                self._engine, self._keyspace, self._bases, together, self._asked_at, accept
            )
        return found

    def is_empty(self, span: Span) -> bool:
        """Whether a span of one index is known to hold no row after a look at its first key.

        The first look goes to the end of the index: a caller who appends rows needs no other at this time.
        """
        head = span.lo[:HEAD_BYTES]
        at, edge = self._edges.get(head, (None, b""))
        if at is None or at != self.at:
            end = prefix_end(head)
            edge = span.lo if self._is_bare(Span(span.lo, end)) else end
            self._edges[head] = self.at, edge
            if edge == span.lo:
                return True
        return span.lo >= edge or self._is_bare(span)

    def _is_bare(self, span: Span) -> bool:
        arguments = self._engine, self._keyspace, self._bases, span, self._asked_at, 1
        page = next(bases.pages(*arguments, self._accepting(ZERO_AT, span), reverse=False))
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
            self._accepting(flushed_at, span),
            reverse=reverse,
        ):
            count(page.answered)
            for row in bases.merged(page, laid_over(page.answered), reverse=reverse):
                yield row
                rows += 1
                if rows == limit:
                    return

    def rows(self, span: Span, limit: int, laid_over: LaidOver) -> list[tuple[bytes, bytes]]:
        """The first rows of a span; the caller counts them."""
        return list(self.scan(span, limit, False, ZERO_AT, laid_over, lambda answered: None))

    def check_span(self, span: Span, flushed_at: Timestamp) -> None:
        """Raises if rows of a span that the caller has from another source may be incomplete by now."""
        self.accept(marks(self._engine, self._keyspace, span), flushed_at, span)

    def accept(self, found: ReadResult, flushed_at: Timestamp, where: bytes | Span) -> Timestamp:
        """Checks the answer for a key's index, or for a span, against its marks; returns the read time."""
        assert self.at is not None
        self._judge(found, self.at, flushed_at, where)
        return self.at

    def _judge(self, found: ReadResult, at: Timestamp, flushed_at: Timestamp, where: bytes | Span) -> None:
        try:
            judge_retryable(found, read_at=at, flushed_at=flushed_at)
        except BelowMark:
            span = where if isinstance(where, Span) else self._keyspace.head_span(head_of(where))
            if not is_protected(self._engine, self._keyspace, self.protected, span, at):
                raise
            judge_retryable(found, read_at=found.threshold_at, flushed_at=flushed_at)

    def _asked_at(self) -> Timestamp | None:
        return self.at

    def _accepting(self, flushed_at: Timestamp, where: bytes | Span) -> Accept:
        def accept(found: ReadResult, base_at: Timestamp) -> Timestamp:
            return self.accept(found, max(base_at, flushed_at), where)

        return accept


class MovingReads(StoreReads):
    __slots__ = ("_clock", "on_move", "values")

    def __init__(self, scope: Scope, read_ahead: ReadAhead | None) -> None:
        self._engine, self._keyspace, self._clock, _, self._bases, _ = scope
        self.at = None if read_ahead is None else read_ahead.at
        self.ahead = RowsAhead()
        self._edges = {}
        self.protected = []
        self.values = None if read_ahead is None else dict(read_ahead.values)
        """If the transaction started from values read ahead: those, and its reads by key since."""
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

    def accept(self, found: ReadResult, flushed_at: Timestamp, where: bytes | Span) -> Timestamp:
        at = self.at
        if at is None:
            at = self.move(found.clock_at)
        if found.threshold_at > at or found.cleaned_at > flushed_at:
            self._judge(found, at, flushed_at, where)
        return at
