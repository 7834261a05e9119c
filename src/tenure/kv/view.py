"""The state of a transaction at one moment: the view of a cursor, which reads on while the transaction
writes.

    begin ── put a ── view opened ── put b ── read_at moves up ── view read: a, not b, at the old read_at

A view sees the store at the `read_at` of its opening, with the transaction's own writes up to then over it.
Later writes and undone writes of the transaction, later commits of children and a later `read_at` do not
change it.

Reads through a view count as reads of the transaction, from the time of the opening on: `kv.reads` keeps them
apart, with their own time.

Invariant (I2): what a view read is unchanged from its opening to `commit_at`, phantoms included.
Invariant (view): a view shows the state of its opening, regardless of its transaction's later actions.

Walk: `Transaction.view` opens one -> `kv.store_reads` reads the store, `kv.buffer` keeps the writes as they
were; `table.read` and the rows executor above it read a `ReadView` as they read a transaction.
"""

from collections.abc import Callable, Iterable, Iterator

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.buffer import BufferView
from tenure.kv.committed_children import ChildCommits
from tenure.kv.keys import Span
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.reads import RefreshSpans
from tenure.kv.scope import Scope
from tenure.kv.store_reads import StoreReads


class ReadView:
    def __init__(
        self,
        scope: Scope,
        at: Timestamp,
        writes: BufferView,
        child_commits: ChildCommits,
        reads: RefreshSpans,
        is_open: Callable[[], bool],
        protected: list[ProtectedRead],
    ) -> None:
        """`reads` and `protected` are the transaction's; `is_open` says whether the transaction is open."""
        self._keyspace = scope.keyspace
        self._store = StoreReads(scope, at)
        self._store.protected = protected
        self._writes = writes
        self._child_commits = child_commits
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
        child_commit = self._child_commits.get(key, self.read_at)
        if child_commit is not None:
            return child_commit.value
        return self._store.get(key, flushed_at)

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        """Reads in one call the keys that `get` is about to read one by one."""
        self._store.read_ahead(keys)

    def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        flushed_at: Timestamp = ZERO_AT,
    ) -> Iterator[tuple[bytes, bytes]]:
        """As `Transaction.scan`: each page counts as read when it is read."""
        return self._store.scan(span, limit, reverse, flushed_at, self._laid_over, self._count)

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        """As `Transaction.read_span`, for a caller that has the rows of a span as of `read_at` already."""
        self._count(span)
        self._store.check_span(span, flushed_at)
        return self._laid_over(span)

    def has_changed(self, key: bytes) -> bool:
        """Whether the transaction itself has written a key since."""
        return self._writes.has_changed(key)

    def _counted(self) -> RefreshSpans:
        """The refresh spans that count its reads."""
        assert self._is_open(), "the transaction is over"
        return self._reads.of_views(self.read_at)

    def _count(self, span: Span) -> None:
        self._counted().spans.append(span)

    def _laid_over(self, span: Span) -> dict[bytes, bytes | None]:
        return self._child_commits.within(span, self.read_at) | self._writes.within(span)
