"""Optimistic, serializable transactions.

    begin ──► reads at read_at, writes into a buffer ──► commit: validate, stamp, write
                    │                                        in the engine's section
                    └── refresh spans: what was read

A transaction reads the store as of `read_at`, the store clock at its first read, with its own
buffered writes laid over it. At commit the section proves that nothing it read has a revision
newer than `read_at`; so it could as well have read everything at `commit_at`.
A **child** runs while its parent is open, sees the parent's buffered writes (unless it reads committed
rows only), commits before it and stays committed whatever the parent does. The parent keeps its `read_at`:

    what the parent reads  =  own writes  over  children's commits  over  the store at read_at

A transaction may start from what is **known**: values of keys as they were at a time. It reads as of
that time and does not ask for those keys; all else is as ever: what it reads counts as read, so its
commit proves that it still holds (by a check of its own if it writes nothing). Until then it may be
stale. So nothing that such a transaction finds is to be believed, or told to anybody, unless it
commits: `Store.transact` sees to that.

Invariant (I2): what it read is unchanged at `commit_at`, phantoms included.
Invariant (known): what was given as known and then read is validated like any other read.
Invariant (I4): `not_before_at < commit_at < deadline_at`, on the final timestamp.
Invariant (I7): a child is over before its parent, and writes no key the parent has written.

A transaction has two ways to end well: `commit` waits for the outcome; `submit` returns at once, calls
back when the outcome is there, and `finish` then takes it in as `commit` would have.
What it needs to be **absent** when it commits it need not look for: it says so, and the section proves it.
A **view** keeps what the transaction reads at one moment readable, whatever it writes later: see `kv.view`.
Going back to a **savepoint** undoes buffered writes. What was read since stays read: a reader that
decides by what it saw, and then takes its writes back, has still seen it.

Walk: `Store.transact` -> `get`/`scan`/`put` -> `commit`, or `submit` and `finish` -> `kv.commits`.
"""

from collections.abc import Callable, Iterable, Iterator

from tenure.base.errors import RetryError, TenureError
from tenure.base.interruptible import Check, unchecked
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv import bases
from tenure.kv.absences import Absences, Taken
from tenure.kv.bases import Accept
from tenure.kv.buffer import Buffer, BufferMark
from tenure.kv.commits import Committer, failure
from tenure.kv.committed_children import Landed
from tenure.kv.keys import Span
from tenure.kv.reads import Reads, RefreshSpans
from tenure.kv.rows_ahead import RowsAhead
from tenure.kv.scope import ReadAhead, Scope, TransactionState, values_at
from tenure.kv.snapshot import judge_retryable, marks, page_rows
from tenure.kv.view import ReadView
from tenure.storage.engine import (
    HEAD_BYTES,
    Commit,
    CommitStatus,
    Outcome,
    ReadResult,
    Removal,
    Stamp,
    Write,
    mistimed,
)


class Transaction:
    def __init__(
        self,
        scope: Scope,
        committer: Committer,
        *,
        parent: "Transaction | None" = None,
        committed_only: bool = False,
        known: ReadAhead | None = None,
    ) -> None:
        self._scope = scope
        self._engine, self._keyspace, self._clock, limits, self._bases, _ = scope
        self._committer = committer
        self._parent = parent
        self._committed_only = committed_only
        self._children: list[Transaction] = []
        self._read_at = None if known is None else known.at
        self._known = None if known is None else dict(known.values)
        """If it started from what is known: that, and what it has read by key since."""
        self._ahead, self._reads = RowsAhead(), RefreshSpans(self._keyspace)
        self._absences, self._landed = Absences(self._keyspace), Landed()
        self._buffer = buffer = Buffer(limits)
        self._writes, self.check_rows, self.forget_writes = buffer.writes, buffer.check_rows, buffer.forget
        self.account_to = buffer.account_to
        self._result: Outcome | TenureError | None = None
        """What came of a submit."""
        self.take_back: Callable[[TenureError], bool] = lambda error: False
        """Takes back what was submitted, unless it was sent; calls `on_done`; `finish` raises the error."""
        self.state = TransactionState.OPEN
        self.commit_at: Timestamp | None = None
        """Set by a commit that wrote something."""
        self.removed = 0
        """How many revisions its removals took: fewer than their limits means that none are left."""
        self.deadline_at: Timestamp | None = None
        self.not_before_at: Timestamp | None = None
        self.on_read: Callable[[], None] | None = None
        """Called when `read_at` was set or moved: whoever may not read so late raises."""

    @property
    def read_at(self) -> Timestamp:
        if self._read_at is None:
            self._read_from(self._engine.clock_at())
        assert self._read_at is not None
        return self._read_at

    @property
    def has_read(self) -> bool:
        return self._read_at is not None

    def _read_from(self, clock_at: Timestamp) -> None:
        self._read_at = clock_at
        self._clock.observe(clock_at)
        if self.on_read is not None:
            self.on_read()

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert self._keyspace.owns(key), "a key of another tenant"
        if self._writes or self._parent is not None:
            write = self._buffered(key)
            if write is not None:
                return write.value
        self._reads.points[key] = None
        if self._landed.revisions:
            landed = self._landed.get(key, self._read_at)
            if landed is not None:
                return landed.value
        if self._known is not None and key in self._known:
            return self._known[key]
        value = self._ahead.take(key, lambda: self._stored(key, flushed_at))
        if self._known is not None:
            self._known[key] = value
        return value

    def _stored(self, key: bytes, flushed_at: Timestamp) -> bytes | None:
        accept = self._accepting(flushed_at)
        return bases.get(self._engine, self._keyspace, self._bases, key, self._asked_at, accept)

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        """Reads keys together that `get` is about to be asked for one by one."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        wanted = self._ahead.missing(keys)
        assert all(map(self._keyspace.owns, wanted)), "a key of another tenant"
        self._ahead |= bases.get_many(
            self._engine, self._keyspace, self._bases, wanted, self._asked_at, self._accepting(ZERO_AT)
        )

    def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        flushed_at: Timestamp = ZERO_AT,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the visible rows of a span in key order; what is not asked for is not read.

        Each page becomes a refresh span as it is read, and what lies over the store is laid over
        page by page: a refresh between two pages moves the later ones to the later time.
        """
        assert self.state is TransactionState.OPEN, "the transaction is over"
        if limit == 0:
            return
        asked = page_rows(None if limit is None else limit + len(self._laid_over(span)))
        rows = 0
        for page in bases.pages(
            *(self._engine, self._keyspace, self._bases, span, self._asked_at, asked),
            self._accepting(flushed_at),
            reverse=reverse,
        ):
            self._reads.spans.append(page.answered)
            for row in bases.merged(page, self._laid_over(page.answered), reverse=reverse):
                yield row
                rows += 1
                if rows == limit:
                    return

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        """Counts a span as read, for one who has its rows as of `read_at` already: marks are judged after.

        Returns what lies over the store there: values by key, None where the row is gone.
        """
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._reads.spans.append(span)
        self._accept(marks(self._engine, self._keyspace, span), flushed_at)
        return self._laid_over(span)

    def expect_absent(self, key: bytes, taken: Taken) -> None:
        """Counts on a key that it is about to write having no row; if it has, the commit raises `taken()`.

        Where only a look can tell, it looks at once, and raises here.
        """
        if self._is_alone and key not in self._writes and self._bases.of(key[:HEAD_BYTES]) is None:
            self._absences.expect(key, taken)
        elif self.get(key) is not None:
            raise taken()

    @property
    def _is_alone(self) -> bool:
        return self._parent is None and self._known is None and not self._landed.revisions

    def check_absent(self) -> None:
        """Looks now for what was counted on: for whoever fails later, and must say first what came first."""
        for key, taken in self._absences.taken.items():
            if self._stored(key, ZERO_AT) is not None:
                raise taken()

    def mark_reads(self) -> Reads:
        """Marks what has been read so far, for `forget_reads`."""
        return self._reads.mark()

    def forget_reads(self, since: Reads, within: Span | None = None) -> None:
        """For a statement that reads again, as its rows have changed, or that takes any rows of a span."""
        self._reads.forget(since, within)

    @property
    def counts_on_rows(self) -> bool:
        """Whether there are rows of which it only counts that they are there."""
        return bool(self._reads.present)

    def relax_reads(self, since: Reads, *, without: bytes | None = None) -> None:
        """Of rows read by their keys since then, only that they are there counts; `without` was not found."""
        if self._parent is None and self._known is None and self._read_at is not None:
            self._reads.relax(since, self._read_at, without)

    def view(self) -> ReadView:
        """What it reads as of now, for whoever reads on while it writes; that counts as read."""
        assert self._parent is None and self._known is None, "a view is of a transaction that SQL runs in"
        writes, landed = self._buffer.view(), self._landed.copy()
        seen = self._scope, self.read_at, writes, landed, self._reads
        return ReadView(*seen, lambda: self.state is TransactionState.OPEN)

    @property
    def has_one_time(self) -> bool:
        """Whether all that was read is known to hold at `read_at`; else its commit has to prove it."""
        return not self._reads.apart or not self._reads.older(self._read_at)

    def _asked_at(self) -> Timestamp | None:
        return self._read_at

    def _accepting(self, flushed_at: Timestamp) -> Accept:
        def accept(found: ReadResult, base_at: Timestamp) -> Timestamp:
            self._accept(found, max(base_at, flushed_at))
            return self.read_at

        return accept

    def _accept(self, found: ReadResult, flushed_at: Timestamp) -> None:
        if self._read_at is None:
            self._read_from(found.clock_at)
        assert self._read_at is not None
        if found.threshold_at > self._read_at or found.cleaned_at > flushed_at:
            judge_retryable(found, read_at=self._read_at, flushed_at=flushed_at)

    def _buffered(self, key: bytes) -> Write | None:
        """The uncommitted write of this key, by this transaction or an ancestor it may see."""
        write = self._writes.get(key)
        if write is None and self._parent is not None and not self._committed_only:
            return self._parent._buffered(key)
        return write if write is None or write.key_stamp is None else None

    def _laid_over(self, span: Span) -> dict[bytes, bytes | None]:
        """All that lies over the store within a span: later entries win."""
        parents = {} if self._parent is None or self._committed_only else self._parent._uncommitted(span)
        # An ancestor's buffered write will be committed after all that has landed.
        return self._landed.within(span, self._read_at) | parents | self._buffer.within(span)

    def _uncommitted(self, span: Span) -> dict[bytes, bytes | None]:
        if self._parent is None or self._committed_only:
            return self._buffer.within(span)
        return self._parent._uncommitted(span) | self._buffer.within(span)

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def put(
        self, key: bytes, value: bytes, *, key_stamp: Stamp | None = None, value_stamp: Stamp | None = None
    ) -> None:
        """Buffers a write. A stamp says where the commit timestamp goes; such a key is not read back."""
        self._write(Write(key, value, key_stamp, value_stamp))

    def delete(self, key: bytes) -> None:
        self._write(Write(key, None))

    def remove(self, removal: Removal) -> None:
        """Takes revisions out of the store for good, with the commit: sweeps and cleaning only."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert self._keyspace.owns_span(Span(removal.lo, removal.hi)), "a span of another tenant"
        self._buffer.removals.append(removal)

    def _write(self, write: Write) -> None:
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert self._keyspace.owns(write.key), "a key of another tenant"
        assert self._parent is None or not self._parent._has_written(write.key), (
            "a child may not write a key that its parent has written"
        )
        self._buffer.write(write)

    def _has_written(self, key: bytes) -> bool:
        return key in self._writes or (self._parent is not None and self._parent._has_written(key))

    @property
    def has_writes(self) -> bool:
        return bool(self._writes or self._buffer.removals)

    def written(self, span: Span) -> list[bytes]:
        """The keys of a span that it has written, or deleted, itself."""
        return list(self._buffer.within(span))

    def mark(self) -> BufferMark:
        """Marks this point of the transaction, for `back_to`."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        return self._buffer.mark()

    def back_to(self, savepoint: BufferMark | None) -> None:
        """Takes back what was written since; what was read, and what children committed, stays so.

        The savepoint stays too; those marked after it are gone. None is the start of the transaction.
        """
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._buffer.back_to(savepoint)

    def release(self, savepoint: BufferMark | None) -> None:
        """Forgets a savepoint and those after it, and keeps what was written since."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._buffer.release(savepoint)

    # ── children ───────────────────────────────────────────────────────────────────────────────

    def child(self, *, committed_only: bool = False) -> "Transaction":
        assert self.state is TransactionState.OPEN, "the transaction is over"
        child = type(self)(self._scope, self._committer, parent=self, committed_only=committed_only)
        self._children.append(child)
        return child

    def _end(self, state: TransactionState) -> None:
        self.state = state
        # Both refer to the caller, which refers to the transaction: a cycle would wait for a collection.
        self.on_read = None
        self._absences.taken.clear()
        if self._known is None or state is TransactionState.ENDED:
            self._buffer.clear()  # what it wrote is not read any more; whoever refers to it may stay for long
        if self._parent is not None:
            self._parent._children.remove(self)
            self._parent._landed.take_in(self._landed)

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def refresh(self) -> None:
        """Moves `read_at` up to the store clock if all that was read is unchanged; else RetryError."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        if self._reads.is_empty and self._is_alone:
            self._read_at = None  # its next read brings the time: that spares a round trip
            self._ahead.clear()
            return
        self._check_views()
        clock_at, failed = self._engine.check(self._as_commit())
        if failed is not None:
            raise failure(failed)
        self._reads.holding(clock_at)
        self._known = None  # what was given but not read is not proved
        self._ahead.keep_only(() if self._landed.revisions else self._reads.points)
        self._read_from(clock_at)

    def _check_views(self) -> None:
        """Raises if what views have read at earlier times has changed since; else it holds at `read_at`."""
        if self._reads.apart and not self.has_one_time:
            for at, reads in self._reads.apart.items():
                _, failed = self._engine.check(self._as_proof(at, reads))
                if failed is not None:
                    raise failure(failed)
            self._reads.holding(self.read_at)

    def commit(self, check: Check = unchecked) -> Timestamp:
        """Returns the commit timestamp (of a transaction that only read: a time at which all of it was so).

        On RetryError, or what `check` raises before it is sent, nothing was written; on OutcomeUnknown maybe.
        """
        self._check_may_commit()
        try:
            self._settle_reads()
            commit = self._committer.commit
            outcome = commit(self._as_commit(), check) if self.has_writes else self._prove_reads()
        except BaseException:
            self._end(TransactionState.ENDED)
            raise
        return self._take_in(outcome)

    def submit(self, on_done: Callable[[], None]) -> None:
        """Begins to commit and returns; once `on_done` was called, `finish` says what came of it.

        One that wrote nothing is decided at once: `on_done` is called before this returns. Otherwise a
        thread of the committer calls it, and others wait for that: it must be quick. If this raises,
        nothing was sent and `on_done` is not called.
        """
        self._check_may_commit()

        def decided(result: Outcome | TenureError) -> None:
            self._result = result
            on_done()

        try:
            self._settle_reads()
            if self.has_writes:
                self.state = TransactionState.SUBMITTED
                self.take_back = self._committer.submit(self._as_commit(), decided)
                return
            outcome = self._prove_reads()
        except BaseException:
            self._end(TransactionState.ENDED)
            raise
        self.state = TransactionState.SUBMITTED
        decided(outcome)

    def finish(self) -> Timestamp:
        """Ends what was submitted: returns, or raises, what `commit` would have."""
        assert self.state is TransactionState.SUBMITTED and self._result is not None, (
            "it is not submitted, or not done"
        )
        if isinstance(self._result, TenureError):
            self._end(TransactionState.ENDED)
            raise self._result
        return self._take_in(self._result)

    def _check_may_commit(self) -> None:
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert not self._children, "a child is still open"
        parent = self._parent
        assert parent is None or not any(map(parent._has_written, self._writes)), "its parent wrote the key"

    def _settle_reads(self) -> None:
        self._check_views()
        if self._reads.present:
            again = [key for key in self._reads.settle(self.read_at) if key not in self._writes]
            self.read_ahead(again)
            if any(self.get(key) is None for key in again):
                raise RetryError("a row that was counted on is gone")

    def _take_in(self, outcome: Outcome) -> Timestamp:
        if outcome.status is not CommitStatus.COMMITTED:
            error = self._absences.failure(outcome)
            self._end(TransactionState.ENDED)
            raise error
        if self.has_writes:
            self.commit_at = outcome.at
            self._scope.volume.add(self._writes.values())
            self.removed = outcome.removed
        if self._writes and self._parent is not None:
            self._landed.add(self._writes.values(), outcome.at)
        self._end(TransactionState.COMMITTED)
        return outcome.at

    def known(self) -> ReadAhead | None:
        """What it knows as of its commit: all it read and wrote by key, if it started from what was known."""
        if self._known is None or self.commit_at is None or self._landed.excused:
            return None  # of what a child has overwritten, what was given may be read no more
        read = {key: value for key, value in self._known.items() if key in self._reads.points}
        return ReadAhead(self.commit_at, read | values_at(self._writes.values(), self.commit_at))

    def rollback(self) -> None:
        """Gives it up, and children that are still open; harmless if it is over, or on its way."""
        if self.state is TransactionState.OPEN:
            for child in tuple(self._children):
                child.rollback()
            self._end(TransactionState.ENDED)

    def _prove_reads(self) -> Outcome:
        """The outcome of one that writes nothing."""
        at = self.read_at
        # With children's effects laid over, it read no state that ever was; from what was known, an old one.
        if self._landed.excused or self._known is not None:
            at, failed = self._engine.check(self._as_commit())
            if failed is not None:
                return failed
            self._clock.observe(at)
        return mistimed(self.deadline_at, self.not_before_at, at) or Outcome(CommitStatus.COMMITTED, at)

    def _as_proof(self, at: Timestamp, reads: RefreshSpans) -> Commit:
        return Commit(at, *reads.proof(), tuple(self._landed.excused))

    def _as_commit(self) -> Commit:
        points, spans, guards = self._reads.proof(self._read_at)
        return Commit(
            read_at=self.read_at if points or spans else 0,
            points=points,
            spans=spans,
            guards=guards,
            excused=tuple(self._landed.excused),
            absent=self._absences.keys(self._writes),
            writes=tuple(self._writes.values()),
            removals=tuple(self._buffer.removals),
            deadline_at=self.deadline_at,
            not_before_at=self.not_before_at,
        )
