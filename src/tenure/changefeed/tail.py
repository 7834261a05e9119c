"""The tail: the newest commits, read once for all feeds of a node.

    commits ──► Tail.advance ──► the queue of each feed ──► TailWatch.next of each table
                one look: the clock, the heads that moved, their revisions

A feed that keeps up reads nothing itself. What 20 feeds of one table need is read once, and 999 tables
that nobody writes to cost nothing. The tail has no thread: each feed that takes from it lets it look first,
and the first of several does the work for all.

    TailWatch    behind ──► a look finds nothing more ──► joined: its listener collects from R on;
                   ▲                                        │ it reads up to R by itself, then takes
                   └──── the listener has left ─────────────┘

A listener leaves the tail when its feed has too much in its queue (a sink that is slow), when one look has
more revisions than fit, or when the revisions of its head cannot be read. It then reads the history from
where it was by a watch of its own, which also tells what is wrong. So the memory of a feed is bounded, and
what fails for one head concerns only those who follow it.

Batches are shared: what one feed has made of a batch (`shared`), others with the same wishes take.

Invariant (tail-complete): a `TailWatch` returns each revision of its spans after `since_at` once, in time
order, and every revision up to a time before its `frontier_at` reaches it.

Walk: `changefeed.table_stream` and `changefeed.scope` keep a `TailWatch` each; `composition.job_layer` makes
the one `Tail` of the node; this calls `Engine.moved_heads`, `Engine.history` and `kv.watch`.
"""

import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.gaps import Gap, find_gap
from tenure.kv.keys import Span
from tenure.kv.store import Store
from tenure.kv.watch import ChangeBatch, Watch
from tenure.storage.engine import History, Revision, head_of

_log = logging.getLogger(__name__)

LOOK_ROWS = 10_000
"""Revisions of one head that a look reads. Who commits more between two looks writes in bulk: its feeds read
by themselves, each at its own pace.
"""

LOOK_SECONDS = 0.02
"""Without a signal the tail looks no more often: signals may be lost, and all commits move the clock."""

QUEUE_BYTES = 16 << 20
"""What may wait in the queue of a feed; a feed with more leaves the tail."""

REVISION_BYTES = 120
"""What a revision takes in memory besides its key and its value."""

T = TypeVar("T")


class TailBatch:
    """Revisions of one look, complete up to a time; several feeds may have the same one."""

    def __init__(self, revisions: Sequence[Revision], resolved_at: Timestamp, lock: Any) -> None:
        self.revisions = revisions
        self.resolved_at = resolved_at
        self.bytes = sum(len(key) + len(value or b"") for key, _, value in revisions)
        self.bytes += REVISION_BYTES * len(revisions)
        self._lock = lock
        self._shared: dict[Hashable, Any] = {}

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """What some feed has made of this batch under a key; made by the first that asks."""
        with self._lock:
            if key not in self._shared:
                self._shared[key] = make()
            found: T = self._shared[key]
            return found


class FeedQueue:
    """What waits for one feed: the watches that have something, and how many bytes that is."""

    def __init__(self, bytes_max: int | None = None) -> None:
        self.ready: deque[TailWatch] = deque()
        self.bytes = 0
        self.bytes_max = QUEUE_BYTES if bytes_max is None else bytes_max


class _Listener:
    def __init__(self, watch: "TailWatch", queue: FeedQueue) -> None:
        self.watch = watch
        self.queue = queue
        self.batches: deque[TailBatch] = deque()
        self.has_left = False

    def put(self, batch: TailBatch) -> None:
        if self.has_left:
            return
        if self.queue.bytes + batch.bytes > self.queue.bytes_max:
            self.leave()
            return
        self.queue.bytes += batch.bytes
        self.batches.append(batch)
        self.queue.ready.append(self.watch)

    def leave(self) -> None:
        self.queue.bytes -= sum(each.bytes for each in self.batches)
        self.batches.clear()
        self.has_left = True
        self.queue.ready.append(self.watch)

    def take(self) -> TailBatch | None:
        if not self.batches:
            return None
        batch = self.batches.popleft()
        self.queue.bytes -= batch.bytes
        return batch


class _Head:
    """Who listens to keys of one head: to all of them, or to some keys alone."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.listeners: list[_Listener] = []
        self.by_key: dict[bytes, list[_Listener]] = {}

    def all(self) -> list[_Listener]:
        return [*self.listeners, *(each for found in self.by_key.values() for each in found)]


class Tail:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = store.env.lock()
        self._touched = store.env.event()
        self._look_due = 0.0
        self._heads: dict[bytes, _Head] = {}
        self.resolved_at: Timestamp = ZERO_AT
        """Everything up to here is in the queues; written last in a look."""

    @property
    def listeners(self) -> int:
        """How many tables of feeds take from it."""
        with self._lock:
            return len({id(each) for head in self._heads.values() for each in head.all()})

    def touch(self) -> None:
        """There may be commits: the next `advance` looks. Never blocks."""
        self._touched.set()

    def advance(self) -> None:
        """Looks for commits, if there may be some, and hands them to the listeners."""
        with self._lock:
            now = self.store.env.monotonic()
            if self._touched.is_set() or now >= self._look_due:
                self._look()

    def join(self, listener: _Listener, spans: Sequence[Span]) -> Timestamp:
        """From the time returned on, the listener has every revision of these spans."""
        with self._lock:
            self._look()
            for span in spans:
                head = head_of(span.lo)
                found = self._heads.get(head)
                if found is None:
                    found = self._heads[head] = _Head(self.store.keyspace.head_span(head))
                if _is_point(span):
                    found.by_key.setdefault(span.lo, []).append(listener)
                else:
                    found.listeners.append(listener)
            return self.resolved_at

    def part(self, listener: _Listener, spans: Sequence[Span]) -> None:
        with self._lock:
            listener.leave()
            for span in spans:
                head = self._heads[head_of(span.lo)]
                among = head.by_key[span.lo] if _is_point(span) else head.listeners
                among.remove(listener)
                if not among:
                    head.by_key.pop(span.lo, None)
                if not head.listeners and not head.by_key:
                    del self._heads[head_of(span.lo)]

    def take(self, listener: _Listener) -> tuple[TailBatch | None, bool]:
        """The next batch of a listener, and whether it has left."""
        with self._lock:
            return listener.take(), listener.has_left

    # ── a look, under the lock ─────────────────────────────────────────────────────────────────

    def _look(self) -> None:
        self._touched.clear()  # before looking, so that a commit after the look is not missed
        self._look_due = self.store.env.monotonic() + LOOK_SECONDS
        clock_at, moved = self.store.engine.moved_heads(self.resolved_at)
        if clock_at <= self.resolved_at:
            return
        self.store.clock.observe(clock_at)
        pieces: dict[_Listener, list[TailBatch]] = {}
        concerned = self._heads.keys() if moved is None else self._heads.keys() & moved
        for head in [self._heads[each] for each in sorted(concerned)]:
            self._read(head, clock_at, pieces)
        for listener, batches in pieces.items():
            listener.put(batches[0] if len(batches) == 1 else self._merged(batches, clock_at))
        self.resolved_at = clock_at

    def _read(self, head: _Head, clock_at: Timestamp, pieces: dict[_Listener, list[TailBatch]]) -> None:
        revisions = self._revisions(head.span, clock_at)
        if revisions is None:
            for listener in head.all():
                listener.leave()
            return
        if revisions and head.listeners:
            batch = self._batch(revisions, clock_at)
            for listener in head.listeners:
                pieces.setdefault(listener, []).append(batch)
        for key in {each.key for each in revisions} & head.by_key.keys() if head.by_key else ():
            batch = self._batch([each for each in revisions if each.key == key], clock_at)
            for listener in head.by_key[key]:
                pieces.setdefault(listener, []).append(batch)

    def _revisions(self, span: Span, clock_at: Timestamp) -> Sequence[Revision] | None:
        """None if those who follow this head have to read it themselves."""
        store = self.store
        try:
            answer = store.engine.history(
                History(
                    *(span.lo, span.hi, store.keyspace.guard(span), self.resolved_at),
                    until_at=clock_at,
                    limit=LOOK_ROWS,
                )
            )
            gap = find_gap(store.engine, store.keyspace, span, answer, self.resolved_at)
        except Exception:
            # One head must not end the feeds of others; those who follow it meet the error themselves.
            _log.exception("the tail cannot read a head")
            return None
        is_whole = gap is None and answer.through_at >= clock_at
        return answer.revisions if is_whole else None

    def _merged(self, batches: Sequence[TailBatch], clock_at: Timestamp) -> TailBatch:
        revisions = [each for batch in batches for each in batch.revisions]
        return self._batch(sorted(revisions, key=attrgetter("at", "key")), clock_at)

    def _batch(self, revisions: Sequence[Revision], at: Timestamp) -> TailBatch:
        return TailBatch(revisions, at, self.store.env.lock())


def _is_point(span: Span) -> bool:
    return span.hi == span.lo + b"\0"


class TailWatch:
    """The changes of some spans in time order: by a watch of its own until it has caught up, then by the
    tail.
    """

    def __init__(self, tail: Tail, queue: FeedQueue, spans: Sequence[Span], *, since_at: Timestamp) -> None:
        self._tail = tail
        self._queue = queue
        self._spans = spans
        self._resolved_at = since_at
        self._own: Watch | None = tail.store.watch(spans, since_at=since_at)
        self._listener: _Listener | None = None
        self._joined_at = since_at
        self.owner: Any = None
        """Whose changes these are, for a feed that is told that there is something."""

    @property
    def frontier_at(self) -> Timestamp:
        """All changes up to here were returned."""
        resolved_at = self._tail.resolved_at  # before the look at the batches: they are put first
        return max(self._resolved_at, resolved_at) if self.is_idle else self._resolved_at

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to take, until the tail says otherwise."""
        listener = self._listener
        return self._own is None and listener is not None and not (listener.batches or listener.has_left)

    def next(self) -> TailBatch | ChangeBatch | Gap:
        """The next changes; an empty batch if there are none now."""
        if self._own is None:
            found = self._take()
            if found is not None:
                return found
        assert self._own is not None
        batch = self._own.next(0.0, changes_only=True)
        if isinstance(batch, Gap):
            return batch
        self._resolved_at = batch.resolved_at
        if self._listener is None and not batch.revisions:
            self._listener = _Listener(self, self._queue)
            self._joined_at = self._tail.join(self._listener, self._spans)
        if self._listener is not None and self._resolved_at >= self._joined_at:
            self._own.close()
            self._own = None
        return batch

    def _take(self) -> TailBatch | ChangeBatch | None:
        """What the tail has; None if this watch has to read by itself again."""
        assert self._listener is not None
        self._tail.advance()
        resolved_at = self._tail.resolved_at
        batch, has_left = self._tail.take(self._listener)
        if has_left:
            self._leave()
            self._own = self._tail.store.watch(self._spans, since_at=self._resolved_at)
            return None
        if batch is None:
            self._resolved_at = max(self._resolved_at, resolved_at)
            return ChangeBatch((), self._resolved_at)
        since_at, self._resolved_at = self._resolved_at, max(self._resolved_at, batch.resolved_at)
        if batch.revisions[0].at > since_at:
            return batch
        # It was collected while this watch still read by itself.
        return ChangeBatch([each for each in batch.revisions if each.at > since_at], self._resolved_at)

    def _leave(self) -> None:
        if self._listener is not None:
            self._tail.part(self._listener, self._spans)
            self._listener = None

    def close(self) -> None:
        self._leave()
        if self._own is not None:
            self._own.close()
            self._own = None
