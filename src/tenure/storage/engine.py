"""The engine contract: revisions of keys, one exclusive section, exact reads, a change signal.

    live(key, at, value)            the newest revision of each key (a tombstone too: value NULL)
    past(key, at, until, value)     older revisions, visible in [at, until)
    clock(at)                       the store clock: the greatest commit timestamp
    head_clock(head, at, written_at)   the newest commit that has moved each head, and that has written to it
    lane(id, seq, outcomes)         the outcomes of each committer's last group

An engine knows keys as bytes and no more, except that the first HEAD_BYTES of a key (its
*head*: tenant, table, index) group the keys that change together: changes are indexed by
(head, at), so finding what changed in one table costs what changed there.

**The section.** `commit` takes a group of commits and decides each inside one exclusive
section, in order, each against the effects of those before it; one that fails does not fail
the rest. For every member: no revision newer than `read_at` lies in its spans (but for the
excused ones), `read_at` is not below a mark, `commit_at = max(clock + 1, wall_at)` lies
strictly between `not_before_at` and `deadline_at`, and the keys that it requires to be absent have no row.
The checks run in this order: a member is told that a key exists only if its reads hold and it is in time.
Then its writes land at `commit_at`. So commit order is timestamp order. All changes of `live` and `past` are
made there, removals too.

**Lanes: unknown outcomes.** A connection can break during COMMIT, with the commit still on its way. Each
committer owns a lane, a row that names the last group it sent: a group (lane, seq) lands only if the lane's
seq is lower, and raises it in the same engine transaction. `settle` raises the seq itself and so refuses a
group for ever, or finds the group's outcomes. The first of the two decides; a commit still in flight cannot
land later. The next group on a lane says that the outcome of the last one is known, so a lane is one row that
never grows. After a lane is closed (its owner was declared dead) no group on it lands any more, and the
outcome of its last group can no longer be found.

**Reads** are exact: rows, marks and clock come from one snapshot of the engine. A revision is visible at T if
`at <= T < until`. Every key that has a revision has a row in `live`, so a read at T walks `live` and looks
into `past` only for keys that changed after T.

**The head clock** says which heads have moved since a time, without a look at each. A commit moves the heads
of the keys that it writes, and those that it names besides (`Commit.moves`, `Commit.thresholds`). A raised
threshold moves its index for watches alone. For sweeps it is no write, or each sweep would find what the last
one has published. Heads that nobody reads or writes any more leave it (`Commit.forgotten`). The row of
EVERY_HEAD says from when on all writers of the store have kept the head clock;
without it, any head may have moved.
Invariant (head-clock): a head in which a key was written, or that a commit has named, since a time from which
the head clock is kept, is among those that have moved since.

**Marks.** A `Guard` names two small spans of keys whose newest values are timestamps (eight bytes,
big-endian); the engine returns the greatest of each: threshold and cleaned mark.

Walk: called by `kv` alone; implemented by `storage.sqlite.sqlite_engine` and
`storage.postgres.postgres_engine`.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from tenure.base.timestamp import ZERO_AT, Timestamp, to_bytes

HEAD_BYTES = 10
"""Tenant (4), table (4) and index (2): see `kv.keys`."""

EVERY_HEAD = b""
"""Among the heads that a commit moves: all of them."""

FORMAT = 1
"""The format of the engine's tables; a file or database of a newer one is refused."""


def head_of(key: bytes) -> bytes:
    return key[:HEAD_BYTES]


def heads_of(keys: Sequence[bytes]) -> list[bytes]:
    """The heads of sorted keys, each once, by one search for each."""
    heads: list[bytes] = []
    at = 0
    while at < len(keys):
        head = head_of(keys[at])
        heads.append(head)
        at = bisect_right(keys, head, at, key=head_of)
    return heads


class Revision(NamedTuple):
    key: bytes
    at: Timestamp
    value: bytes | None
    """None for a tombstone."""


class Guard(NamedTuple):
    """Where a span's marks lie: two closed intervals of keys."""

    threshold_first: bytes
    threshold_last: bytes
    cleaned_first: bytes
    cleaned_last: bytes


class ReadResult(NamedTuple):
    """The answer to a read, all of one snapshot."""

    clock_at: Timestamp
    threshold_at: Timestamp
    cleaned_at: Timestamp
    revisions: Sequence[Revision]
    through_at: Timestamp = 0
    """For a history: `revisions` has every revision up to this timestamp, even if the limit cut it."""
    last: bytes = b""
    """For an answer by keys that the limit cut: the last key that it covers."""


class Scan(NamedTuple):
    """Asks for the keys of [lo, hi) visible at `at` (None: now), in key order.

    With `since_at`: the keys whose visible revision is newer than that, tombstones included;
    otherwise they are left out unless asked for. `limit` counts what is returned.
    """

    lo: bytes
    hi: bytes
    guard: Guard
    at: Timestamp | None = None
    since_at: Timestamp | None = None
    limit: int | None = None
    reverse: bool = False
    tombstones: bool = False


class History(NamedTuple):
    """Asks for every revision in [lo, hi) with since_at < at <= until_at, ordered by (at, key).

    `until_at` None means the clock of the read's own snapshot. If `limit` cuts the answer, it is
    cut between timestamps: whole transactions only, at least one of them, and `through_at` of the
    answer is the timestamp it is complete up to (`until_at` if nothing was cut).
    """

    lo: bytes
    hi: bytes
    guard: Guard
    since_at: Timestamp
    until_at: Timestamp | None = None
    limit: int | None = None


class Revisions(NamedTuple):
    """Asks for every revision in [lo, hi) with since_at < at <= until_at, ordered by (key, at).

    For callers that copy an index key by key. `limit` counts the keys looked at, whether they have such
    revisions or not; `last` of the answer is the last of them if there may be more, else empty.
    """

    lo: bytes
    hi: bytes
    guard: Guard
    since_at: Timestamp
    until_at: Timestamp
    limit: int


class MovedHeads(NamedTuple):
    """The heads that have moved since a time, up to the clock of the same snapshot."""

    clock_at: Timestamp
    heads: frozenset[bytes] | None
    """None if any head may have moved."""


class WrittenHeads(NamedTuple):
    """When each head was last written to."""

    kept_since_at: Timestamp
    """From when on the head clock is kept: earlier writes may be missing. MAX_AT if it is not kept."""
    written_at: Mapping[bytes, Timestamp]

    def may_have_changed(self, head: bytes, since_at: Timestamp) -> bool:
        """Whether a head may have been written to after a time."""
        return since_at < self.kept_since_at or self.written_at.get(head, ZERO_AT) > since_at


class Spread(NamedTuple):
    """How much of a span is newer than a time: keys, bytes, and a sample of one key in every so many."""

    keys: int
    size: int
    """In bytes."""
    cuts: Sequence[bytes]


REVISION_BYTES = 256
"""The memory that a revision takes besides its key and value, in the process that merges it."""


class Portion(NamedTuple):
    """Some neighbouring keys of a span, with their revisions of an interval of time."""

    first: bytes
    """Its least key; it ends where the next portion begins."""
    keys: int
    size: int
    """Of all their revisions in the interval, in bytes: key, value and REVISION_BYTES each."""


class Stamp(NamedTuple):
    """A place in a write for its own commit timestamp: eight bytes at `offset`, plus `plus`.

    In a key it lies behind the head: the head must be known before the timestamp is.
    """

    offset: int
    plus: int = 0


class Write(NamedTuple):
    key: bytes
    value: bytes | None
    key_stamp: Stamp | None = None
    value_stamp: Stamp | None = None


def stamped(write: Write, commit_at: Timestamp) -> tuple[bytes, Timestamp, bytes | None]:
    """A write with its commit timestamp filled in: (key, commit_at, value)."""
    key, value, key_stamp, value_stamp = write
    if key_stamp is not None:
        key = _splice(key, key_stamp, commit_at)
    if value_stamp is not None and value is not None:
        value = _splice(value, value_stamp, commit_at)
    return key, commit_at, value


def _splice(data: bytes, stamp: Stamp, commit_at: Timestamp) -> bytes:
    end = stamp.offset + 8
    return data[: stamp.offset] + to_bytes(commit_at + stamp.plus) + data[end:]


class Removes(IntEnum):
    """Which revisions of a span a removal deletes.

    SUPERSEDED: of `past`, those with until <= at that are visible at no kept point: invisible at every
    readable time.
    GARBAGE: those, and the tombstones of `live` committed by `at` (wrong above a base). A tombstone stays
    while `past` has a revision of its key, because reads find a key through `live`.
    FLUSHED: all that were committed by `at`, regardless of later revisions: the lake has them.
    """

    SUPERSEDED = 0
    GARBAGE = 1
    FLUSHED = 2


class Removal(NamedTuple):
    lo: bytes
    hi: bytes
    removes: Removes
    at: Timestamp
    limit: int
    """The most rows to look at, kept or removed; the outcome says how many were removed."""
    points: tuple[Timestamp, ...] = ()
    """Kept points: times below `at` at which the span stays readable. FLUSHED has none."""
    after: bytes = b""
    """Where the removal before has stopped: `last` of its outcome, which only an engine can read."""


class Commit(NamedTuple):
    """One transaction, as the section sees it."""

    read_at: Timestamp
    points: tuple[bytes, ...] = ()
    """Keys read one by one."""
    spans: tuple[tuple[bytes, bytes], ...] = ()
    """Half-open spans read, sorted and disjoint."""
    guards: tuple[Guard, ...] = ()
    excused: tuple[Timestamp, ...] = ()
    """Commit timestamps of the transaction's own children."""
    absent: tuple[bytes, ...] = ()
    """Keys that must have no row when it commits. A tombstone counts as no row."""
    writes: tuple[Write, ...] = ()
    moves: tuple[bytes, ...] = ()
    """Heads that count as written to although no key of theirs is written."""
    thresholds: tuple[bytes, ...] = ()
    """Heads whose thresholds are written: they move, and do not count as written to."""
    forgotten: tuple[bytes, ...] = ()
    """Heads that leave the head clock, even if the commit moves them: they have neither rows nor marks."""
    removals: tuple[Removal, ...] = ()
    deadline_at: Timestamp | None = None
    not_before_at: Timestamp | None = None


class CommitStatus(IntEnum):
    COMMITTED = 0
    CONFLICT = 1
    """`at` and `key` name a revision that is newer than `read_at`."""
    BELOW_MARK = 2
    """`at` is the mark above `read_at`."""
    TOO_LATE = 3
    """`at` is the commit timestamp it would have had, not below its deadline."""
    TOO_EARLY = 4
    """`at` is the commit timestamp it would have had, not above "not before"."""
    TAKEN = 5
    """`key` is the first of the keys required to be absent that has a row, written at `at`."""


class Outcome(NamedTuple):
    status: CommitStatus
    at: Timestamp
    key: bytes = b""
    removed: int = 0
    last: bytes = b""
    """Where a removal was cut by its limit: `after` of the next one. Empty if the span is finished."""
    counts: tuple[int, ...] = ()
    """If several removals ran: how many revisions each has removed, up to the one that was cut."""


def mistimed(
    deadline_at: Timestamp | None, not_before_at: Timestamp | None, commit_at: Timestamp
) -> Outcome | None:
    """Compares a final timestamp with its bounds, strictly."""
    if deadline_at is not None and commit_at >= deadline_at:
        return Outcome(CommitStatus.TOO_LATE, commit_at)
    if not_before_at is not None and commit_at <= not_before_at:
        return Outcome(CommitStatus.TOO_EARLY, commit_at)
    return None


class Group(NamedTuple):
    lane: bytes
    seq: int
    wall_at: Timestamp
    """The node's wall clock when the group was made."""
    max_offset_micros: int
    members: tuple[Commit, ...]


class StoreOrigin(NamedTuple):
    """Tells a store from a copy of it that was not made by Tenure.

    Engines that other processes can open, a file and a server, have an `origin`.
    """

    serial: str
    """The inode of a file, or the identifiers of a server and a database: a copy has others."""
    path: str = ""
    """The path of the file; empty where the store is in a server."""


class Engine(Protocol):
    name: str

    def get(self, key: bytes, guard: Guard, at: Timestamp | None = None) -> ReadResult:
        """Reads one key, visible at `at` (None: now): no revision, or one, maybe a tombstone.

        One key has one head, so the guard's intervals are single keys.
        """
        ...

    def get_many(self, keys: Sequence[bytes], guard: Guard, at: Timestamp | None = None) -> ReadResult:
        """Reads keys of one head as `get` reads one: a revision of each that has any, in no particular
        order.
        """
        ...

    def scan(self, query: Scan) -> ReadResult: ...

    def history(self, query: History) -> ReadResult: ...

    def revisions(self, query: Revisions) -> ReadResult: ...

    def spread(self, lo: bytes, hi: bytes, since_at: Timestamp, every: int) -> Spread:
        """How much of [lo, hi) has its newest revision after `since_at`: for planning, as of now."""
        ...

    def moved_heads(self, since_at: Timestamp) -> MovedHeads:
        """Which heads have moved since a time. It costs what has moved, not what there is."""
        ...

    def written_heads(self) -> WrittenHeads:
        """When each head was last written to: for sweeps, which look at all of them now and then."""
        ...

    def portions(
        self, lo: bytes, hi: bytes, since_at: Timestamp, until_at: Timestamp, size_max: int
    ) -> list[Portion]:
        """Cuts the keys of [lo, hi) with revisions in (since_at, until_at] into portions, in key order.

        Without its last key, a portion has at most `size_max` bytes: a key is never cut.
        """
        ...

    def check(self, commit: Commit) -> tuple[Timestamp, Outcome | None]:
        """Checks whether a transaction's reads still hold: returns the clock, and the failure, if any.

        The clock is read first, so reads found unchanged are unchanged up to that timestamp. Keys required to
        be absent are not checked: that is decided at the commit.
        """
        ...

    def clock_at(self) -> Timestamp: ...

    def push_clock(self, at: Timestamp) -> Timestamp:
        """Raises the store clock to `at` at least, in the section; returns the store clock.

        Refuses (InvalidParameter) an `at` above the engine's wall clock.
        """
        ...

    def wall_micros(self) -> int:
        """The engine's own wall clock, against which nodes measure theirs."""
        ...

    def open_lane(self, *, urgent: bool = False) -> bytes:
        """Makes a lane. Groups on an urgent lane (heartbeats) overtake this process's others."""
        ...

    def close_lane(self, lane: bytes) -> None:
        """Deletes a lane: a group that is still on its way there will not land."""
        ...

    def enter(self, lane: bytes, *, wait: bool) -> bool:
        """Takes the section for the next group of a lane, before the group's members are decided.

        Without `wait` it returns False where it would have to wait for another process, which may have been
        stopped. `leave` must follow. An engine whose section is not in this process takes nothing: its
        `commit` waits, and can be interrupted.
        """
        ...

    def leave(self, lane: bytes) -> None:
        """Releases the section; called by the thread that has entered it."""
        ...

    def commit(self, group: Group) -> list[Outcome]:
        """Decides a group in one section and makes it durable; one outcome per member.

        Raises ClockAhead, DiskFull and other StoreErrors when nothing was changed; RetryError if
        the group was refused by `settle`; SessionLost if the lane is closed; Disconnected if the
        connection broke, so that only `settle` can tell.
        """
        ...

    def settle(self, lane: bytes, seq: int) -> list[Outcome] | None:
        """Returns the outcomes of (lane, seq), or None if it did not land and never will.

        Raises OutcomeUnknown if the lane is closed, or has gone on to a later group. May be repeated
        with the same answer.
        """
        ...

    def subscribe(
        self, wake: Callable[[], None], spans: Sequence[tuple[bytes, bytes]] = ()
    ) -> Callable[[], None]:
        """Calls `wake` soon after commits of any process; returns a function that ends the subscription.

        With `spans`, only commits that may have written to one of them count. The call is a hint: it may come
        late, twice, without a cause, or not at all.
        """
        ...

    def close(self) -> None: ...
