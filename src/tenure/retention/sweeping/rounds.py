"""A round: one pass of garbage collection over the heads that are due.

    protections ──► heads due ──► publication ──► removal, some batches of each head in turn ──► files
                └─► objects that ended ──► collection: data, then catalog

Removals that an earlier round has left go on with their own pairs, where their cursors are. A head with much
garbage does not hold up the others: heads take turns, and a round by the schedule ends after a while and
leaves the rest to the next. While others commit, the round pauses after each commit as long as the commit
took, so foreground work has the section at least half of the time.

Every step is one transaction under the fence of the job's run. A round that dies anywhere leaves records from
which the next goes on.

Walk: `retention.sweeping.job` -> `Round.run` -> `publication.publish`, `removal.remove`,
`file_sweeps.sweep_files`, `object_collection.ObjectCollection`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tenure.base.timestamp import add_seconds
from tenure.catalog.descriptors.definitions import AnyDescriptor, DescriptorState, Table
from tenure.cluster.jobs.runs import Run
from tenure.kv.records import Record
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping.file_sweeps import sweep_files, with_file_garbage
from tenure.retention.sweeping.heads import (
    catalog_heads,
    has_moved,
    index_heads,
    is_due,
    may_be_due,
    system_heads,
)
from tenure.retention.sweeping.object_collection import ObjectCollection
from tenure.retention.sweeping.pace import SweepPace
from tenure.retention.sweeping.pinned import pinned_bytes
from tenure.retention.sweeping.publication import Decisions, publish
from tenure.retention.sweeping.removal import BatchRows, HeadRemoval, finish, remove
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRecord, SweepStage, sweep_records
from tenure.storage.engine import WrittenHeads

PUBLISH_HEADS = 500
"""Heads per publication: many, so that a protection of a database meets few of them; and a short commit."""

STALE_ATTEMPTS_MAX = 50
"""How often a round reads protections anew that have changed meanwhile: the rest waits for the next round."""

TURN_BATCHES = 8
"""Batches of one head before the next has its turn."""

HEADS_TOGETHER, ROWS_TOGETHER = 8, 500
"""Heads whose first batches share a commit, and the rows that it looks at of each."""


class RoundResult(Record, frozen=True):
    heads: int = 0
    """Whose pairs were published."""
    removed: int = 0
    """Revisions that have left the store."""
    objects: int = 0
    """Descriptors that are gone."""
    merges: tuple[int, ...] = ()
    """Jobs that rewrite files."""


class _Look(NamedTuple):
    """The cluster as a round finds it, read once."""

    snapshot: Snapshot
    descriptors: Sequence[AnyDescriptor]
    records: Mapping[bytes, SweepRecord]
    """Of the heads that the round is about."""
    written: WrittenHeads


class Round:
    def __init__(self, services: SweepServices, run: Run, pace: SweepPace, table: int = 0) -> None:
        """`table` 0: all heads; else those of one table alone."""
        self._services = services
        self._run = run
        self._pace = pace
        self._table = table
        self._records = sweep_records(services.keyspace)
        self._decisions = Decisions(services, services.tracker.state)
        self._batch = BatchRows()

    def run(self) -> RoundResult:
        look = self._look()
        published = self._publish(look)
        stored = {head for head, record in look.records.items() if record.stage is SweepStage.PUBLISHED}
        removed, finished = self._remove(self._read({*stored, *published}))
        # Ends are noted after the files: a round that dies before is done again.
        wasteful = {head for head, record in look.records.items() if record.garbage_rows}
        merges = self._sweep_files(self._read({*stored, *published, *wasteful}))
        self._finish(finished)
        objects = 0
        if self._pace.has_time():
            collection = ObjectCollection(
                *(self._services, self._run, self._pace),
                Decisions(self._services, self._services.tracker.refresh_now()),
                *(look.descriptors, look.records, look.written),
                table=self._table,
            )
            objects = collection.run()
            removed += collection.removed
        return RoundResult(len(published), removed, objects, tuple(merges))

    def _look(self) -> _Look:
        services = self._services
        snapshot, keyspace = services.store.snapshot(), services.keyspace
        records = {
            record.head: record
            for record in self._records.scan(snapshot)
            if self._table in (0, keyspace.table_and_index(record.head)[0])
        }
        written = services.store.engine.written_heads()
        return _Look(snapshot, list(services.catalog.list(snapshot)), records, written)

    def _read(self, heads: Iterable[bytes]) -> list[SweepRecord]:
        """The records of some heads as of now."""
        snapshot, wanted = self._services.store.snapshot(), sorted(heads)
        snapshot.read_ahead(map(self._records.key, wanted))
        found = [self._records.get(snapshot, head) for head in wanted]
        return [record for record in found if record is not None]

    # ── publication ────────────────────────────────────────────────────────────────────────────

    def _publish(self, look: _Look) -> list[bytes]:
        """Publishes the pairs of the heads that are due, and returns the heads."""
        decisions = Decisions(self._services, self._services.tracker.refresh_now())
        due = self._due(decisions, look)
        done, attempts = 0, 0
        while done < len(due) and attempts < STALE_ATTEMPTS_MAX:
            part = due[done : done + PUBLISH_HEADS]
            with self._pace.commit():
                is_done = self._run.transact(partial(_publish, self._services, decisions, part))
            if is_done:
                done += len(part)
            else:
                attempts += 1
                decisions = Decisions(self._services, self._services.tracker.refresh_now())
        self._decisions = decisions
        return due[:done]

    def _due(self, decisions: Decisions, look: _Look) -> list[bytes]:
        """The heads to publish, those first of which the last sweep has removed most."""
        records = look.records
        heads = list(self._heads(look))
        moved = {head for head in heads if has_moved(look.written, head, records.get(head))}
        looked_at = [head for head in heads if head in moved or may_be_due(records.get(head))]
        due = [
            each.head
            for each in decisions.of(look.snapshot, looked_at)
            if is_due(records.get(each.head), each.decision.keep, each.head in moved)
        ]
        return sorted(due, key=lambda head: -_removed_last(records.get(head)))

    def _heads(self, look: _Look) -> Iterator[bytes]:
        keyspace = self._services.keyspace
        if not self._table:
            yield from system_heads(keyspace)
            yield from catalog_heads(keyspace)
        for each in look.descriptors:
            is_collected = each.state is DescriptorState.COLLECTED
            if isinstance(each, Table) and not is_collected and self._table in (0, each.id):
                yield from index_heads(keyspace, each)

    # ── removal ────────────────────────────────────────────────────────────────────────────────

    def _remove(self, records: Iterable[SweepRecord]) -> tuple[int, list[HeadRemoval]]:
        """Returns how many revisions it has removed, and the removals that are finished."""
        left = [
            HeadRemoval(self._services, record) for record in records if record.stage is SweepStage.PUBLISHED
        ]
        removed, finished = 0, list[HeadRemoval]()
        while left and self._pace.has_time():
            for some in _turns(left):
                removed += self._turn(some)
            finished += [each for each in left if each.is_finished]
            left = [each for each in left if not each.is_over]
            self._pace.tell(
                f"{len(finished)} of {len(left) + len(finished)} indexes, {removed} revisions removed"
            )
        return removed, finished

    def _turn(self, removals: Sequence[HeadRemoval]) -> int:
        """One commit for several heads, or some for one."""
        if len(removals) > 1:
            with self._pace.commit():
                return remove(self._run, removals, min(ROWS_TOGETHER, self._batch.rows))
        removed = 0
        for _ in range(TURN_BATCHES):
            with self._pace.commit():
                removed += remove(self._run, removals, self._batch.rows)
            if removals[0].is_over:
                break
            self._batch.adapt(self._pace.seconds, is_busy=self._pace.is_busy)
        return removed

    def _finish(self, finished: Sequence[HeadRemoval]) -> None:
        for each in finished:
            each.pinned = self._pinned(each.record)
        if finished:
            now_at = self._services.store.clock.now()
            self._run.transact(lambda txn: finish(txn, self._services, finished, now_at))

    def _pinned(self, record: SweepRecord) -> tuple[tuple[bytes, int], ...]:
        """The figures of SHOW PROTECTED TIMESTAMPS."""
        store, (table, index) = self._services.store, self._services.keyspace.table_and_index(record.head)
        snapshot = store.snapshot()
        holds = self._decisions.holds(snapshot, record.head)
        if not holds:
            return ()
        manifest = self._services.manifests.get(snapshot, table, index)
        ended_at = add_seconds(self._decisions.now_at, -record.ttl_seconds)
        return tuple(sorted(pinned_bytes(store, record.head, manifest, holds, ended_at).items()))

    # ── files ──────────────────────────────────────────────────────────────────────────────────

    def _sweep_files(self, records: Iterable[SweepRecord]) -> list[int]:
        """Returns the jobs of the merges that it has started."""
        jobs = []
        for record in with_file_garbage(self._services, records):
            with self._pace.commit():
                jobs.append(sweep_files(self._services, self._run, record))
        return [job for job in jobs if job]


def _turns(removals: Sequence[HeadRemoval]) -> Iterator[Sequence[HeadRemoval]]:
    """Those that have a cursor have much garbage, and go alone."""
    fresh = [each for each in removals if not each.record.cursor]
    for first in range(0, len(fresh), HEADS_TOGETHER):
        yield fresh[first : first + HEADS_TOGETHER]
    yield from ([each] for each in removals if each.record.cursor)


def _publish(services: SweepServices, decisions: Decisions, heads: Sequence[bytes], txn: Transaction) -> bool:
    return publish(txn, services, decisions, heads)


def _removed_last(record: SweepRecord | None) -> int:
    return 0 if record is None else record.removed
