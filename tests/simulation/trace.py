"""The recorded history: what every transaction did and saw, and what landed, in order.

Clients record through `TracingStore`, the engine's wrapper at the very instant of the atomic
commit; `step` is the one order of all of it. A read is kept as the value it gave: values are
unique, so a value names the version it came from.

Walk: `wire` and `clients` write it; `predicates` and `model` read it.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenure.base.timestamp import Timestamp, to_bytes
from tenure.kv.keys import Span
from tenure.storage.engine import HEAD_BYTES, Commit, CommitStatus, Group, Outcome, Removal, Revision, Stamp


class Version(NamedTuple):
    at: Timestamp
    value: bytes | None
    writer: "Txn"
    step: int
    """When it landed."""


class Get(NamedTuple):
    began: int
    step: int
    key: bytes
    value: bytes | None
    read_at: Timestamp
    flushed_at: Timestamp
    is_in_memory: bool = False
    """Answered by a value that the transaction started from, or has kept since it read it; only its commit
    proves that the value still holds.
    """


class Range(NamedTuple):
    began: int
    step: int
    span: Span
    limit: int | None
    is_reverse: bool
    rows: list[tuple[bytes, bytes]]
    read_at: Timestamp
    flushed_at: Timestamp


class Put(NamedTuple):
    step: int
    key: bytes
    value: bytes | None
    key_stamp: Stamp | None
    value_stamp: Stamp | None
    is_stored: bool = True
    """False of a row that an import published: it is in the lake alone."""
    undone: int = 0
    """When it was taken back, by going back to a savepoint."""

    def is_there(self, step: int) -> bool:
        """Whether it was written by then, and not taken back."""
        return self.step < step and not 0 < self.undone < step


class Refusal(NamedTuple):
    """The engine said no: at a commit, or when a transaction's reads were checked."""

    step: int
    commit: Commit
    outcome: Outcome


@dataclass(eq=False)
class Txn:
    """A transaction, or a snapshot (which has a fixed `read_at` and never commits)."""

    id: int
    node: str
    tenant: int
    parent: "Txn | None"
    is_committed_only: bool
    begun: int
    begun_t: float
    floor_at: Timestamp
    """The greatest timestamp that anybody had been told of when it began."""
    is_from_known: bool = False
    """Whether it started from what was known earlier: nobody may believe it unless it commits."""
    reads: list[Get | Range] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    absent: list[bytes] = field(default_factory=list)
    """Keys that it counted on having no row when it commits."""
    present: list[bytes] = field(default_factory=list)
    """Keys that it counted on having one."""
    children: list["Txn"] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    state: str = "open"
    read_at: Timestamp = 0
    snapshot_at: Timestamp | None = None
    acked_at: Timestamp | None = None
    error: str = ""
    ended: int = 0
    deadline_at: Timestamp | None = None
    not_before_at: Timestamp | None = None
    landed_at: Timestamp | None = None
    landed: int = 0
    landings: int = 0
    values: int = 0

    def descendants(self) -> set["Txn"]:
        found: set[Txn] = set()
        for child in self.children:
            found |= {child} | child.descendants()
        return found

    def next_value(self) -> bytes:
        self.values += 1
        return b"%d:%d" % (self.id, self.values)

    def unstored(self) -> int:
        """How many of its final writes are in the lake alone."""
        return len({put.key for put in self.kept_puts() if not put.is_stored})

    def kept_puts(self) -> list[Put]:
        """Those that were not taken back."""
        return [put for put in self.puts if not put.undone]

    def final_writes(self, at: Timestamp) -> dict[bytes, bytes | None]:
        """What its commit at `at` writes: the last put of each key, stamps filled in."""
        last = {put.key: put for put in self.kept_puts()}
        return {_spliced(put.key, put.key_stamp, at): _value(put, at) for put in last.values()}


def _value(put: Put, at: Timestamp) -> bytes | None:
    return None if put.value is None else _spliced(put.value, put.value_stamp, at)


def _spliced(data: bytes, stamp: Stamp | None, at: Timestamp) -> bytes:
    if stamp is None:
        return data
    return b"".join((data[: stamp.offset], to_bytes(at + stamp.plus), data[stamp.offset + 8 :]))


class Landing(NamedTuple):
    step: int
    t: float
    txn: Txn
    at: Timestamp
    former_clock_at: Timestamp
    host_at: Timestamp
    """The engine's wall clock, and how far ahead of it a commit may be."""
    max_offset: Timestamp
    removals: tuple[Removal, ...]
    removed: int


class Interval(NamedTuple):
    """A batch of a watch, or an answer of `history`: everything in (since_at, through_at]."""

    step: int
    kind: str
    spans: Sequence[Span]
    since_at: Timestamp
    through_at: Timestamp
    revisions: Sequence[Revision]


class Diff(NamedTuple):
    step: int
    span: Span
    since_at: Timestamp
    at: Timestamp
    revisions: Sequence[Revision]


class Reading(NamedTuple):
    step: int
    clock: str
    at: Timestamp
    above_at: Timestamp
    """What this node has been told by then."""


class Watcher(NamedTuple):
    """Where a watch stood when the run ended."""

    name: str
    resolved_at: Timestamp


class Trace:
    def __init__(self) -> None:
        self.step = 0
        self.t = 0.0
        self.txns: list[Txn] = []
        self.versions: dict[bytes, list[Version]] = {}
        self.landings: list[Landing] = []
        self.intervals: list[Interval] = []
        self.diffs: list[Diff] = []
        self.readings: list[Reading] = []
        self.positions: dict[str, Watcher] = {}
        self.stuck: list[str] = []
        self.acked_at: Timestamp = 0
        self.based: set[bytes] = set()
        """Heads whose reads the lake answers too: none of them is refused for having moved."""
        self.seen: Counter[str] = Counter()
        self._of_commit: dict[int, tuple[Commit, Txn]] = {}

    def tick(self) -> int:
        self.step += 1
        return self.step

    def begin(self, node: str, tenant: int, parent: Txn | None, committed_only: bool, t: float) -> Txn:
        txn = Txn(
            len(self.txns) + 1, node, tenant, parent, committed_only, self.tick(), t, floor_at=self.acked_at
        )
        self.txns.append(txn)
        if parent is not None:
            parent.children.append(txn)
        return txn

    def sent(self, commit: Commit, txn: Txn) -> None:
        self._of_commit[id(commit)] = commit, txn  # kept, so that no other gets its id

    def txn_of(self, commit: Commit) -> Txn:
        return self._of_commit[id(commit)][1]

    def dispatched(self, group: Group, node: str) -> None:
        """Called when a group leaves its node, before anything can happen to it."""

    def decided(self, commit: Commit, outcome: Outcome, **landing: Any) -> None:
        """Called by the engine's wrapper inside the atomic step."""
        txn = self.txn_of(commit)
        step = self.tick()
        if outcome.status is not CommitStatus.COMMITTED:
            txn.refusals.append(Refusal(step, commit, outcome))
            return
        txn.landed, txn.landed_at = step, outcome.at
        txn.landings += 1
        for key, value in txn.final_writes(outcome.at).items():
            self.versions.setdefault(key, []).append(Version(outcome.at, value, txn, step))
        self.landings.append(
            Landing(
                step, txn=txn, at=outcome.at, removals=commit.removals, removed=outcome.removed, **landing
            )
        )

    def ended(self, txn: Txn, state: str, *, read_at: Timestamp, acked_at: Timestamp | None = None) -> None:
        txn.state, txn.ended, txn.acked_at, txn.read_at = state, self.tick(), acked_at, read_at
        if acked_at is not None and txn.landed:
            self.acked_at = max(self.acked_at, acked_at)

    def value_at(self, key: bytes, at: Timestamp) -> bytes | None:
        """The value visible at a time, by what has landed so far."""
        versions = self.versions.get(key, ())
        position = bisect_right(versions, at, key=lambda version: version.at)
        return versions[position - 1].value if position else None

    def keys_in(self, span: Span) -> list[bytes]:
        return sorted(key for key in self.versions if span.lo <= key < span.hi)


def head(key: bytes) -> bytes:
    return key[:HEAD_BYTES]
