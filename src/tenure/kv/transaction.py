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
from tenure.kv.absences import Absences, Taken
from tenure.kv.buffer import Buffer, BufferMark
from tenure.kv.commits import Committer, failure
from tenure.kv.keys import Span
from tenure.kv.layers import Layers
from tenure.kv.reads import Reads, RefreshSpans
from tenure.kv.scope import ReadAhead, Scope, TransactionState, values_at
from tenure.kv.store_reads import MovingReads
from tenure.kv.view import ReadView
from tenure.storage.engine import (
    HEAD_BYTES,
    Commit,
    CommitStatus,
    Outcome,
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
        self._engine, self._keyspace = scope.engine, scope.keyspace
        self._committer = committer
        self._parent = parent
        self._children: list[Transaction] = []
        self._store = MovingReads(scope, None if known is None else known.at)
        self._known = None if known is None else dict(known.values)
        """If it started from what is known: that, and what it has read by key since."""
        self._reads = RefreshSpans(self._keyspace)
        self._absences: Absences | None = None
        self._buffer = buffer = Buffer(scope.limits)
        self._writes = buffer.writes
        above = None if parent is None else parent._layers
        self._layers: Layers = Layers(buffer, above, committed_only)
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

    @property
    def read_at(self) -> Timestamp:
        return self._store.read_at()

    @property
    def has_read(self) -> bool:
        return self._store.at is not None

    def on_read(self, check: Callable[[], None]) -> None:
        """Has a function called when `read_at` was set or moved: it raises if that is too late to read at."""
        self._store.on_move = check

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert self._keyspace.owns(key), "a key of another tenant"
        if self._writes or self._parent is not None:
            write = self._layers.written(key)
            if write is not None:
                return write.value
        self._reads.points[key] = None
        if self._layers.landed is not None:
            landed = self._layers.landed.get(key, self._store.at)
            if landed is not None:
                return landed.value
        if self._known is not None and key in self._known:
            return self._known[key]
        value = self._store.get(key, flushed_at)
        if self._known is not None:
            self._known[key] = value
        return value

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        """Reads keys together that `get` is about to be asked for one by one."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._store.read_ahead(keys)

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
        count = self._reads.spans.append
        return self._store.scan(span, limit, reverse, flushed_at, self._laid_over, count)

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        """Counts a span as read, for one who has its rows as of `read_at` already: marks are judged after.

        Returns what lies over the store there: values by key, None where the row is gone.
        """
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._reads.spans.append(span)
        self._store.check_span(span, flushed_at)
        return self._laid_over(span)

    def expect_absent(self, key: bytes, taken: Taken) -> None:
        """Counts on a key that it is about to write having no row; if it has, the commit raises `taken()`.

        Where only a look can tell, it looks at once, and raises here.
        """
        if self._is_alone and key not in self._writes and self._scope.bases.of(key[:HEAD_BYTES]) is None:
            if self._absences is None:
                self._absences = Absences(self._keyspace)
            self._absences.expect(key, taken)
        elif self.get(key) is not None:
            raise taken()

    @property
    def _is_alone(self) -> bool:
        return self._parent is None and self._known is None and self._layers.landed is None

    def check_absent(self) -> None:
        """Looks now for what was counted on: a caller that is about to fail tells an earlier error first."""
        for key, taken in self._absences.taken.items() if self._absences is not None else ():
            if self._store.get_stored(key, ZERO_AT) is not None:
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
        read_at = self._store.at
        if self._parent is None and self._known is None and read_at is not None:
            self._reads.relax(since, read_at, without)

    def view(self) -> ReadView:
        """What it reads as of now, for a cursor that reads on while it writes; that counts as read."""
        assert self._parent is None and self._known is None, "a view is of a transaction that SQL runs in"
        writes, landed = self._buffer.view(), self._layers.copy_landed()
        seen = self._scope, self.read_at, writes, landed, self._reads
        return ReadView(*seen, lambda: self.state is TransactionState.OPEN)

    @property
    def has_one_time(self) -> bool:
        """Whether all that was read is known to hold at `read_at`; else its commit has to prove it."""
        return not self._reads.apart or not self._reads.older(self._store.at)

    def _laid_over(self, span: Span) -> dict[bytes, bytes | None]:
        return self._layers.within(span, self._store.at)

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
        assert self._parent is None or not self._layers.parent_has_written(write.key), (
            "a child may not write a key that its parent has written"
        )
        self._buffer.write(write)

    @property
    def has_writes(self) -> bool:
        return bool(self._writes or self._buffer.removals)

    def account_to(self, on_growth: Callable[[int], None] | None) -> None:
        """Has a function told how many bytes it is about to hold; it raises if they are too many."""
        self._buffer.account_to(on_growth)

    def check_rows(self, rows: int) -> None:
        """Raises CommitTooLarge (54000) if it can never hold so many different keys."""
        self._buffer.check_rows(rows)

    def forget_writes(self, span: Span) -> None:
        """Takes the writes of a span back as if they had never been, up to the next `back_to`."""
        self._buffer.forget(span)

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
        # These callbacks refer to users of the transaction, which refer to it: breaking the reference cycle
        # here spares a garbage collection.
        self._store.on_move = None
        self._absences = None
        if self._known is None or state is TransactionState.ENDED:
            self._buffer.clear()  # what it wrote is not read any more; its users may refer to it for long
        if self._parent is not None:
            self._parent._children.remove(self)
            self._layers.end()

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def refresh(self) -> None:
        """Moves `read_at` up to the store clock if all that was read is unchanged; else RetryError."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        if self._reads.is_empty and self._is_alone:
            self._store.at = None  # its next read brings the time: that spares a round trip
            self._store.ahead.clear()
            return
        self._check_views()
        clock_at, failed = self._engine.check(self._as_commit())
        if failed is not None:
            raise failure(failed)
        self._reads.holding(clock_at)
        self._known = None  # what was given but not read is not proved
        self._store.ahead.keep_only(self._reads.points if self._layers.landed is None else ())
        self._store.move(clock_at)

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
        assert self._parent is None or not any(map(self._layers.parent_has_written, self._writes)), (
            "its parent wrote the key"
        )

    def _settle_reads(self) -> None:
        self._check_views()
        if self._reads.present:
            again = [key for key in self._reads.settle(self.read_at) if key not in self._writes]
            self.read_ahead(again)
            if any(self.get(key) is None for key in again):
                raise RetryError("a row that was counted on is gone")

    def _take_in(self, outcome: Outcome) -> Timestamp:
        if outcome.status is not CommitStatus.COMMITTED:
            error = failure(outcome) if self._absences is None else self._absences.failure(outcome)
            self._end(TransactionState.ENDED)
            raise error
        if self.has_writes:
            self.commit_at = outcome.at
            self._scope.volume.add(self._writes.values())
            self.removed = outcome.removed
        if self._writes and self._parent is not None:
            self._layers.land(outcome.at)
        self._end(TransactionState.COMMITTED)
        return outcome.at

    def known(self) -> ReadAhead | None:
        """What it knows as of its commit: all it read and wrote by key, if it started from what was known."""
        if self._known is None or self.commit_at is None or self._layers.landed is not None:
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
        at = self.read_at if self._store.at is None else self._store.at
        # With children's effects laid over, it read no state that ever was; from what was known, an old one.
        if self._layers.landed is not None or self._known is not None:
            at, failed = self._engine.check(self._as_commit())
            if failed is not None:
                return failed
            self._scope.clock.observe(at)
        return mistimed(self.deadline_at, self.not_before_at, at) or Outcome(CommitStatus.COMMITTED, at)

    def _as_proof(self, at: Timestamp, reads: RefreshSpans) -> Commit:
        return Commit(at, *reads.proof(), self._layers.excused())

    def _as_commit(self) -> Commit:
        points, spans, guards = self._reads.proof(self._store.at)
        return Commit(
            read_at=self.read_at if points or spans else 0,
            points=points,
            spans=spans,
            guards=guards,
            excused=self._layers.excused(),
            absent=() if self._absences is None else self._absences.keys(self._writes),
            writes=tuple(self._writes.values()),
            removals=tuple(self._buffer.removals),
            deadline_at=self.deadline_at,
            not_before_at=self.not_before_at,
        )
