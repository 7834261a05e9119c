"""Optimistic, serializable transactions.

    begin ──► reads at read_at, writes into a buffer ──► commit: validate, stamp, write
                    │                                        in the engine's section
                    └── refresh spans: its reads

A transaction reads the store as of `read_at`, the store clock at its first read, with its own
buffered writes laid over it. At commit the section proves that nothing it read has a revision
newer than `read_at`; so it could as well have read everything at `commit_at`.
A **child** runs while its parent is open, sees the parent's buffered writes (unless it reads committed rows
only), commits before it and stays committed even if the parent fails. The parent keeps its `read_at`:

    the parent reads  =  own writes  over  children's commits  over  the store at read_at

A transaction may start from values that were **read ahead**: values of keys as of some time. It reads as of
that time and does not ask the store for those keys. These reads count like any others, so its commit proves
that they still hold (by a separate check if it writes nothing). Until then they may be stale: a caller must
not use or report what such a transaction finds unless it commits. `Store.transact` ensures that.

Invariant (I2): what it read is unchanged at `commit_at`, phantoms included.
Invariant (known): a value that was read ahead and then used is validated like any other read.
Invariant (I4): `not_before_at < commit_at < deadline_at`, on the final timestamp.
Invariant (I7): a child is over before its parent, and writes no key the parent has written.

A transaction can commit in two ways: `commit` waits for the outcome; `submit` returns at once and calls back
when the outcome is there, and `finish` then processes it as `commit` would have.
A key that must be **absent** at the commit need not be read: the transaction declares it, and the section
proves it. A **view** keeps the transaction's state of one moment readable while it writes on: see `kv.view`.
Going back to a **savepoint** undoes buffered writes. Reads since then still count: a reader may have decided
by them before it undid its writes.

A **READ COMMITTED** transaction (`CommitProof.keep_times`) takes a new time per statement (`renew`). What it
finds (`start_finding`) does not count; what it reads for its writes (`start_writing`) is proved from its own
time on. The commit looks again at constraints that others have touched, and is sent again.

What it reads is proved by its `proof` (`kv.commit_proof`); what it writes is in its `buffer` (`kv.buffer`).

Walk: `Store.transact` -> `get`/`scan`/`put` -> `commit` -> `CommitProof.as_commit` -> `kv.commits`; or
`submit` and `finish` -> `kv.submission`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from tenure.base.errors import RetryError, TenureError
from tenure.base.interruptible import Check, unchecked
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.absences import MakeError
from tenure.kv.buffer import Buffer, BufferMark
from tenure.kv.commit_proof import CommitBounds, CommitProof
from tenure.kv.commits import Committer
from tenure.kv.keys import Span
from tenure.kv.layers import Layers
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.reads import RefreshSpans
from tenure.kv.scope import ReadAhead, Scope, TransactionState, values_at
from tenure.kv.store_reads import MovingReads
from tenure.kv.submission import Submission
from tenure.kv.view import ReadView
from tenure.storage.engine import (
    EVERY_HEAD,
    CommitStatus,
    Outcome,
    Removal,
    Stamp,
    Write,
)

COMMIT_ATTEMPTS = 100
"""How often a READ COMMITTED commit is sent while others go on to touch what its constraints depend on."""


class Transaction(CommitBounds):
    def __init__(
        self,
        scope: Scope,
        committer: Committer,
        *,
        parent: "Transaction | None" = None,
        committed_only: bool = False,
        read_ahead: ReadAhead | None = None,
    ) -> None:
        self._scope = scope
        self._keyspace = scope.keyspace
        self._committer = committer
        self._parent = parent
        self._children: list[Transaction] = []
        self._store = store = MovingReads(scope, read_ahead)
        self.buffer = buffer = Buffer(scope.limits)
        self._writes = buffer.writes
        above = None if parent is None else parent._layers
        self._layers: Layers = Layers(buffer, above, committed_only)
        self.proof = proof = CommitProof(scope, store, buffer, self._layers)
        self._reads = proof.reads
        self._submission: Submission | None = None
        self._first_view_at: Timestamp | None = None
        self.state = TransactionState.OPEN
        self.commit_at: Timestamp | None = None
        """Set by a commit that wrote something."""
        self.removed, self.removed_up_to = 0, b""
        """How many revisions its removals deleted, and where its limit cut them (`Outcome.last`)."""
        self.removed_each: tuple[int, ...] = ()
        """How many each of its removals deleted, in their order, up to the one that was cut."""

    @property
    def read_at(self) -> Timestamp:
        return self._store.read_at()

    @property
    def has_read(self) -> bool:
        return self._store.at is not None

    @property
    def earliest_at(self) -> Timestamp | None:
        """The earliest time that it, or a view of it, reads at; None: it has read nothing yet."""
        at, statements = self._store.at, self.proof.statements
        if statements is not None:
            times = [*statements.times(), *(each for each in (at, self._first_view_at) if each is not None)]
            return min(times, default=None)
        return at if self._first_view_at is None or at is None else min(at, self._first_view_at)

    def allow(self, protected: ProtectedRead) -> None:
        """Lets it read on below the threshold, as long as the protection is there."""
        self._store.protected.append(protected)

    def on_read(self, check: Callable[[], None]) -> None:
        """Sets a function that is called when `read_at` was set or moved; it raises if that is too late to
        read at.
        """
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
        if self._layers.child_commits is not None:
            child_commit = self._layers.child_commits.get(key, self._store.at)
            if child_commit is not None:
                return child_commit.value
        values = self._store.values
        if values is None:
            return self._store.get(key, flushed_at)
        if key not in values:
            values[key] = self._store.get(key, flushed_at)
        return values[key]

    def read_ahead(self, keys: Iterable[bytes]) -> None:
        """Reads in one call the keys that `get` is about to read one by one."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._store.read_ahead(keys)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """As `get` of each key; they are read together."""
        if not self.proof.is_of_store_alone or not self._writes.keys().isdisjoint(keys):
            self.read_ahead(keys)
            return [self.get(key) for key in keys]
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._reads.points.update(dict.fromkeys(keys))
        return self._store.get_many(keys)

    def present(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of some keys that are known to have a row after one look; only they count as read.

        It reads the others ahead where it has written, or sees, more than the store: `get` tells then.
        """
        if not self.proof.is_of_store_alone or not self._writes.keys().isdisjoint(keys):
            self.read_ahead(keys)
            return set()
        assert self.state is TransactionState.OPEN, "the transaction is over"
        found = self._store.present(keys)
        self._reads.points.update(dict.fromkeys([key for key in keys if key in found]))
        return found

    def are_absent(self, keys: Collection[bytes]) -> bool:
        """Whether none of some keys of one index has a row; they count as read."""
        if keys and self.proof.is_of_store_alone and self._writes.keys().isdisjoint(keys):
            assert self.state is TransactionState.OPEN, "the transaction is over"
            # Mostly nothing lies between them at all, which one look tells.
            if self._store.is_empty(Span(min(keys), max(keys) + b"\0")):
                self._reads.points.update(dict.fromkeys(keys))
                return True
        return not any(value is not None for value in self.get_many(list(keys)))

    def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        flushed_at: Timestamp = ZERO_AT,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the visible rows of a span in key order; rows that are not consumed are not read.

        Each page becomes a refresh span as it is read, and the layers over the store are merged page by page:
        a refresh between two pages moves the later ones to the later time.
        """
        assert self.state is TransactionState.OPEN, "the transaction is over"
        count = self._reads.spans.append
        return self._store.scan(span, limit, reverse, flushed_at, self._laid_over, count)

    def rows(self, span: Span, *, limit: int) -> list[tuple[bytes, bytes]]:
        """The first rows of a span. They count as read one by one: others may come between them."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        rows = self._store.rows(span, limit, self._laid_over)
        self._reads.points.update(dict.fromkeys([key for key, _ in rows]))
        return rows

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        """Counts a span as read, for a caller that has its rows as of `read_at` already; the marks are
        checked.

        Returns the layers over the store there: values by key, None where the row is deleted.
        """
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self._reads.spans.append(span)
        self._store.check_span(span, flushed_at)
        return self._laid_over(span)

    def expect_absent(self, key: bytes, make_error: MakeError) -> None:
        """Requires that a key it is about to write has no row; if it has, the commit raises `make_error()`.

        Where only a read can tell, it reads at once, and raises here.
        """
        if not self.proof.expect_absent(key, make_error) and self.get(key) is not None:
            raise make_error()

    def view(self) -> ReadView:
        """The current state, for a cursor that reads on while it writes; if not READ COMMITTED, it counts."""
        assert self._parent is None and self._store.values is None, (
            "a view is of a transaction that SQL runs in"
        )
        if self._first_view_at is None:
            self._first_view_at = self.read_at
        writes, child_commits = self.buffer.view(), self._layers.copy_child_commits()
        reads = RefreshSpans(self._keyspace) if self.proof.is_by_statement else self._reads
        state = self._scope, self.read_at, writes, child_commits, reads
        return ReadView(*state, lambda: self.state is TransactionState.OPEN, self._store.protected)

    def _laid_over(self, span: Span) -> dict[bytes, bytes | None]:
        return self._layers.within(span, self._store.at)

    # ── READ COMMITTED ─────────────────────────────────────────────────────────────────────────

    def renew(self) -> None:
        """The next read takes a new time; what was read for writing is proved from its own time on."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self.proof.end_statement()
        self._reads = self.proof.reads
        self._store.at = None
        self._store.ahead.clear()

    def start_finding(self) -> None:
        """What it reads from now on does not count: a statement finds the rows that it works on."""
        assert self.proof.statements is not None
        self._reads = self.proof.statements.unproved

    def start_writing(self) -> None:
        """What it reads from now on counts."""
        self._reads = self.proof.reads

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def put(
        self, key: bytes, value: bytes, *, key_stamp: Stamp | None = None, value_stamp: Stamp | None = None
    ) -> None:
        """Buffers a write. A stamp says where the commit timestamp goes; such a key cannot be read back."""
        self._write(Write(key, value, key_stamp, value_stamp))

    def put_all(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """As `put` of each key and value, without stamps."""
        make = tuple.__new__  # half the cost of calling Write
        writes = [make(Write, (key, value, None, None)) for key, value in entries]
        if self._parent is not None:
            for write in writes:
                self._write(write)
            return
        assert self.state is TransactionState.OPEN, "the transaction is over"
        ends = (min(writes), max(writes)) if writes else ()  # all keys lie between these
        assert all(self._keyspace.owns(write.key) for write in ends), "a key of another tenant"
        self.buffer.write_all(writes)

    def delete(self, key: bytes) -> None:
        self._write(Write(key, None))

    def remove(self, removal: Removal) -> None:
        """Removes revisions from the store for good, with the commit: for sweeps and cleaning only."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert self._keyspace.owns_span(Span(removal.lo, removal.hi)), "a span of another tenant"
        self.buffer.removals.append(removal)

    def start_head_clock(self) -> None:
        """From the commit on, every process that writes to the store keeps the head clock."""
        self.proof.moves = (EVERY_HEAD,)

    def forget_heads(self, heads: Iterable[bytes]) -> None:
        """Lets indexes leave the head clock with the commit: they have no rows, and nobody writes to them."""
        self.proof.forgotten += tuple(heads)

    def _write(self, write: Write) -> None:
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert self._keyspace.owns(write.key), "a key of another tenant"
        assert self._parent is None or not self._layers.parent_has_written(write.key), (
            "a child may not write a key that its parent has written"
        )
        self.buffer.write(write)

    @property
    def has_writes(self) -> bool:
        return bool(self._writes or self.buffer.removals)

    def forget_writes(self, span: Span) -> None:
        """Removes the writes of a span as if they had never happened; `back_to` an earlier savepoint still
        works.
        """
        self.buffer.forget(span)

    def written(self, span: Span) -> list[bytes]:
        """The keys of a span that this transaction itself has written or deleted."""
        return self.buffer.keys_within(span)

    def mark(self) -> BufferMark:
        """Marks this point of the transaction, for `back_to`."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        return self.buffer.mark()

    def back_to(self, savepoint: BufferMark | None) -> None:
        """Undoes the writes since the savepoint; reads, and commits of children, stay.

        The savepoint stays too; those marked after it are gone. None is the start of the transaction.
        """
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self.buffer.back_to(savepoint)

    def release(self, savepoint: BufferMark | None) -> None:
        """Removes a savepoint and those after it, and keeps the writes since."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        self.buffer.release(savepoint)

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
        self._store.on_move = self._submission = self.proof.absences = None
        if self._store.values is None or state is TransactionState.ENDED:
            # Its users may refer to it for long: a session does until its client begins something new.
            self.buffer.clear()
            self.proof.clear()
            self._store.ahead.clear()
        if self._parent is not None:
            self._parent._children.remove(self)
            self._layers.end()

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def refresh(self) -> None:
        """Moves `read_at` up to the store clock if all reads still hold; else raises RetryError."""
        assert self.state is TransactionState.OPEN, "the transaction is over"
        if self.proof.is_by_statement:
            self.renew()
            if not self.proof.settle_statements():
                raise RetryError("rows that a constraint depends on were changed by another transaction")
            return
        if self._reads.is_empty and self.proof.is_of_store_alone:
            self._store.at = None  # the next read brings the time: that spares a round trip
            self._store.ahead.clear()
            return
        clock_at = self.proof.check_now()
        self._store.values = None  # values that were not used are not proved
        self._store.ahead.keep_only(self._reads.points if self._layers.child_commits is None else ())
        self._store.move(clock_at)

    def settle(self) -> None:
        """Looks at constraints again before the commit, which does so only for what is touched meanwhile."""
        self._settle_reads()

    def commit(self, check: Check = unchecked) -> Timestamp:
        """Returns the commit timestamp; for a transaction that only read, a time at which all its reads hold.

        After RetryError, or an error of `check` before it is sent, nothing was written; after OutcomeUnknown
        maybe.
        """
        self._check_may_commit()
        try:
            for _ in range(COMMIT_ATTEMPTS):
                self._settle_reads()
                outcome = self._decided(check)
                if outcome.status is not CommitStatus.CONFLICT or not self.proof.has_constraints:
                    break
                self.renew()
        except BaseException:
            self._end(TransactionState.ENDED)
            raise
        return self._take_in(outcome)

    def _decided(self, check: Check) -> Outcome:
        proof = self.proof
        return self._committer.commit(proof.as_commit(), check) if self.has_writes else proof.outcome()

    def submit(self, on_done: Callable[[], None]) -> None:
        """Begins to commit and returns; once `on_done` was called, `finish` returns the outcome.

        A transaction that wrote nothing is decided at once: `on_done` is called before this returns.
        Otherwise a thread of the committer calls it while other commits wait, so it must be quick. If this
        raises, nothing was sent and `on_done` is not called.
        """
        self._check_may_commit()
        submission = Submission(on_done)
        try:
            self._settle_reads()
            if self.has_writes:
                self.state, self._submission = TransactionState.SUBMITTED, submission
                submission.send(self._committer, self.proof.as_commit())
                return
            outcome = self.proof.outcome()
        except BaseException:
            self._end(TransactionState.ENDED)
            raise
        self.state, self._submission = TransactionState.SUBMITTED, submission
        submission.decide(outcome)

    def take_back(self, error: TenureError) -> bool:
        """Takes a submitted commit back unless it was sent; calls `on_done`; `finish` raises the error."""
        submission = self._submission  # another thread may end the transaction meanwhile
        return submission is not None and submission.take_back(error)

    def finish(self) -> Timestamp:
        """Ends a submitted commit: returns or raises as `commit` would have."""
        assert self.state is TransactionState.SUBMITTED and self._submission is not None, (
            "it is not submitted"
        )
        try:
            outcome = self._submission.outcome()
        except TenureError:
            self._end(TransactionState.ENDED)
            raise
        return self._take_in(outcome)

    def _check_may_commit(self) -> None:
        assert self.state is TransactionState.OPEN, "the transaction is over"
        assert not self._children, "a child is still open"
        assert self._parent is None or not any(map(self._layers.parent_has_written, self._writes)), (
            "its parent wrote the key"
        )

    def _settle_reads(self) -> None:
        if self.proof.is_by_statement:
            self._reads = self.proof.reads
            while not self.proof.settle_statements():
                self.renew()
                self.proof.settle_statements(looks_again=True)
            return
        again = self.proof.settle()
        if again:
            self.read_ahead(again)
            if any(self.get(key) is None for key in again):
                raise RetryError("a row that was counted on is gone")

    def _take_in(self, outcome: Outcome) -> Timestamp:
        if outcome.status is not CommitStatus.COMMITTED:
            error = self.proof.failure(outcome)
            self._end(TransactionState.ENDED)
            raise error
        if self.has_writes:
            self.commit_at = outcome.at
            self._scope.volume.add(self._writes.values())
            self.removed, self.removed_up_to = outcome.removed, outcome.last
            self.removed_each = outcome.counts or (outcome.removed,) if self.buffer.removals else ()
        if self._writes and self._parent is not None:
            self._layers.land(outcome.at)
        self._end(TransactionState.COMMITTED)
        return outcome.at

    def values_at_commit(self) -> ReadAhead | None:
        """The values as of its commit that it read and wrote by key, if it started from values read ahead."""
        values = self._store.values
        if values is None or self.commit_at is None or self._layers.child_commits is not None:
            return None  # a value read ahead may have been overwritten by a child
        read = {key: value for key, value in values.items() if key in self._reads.points}
        return ReadAhead(self.commit_at, read | values_at(self._writes.values(), self.commit_at))

    def rollback(self) -> None:
        """Ends it without a commit, with its open children; does nothing if it is over, or sent."""
        if self.state is TransactionState.OPEN:
            for child in tuple(self._children):
                child.rollback()
            self._end(TransactionState.ENDED)
