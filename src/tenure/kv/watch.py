"""Watches: the changes of spans, in timestamp order, as they are committed.

    batch = (revisions with since < at <= resolved, resolved)

Commit order is timestamp order, so once the store clock has reached R, no commit at or below R can come any
more: `resolved` is simply the clock, read before the rows. A batch never ends inside a timestamp. Signals
only make it quick; a slow poll makes a lost signal harmless.

Invariant (I37): after a batch with resolved R, no revision at or below R is delivered, and
every revision at or below R has been.

A watch that waits for changes is signalled only by commits that may have written to its spans; its resolved
time advances at the next call. One that waits for the store clock is signalled by every commit. With
`spacing_seconds` it keeps this time between two reads, no matter how often it is signalled, woken or called:
changes in between form one batch, a busy store does not keep it busy, and a loop around it cannot spin.

A watch over several spans asks the engine's head clock which of their heads have moved, and reads only those:
the clock first, then the heads, then rows up to that clock. Marks that are raised move their index's head, so
no gap is missed.

A watch that has fallen below a threshold or cleaned mark does not skip what is missing: it returns a `Gap`
with every call, until its caller has caught up by other means and says from where to go on (`resume`).

Walk: `Store.watch` -> `Watch.next` -> `Engine.moved_heads`, `Engine.history`, `gaps.find_gap`;
`Engine.subscribe` signals it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenure.base.clock import Clock
from tenure.base.env import Env
from tenure.base.timestamp import Timestamp
from tenure.kv.gaps import Gap, find_gap
from tenure.kv.keys import Keyspace, Span, disjoint
from tenure.storage.engine import Engine, Guard, History, ReadResult, Revision
from tenure.storage.head_spans import HeadSpans

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
        spacing_seconds: float = 0.0,
    ) -> None:
        assert spans and all(map(keyspace.owns_span, spans)), "a span of another tenant"
        self._engine = engine
        self._keyspace = keyspace
        self._env = env
        self._clock = clock
        self._guarded = [(span, keyspace.guard(span)) for span in disjoint(spans)]
        self._by_head = HeadSpans([span for span, _ in self._guarded])
        self._poll_seconds = poll_seconds
        self.spacing_seconds = spacing_seconds
        """The least time between two reads."""
        self._last_look = float("-inf")
        """The time of the last read on the monotonic clock."""
        self._signal = env.event()
        self._woken = False
        self._stop = engine.subscribe(self._signal.set, [span for span, _ in self._guarded])
        self._hears_all = False
        self.resolved_at = since_at

    def next(self, timeout: float | None = None, *, changes_only: bool = False) -> ChangeBatch | Gap:
        """Waits for the store clock to move; an empty batch with the old resolved after `timeout`.

        With `changes_only` it waits on until a batch has revisions in it. It keeps its spacing even if the
        timeout is shorter. A gap is returned at once, and each time until `resume` was called.
        """
        deadline = None if timeout is None else self._env.monotonic() + timeout
        if not changes_only and not self._hears_all:
            self._hear_all()
        while True:
            self._keep_apart()
            self._signal.clear()  # before looking, so that a commit after the look is not missed
            batch = self._look()
            if isinstance(batch, Gap):
                return batch
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
        """Subscribes to every commit: each one moves the store clock, regardless of its keys."""
        self._stop()
        self._stop = self._engine.subscribe(self._signal.set)
        self._hears_all = True

    def _keep_apart(self) -> None:
        now = self._env.monotonic()
        if now < self._last_look + self.spacing_seconds:
            self._env.sleep(self._last_look + self.spacing_seconds - now)
        self._last_look = self._env.monotonic()

    def _look(self) -> ChangeBatch | Gap | None:
        if len(self._guarded) == 1:
            return self._look_at(self._guarded, None)
        clock_at, heads = self._engine.moved_heads(self.resolved_at)
        if clock_at <= self.resolved_at:
            return None
        if heads is None:
            return self._look_at(self._guarded, clock_at)
        moved = [self._guarded[position] for position in self._by_head.touched(heads)]
        if moved:
            return self._look_at(moved, clock_at)
        self._clock.observe(clock_at)
        return ChangeBatch((), clock_at)

    def _look_at(
        self, guarded: Sequence[tuple[Span, Guard]], until_at: Timestamp | None
    ) -> ChangeBatch | Gap | None:
        """Reads these spans up to a time; without it, up to the clock, if there is one span."""
        answers: list[ReadResult] = []
        for span, guard in guarded:
            answer = self._read(span, guard, until_at=until_at)
            gap = find_gap(self._engine, self._keyspace, span, answer, self.resolved_at)
            if gap is not None:
                return gap
            answers.append(answer)
            if answers[0].clock_at <= self.resolved_at:
                return None
        self._clock.observe(answers[0].clock_at)
        return self._batch(answers)

    def _read(self, span: Span, guard: Guard, *, until_at: Timestamp | None) -> ReadResult:
        return self._engine.history(
            History(span.lo, span.hi, guard, self.resolved_at, until_at=until_at, limit=BATCH_ROWS)
        )

    def _batch(self, answers: Sequence[ReadResult]) -> ChangeBatch:
        resolved_at = min(answer.through_at for answer in answers)
        revisions = [
            revision for answer in answers for revision in answer.revisions if revision.at <= resolved_at
        ]
        if len(answers) > 1:
            revisions.sort(key=lambda revision: (revision.at, revision.key))
        return ChangeBatch(revisions, resolved_at)

    def resume(self, since_at: Timestamp) -> None:
        """Continues from a time up to which the caller has caught up by other means."""
        assert since_at >= self.resolved_at, "a watch never goes back"
        self.resolved_at = since_at

    def wake(self) -> None:
        """Ends a wait early, so that the waiting thread can check whether it should stop."""
        self._woken = True
        self._signal.set()

    def close(self) -> None:
        self._stop()
