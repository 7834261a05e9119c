"""An engine before a real one: it remembers what was asked of it, and breaks calls on demand."""

from collections.abc import Callable, Sequence

from tenure.base.errors import Disconnected
from tenure.base.timestamp import Timestamp
from tenure.storage.engine import (
    Commit,
    Engine,
    Group,
    Guard,
    History,
    MovedHeads,
    Outcome,
    Portion,
    ReadResult,
    Revisions,
    Scan,
    Spread,
    WrittenHeads,
)

Deliver = Callable[[Group], list[Outcome]]


class BreakingEngine:
    """Forwards everything; `on_commit` may stand between a group and the engine it goes to."""

    def __init__(self, engine: Engine) -> None:
        self.name = engine.name
        self.engine = engine
        self.groups: list[Group] = []
        self.settled: list[int] = []
        self.pushed: list[Timestamp] = []
        self.gets: list[bytes] = []
        self.lookups = 0
        """How often `get` and `get_many` were called."""
        self.scans: list[Scan] = []
        self.on_commit: Callable[[Group, Deliver], list[Outcome]] | None = None
        self.after_leaving: list[Callable[[], None]] = []
        """Called once the section was left: what other processes do cannot happen before."""
        self.settle_errors: list[Exception] = []
        self.loses_signals = False

    def get(self, key: bytes, guard: Guard, at: Timestamp | None = None) -> ReadResult:
        self.gets.append(key)
        self.lookups += 1
        return self.engine.get(key, guard, at)

    def get_many(self, keys: Sequence[bytes], guard: Guard, at: Timestamp | None = None) -> ReadResult:
        self.gets.extend(keys)
        self.lookups += 1
        return self.engine.get_many(keys, guard, at)

    def scan(self, query: Scan) -> ReadResult:
        self.scans.append(query)
        return self.engine.scan(query)

    def history(self, query: History) -> ReadResult:
        return self.engine.history(query)

    def revisions(self, query: Revisions) -> ReadResult:
        return self.engine.revisions(query)

    def moved_heads(self, since_at: Timestamp) -> MovedHeads:
        return self.engine.moved_heads(since_at)

    def written_heads(self) -> WrittenHeads:
        return self.engine.written_heads()

    def spread(self, lo: bytes, hi: bytes, since_at: Timestamp, every: int) -> Spread:
        return self.engine.spread(lo, hi, since_at, every)

    def portions(
        self, lo: bytes, hi: bytes, since_at: Timestamp, until_at: Timestamp, size_max: int
    ) -> list[Portion]:
        return self.engine.portions(lo, hi, since_at, until_at, size_max)

    def check(self, commit: Commit) -> tuple[Timestamp, Outcome | None]:
        return self.engine.check(commit)

    def clock_at(self) -> Timestamp:
        return self.engine.clock_at()

    def push_clock(self, at: Timestamp) -> Timestamp:
        self.pushed.append(at)
        return self.engine.push_clock(at)

    def wall_micros(self) -> int:
        return self.engine.wall_micros()

    def open_lane(self, *, urgent: bool = False) -> bytes:
        return self.engine.open_lane(urgent=urgent)

    def close_lane(self, lane: bytes) -> None:
        self.engine.close_lane(lane)

    def enter(self, lane: bytes, *, wait: bool) -> bool:
        return self.engine.enter(lane, wait=wait)

    def leave(self, lane: bytes) -> None:
        self.engine.leave(lane)
        while self.after_leaving:
            self.after_leaving.pop()()

    def commit(self, group: Group) -> list[Outcome]:
        self.groups.append(group)
        if self.on_commit is None:
            return self.engine.commit(group)
        return self.on_commit(group, self.engine.commit)

    def settle(self, lane: bytes, seq: int) -> list[Outcome] | None:
        self.settled.append(seq)
        if self.settle_errors:
            raise self.settle_errors.pop(0)
        return self.engine.settle(lane, seq)

    def subscribe(
        self, wake: Callable[[], None], spans: Sequence[tuple[bytes, bytes]] = ()
    ) -> Callable[[], None]:
        if self.loses_signals:
            return lambda: None
        return self.engine.subscribe(wake, spans)

    def close(self) -> None:
        self.engine.close()


def cut_before_landing(group: Group, deliver: Deliver) -> list[Outcome]:
    raise Disconnected("cut before the group arrived")


def cut_after_landing(group: Group, deliver: Deliver) -> list[Outcome]:
    deliver(group)
    raise Disconnected("cut after the group had landed")
