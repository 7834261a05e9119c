"""The store as clients of the simulation use it: product code, with every call recorded.

Reads of a head that is cleaned into the lake are given together with the lake's rows, as the
table layer does it: the lake of a time F holds every version up to F, and the store the rest.
Here the lake is simply the recorded history.

Walk: `workload` -> here -> `tenure.kv` -> `wire.SimEngine`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tenure.base.errors import BaseMoved, BelowMark, OutcomeUnknown, RetryError, SnapshotTooOld, TenureError
from tenure.base.interruptible import Check, unchecked
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.absences import MakeError
from tenure.kv.buffer import BufferMark
from tenure.kv.commit_proof import CommitProof
from tenure.kv.gaps import Gap
from tenure.kv.keys import Span
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.reads import Reads, RefreshSpans
from tenure.kv.scope import ReadAhead, Scope, TransactionState
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import RevisionPage as StoreInterval
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.kv.view import ReadView
from tenure.kv.watch import ChangeBatch, Watch
from tenure.storage.engine import Commit, Removal, Revision, Stamp
from tests.simulation.trace import Diff, Get, Interval, Put, Range, Reading, Trace, Txn
from tests.simulation.wire import SimEngine


class TracingTransaction(Transaction):
    def __init__(self, scope: Scope, *rest: Any, **named: Any) -> None:
        super().__init__(scope, *rest, **named)
        engine = scope.engine
        assert isinstance(engine, SimEngine)
        self.trace: Trace = engine.wire.trace
        self._hub = engine.wire.hub
        parent = self._parent
        self.record: Txn = self.trace.begin(
            engine.machine.name,
            self._keyspace.tenant,
            parent.record if isinstance(parent, TracingTransaction) else None,
            parent is not None and self._layers._seen_parent is None,
            self._hub.t,
        )
        self.record.is_from_known = self._store.values is not None
        objects = scope, self._store, self.buffer, self._layers
        self.proof = TracingProof(*objects, trace=self.trace, record=self.record)
        self._reads = self.proof.reads
        self._puts_then: dict[BufferMark, tuple[int, int]] = {}
        """By savepoint: how many writes had been recorded, and the step."""

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        began = self.trace.tick()
        values = self._store.values
        is_in_memory = (values is not None and key in values) or (not flushed_at and key in self._store.ahead)
        with Refusals(self.trace):
            value = super().get(key, flushed_at=flushed_at)
        if value is None and flushed_at:
            value = self.trace.value_at(key, flushed_at)
        read = Get(began, self.trace.tick(), key, value, self._store.at or 0, flushed_at, is_in_memory)
        self.record.reads.append(read)
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        recorded, began = len(self.record.reads), self.trace.tick()
        with Refusals(self.trace):
            values = super().get_many(keys)
        if len(self.record.reads) == recorded:  # else it has called `get`
            self._record_gets(began, zip(keys, values, strict=True))
        return values

    def present(self, keys: Sequence[bytes]) -> set[bytes]:
        began = self.trace.tick()
        with Refusals(self.trace):
            found = super().present(keys)
        at = self._store.at or 0
        rows = ((key, self.trace.value_at(key, at) or b"no row") for key in keys if key in found)
        self._record_gets(began, rows)
        return found

    def are_absent(self, keys: Collection[bytes]) -> bool:
        recorded, began = len(self.record.reads), self.trace.tick()
        with Refusals(self.trace):
            absent = super().are_absent(keys)
        if len(self.record.reads) == recorded:  # else it has called `get_many`
            self._record_gets(began, ((key, None) for key in sorted(keys)))
        return absent

    def _record_gets(self, began: int, found: Iterable[tuple[bytes, bytes | None]]) -> None:
        step, read_at = self.trace.tick(), self._store.at or 0
        self.record.reads += [Get(began, step, key, value, read_at, ZERO_AT) for key, value in found]

    def rows(self, span: Span, *, limit: int) -> list[tuple[bytes, bytes]]:
        began = self.trace.tick()
        with Refusals(self.trace):
            rows = super().rows(span, limit=limit)
        self._record_gets(began, rows)
        return rows

    def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        flushed_at: Timestamp = ZERO_AT,
    ) -> Iterator[tuple[bytes, bytes]]:
        with Refusals(self.trace):
            return self.scan_around(span, _nothing, limit=limit, reverse=reverse, flushed_at=flushed_at)

    def scan_around(
        self, span: Span, between: Callable[[], None], *, flushed_at: Timestamp = ZERO_AT, **named: Any
    ) -> Iterator[tuple[bytes, bytes]]:
        """Reads a span, with something done after the second row: all of it counts as one read."""
        limit, reverse = named.get("limit"), named.get("reverse", False)
        began = self.trace.tick()
        answer = super().scan(span, limit=limit, reverse=reverse, flushed_at=flushed_at)
        rows = list(islice(answer, 2))
        between()
        rows += answer
        rows = with_lake(self.trace, rows, span, flushed_at)
        read = Range(began, self.trace.tick(), span, limit, reverse, rows, self._store.at or 0, flushed_at)
        self.record.reads.append(read)
        return iter(rows)

    def expect_absent(self, key: bytes, make_error: MakeError) -> None:
        super().expect_absent(key, make_error)
        self.record.absent.append(key)

    def put(
        self, key: bytes, value: bytes, *, key_stamp: Stamp | None = None, value_stamp: Stamp | None = None
    ) -> None:
        super().put(key, value, key_stamp=key_stamp, value_stamp=value_stamp)
        self.record.puts.append(Put(self.trace.tick(), key, value, key_stamp, value_stamp))

    def put_all(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        entries = list(entries)
        super().put_all(entries)
        step = self.trace.tick()
        self.record.puts += [Put(step, key, value, None, None) for key, value in entries]

    def delete(self, key: bytes) -> None:
        super().delete(key)
        self.record.puts.append(Put(self.trace.tick(), key, None, None, None))

    def mark(self) -> BufferMark:
        savepoint = super().mark()
        self._puts_then[savepoint] = len(self.record.puts), self.trace.tick()
        return savepoint

    def back_to(self, savepoint: BufferMark | None) -> None:
        super().back_to(savepoint)
        puts, (first, step) = self.record.puts, (0, 0) if savepoint is None else self._puts_then[savepoint]
        undone = self.trace.tick()
        # What was forgotten since is there again.
        puts[:first] = [put._replace(undone=0) if put.undone > step else put for put in puts[:first]]
        puts[first:] = [put._replace(undone=put.undone or undone) for put in puts[first:]]
        self.trace.seen["went back to a savepoint"] += 1

    def forget_writes(self, span: Span) -> None:
        super().forget_writes(span)
        undone = self.trace.tick()
        self.record.puts = [
            put._replace(undone=put.undone or undone) if span.lo <= put.key < span.hi else put
            for put in self.record.puts
        ]

    def opened(self) -> "TracingView":
        """A view of it."""
        return TracingView(self.view(), self.trace, self.record)

    def remove(self, removal: Removal) -> None:
        super().remove(removal)
        self.record.removals.append(removal)

    def refresh(self) -> None:
        try:
            super().refresh()
        except RetryError:
            self.trace.seen["refresh failed"] += 1
            raise
        self.trace.tick()
        self.trace.seen["refresh succeeded"] += 1

    def commit(self, check: Check = unchecked) -> Timestamp:
        self.record.deadline_at, self.record.not_before_at = self.deadline_at, self.not_before_at
        try:
            with Refusals(self.trace):
                at = super().commit(check)
        except OutcomeUnknown as error:
            self._over("unknown", error)
            raise
        except TenureError as error:
            self._over("aborted", error)
            raise
        except BaseException as error:
            self._over("unknown", error)
            raise
        self.trace.ended(self.record, "committed", read_at=self._store.at or 0, acked_at=at)
        return at

    def rollback(self) -> None:
        was_open = self.state is TransactionState.OPEN and self.record.state == "open"
        super().rollback()
        if was_open:
            self._over("aborted", None)

    def _over(self, state: str, error: BaseException | None) -> None:
        self.record.error = type(error).__name__ if error is not None else ""
        self.trace.ended(self.record, state, read_at=self._store.at or 0)


class TracingProof(CommitProof):
    """Records what is sent, and which reads no longer count."""

    __slots__ = ("_reads_then", "_record", "_trace")

    def __init__(self, *objects: Any, trace: Trace, record: Txn) -> None:
        super().__init__(*objects)
        self._trace = trace
        self._record = record
        self._reads_then: dict[Reads, int] = {}
        """By mark: how many reads had been recorded."""

    def mark(self) -> Reads:
        before = super().mark()
        self._reads_then[before] = len(self._record.reads)
        return before

    def forget(self, since: Reads, within: Span | None = None) -> None:
        super().forget(since, within)
        reads, first = self._record.reads, self._reads_then[since]
        former = {read.key for read in reads[:first] if isinstance(read, Get)}
        reads[first:] = [
            read
            for read in reads[first:]
            if not _is_within(read, within) or (isinstance(read, Get) and read.key in former)
        ]
        self._trace.seen["reads forgotten"] += 1

    def relax(self, since: Reads, *, without: bytes | None = None) -> None:
        former = set(self.reads.present)
        super().relax(since, without=without)
        relaxed = self.reads.present.keys() - former
        # What was in these rows is no longer held to.
        self._record.reads = [
            read for read in self._record.reads if not (isinstance(read, Get) and read.key in relaxed)
        ]
        self._record.present += sorted(relaxed)
        self._trace.seen["rows counted on"] += bool(relaxed)

    def as_check(self, at: Timestamp, reads: RefreshSpans) -> Commit:
        proof = super().as_check(at, reads)
        self._trace.sent(proof, self._record)
        self._trace.seen["reads of a view proved from another time"] += at != self._store.at
        return proof

    def as_commit(self) -> Commit:
        commit = super().as_commit()
        self._trace.sent(commit, self._record)
        return commit


class TracingView:
    """What it reads is recorded as of the step of its opening: later writes do not show."""

    def __init__(self, view: ReadView, trace: Trace, record: Txn) -> None:
        self._view = view
        self._trace = trace
        self._record = record
        self._opened = trace.tick()

    def get(self, key: bytes) -> bytes | None:
        began = self._trace.tick()
        with Refusals(self._trace):
            value = self._view.get(key)
        self._record.reads.append(Get(began, self._opened, key, value, self._view.read_at, ZERO_AT))
        return value

    def scan_around(self, span: Span, between: Callable[[], None], *, reverse: bool = False) -> None:
        """Reads a span, with something done after the second row: all of it is as of the opening."""
        began = self._trace.tick()
        with Refusals(self._trace):
            answer = self._view.scan(span, reverse=reverse)
            rows = list(islice(answer, 2))
            between()
            rows += answer
        read_at = self._view.read_at
        self._record.reads.append(Range(began, self._opened, span, None, reverse, rows, read_at, ZERO_AT))


def _nothing() -> None:
    return None


def _is_within(read: Get | Range, within: Span | None) -> bool:
    if within is None:
        return True
    if isinstance(read, Get):
        return within.lo <= read.key < within.hi
    return within.lo <= read.span.lo and read.span.hi <= within.hi


class Refusals:
    """Counts what product code refuses and why."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            self._trace.seen[f"raised {type(error).__name__}"] += 1
            if isinstance(error, SnapshotTooOld | BelowMark):
                self._trace.seen["read refused below threshold"] += 1
            elif isinstance(error, BaseMoved):
                self._trace.seen["BaseMoved"] += 1


class TracingSnapshot:
    def __init__(self, snapshot: Snapshot, trace: Trace, record: Txn) -> None:
        self._snapshot = snapshot
        self._trace = trace
        self._record = record
        self.at = snapshot.at
        self.id = record.id

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        began = self._trace.tick()
        with Refusals(self._trace):
            value = self._snapshot.get(key, flushed_at=flushed_at)
        if value is None and flushed_at:
            value = self._trace.value_at(key, min(flushed_at, self.at))
        self._record.reads.append(Get(began, self._trace.tick(), key, value, self.at, flushed_at))
        return value

    def scan(
        self, span: Span, *, limit: int | None = None, reverse: bool = False, flushed_at: Timestamp = ZERO_AT
    ) -> list[tuple[bytes, bytes]]:
        began = self._trace.tick()
        with Refusals(self._trace):
            rows = list(self._snapshot.scan(span, limit=limit, reverse=reverse, flushed_at=flushed_at))
        rows = with_lake(self._trace, rows, span, min(flushed_at, self.at))
        step = self._trace.tick()
        self._record.reads.append(Range(began, step, span, limit, reverse, rows, self.at, flushed_at))
        return rows

    def diff(self, span: Span, *, since_at: Timestamp) -> Sequence[Revision]:
        with Refusals(self._trace):
            found = self._snapshot.diff(span, since_at=since_at)
        self._trace.diffs.append(Diff(self._trace.tick(), span, since_at, self.at, found))
        return found


class TracingWatch:
    def __init__(self, watch: Watch, trace: Trace, spans: Sequence[Span]) -> None:
        self._watch = watch
        self._trace = trace
        self._spans = spans
        self.close = watch.close
        self.resume = watch.resume

    @property
    def resolved_at(self) -> Timestamp:
        return self._watch.resolved_at

    def next(self, timeout: float | None = None) -> ChangeBatch | Gap:
        since_at = self._watch.resolved_at
        with Refusals(self._trace):
            batch = self._watch.next(timeout)
        if isinstance(batch, Gap):
            self._trace.seen["watch fell below a mark"] += 1
            self._trace.seen[f"gap: {batch.reason.value}"] += 1
            return batch
        self._trace.intervals.append(
            Interval(self._trace.tick(), "watch", self._spans, since_at, batch.resolved_at, batch.revisions)
        )
        return batch


class TracingStore(Store):
    engine: SimEngine

    def begin(self, *, urgent: bool = False, read_ahead: ReadAhead | None = None) -> TracingTransaction:
        committer = self._urgent if urgent else self._committer
        return TracingTransaction(self._scope, committer, read_ahead=read_ahead)

    def traced(self, run: Callable[[TracingTransaction], None], *, urgent: bool = False) -> None:
        """`transact`, for functions that know they are recorded."""
        self.transact(run, urgent=urgent)  # type: ignore[arg-type]

    def snapshot_at(
        self,
        at: Timestamp | None = None,
        protected: ProtectedRead | None = None,
        engine: SimEngine | None = None,
    ) -> TracingSnapshot:
        """With an engine, its rows are read there."""
        trace = self.engine.wire.trace
        record = trace.begin(
            self.engine.machine.name, self.keyspace.tenant, None, False, self.engine.wire.hub.t
        )
        snapshot = self.snapshot(at, protected)
        if engine is not None:
            snapshot = Snapshot(engine, self.keyspace, snapshot.at, self.bases, protected)
        record.snapshot_at = snapshot.at
        if at is not None:
            record.floor_at = ZERO_AT
        return TracingSnapshot(snapshot, trace, record)

    def interval(
        self, span: Span, *, since_at: Timestamp, until_at: Timestamp | None = None, limit: int | None = None
    ) -> StoreInterval:
        trace = self.engine.wire.trace
        with Refusals(trace):
            answer = self.history(span, since_at=since_at, until_at=until_at, limit=limit)
        trace.intervals.append(
            Interval(trace.tick(), "history", (span,), since_at, answer.through_at, answer.revisions)
        )
        return answer

    def watching(self, spans: Sequence[Span], *, since_at: Timestamp) -> TracingWatch:
        return TracingWatch(self.watch(spans, since_at=since_at), self.engine.wire.trace, spans)

    def read_clock(self, name: str, above_at: Timestamp) -> None:
        trace = self.engine.wire.trace
        at = self.clock.now()
        trace.readings.append(Reading(trace.tick(), name, at, above_at))


def with_lake(
    trace: Trace, rows: list[tuple[bytes, bytes]], span: Span, flushed_at: Timestamp
) -> list[tuple[bytes, bytes]]:
    """Lays the store's rows over those that the lake of `flushed_at` has."""
    if not flushed_at:
        return rows
    lake = {key: trace.value_at(key, flushed_at) for key in trace.keys_in(span)}
    merged = {key: value for key, value in lake.items() if value is not None} | dict(rows)
    return sorted(merged.items())
