"""A thin hand on an engine for the contract tests: keys by name, commits by one call.

Groups carry wall_at 0 unless told otherwise, so a commit's timestamp is exactly the clock + 1.
"""

from collections.abc import Sequence

from tenure.base.timestamp import Timestamp
from tenure.storage.engine import (
    Commit,
    CommitStatus,
    Engine,
    Group,
    Guard,
    History,
    Outcome,
    ReadResult,
    Revision,
    Scan,
    Write,
)

HEAD = b"tnt1tbl1ix"
NEXT_HEAD = b"tnt1tbl2ix"
LAST_HEAD = b"tnt1tbl3ix"
MARKS_HEAD = b"tnt1marks0"
ALL = (b"tnt1", b"tnt2")
GUARD = Guard(MARKS_HEAD + b"t0", MARKS_HEAD + b"t9", MARKS_HEAD + b"c0", MARKS_HEAD + b"c9")


def key(name: str, head: bytes = HEAD) -> bytes:
    return head + name.encode()


def span(lo: str, hi: str, head: bytes = HEAD) -> tuple[bytes, bytes]:
    return key(lo, head), key(hi, head)


def write(name: str, value: bytes | None = b"v", head: bytes = HEAD) -> Write:
    return Write(key(name, head), value)


def names(found: ReadResult) -> list[str]:
    return [revision.key[len(HEAD) :].decode() for revision in found.revisions]


def values(found: ReadResult) -> list[bytes | None]:
    return [revision.value for revision in found.revisions]


class Client:
    def __init__(self, engine: Engine, *, urgent: bool = False) -> None:
        self.engine = engine
        self.lane = engine.open_lane(urgent=urgent)
        self.seq = 0

    def group(self, *members: Commit, wall_at: Timestamp = 0, max_offset_micros: int = 500_000) -> Group:
        self.seq += 1
        return Group(self.lane, self.seq, wall_at, max_offset_micros, members)

    def commit(self, *members: Commit) -> list[Outcome]:
        return self.engine.commit(self.group(*members))

    def try_one(self, commit: Commit) -> Outcome:
        (outcome,) = self.commit(commit)
        return outcome

    def write(self, *writes: Write) -> Timestamp:
        """Commits blindly; returns the commit timestamp."""
        outcome = self.try_one(Commit(0, writes=writes))
        assert outcome.status is CommitStatus.COMMITTED
        return outcome.at

    def put(self, name: str, value: bytes | None = b"v", head: bytes = HEAD) -> Timestamp:
        return self.write(write(name, value, head))

    def get(self, name: str, at: Timestamp | None = None, head: bytes = HEAD) -> Revision | None:
        found = self.engine.get(key(name, head), GUARD, at).revisions
        assert len(found) <= 1
        return found[0] if found else None

    def value(self, name: str, at: Timestamp | None = None) -> bytes | None:
        revision = self.get(name, at)
        return None if revision is None else revision.value

    def scan(
        self,
        lo: bytes = ALL[0],
        hi: bytes = ALL[1],
        *,
        at: Timestamp | None = None,
        since_at: Timestamp | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> ReadResult:
        return self.engine.scan(Scan(lo, hi, GUARD, at, since_at, limit, reverse))

    def history(
        self,
        since_at: Timestamp = 0,
        until_at: Timestamp | None = None,
        *,
        limit: int | None = None,
        lo: bytes = ALL[0],
        hi: bytes = ALL[1],
    ) -> ReadResult:
        return self.engine.history(History(lo, hi, GUARD, since_at, until_at, limit))


def statuses(outcomes: Sequence[Outcome]) -> list[CommitStatus]:
    return [outcome.status for outcome in outcomes]
