"""Watches: the changes of spans, in timestamp order, as they are committed.

    batch = (revisions with since < at <= resolved, resolved)

Commit order is timestamp order, so once the store clock has reached R, no commit at or below R
can come any more: `resolved` is simply the clock, taken before the rows. A batch never ends
inside a timestamp. Signals only make it quick; the slow poll makes a lost one harmless.

Invariant (I37): after a batch with resolved R, no revision at or below R is delivered, and
every revision at or below R has been.

A watch that waits for changes is signalled by commits that may have written to its spans, and by none
else: how far it is resolved is found out when it is asked next. One that waits for the store clock is
signalled by every commit. With a gap it lets so much time pass between two looks, however often it is
signalled, woken or called: what came meanwhile is one batch, a busy store does not keep it busy, and a loop
around it cannot spin.

A watch that has fallen below a threshold or cleaned mark raises instead of skipping; its
caller catches up by other means first.

Walk: `Store.watch` -> `Watch.next` -> `engine.history`; woken by `engine.subscribe`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.base.clock import Clock
from tenure.base.env import Env
from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Keyspace, Span, disjoint
from tenure.kv.snapshot import judge
from tenure.storage.engine import Engine, Guard, History, ReadResult, Revision

BATCH_ROWS = 1_000
"""Revisions per batch, unless one transaction alone has more."""


class ChangeBatch(NamedTuple):
    revisions: Sequence[Revision]
    resolved_at: Timestamp


class Watch:
    """Pull batches with `next`; one consumer at a time."""

    def __init__(
        self,
        engine: Engine,
        keyspace: Keyspace,
        env: Env,
        clock: Clock,
        spans: Sequence[Span],
        *,
        since_at: Timestamp,
        poll_seconds: Callable[[], float],
        gap_seconds: float = 0.0,
    ) -> None:
        assert spans and all(map(keyspace.owns_span, spans)), "a span of another tenant"
        self._engine = engine
        self._env = env
        self._clock = clock
        self._guarded = [(span, keyspace.guard(span)) for span in disjoint(spans)]
        self._poll_seconds = poll_seconds
        self.gap_seconds = gap_seconds
        """Between two looks, at least."""
        self._looked = float("-inf")
        """When it looked last, on the monotonic clock."""
        self._signal = env.event()
        self._woken = False
        self._stop = engine.subscribe(self._signal.set, [span for span, _ in self._guarded])
        self._hears_all = False
        self.resolved_at = since_at

    def next(self, timeout: float | None = None, *, changes_only: bool = False) -> ChangeBatch:
        """Waits for the store clock to move; an empty batch with the old resolved after `timeout`.

        With `changes_only` it waits on until a batch has revisions in it. Its gap it keeps even if
        the timeout is shorter.
        """
        deadline = None if timeout is None else self._env.monotonic() + timeout
        if not changes_only and not self._hears_all:
            self._hear_all()
        while True:
            self._keep_apart()
            self._signal.clear()  # before looking, so that a commit after the look is not missed
            batch = self._look()
            if batch is not None:
                self.resolved_at = batch.resolved_at
                if batch.revisions or not changes_only:
                    return batch
            poll_seconds = self._poll_seconds()
            left = poll_seconds if deadline is None else deadline - self._env.monotonic()
            if left <= 0 or self._woken:
                self._woken = False
                return ChangeBatch((), self.resolved_at)
            self._signal.wait(min(left, poll_seconds))

    def _hear_all(self) -> None:
        """The store clock moves with every commit, wherever it writes: who waits for it hears of them all."""
        self._stop()
        self._stop = self._engine.subscribe(self._signal.set)
        self._hears_all = True

    def _keep_apart(self) -> None:
        now = self._env.monotonic()
        if now < self._looked + self.gap_seconds:
            self._env.sleep(self._looked + self.gap_seconds - now)
        self._looked = self._env.monotonic()

    def _look(self) -> ChangeBatch | None:
        # The clock of the first answer bounds the others: what they miss of it, nobody commits.
        first = self._read(*self._guarded[0], until_at=None)
        if first.clock_at <= self.resolved_at:
            return None
        self._clock.observe(first.clock_at)
        others = [self._read(*each, until_at=first.clock_at) for each in self._guarded[1:]]
        resolved_at = min(answer.through_at for answer in (first, *others))
        revisions = [
            revision
            for answer in (first, *others)
            for revision in answer.revisions
            if revision.at <= resolved_at
        ]
        if others:
            revisions.sort(key=lambda revision: (revision.at, revision.key))
        return ChangeBatch(revisions, resolved_at)

    def _read(self, span: Span, guard: Guard, *, until_at: Timestamp | None) -> ReadResult:
        found = self._engine.history(
            History(span.lo, span.hi, guard, self.resolved_at, until_at=until_at, limit=BATCH_ROWS)
        )
        judge(found, read_at=self.resolved_at, flushed_at=self.resolved_at)
        return found

    def wake(self) -> None:
        """Ends a wait early, so that whoever waits can look whether it should stop."""
        self._woken = True
        self._signal.set()

    def close(self) -> None:
        self._stop()
