"""Reading the store as of one timestamp.

Invariant (I2): all reads of a snapshot see exactly the revisions visible at its timestamp.
Invariant (I30): a read below a span's threshold raises and never gives half an answer. Each
piece is judged by the marks that came with its rows, in one engine snapshot, after it has
them; later pages likewise.

The cleaned mark says up to where revisions have left the store for the lake. A reader that
holds the lake's rows up to F passes `flushed_at=F`; without it, a cleaned span is refused.

Walk: `Store.snapshot(at)` -> `Snapshot` -> `engine`; `kv.transaction` uses `judge` and `pages` too.
"""

from collections.abc import Callable, Iterator, Sequence

from tenure.base.errors import BaseMoved, SnapshotTooOld
from tenure.base.timestamp import ZERO_AT, Timestamp, to_text
from tenure.kv.keys import Keyspace, Span
from tenure.storage.engine import Engine, Found, Revision, Scan

PAGE_ROWS = 1_000
"""Rows per engine call: enough to make the call's cost vanish, few enough to stream."""


class Snapshot:
    """Made by `Store.snapshot`, which sees to it that `at` is not above the store clock."""

    def __init__(self, engine: Engine, keyspace: Keyspace, at: Timestamp) -> None:
        self._engine = engine
        self._keyspace = keyspace
        self.at = at

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        assert self._keyspace.owns(key), "a key of another tenant"
        found = self._engine.get(key, self._keyspace.point_guard(key), self.at)
        judge(found, read_at=self.at, flushed_at=flushed_at)
        return found.revisions[0].value if found.revisions else None

    def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        flushed_at: Timestamp = ZERO_AT,
    ) -> Iterator[tuple[bytes, bytes]]:
        if limit == 0:
            return
        rows = 0
        for page, _ in pages(self._engine, self._keyspace, span, lambda: self.at, page_rows(limit), reverse):
            judge(page, read_at=self.at, flushed_at=flushed_at)
            for key, _, value in page.revisions:
                assert value is not None
                yield key, value
                rows += 1
                if rows == limit:
                    return

    def pages(self, span: Span, rows: int) -> Iterator[Sequence[Revision]]:
        """The visible revisions of a span in key order, so many at a time, with their timestamps."""
        for page, _ in pages(self._engine, self._keyspace, span, lambda: self.at, rows, reverse=False):
            judge(page, read_at=self.at)
            yield page.revisions

    def diff(self, span: Span, *, since_at: Timestamp, flushed_at: Timestamp = ZERO_AT) -> Sequence[Revision]:
        """The keys whose revision visible here is newer than `since_at`, tombstones included.

        Its start is what must still be readable: below the threshold, tombstones may be gone.
        """
        assert self._keyspace.owns_span(span), "a span of another tenant"
        found = self._engine.scan(
            Scan(span.lo, span.hi, self._keyspace.guard(span), at=self.at, since_at=since_at)
        )
        judge(found, read_at=min(since_at, self.at), flushed_at=max(since_at, flushed_at))
        return found.revisions

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        """As of a transaction: judges whether rows that are had from elsewhere may still be read here."""
        judge(marks(self._engine, self._keyspace, span), read_at=self.at, flushed_at=flushed_at)
        return {}

    @property
    def read_at(self) -> Timestamp:
        return self.at


def marks(engine: Engine, keyspace: Keyspace, span: Span) -> Found:
    """A span's threshold and cleaned mark as they are now, without rows."""
    assert keyspace.owns_span(span), "a span of another tenant"
    return engine.scan(Scan(span.lo, span.hi, keyspace.guard(span), limit=0))


def judge(found: Found, *, read_at: Timestamp, flushed_at: Timestamp = ZERO_AT) -> None:
    """Refuses an answer that the marks of its own snapshot say may be incomplete."""
    if found.threshold_at > read_at:
        raise SnapshotTooOld(
            f"cannot read at {to_text(read_at)}: history before {to_text(found.threshold_at)} is gone",
            hint="Read at a later time, or keep history longer with gc.ttlseconds.",
        )
    if found.cleaned_at > flushed_at:
        raise BaseMoved(f"rows up to {to_text(found.cleaned_at)} have moved to the lake")


def page_rows(limit: int | None) -> int:
    return PAGE_ROWS if limit is None else min(PAGE_ROWS, limit)


def pages(
    engine: Engine,
    keyspace: Keyspace,
    span: Span,
    at: Callable[[], Timestamp | None],
    asked: int,
    reverse: bool,
) -> Iterator[tuple[Found, Span]]:
    """Yields a span's visible rows, so many a page, each with the part of the span it answers for.

    Each page is an engine snapshot of its own; `at` says anew for each at which time to read.
    """
    assert keyspace.owns_span(span), "a span of another tenant"
    lo, hi = span
    guard = keyspace.guard(span)
    while True:
        page = engine.scan(Scan(lo, hi, guard, at=at(), limit=asked, reverse=reverse))
        if len(page.revisions) < asked:
            yield page, Span(lo, hi)
            return
        last = page.revisions[-1].key
        yield page, Span(last, hi) if reverse else Span(lo, last + b"\0")
        lo, hi = (lo, last) if reverse else (last + b"\0", hi)
