"""Wrong versions of product functions, each as somebody might really have written it.

Walk: `mutants.MUTANTS` is made of `ALL`; a swap replaces the function of the same place.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tenure.base import clock as clocks
from tenure.base.errors import (
    BaseMoved,
    DeadlinePassed,
    OutcomeUnknown,
    RetryError,
    SnapshotTooOld,
    TooEarly,
)
from tenure.base.timestamp import from_micros
from tenure.kv import bases, snapshot, store, watch
from tenure.kv.absences import Absences
from tenure.kv.commit_proof import CommitProof
from tenure.kv.commits import Committer
from tenure.kv.committed_children import ChildCommits
from tenure.kv.gaps import Gap, find_gap
from tenure.kv.layers import Layers
from tenure.kv.reads import RefreshSpans
from tenure.kv.store import Store
from tenure.kv.store_reads import MovingReads
from tenure.kv.transaction import Transaction
from tenure.kv.watch import ChangeBatch, Watch
from tenure.storage.engine import CommitStatus, History, Outcome, ReadResult, Removal, Removes, Revision
from tenure.storage.outcomes import decode_outcomes
from tenure.storage.sqlite import reads as sqlite_reads
from tenure.storage.sqlite import removals as sqlite_removals
from tenure.storage.sqlite import section as sqlite_section
from tenure.storage.sqlite import sqlite_engine as sqlite
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.simulation import shapes
from tests.simulation.hub import Hub
from tests.simulation.workload import SWEPT, Client

# Functions are kept before anything is swapped.
_as_commit = CommitProof.as_commit
_scan = Transaction.scan
_refresh = Transaction.refresh
_end = Transaction._end
_look = Watch._look
_get = SqliteEngine.get
_send = Committer._send
_pages = bases.pages
_decide = sqlite_section.decide
_marks = sqlite_section.marks
_marks_of = sqlite_section.Ledger._marks_of
_newer_in_spans = sqlite_section._newer_in_spans

# ── time ─────────────────────────────────────────────────────────────────────────────────────────


def deadline_checked_early(self: CommitProof) -> Any:
    now_at = from_micros(self._scope.engine.wall_micros())
    if self.deadline_at is not None and now_at >= self.deadline_at:
        raise DeadlinePassed("too late")
    return _as_commit(self)._replace(deadline_at=None)


def not_before_checked_early(self: CommitProof) -> Any:
    now_at = from_micros(self._scope.engine.wall_micros())
    if self.not_before_at is not None and now_at <= self.not_before_at:
        raise TooEarly("too early")
    return _as_commit(self)._replace(not_before_at=None)


def snapshot_without_push(self: Store, at: Any = None) -> Any:
    clock_at = self.engine.clock_at()
    return snapshot.Snapshot(self.engine, self.keyspace, clock_at if at is None else at)


def decide_by_wall_clock(execute: Any, members: Any, *, clock_at: int, wall_at: int) -> Any:
    outcomes = []
    for commit in members:
        outcome = sqlite_section.failure(execute, commit, clock_at=clock_at)
        if outcome is None:
            outcome, clock_at = _apply(execute, commit, wall_at), wall_at
        outcomes.append(outcome)
    return outcomes, clock_at


def _apply(execute: Any, commit: Any, commit_at: int) -> Any:
    ledger = sqlite_section.Ledger(execute, (), commit_at)
    outcome = ledger.apply(commit, commit_at, is_last=True)
    ledger.write()
    return outcome


def offset_not_checked(**_: int) -> None:
    return None


def bare_wall_clock(self: clocks.Clock) -> int:
    return self.wall_at()


def nothing_observed(self: clocks.Clock, at: int) -> None:
    return None


# ── validation ───────────────────────────────────────────────────────────────────────────────────


def no_newer_in_spans(execute: Any, commit: Any) -> Iterator[Any]:
    return iter(())


def no_newer_points(execute: Any, commit: Any) -> Iterator[Any]:
    return _newer_in_spans(execute, commit)


def never_written(self: Any, key: bytes) -> int:
    return 0


def never_taken(self: Any, commit: Any) -> None:
    return None


def taken_by_the_first_look(self: Any, commit: Any) -> Any:
    """As the store was before the group: what its members write is not seen."""
    waiting = {key for key, _, _ in self._waiting}
    return next(
        (
            Outcome(CommitStatus.TAKEN, at, key)
            for key in commit.absent
            if (at := self._rows.get(key)) is not None and key not in waiting
        ),
        None,
    )


def absent_without_marks(self: Absences, written: Any) -> Any:
    return tuple(key for key in self.errors if key in written)


def nothing_looked_at_again(self: Transaction) -> None:
    self._reads.present.clear()


def counted_on_as_of_before(self: Any, at: Any) -> list[bytes]:
    """As if what was there once had been read now."""
    self.points |= dict.fromkeys(self.present)
    self.present.clear()
    return []


def refresh_only_keys_found(self: Transaction, *asked: Any, **named: Any) -> Iterator[Any]:
    spans = list(self._reads.spans)
    rows = list(_scan(self, *asked, **named))
    self._reads.spans[:] = spans
    self._reads.points.update((key, None) for key, _ in rows)
    return iter(rows)


def pages_at_one_time(
    engine: Any, keyspace: Any, of: Any, span: Any, read_at: Any, *rest: Any, **named: Any
) -> Any:
    began_at = read_at()
    at = read_at if began_at is None else lambda: began_at
    return _pages(engine, keyspace, of, span, at, *rest, **named)


def every_newer_excused(execute: Any, commit: Any, key: bytes, at: int) -> Any:
    return None if commit.excused else at


def past_not_searched(execute: Any, commit: Any, key: bytes, at: int) -> Any:
    return None if at in commit.excused else at


def nobody_excused(self: CommitProof) -> Any:
    return _as_commit(self)._replace(excused=())


def refresh_unchecked(self: Transaction) -> None:
    self._store.at = self._scope.engine.clock_at()


def refresh_forgets(self: Transaction) -> None:
    _refresh(self)
    self._layers.child_commits = None


def end_forgets(self: Transaction, state: Any) -> None:
    """A parent that has not read will see its child by itself; but its own parent may have read."""
    _end(self, state)
    if self._parent is not None and self._parent._store.at is None:
        self._parent._layers.child_commits = None


def overlay_always(self: ChildCommits, revision: Any, read_at: Any) -> bool:
    return read_at is not None


def overlay_never(self: ChildCommits, revision: Any, read_at: Any) -> bool:
    return False


def own_buffer_only(self: Layers, key: bytes) -> Any:
    return self._writes.get(key)


def nothing_uncommitted(self: Layers, span: Any) -> dict[bytes, Any]:
    return {}


# ── groups and unknown outcomes ──────────────────────────────────────────────────────────────────


def settle_looks_up(self: SqliteEngine, lane: bytes, seq: int) -> Any:
    with self._section(self._writer) as execute:
        rows = execute("SELECT seq, outcomes FROM lane WHERE id = ?", (lane,))
        if not rows:
            raise OutcomeUnknown("the lane is closed")
        last_seq, outcomes = rows[0]
        return decode_outcomes(outcomes) if last_seq == seq and outcomes is not None else None


def not_settled(self: Committer, lane: bytes, seq: int, give_up_at: int | None) -> None:
    return None


def decide_each_alone(execute: Any, members: Any, *, clock_at: int, wall_at: int) -> Any:
    failures = [sqlite_section.failure(execute, commit, clock_at=clock_at) for commit in members]
    outcomes = []
    for commit, failed in zip(members, failures, strict=True):
        commit_at = max(clock_at + 1, wall_at)
        outcome = failed or _untimely(commit, commit_at)
        if outcome is None:
            outcome, clock_at = _apply(execute, commit, commit_at), commit_at
        outcomes.append(outcome)
    return outcomes, clock_at


def _untimely(commit: Any, commit_at: int) -> Any:
    if commit.deadline_at is not None and commit_at >= commit.deadline_at:
        return Outcome(CommitStatus.TOO_LATE, commit_at)
    if commit.not_before_at is not None and commit_at <= commit.not_before_at:
        return Outcome(CommitStatus.TOO_EARLY, commit_at)
    return None


def decide_one_for_all(execute: Any, members: Any, *, clock_at: int, wall_at: int) -> Any:
    for commit in members:
        failed = sqlite_section.failure(execute, commit, clock_at=clock_at)
        if failed is not None:
            return [failed for _ in members], clock_at
    return _decide(execute, members, clock_at=clock_at, wall_at=wall_at)


def decide_all_committed(execute: Any, members: Any, *, clock_at: int, wall_at: int) -> Any:
    outcomes, clock_at = _decide(execute, members, clock_at=clock_at, wall_at=wall_at)
    if not any(outcome.status is CommitStatus.COMMITTED for outcome in outcomes):
        return outcomes, clock_at
    reported = []
    for outcome in outcomes:
        if outcome.status is not CommitStatus.COMMITTED:
            clock_at += 1
            outcome = Outcome(CommitStatus.COMMITTED, clock_at)
        reported.append(outcome)
    return reported, clock_at


def outcomes_mixed_up(self: Committer, lane: Any, members: Any) -> Any:
    return list(reversed(_send(self, lane, members)))


# ── reads, marks and removals ────────────────────────────────────────────────────────────────────


def get_in_two_looks(self: SqliteEngine, key: bytes, guard: Any, at: Any = None) -> Any:
    """Looks into `past` first and into `live` later: what moves in between is in neither."""
    if at is None:
        return _get(self, key, guard, at)
    asked = (key, guard.threshold_first, guard.cleaned_first, at)
    rows = self._writer.execute(sqlite_reads._GET_PAST, asked)
    assert Hub.current is not None
    Hub.current.sleep(0.05, "between two looks")
    found = _get(self, key, guard, None)
    if not found.revisions or found.revisions[0].at <= at:
        return found
    return found._replace(revisions=[Revision(key, row[3], row[4]) for row in rows if row[3] <= at])


def judge_threshold_only(found: ReadResult, *, read_at: int, flushed_at: int = 0) -> None:
    if found.threshold_at > read_at:
        raise SnapshotTooOld("gone")


def judge_cleaned_only(found: ReadResult, *, read_at: int, flushed_at: int = 0) -> None:
    if found.cleaned_at > flushed_at:
        raise BaseMoved("moved")


def accept_by_judge(self: MovingReads, found: ReadResult, flushed_at: int, where: object) -> int:
    if self.at is None:
        self.at = found.clock_at
    try:
        snapshot.__dict__["judge"](found, read_at=self.at, flushed_at=flushed_at)
    except SnapshotTooOld as error:
        raise RetryError("gone") from error
    return self.at


def marks_without_cleaned(execute: Any, guard: Any) -> tuple[int, int]:
    return _marks(execute, guard)[0], 0


def marks_without_threshold(execute: Any, guard: Any) -> tuple[int, int]:
    return 0, _marks(execute, guard)[1]


def ledger_without_cleaned(self: Any, guard: Any) -> tuple[int, int]:
    return _marks_of(self, guard)[0], 0


def ledger_without_threshold(self: Any, guard: Any) -> tuple[int, int]:
    return 0, _marks_of(self, guard)[1]


def kept_if_newer(at: int, until_at: int, removal_at: int, points: Sequence[int]) -> bool:
    return at > removal_at


def sweep_then_publish(client: Client) -> None:
    client.sweep_at = client.store.engine.clock_at()
    head, span = client.tables.heads[SWEPT], client.tables.spans[SWEPT]
    removal = Removal(span.lo, span.hi, Removes.GARBAGE, client.sweep_at, 100)
    client.transact(lambda txn: txn.remove(removal))
    shapes.publish(client, head, 0.0)


# ── watches ──────────────────────────────────────────────────────────────────────────────────────


def resolved_is_now(self: Watch) -> Any:
    batch = _look(self)
    now_at = from_micros(self._env.wall_micros())
    if not isinstance(batch, ChangeBatch):
        return batch
    return ChangeBatch(batch.revisions, max(batch.resolved_at, now_at))


def since_is_skipped(self: Watch, span: Any, guard: Any, *, until_at: Any) -> ReadResult:
    since_at = self.resolved_at + 1
    return self._engine.history(
        History(span.lo, span.hi, guard, since_at, until_at=until_at, limit=watch.BATCH_ROWS)
    )


def cut_inside_timestamp(execute: Any, query: Any, until_at: int, limit: int) -> Any:
    gathered = []
    for head in sqlite_reads._history_heads(execute, query):
        asked = (head, query.since_at, until_at, query.lo, query.hi, limit + 1)
        gathered += [Revision(*row) for row in execute(sqlite_reads._HISTORY, asked)]
    gathered.sort(key=lambda revision: (revision.at, revision.key))
    if len(gathered) <= limit:
        return gathered, until_at
    return gathered[:limit], gathered[limit - 1].at


def next_without_poll(self: Watch, timeout: float | None = None) -> ChangeBatch | Gap:
    while True:
        self._signal.clear()
        batch = self._look()
        if isinstance(batch, ChangeBatch):
            self.resolved_at = batch.resolved_at
        if batch is not None:
            return batch
        if not self._signal.wait(timeout):
            return ChangeBatch((), self.resolved_at)


def signal_cleared_late(self: Watch, timeout: float | None = None) -> ChangeBatch | Gap:
    """Clears after looking, so that a commit in between is missed; and has no poll to make up."""
    while True:
        batch = self._look()
        self._signal.clear()
        if isinstance(batch, ChangeBatch):
            self.resolved_at = batch.resolved_at
        if batch is not None:
            return batch
        self._signal.wait(None)


def _judging(wrong: Any) -> tuple[tuple[Any, str, Any], ...]:
    """Everything that judges by marks: reads, histories, watches, transactions."""

    def found_gap(engine: Any, keyspace: Any, span: Any, found: ReadResult, since_at: int) -> Gap | None:
        try:
            wrong(found, read_at=since_at, flushed_at=since_at)
        except (SnapshotTooOld, BaseMoved):
            return find_gap(engine, keyspace, span, found, since_at)
        return None

    judges = tuple((module, "judge", wrong) for module in (snapshot, store))
    return (*judges, (watch, "find_gap", found_gap), (MovingReads, "accept", accept_by_judge))


def no_gap(engine: Any, keyspace: Any, span: Any, found: ReadResult, since_at: int) -> Gap | None:
    """A watch that goes on below a mark."""
    return None


ALL: tuple[tuple[Any, ...], ...] = (
    ("deadline checked before commit", ((CommitProof, "as_commit", deadline_checked_early),), "time"),
    ("not-before checked before commit", ((CommitProof, "as_commit", not_before_checked_early),), "time"),
    ("no clock push on a read above the clock", ((Store, "snapshot", snapshot_without_push),), "time"),
    ("commit_at is the wall clock", ((sqlite_section, "decide", decide_by_wall_clock),)),
    ("max_offset not checked", ((sqlite, "check_offset", offset_not_checked),)),
    ("clock reading is the wall clock", ((clocks.Clock, "now", bare_wall_clock),)),
    ("clock observes nothing", ((clocks.Clock, "observe", nothing_observed),)),
    ("span refresh skipped", ((sqlite_section, "_newer_in_spans", no_newer_in_spans),), "plain"),
    (
        "point refresh skipped",
        ((sqlite_section, "_newer", no_newer_points), (sqlite_section.Ledger, "_newest_at", never_written)),
        "plain",
    ),
    (
        "taken keys not looked for at commit",
        ((sqlite_section.Ledger, "absence_failure", never_taken),),
        "insert",
    ),
    (
        "keys that the group's own members take not seen",
        ((sqlite_section.Ledger, "absence_failure", taken_by_the_first_look),),
        "insert",
    ),
    ("absence proved without the lake", ((Absences, "keys", absent_without_marks),), "insert"),
    ("rows counted on not looked at", ((Transaction, "_settle_reads", nothing_looked_at_again),), "refer"),
    ("rows counted on not looked at again", ((RefreshSpans, "settle", counted_on_as_of_before),), "refer"),
    ("scan refreshes only the keys found", ((Transaction, "scan", refresh_only_keys_found),), "plain"),
    ("parent exempts everything newer", ((sqlite_section, "_stranger", every_newer_excused),), "family"),
    ("child's revision hides a stranger's", ((sqlite_section, "_stranger", past_not_searched),), "family"),
    ("child's writes not excused", ((CommitProof, "as_commit", nobody_excused),), "family"),
    ("parent does not see its child's version", ((ChildCommits, "_shows", overlay_never),), "family"),
    ("stale overlay after refresh", ((ChildCommits, "_shows", overlay_always),), "family"),
    ("refresh forgets a grandchild", ((Transaction, "refresh", refresh_forgets),), "family"),
    ("child that read nothing forgets its child", ((Transaction, "_end", end_forgets),), "family"),
    (
        "child sees nothing of the parent's buffer",
        ((Layers, "written", own_buffer_only), (Layers, "_uncommitted", nothing_uncommitted)),
        "family",
    ),
    ("refresh without validation", ((Transaction, "refresh", refresh_unchecked),), "plain"),
    ("scan keeps its time over a refresh", ((bases, "pages", pages_at_one_time),), "plain"),
    ("unknown outcome looked up, not refused", ((SqliteEngine, "settle", settle_looks_up),)),
    ("unknown outcome reported as failed", ((Committer, "_settle", not_settled),)),
    ("group members not validated together", ((sqlite_section, "decide", decide_each_alone),), "plain"),
    ("a failing member fails the rest", ((sqlite_section, "decide", decide_one_for_all),), "plain"),
    ("a failing member reported committed", ((sqlite_section, "decide", decide_all_committed),), "plain"),
    ("outcomes given to the wrong members", ((Committer, "_send", outcomes_mixed_up),), "plain"),
    ("past and live read in two looks", ((SqliteEngine, "get", get_in_two_looks),), "sweep"),
    ("cleaned mark ignored on read", _judging(judge_threshold_only), "lake"),
    (
        "cleaned mark ignored at validation",
        (
            (sqlite_section, "marks", marks_without_cleaned),
            (sqlite_section.Ledger, "_marks_of", ledger_without_cleaned),
        ),
        "lake",
    ),
    ("threshold ignored on read", _judging(judge_cleaned_only), "sweep"),
    (
        "threshold ignored at validation",
        (
            (sqlite_section, "marks", marks_without_threshold),
            (sqlite_section.Ledger, "_marks_of", ledger_without_threshold),
        ),
        "tombstones",
    ),
    ("removed before the threshold is published", ((shapes.SHAPES, "sweep", sweep_then_publish),), "sweep"),
    ("sweep drops the newest below threshold", ((sqlite_removals, "is_kept", kept_if_newer),), "sweep"),
    ("resolved is the node's now", ((Watch, "_look", resolved_is_now),)),
    ("resolved off by one", ((Watch, "_read", since_is_skipped),)),
    ("batch cut inside a timestamp", ((sqlite_reads, "_interval", cut_inside_timestamp),)),
    ("lost signal and no poll", ((Watch, "next", next_without_poll),)),
    ("signal cleared after the look", ((Watch, "next", signal_cleared_late),)),
)
