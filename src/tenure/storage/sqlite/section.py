"""The inside of SQLite's section: validates each commit, then writes it.

Everything here runs inside one SQLite transaction that the caller began and will end, through a bare
`execute`; so the same checks serve a commit (in the section) and a refresh (in a read transaction). Members
of a group see one another: the writes of one are visible to the next, in the tables or in the ledger of
pending writes.

Invariant (I2): a commit whose spans hold a revision newer than its `read_at` writes nothing.
Invariant (I4): the deadline is compared with the final commit timestamp, strictly.
Invariant (absent): a commit writes nothing if a key that it requires to be absent has a row.
Invariant (I8): exactly the revisions at the excused timestamps are excused; below an excused revision, `past`
is searched for a revision of another transaction.

Walk: `sqlite.sqlite_engine.SqliteEngine.commit` -> `decide` -> `Ledger.failure`, `apply`
(-> `sqlite.removals.remove_all`), `write`.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from tenure.base.timestamp import ZERO_AT, Timestamp, from_bytes
from tenure.storage.engine import (
    Commit,
    CommitStatus,
    Guard,
    Outcome,
    heads_of,
    mistimed,
    stamped,
)
from tenure.storage.sqlite.head_clock import Execute, heads
from tenure.storage.sqlite.removals import remove_all

POINTS_MAX = 64
"""Up to so many keys are looked up one by one; beyond, walking the changes is likely cheaper."""

ROWS_AT_ONCE, MANY_ROWS_AT_ONCE = 16, 256
"""Rows written by one statement: up to the first number, or the second. Each is prepared once. A row costs
1.7 microseconds in statements of 16, and 1.0 in those of 256.
"""

_MARKS = (
    "SELECT (SELECT max(value) FROM live WHERE key BETWEEN ? AND ?),"
    "(SELECT max(value) FROM live WHERE key BETWEEN ? AND ?)"
)
_POINT_AT = "SELECT at FROM live WHERE key = ? AND at > ?"
_CHANGED = (
    "SELECT key, at FROM live INDEXED BY live_changes"
    " WHERE substr(key, 1, 10) = ? AND at > ? AND key >= ? AND key < ?"
)
_OLDER = "SELECT at FROM past WHERE key = ? AND until > ? AND at > ?"
_NEWEST = "SELECT l.key, l.at FROM carray(?) AS k CROSS JOIN live AS l ON l.key = k.value"
_ROWS = _NEWEST + " WHERE l.value IS NOT NULL"
_VALUES = "SELECT l.key, l.value FROM carray(?) AS k CROSS JOIN live AS l ON l.key = k.value"
_UPSERT = (
    "INSERT INTO live(key, at, value) VALUES {}"
    " ON CONFLICT (key) DO UPDATE SET at = excluded.at, value = excluded.value"
)


def decide(
    execute: Execute, members: Sequence[Commit], *, clock_at: Timestamp, wall_at: Timestamp
) -> tuple[list[Outcome], Timestamp]:
    """Validates and writes the members in order; returns their outcomes and the new clock."""
    outcomes = []
    ledger = Ledger(execute, members, clock_at)
    for left, commit in enumerate(members, 1 - len(members)):
        commit_at = max(clock_at + 1, wall_at)
        outcome = (
            ledger.failure(commit, clock_at)
            or mistimed(commit.deadline_at, commit.not_before_at, commit_at)
            or ledger.absence_failure(commit)
        )
        if outcome is None:
            outcome = ledger.apply(commit, commit_at, is_last=left == 0)
            clock_at = commit_at
        outcomes.append(outcome)
    ledger.write()
    return outcomes, clock_at


class Ledger:
    """The reads and writes of a group, collected: the fewer statements, the less a commit costs.

    The keys that members have read one by one are looked up together, before the first member is decided, and
    the members' writes are noted over them; so most are decided from memory. Writes stay pending until a
    later check has to see them in the tables, or the group ends.
    """

    def __init__(self, execute: Execute, members: Sequence[Commit], clock_at: Timestamp) -> None:
        self._execute = execute
        self._waiting: list[tuple[bytes, Timestamp, bytes | None]] = []
        self._newest: dict[bytes, Timestamp] = {}
        """When the keys that members have read were last written, if ever."""
        self._marks: dict[bytes, Timestamp] = {}
        self._rows: dict[bytes, Timestamp] = {}
        """The keys required to be absent that have a row, with its timestamp."""
        absent = tuple({key for commit in members for key in commit.absent})
        if absent:
            self._rows.update(execute(_ROWS, (absent,)))
        plain = [commit for commit in members if _is_plain(commit)]
        if len(members) > 1 or any(commit.read_at < clock_at for commit in plain):
            self._look_up(plain)

    def _look_up(self, commits: Sequence[Commit]) -> None:
        points = tuple({key for commit in commits for key in commit.points})
        marks = tuple({key for commit in commits for guard in commit.guards for key in guard[::2]})
        if points:
            self._newest.update(self._execute(_NEWEST, (points,)))
        if marks:
            self._marks = dict.fromkeys(marks, ZERO_AT)
            found = self._execute(_VALUES, (marks,))
            self._marks.update((key, from_bytes(value or b"")) for key, value in found)

    def failure(self, commit: Commit, clock_at: Timestamp) -> Outcome | None:
        if not _is_plain(commit):
            self.write()
            return failure(self._execute, commit, clock_at=clock_at)
        read_at = commit.read_at
        if clock_at <= read_at:
            return None  # nothing was committed since
        for guard in commit.guards:
            mark_at = max(self._marks_of(guard))
            if mark_at > read_at:
                return Outcome(CommitStatus.BELOW_MARK, mark_at)
        for key in commit.points:
            at = self._newest_at(key)
            if at > read_at:
                return Outcome(CommitStatus.CONFLICT, at, key)
        return None

    def absence_failure(self, commit: Commit) -> Outcome | None:
        for key in commit.absent:
            at = self._rows.get(key)
            if at is not None:
                return Outcome(CommitStatus.TAKEN, at, key)
        return None

    def _marks_of(self, guard: Guard) -> tuple[Timestamp, Timestamp]:
        return self._marks[guard.threshold_first], self._marks[guard.cleaned_first]

    def _newest_at(self, key: bytes) -> Timestamp:
        return self._newest.get(key, ZERO_AT)

    def apply(self, commit: Commit, commit_at: Timestamp, *, is_last: bool) -> Outcome:
        rows = [
            stamped(write, commit_at) if write[2] or write[3] else (write[0], commit_at, write[1])
            for write in commit.writes
        ]
        self._waiting += rows
        for key, _, value in () if is_last else rows:  # nobody looks after the last member
            self._newest[key] = commit_at
            if value is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = commit_at
            if key in self._marks:
                self._marks[key] = from_bytes(value or b"")
        if not commit.removals:
            return Outcome(CommitStatus.COMMITTED, commit_at)
        self.write()
        counts, last = remove_all(self._execute, commit.removals)
        several = tuple(counts) if len(counts) > 1 else ()
        return Outcome(CommitStatus.COMMITTED, commit_at, removed=sum(counts), last=last, counts=several)

    def write(self) -> None:
        """Writes the pending rows; a trigger moves overwritten revisions to `past`."""
        waiting, self._waiting = self._waiting, []
        first = 0
        while first < len(waiting):
            is_many = len(waiting) - first >= MANY_ROWS_AT_ONCE
            rows = waiting[first : first + (MANY_ROWS_AT_ONCE if is_many else ROWS_AT_ONCE)]
            self._execute(_upsert(len(rows)), list(chain.from_iterable(rows)))
            first += len(rows)


def _is_plain(commit: Commit) -> bool:
    """Whether it has read only single keys, and has no children that did more."""
    return (
        not commit.spans
        and not commit.excused
        and len(commit.points) <= POINTS_MAX
        and all(guard[0] == guard[1] and guard[2] == guard[3] for guard in commit.guards)
    )


@lru_cache(maxsize=ROWS_AT_ONCE + 1)
def _upsert(rows: int) -> str:
    return _UPSERT.format(",".join(["(?, ?, ?)"] * rows))


def failure(execute: Execute, commit: Commit, *, clock_at: Timestamp) -> Outcome | None:
    """The reason why a transaction's reads no longer hold, or None."""
    if clock_at <= commit.read_at:
        return None  # nothing was committed since
    for guard in commit.guards:
        mark_at = max(marks(execute, guard))
        if mark_at > commit.read_at:
            return Outcome(CommitStatus.BELOW_MARK, mark_at)
    for key, at in _newer(execute, commit):
        conflict_at = _stranger(execute, commit, key, at)
        if conflict_at is not None:
            return Outcome(CommitStatus.CONFLICT, conflict_at, key)
    return None


def marks(execute: Execute, guard: Guard) -> tuple[Timestamp, Timestamp]:
    ((threshold, cleaned),) = execute(_MARKS, guard)
    return from_bytes(threshold or b""), from_bytes(cleaned or b"")


def _newer(execute: Execute, commit: Commit) -> Iterator[tuple[bytes, Timestamp]]:
    """Yields the keys read whose newest revision is newer than `read_at`."""
    read_at = commit.read_at
    if len(commit.points) <= POINTS_MAX:
        for key in commit.points:
            for (at,) in execute(_POINT_AT, (key, read_at)):
                yield key, at
    else:
        points = sorted(commit.points)
        first, end = points[0], points[-1] + b"\0"
        changed = [row for head in heads_of(points) for row in execute(_CHANGED, (head, read_at, first, end))]
        among = frozenset(points) if changed else ()
        yield from ((key, at) for key, at in changed if key in among)
    yield from _newer_in_spans(execute, commit)


def _newer_in_spans(execute: Execute, commit: Commit) -> Iterator[tuple[bytes, Timestamp]]:
    spans = commit.spans
    if not spans:
        return
    starts = [lo for lo, _ in spans]
    touched = sorted(set(chain.from_iterable(heads(execute, lo, hi) for lo, hi in spans)))
    for head in touched:
        for key, at in execute(_CHANGED, (head, commit.read_at, spans[0][0], spans[-1][1])):
            position = bisect_right(starts, key) - 1
            if position >= 0 and key < spans[position][1]:
                yield key, at


def _stranger(execute: Execute, commit: Commit, key: bytes, at: Timestamp) -> Timestamp | None:
    """The timestamp of a revision of `key` that is not excused, if there is one."""
    if at not in commit.excused:
        return at
    older = execute(_OLDER, (key, commit.read_at, commit.read_at))
    return next((past_at for (past_at,) in older if past_at not in commit.excused), None)
