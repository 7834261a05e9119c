"""Reading the store as of one timestamp.

Invariant (I2): all reads of a snapshot see exactly the revisions visible at its timestamp.
Invariant (I30): a read below a span's threshold raises and never returns a partial answer. Each piece
is checked against the marks of its own engine snapshot after it was read; later pages likewise.
Invariant (merge-outlasts-ttl): the delta of a merge is checked against the cleaned mark alone.

A snapshot may read in the name of a protection of its time: then pieces below the threshold stand as long as
its record is there (`kv.protected_reads`).

The cleaned mark says up to which time revisions have moved to the lake; `kv.bases` reads both.
A reader that holds the lake's rows up to F itself passes `flushed_at=F`.

Walk: `Store.snapshot` -> `Snapshot` -> `kv.bases` -> `Engine`; `kv.store_reads` uses `judge_retryable`,
`table.lake.scanning` uses `judge_span`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tenure.base.errors import BaseMoved, BelowMark, SnapshotTooOld
from tenure.base.timestamp import ZERO_AT, Timestamp, to_text
from tenure.kv import bases
from tenure.kv.bases import NO_BASES, Accept, Bases
from tenure.kv.keys import Keyspace, Span
from tenure.kv.protected_reads import ProtectedRead, is_protected
from tenure.storage.engine import HEAD_BYTES, Engine, ReadResult, Revision, Revisions, Scan, head_of

PAGE_ROWS = 1_000
"""Rows per engine call: enough to make the cost of the call negligible, few enough to stream."""


class Snapshot:
    """Made by `Store.snapshot`, which ensures that `at` is not above the store clock."""

    def __init__(
        self,
        engine: Engine,
        keyspace: Keyspace,
        at: Timestamp,
        bases: Bases = NO_BASES,
        protected: ProtectedRead | None = None,
    ) -> None:
        assert protected is None or protected.at == at, "the protection is of another time"
        self._engine = engine
        self._keyspace = keyspace
        self._bases = bases
        self._protected: tuple[ProtectedRead, ...] = () if protected is None else (protected,)
        self._ahead: dict[bytes, bytes | None] = {}
        """Rows that were read ahead and not used yet."""
        self.at = at

    def allow(self, protected: ProtectedRead) -> None:
        """Lets it read on below the threshold, as long as the protection is there."""
        self._protected += (protected,)

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        """Reads in one call the keys that `get` is about to read one by one."""
        wanted = list(keys)
        assert all(map(self._keyspace.owns, wanted)), "a key of another tenant"
        for head, of_head in groupby(sorted(wanted, key=head_of), head_of):
            accept = self._accepting(self._keyspace.head_span(head), ZERO_AT)
            self._ahead |= bases.get_many(
                self._engine, self._keyspace, self._bases, of_head, lambda: self.at, accept
            )

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        assert self._keyspace.owns(key), "a key of another tenant"
        if key in self._ahead:
            return self._ahead.pop(key, None)
        accept = self._accepting(Span(key, key + b"\0"), flushed_at)
        return bases.get(self._engine, self._keyspace, self._bases, key, lambda: self.at, accept)

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
        for page in bases.pages(
            self._engine,
            self._keyspace,
            self._bases,
            span,
            lambda: self.at,
            page_rows(limit),
            self._accepting(span, flushed_at),
            reverse=reverse,
        ):
            for key, value in page.rows.items():
                if value is None:
                    continue
                yield key, value
                rows += 1
                if rows == limit:
                    return

    def _accepting(self, span: Span, flushed_at: Timestamp) -> Accept:
        def accept(found: ReadResult, base_at: Timestamp) -> Timestamp:
            self._judge(found, span, flushed_at=max(base_at, flushed_at))
            return self.at

        return accept

    def _judge(self, found: ReadResult, span: Span, *, flushed_at: Timestamp) -> None:
        judge_span(
            *(self._engine, self._keyspace, self._protected, span, found),
            read_at=self.at,
            flushed_at=flushed_at,
        )

    def stored(self, span: Span, rows: int, *, since_at: Timestamp = ZERO_AT) -> Iterator[Sequence[Revision]]:
        """The visible revisions in the store with their timestamps, in key order, so many at a time.

        With `since_at` only newer ones, tombstones too; keys in between are skipped, so a page may have few.
        No revision of the span may have moved to the lake.
        """
        guard, lo = self._keyspace.guard(span), span.lo
        while True:
            query = Scan(lo, span.hi, guard, at=self.at, limit=rows, tombstones=since_at > ZERO_AT)
            page = self._engine.scan(query)
            self._judge(page, span, flushed_at=since_at)
            yield [each for each in page.revisions if each.at > since_at] if since_at else page.revisions
            if len(page.revisions) < rows:
                return
            lo = page.revisions[-1].key + b"\0"

    def revisions(
        self, span: Span, *, since_at: Timestamp, limit: int, until_at: Timestamp | None = None
    ) -> Iterator[Sequence[Revision]]:
        """Every revision of a span that is newer than `since_at`, by key and then time, in pages: for merges.

        Each page has all revisions of its keys, up to `until_at`; `limit` counts keys. No revision of the
        span may have moved to the lake. The threshold may have passed `at`: a merge that takes longer than
        the ttl must end too. Then only the revisions that are visible at a readable time are complete, and a
        base needs no others. For rows as of `at` use `stored`.
        """
        assert self._keyspace.owns_span(span), "a span of another tenant"
        guard, lo = self._keyspace.guard(span), span.lo
        until_at = self.at if until_at is None else until_at
        while True:
            found = self._engine.revisions(Revisions(lo, span.hi, guard, since_at, until_at, limit))
            judge_cleaned(found, flushed_at=since_at)
            yield found.revisions
            if not found.last:
                return
            lo = found.last + b"\0"

    def diff(
        self,
        span: Span,
        *,
        since_at: Timestamp,
        flushed_at: Timestamp = ZERO_AT,
        start: ProtectedRead | None = None,
    ) -> Sequence[Revision]:
        """The keys whose revision visible here is newer than `since_at`, tombstones included.

        `since_at` must still be readable, if only in the name of `start`, a protection of exactly that time:
        below the threshold, tombstones may be gone.
        """
        assert self._keyspace.owns_span(span), "a span of another tenant"
        found = self._engine.scan(
            Scan(span.lo, span.hi, self._keyspace.guard(span), at=self.at, since_at=since_at)
        )
        protected = self._protected if start is None else (*self._protected, start)
        for read_at in {min(since_at, self.at), self.at}:
            judge_span(
                *(self._engine, self._keyspace, protected, span, found),
                read_at=read_at,
                flushed_at=max(since_at, flushed_at),
            )
        return found.revisions

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        """As `Transaction.read_span`: checks whether rows from another source may still be read here."""
        self._judge(marks(self._engine, self._keyspace, span), span, flushed_at=flushed_at)
        return {}

    @property
    def read_at(self) -> Timestamp:
        return self.at


def marks(engine: Engine, keyspace: Keyspace, span: Span) -> ReadResult:
    """A span's threshold and cleaned mark as they are now, without rows."""
    assert keyspace.owns_span(span), "a span of another tenant"
    return engine.scan(Scan(span.lo, span.hi, keyspace.guard(span), limit=0))


def judge_span(
    engine: Engine,
    keyspace: Keyspace,
    protected: Sequence[ProtectedRead],
    span: Span,
    found: ReadResult,
    *,
    read_at: Timestamp,
    flushed_at: Timestamp,
) -> None:
    """Refuses an answer that may be incomplete, unless a protection keeps what is visible at its time."""
    try:
        judge(found, read_at=read_at, flushed_at=flushed_at)
    except SnapshotTooOld as error:
        if not protected or not is_protected(engine, keyspace, protected, span, read_at):
            error.head = span.lo[:HEAD_BYTES]
            raise
        judge_cleaned(found, flushed_at=flushed_at)


def judge(found: ReadResult, *, read_at: Timestamp, flushed_at: Timestamp = ZERO_AT) -> None:
    """Refuses an answer that may be incomplete according to the marks of its own snapshot."""
    if found.threshold_at > read_at:
        raise SnapshotTooOld(
            f"cannot read at {to_text(read_at)}: history before {to_text(found.threshold_at)} is gone",
            hint="Read at a later time, or keep history longer with gc.ttlseconds.",
        )
    judge_cleaned(found, flushed_at=flushed_at)


def judge_cleaned(found: ReadResult, *, flushed_at: Timestamp) -> None:
    """Refuses an answer from which revisions may be missing that the reader has no base for."""
    if found.cleaned_at > flushed_at:
        raise BaseMoved(f"rows up to {to_text(found.cleaned_at)} have moved to the lake")


def judge_retryable(found: ReadResult, *, read_at: Timestamp, flushed_at: Timestamp) -> None:
    """The same for a transaction, as RetryError: a fresh attempt reads at a fresh time."""
    try:
        judge(found, read_at=read_at, flushed_at=flushed_at)
    except SnapshotTooOld as error:
        raise BelowMark(str(error)) from error


def page_rows(limit: int | None) -> int:
    return PAGE_ROWS if limit is None else min(PAGE_ROWS, limit)
