"""What a transaction reads as of one moment of it: the view of a cursor, which is read on while others write.

    begin ── put a ── view opened ── put b ── read_at moves up ── view read: a, not b, at the old read_at

A view sees the store at the `read_at` of its opening, with the transaction's own writes up to then laid
over it. What the transaction writes or takes back later, what its later children commit and a later
`read_at` do not change it.

What is read through a view counts as read by the transaction, from the time of the opening on: `kv.reads`
keeps such reads apart, with their own time.

Invariant (I2): what a view read is unchanged from its opening to `commit_at`, phantoms included.
Invariant (view): whatever its transaction does later, a view gives what was there when it was opened.

Walk: `Transaction.view` opens one -> `kv.store_reads` reads the store, `kv.buffer` keeps the writes as they
were; `table.read` and the rows executor above it read a `ReadView` as they read a transaction.
"""

from collections.abc import Callable, Iterable, Iterator

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.buffer import BufferView
from tenure.kv.committed_children import Landed
from tenure.kv.keys import Span
from tenure.kv.reads import RefreshSpans
from tenure.kv.scope import Scope
from tenure.kv.store_reads import StoreReads


class ReadView:
    def __init__(
        self,
        scope: Scope,
        at: Timestamp,
        writes: BufferView,
        landed: Landed,
        reads: RefreshSpans,
        is_open: Callable[[], bool],
    ) -> None:
        """`reads` are the transaction's; `is_open` says whether that goes on."""
        self._keyspace = scope.keyspace
        self._store = StoreReads(scope, at)
        self._writes = writes
        self._landed = landed
        self._reads = reads
        self._is_open = is_open
        self.read_at = at

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        assert self._keyspace.owns(key), "a key of another tenant"
        reads = self._counted()
        write = self._writes.get(key)
        if write is not None and write.key_stamp is None:
            return write.value
        reads.points[key] = None
        landed = self._landed.get(key, self.read_at)
        if landed is not None:
            return landed.value
        return self._store.get(key, flushed_at)

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        """Reads keys together that `get` is about to be asked for one by one."""
        self._store.read_ahead(keys)

    def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        flushed_at: Timestamp = ZERO_AT,
    ) -> Iterator[tuple[bytes, bytes]]:
        """As of a transaction: each page counts as read when it is read."""
        return self._store.scan(span, limit, reverse, flushed_at, self._laid_over, self._count)

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        """As of a transaction: for one who has the rows of a span as of `read_at` already."""
        self._count(span)
        self._store.check_span(span, flushed_at)
        return self._laid_over(span)

    def has_changed(self, key: bytes) -> bool:
        """Whether the transaction itself has written a key since."""
        return self._writes.has_changed(key)

    def _counted(self) -> RefreshSpans:
        """Where its reads count."""
        assert self._is_open(), "the transaction is over"
        return self._reads.of_views(self.read_at)

    def _count(self, span: Span) -> None:
        self._counted().spans.append(span)

    def _laid_over(self, span: Span) -> dict[bytes, bytes | None]:
        return self._landed.within(span, self.read_at) | self._writes.within(span)
