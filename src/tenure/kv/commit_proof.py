"""What the section must prove before a transaction commits: that its reads still hold, and that the keys
which it requires to be absent have no row.

    get, scan, views ──► reads ────────┐
    expect_absent ──► absences ────────┼──► as_commit ──► the section, or a check by the engine
    children's commits ──► excused ────┘

A transaction that writes sends the proof together with its writes. One that wrote nothing is decided here
(`outcome`): all its reads hold at `read_at` already, unless children's commits lie over them or values were
read ahead. A refresh needs the same proof for the store clock of now (`check_now`).

Views that were opened at an earlier time have reads of that time. These are proved first, by one check for
each such time.

A READ COMMITTED transaction has proofs of several times (`kv.statement_proofs`). They are brought to one time
before the commit: a check from its own time on shows that a proof holds at the time of the last statement,
and the section proves all of them from there on.

Walk: `kv.transaction` keeps one -> `RefreshSpans.proof`, `Absences.keys`, `Layers.excused` -> `Engine.check`.
"""

from collections.abc import Callable, Iterable, Sequence

from tenure.base.errors import RetryError, TenureError
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.absences import Absences, MakeError
from tenure.kv.buffer import Buffer
from tenure.kv.commits import failure
from tenure.kv.keys import Span
from tenure.kv.layers import Layers
from tenure.kv.reads import Reads, RefreshSpans
from tenure.kv.scope import Scope
from tenure.kv.statement_proofs import StatementProofs
from tenure.kv.store_reads import MovingReads
from tenure.storage.engine import HEAD_BYTES, Commit, CommitStatus, Outcome, mistimed


class CommitProof:
    __slots__ = (
        *("_buffer", "_layers", "_scope", "_store", "absences"),
        *("deadline_at", "forgotten", "moves", "not_before_at", "reads", "statements"),
    )

    def __init__(self, scope: Scope, store: MovingReads, buffer: Buffer, layers: Layers) -> None:
        self._scope = scope
        self._store = store
        self._buffer = buffer
        self._layers = layers
        self.reads = RefreshSpans(scope.keyspace)
        self.statements: StatementProofs | None = None
        """Of a READ COMMITTED transaction: the proofs of its statements, each with its own time."""
        self.absences: Absences | None = None
        self.moves: tuple[bytes, ...] = ()
        self.forgotten: tuple[bytes, ...] = ()
        """Heads that count as moved by the commit, besides those of its writes."""
        self.deadline_at: Timestamp | None = None
        self.not_before_at: Timestamp | None = None

    # ── what counts as read ────────────────────────────────────────────────────────────────────

    def mark(self) -> Reads:
        """Marks the reads so far, for `forget`, `relax` and `guard`."""
        statements = self.statements
        if statements is None:
            return self.reads.mark()
        groups, constraints = len(statements.rows), len(statements.constraints)
        return self.reads.mark()._replace(groups=groups, constraints=constraints)

    def forget(self, since: Reads, within: Span | None = None) -> None:
        """For a statement that reads again because its rows have changed, or that accepts any rows of a
        span. Also what a READ COMMITTED transaction gives up when it goes back to a savepoint.
        """
        if self.statements is None or within is not None:
            self.reads.forget(since, within)
        else:
            self.statements.forget(since, self.reads)

    def relax(self, since: Reads, *, without: bytes | None = None) -> None:
        """Of the rows read by key since then, only the presence counts; `without` is a key that had no
        row.
        """
        read_at = self._store.at
        if self.statements is not None:
            return  # `guard` looks at them again, which tells a changed row from one that is gone
        if not self._layers.has_parent and self._store.values is None and read_at is not None:
            self.reads.relax(since, read_at, without)

    @property
    def counts_on_rows(self) -> bool:
        """Whether there are rows of which only the presence counts."""
        return bool(self.reads.present)

    @property
    def has_one_time(self) -> bool:
        """Whether all reads are proved to hold at `read_at`; else the commit has to prove it."""
        if self.statements is not None and not self.statements.is_empty:
            return False
        return not self.reads.apart or not self.reads.older(self._store.at)

    # ── times of their own ─────────────────────────────────────────────────────────────────────

    def keep_times(self) -> None:
        """From now on each statement reads at a time of its own: READ COMMITTED."""
        assert self.reads.is_empty and self.is_of_store_alone, "it has read already"
        self.statements = StatementProofs(self._scope.keyspace)

    @property
    def is_by_statement(self) -> bool:
        return self.statements is not None

    @property
    def has_constraints(self) -> bool:
        """Whether its commit may be sent again after a conflict."""
        return self.statements is not None and bool(self.statements.constraints)

    def end_statement(self) -> None:
        """The next statement reads at another time: what was read for writing keeps its own."""
        statements = self.statements
        assert statements is not None
        if not self.reads.is_empty:
            statements.set_aside(self._store.read_at(), self.reads)
        statements.unproved.clear()

    def guard(self, since: Reads, look_again: Callable[[], None]) -> None:
        """What was read since a mark decides on a constraint: if it changes before the commit, `look_again`
        decides at the newest time. It guards what it reads, or raises. For READ COMMITTED alone.
        """
        if self.statements is not None and self.reads.mark()[:2] != since[:2]:
            reads = self.reads.take(since)
            self.statements.add_constraint(self._store.read_at(), reads, look_again)

    def hold(self, keys: Iterable[bytes]) -> None:
        """Counts rows as read that were found and locked; those that it has written are proved already."""
        writes = self._buffer.writes
        self.reads.points.update(dict.fromkeys([key for key in keys if key not in writes]))

    def get_committed(self, key: bytes) -> bytes | None:
        """Reads a key without regard to the transaction's own writes; it counts as read."""
        self.reads.points[key] = None
        return self._store.get(key, ZERO_AT)

    def are_unchanged(self, keys: Iterable[bytes]) -> bool:
        """Whether rows have not changed between `read_at` and now."""
        reads = RefreshSpans(self._scope.keyspace)
        reads.points = dict.fromkeys(keys)
        return not reads.points or self._is_unchanged(self._store.read_at(), reads)

    def _is_unchanged(self, at: Timestamp, reads: RefreshSpans) -> bool:
        return self._scope.engine.check(self.as_check(at, reads))[1] is None

    def settle_statements(self, *, looks_again: bool = False) -> bool:
        """Brings the proofs of all statements to `read_at`. Raises RetryError if a row has changed.

        Constraints that depend on what has changed are looked at again if `looks_again`, at a `read_at` that
        was just taken; else it returns False if there are any.
        """
        statements = self.statements
        assert statements is not None
        if statements.is_empty:
            return True
        at = self._store.read_at()  # before the checks: what they find unchanged holds at this time
        if statements.changed_rows(at, self._is_unchanged) is not None:
            raise RetryError("a row that the transaction has written or locked was changed by another one")
        changed = statements.changed_constraints(at, self._is_unchanged)
        if not looks_again:
            return not changed
        statements.drop(changed)
        for constraint in changed:
            constraint.look_again()
        return True

    # ── keys that must be absent ───────────────────────────────────────────────────────────────

    def expect_absent(self, key: bytes, make_error: MakeError) -> bool:
        """Requires that a key has no row at the commit.

        Returns False, and requires nothing, if only a read can tell.
        """
        if not self.is_of_store_alone or key in self._buffer.writes:
            return False
        if self._scope.bases.of(key[:HEAD_BYTES]) is not None:
            return False
        if self.absences is None:
            self.absences = Absences(self._scope.keyspace)
        self.absences.expect(key, make_error)
        return True

    def check_absent(self) -> None:
        """Reads the keys required to be absent now: a caller that is about to fail reports an earlier error
        first.
        """
        for key, make_error in self.absences.errors.items() if self.absences is not None else ():
            if self._store.get_stored(key, ZERO_AT) is not None:
                raise make_error()

    @property
    def is_of_store_alone(self) -> bool:
        """Whether its reads see only the store and its own writes: it has no parent, no commits of children
        and no values that were read ahead.
        """
        layers = self._layers
        return not layers.has_parent and self._store.values is None and layers.child_commits is None

    # ── proving ────────────────────────────────────────────────────────────────────────────────

    def check_views(self) -> None:
        """Raises if reads of views at earlier times no longer hold; else they hold at `read_at`."""
        if not self.has_one_time:
            for at, reads in self.reads.apart.items():
                _, failed = self._scope.engine.check(self.as_check(at, reads))
                if failed is not None:
                    raise failure(failed)
            self.reads.holding(self._store.read_at())

    def check_now(self) -> Timestamp:
        """Raises RetryError unless all reads still hold; returns the store clock at which they do."""
        self.check_views()
        clock_at, failed = self._scope.engine.check(self.as_commit())
        if failed is not None:
            raise failure(failed)
        self.reads.holding(clock_at)
        return clock_at

    def settle(self) -> Sequence[bytes]:
        """Prepares the reads for the commit: those of views must hold at `read_at`, and rows of which only
        the presence matters count as read. Returns the keys that must be read again, because the time has
        moved.
        """
        if self.reads.apart:
            self.check_views()
        if not self.reads.present:
            return ()
        again = self.reads.settle(self._store.read_at())
        return [key for key in again if key not in self._buffer.writes]

    def outcome(self) -> Outcome:
        """The outcome of a transaction that writes nothing."""
        at = self._store.at or self._store.read_at()
        # With children's commits over it, it read no state that ever existed; from values read ahead, an old
        # one.
        if self._layers.child_commits is not None or self._store.values is not None:
            at, failed = self._scope.engine.check(self.as_commit())
            if failed is not None:
                return failed
            self._scope.clock.observe(at)
        return mistimed(self.deadline_at, self.not_before_at, at) or Outcome(CommitStatus.COMMITTED, at)

    def as_check(self, at: Timestamp, reads: RefreshSpans) -> Commit:
        """The proof of some reads of one time, without writes."""
        return Commit(at, *reads.proof(), self._layers.excused())

    def as_commit(self) -> Commit:
        """The proof of everything, with the writes."""
        writes = self._buffer.writes
        reads, statements = self.reads, self.statements
        if statements is not None and not statements.is_empty:
            reads = reads.joined([*statements.rows, *statements.constraints])
        points, spans, guards = reads.proof(self._store.at)
        # Watches of an index must hear that its marks were raised, though these lie under other heads.
        keyspace = self._scope.keyspace
        cleaned, thresholds = keyspace.marked_heads(writes)
        # A mark that goes with its index says of no row that it has come.
        cleaned = tuple([head for head in cleaned if writes[keyspace.cleaned_key(head)].value is not None])
        return Commit(
            read_at=self._store.read_at() if points or spans else 0,
            points=points,
            spans=spans,
            guards=guards,
            excused=self._layers.excused(),
            absent=() if self.absences is None else self.absences.keys(writes),
            writes=tuple(writes.values()),
            moves=(*cleaned, *self.moves),
            thresholds=thresholds,
            forgotten=self.forgotten,
            removals=tuple(self._buffer.removals),
            deadline_at=self.deadline_at,
            not_before_at=self.not_before_at,
        )

    def clear(self) -> None:
        """The transaction is over: nothing has to be proved any more."""
        self.reads.clear()
        if self.statements is not None:
            self.statements.clear()

    def failure(self, outcome: Outcome) -> TenureError:
        """The error that a refusal raises from the commit."""
        return failure(outcome) if self.absences is None else self.absences.failure(outcome)


class CommitBounds:
    """The times between which a transaction must commit, if it has any: leases, claims and locks set them."""

    proof: CommitProof

    @property
    def deadline_at(self) -> Timestamp | None:
        """The commit timestamp must lie before it."""
        return self.proof.deadline_at

    @deadline_at.setter
    def deadline_at(self, at: Timestamp | None) -> None:
        self.proof.deadline_at = at

    @property
    def not_before_at(self) -> Timestamp | None:
        """The commit timestamp must lie after it."""
        return self.proof.not_before_at

    @not_before_at.setter
    def not_before_at(self, at: Timestamp | None) -> None:
        self.proof.not_before_at = at
