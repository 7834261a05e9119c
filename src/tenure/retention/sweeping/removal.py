"""Removal: the revisions that a published pair does not need leave the store, in short commits.

    PUBLISHED, cursor ──► batch ──► batch ──► ... ──► SWEPT

Each batch is one commit that looks at a bounded number of rows behind a cursor. It reads the sweep record of
its head first and goes on only if that is the one it began with: another publication has another pair. The
engine tells only after the commit where a batch has ended, so the next one writes the cursor, now and then. A
run that dies repeats the batches since. The ends of many heads are noted in one commit.

Most heads have little garbage, and a commit costs more than removing it: the first batches of several heads
share a commit. The engine stops at the first that has more; that head goes on alone.

**How many rows** follows the time that commits take: few while others commit, so that nobody waits for long;
many while nobody does, because a page of the store is then written once for many rows.

**Tombstones** leave `live` only where, in the same transaction, the index has neither a manifest nor an open
merge claim: a flush that has read the index before the deletion would bring the row back.

Invariant (I29): a removal uses exactly the pair of its own publication.
Invariant (tombstones): a tombstone leaves `live` only where the index has neither base nor open merge.

Walk: `retention.sweeping.rounds` calls `remove` and `finish` -> `HeadRemoval` -> `kv.transaction`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeGuard

from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.runs import Run
from tenure.kv.keys import USER_TABLES
from tenure.kv.records import replace
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRecord, SweepStage, sweep_records
from tenure.storage.engine import Removal, Removes

BATCH_ROWS = 4_000
"""Rows that the first commit looks at: it holds the section, so it is short."""

BATCH_ROWS_MIN, BATCH_ROWS_MAX = 500, 32_000
"""An index page has about 50 entries: beyond the greatest number, a row hardly becomes cheaper."""

BUSY_SECONDS, QUIET_SECONDS = 0.004, 0.1
"""How long a full batch may take while others commit, and while nobody does but for heartbeats."""

CURSOR_BATCHES = 16
"""Batches between two writes of the cursor: each write is a revision that must be removed, too."""


class BatchRows:
    """How many rows the next batch looks at."""

    def __init__(self) -> None:
        self.rows = BATCH_ROWS

    def adapt(self, seconds: float, *, is_busy: bool) -> None:
        """After a full batch that took so long."""
        if seconds > 0:
            wanted = int(self.rows * (BUSY_SECONDS if is_busy else QUIET_SECONDS) / seconds)
            self.rows = max(BATCH_ROWS_MIN, min(wanted, 2 * self.rows, BATCH_ROWS_MAX))


class Batch(NamedTuple):
    """One batch of a removal, as it was begun."""

    record: SweepRecord
    """With the cursor behind which it looks."""
    is_saved: bool
    """Whether it writes that record."""


def remove(run: Run, removals: Sequence["HeadRemoval"], rows: int) -> int:
    """One commit that looks at so many rows of each head; returns how many revisions it has removed."""

    def work(txn: Transaction) -> tuple[Transaction, list[Batch | None]]:
        txn.read_ahead([each.key for each in removals])
        return txn, [each.begin(txn, rows) for each in removals]

    txn, batches = run.transact(work)
    counts = list(txn.removed_each)
    for each, batch in zip(removals, batches, strict=True):
        if batch is None:
            each.is_over = True
        elif counts:
            removed = counts.pop(0)
            each.note(batch, removed, b"" if counts else txn.removed_up_to)
        # else the engine has stopped before it
    return txn.removed


class HeadRemoval:
    """The removal of one head, as far as this run has come."""

    def __init__(self, services: SweepServices, record: SweepRecord) -> None:
        self._services = services
        self._records = sweep_records(services.keyspace)
        self._unsaved = 0
        """Batches since the cursor was written."""
        self.record = record
        self.key = self._records.key(record.head)
        self.is_over = False
        """It is finished, or another publication has replaced it."""
        self.is_finished = False
        self.pinned: tuple[tuple[bytes, int], ...] = ()
        """The protections that cover the head, and about how many bytes each pins."""

    def note(self, batch: Batch, removed: int, up_to: bytes) -> None:
        """Notes what a batch has removed, and where it was cut: empty if nothing is left."""
        self.record = replace(batch.record, cursor=up_to, removed=batch.record.removed + removed)
        self._unsaved = 1 if batch.is_saved else self._unsaved + 1
        self.is_over = self.is_finished = not up_to

    def begin(self, txn: Transaction, rows: int) -> Batch | None:
        """Removes a batch with the commit; None if the removal is over."""
        stored = self._records.get(txn, self.record.head)
        if not _is_under_way(stored, self.record):
            return None
        has_base, has_claim = self._merges(txn)
        takes_tombstones = not has_base and not has_claim
        record = replace(
            stored,  # not the record of this run: a merge may have noted what it has rewritten
            cursor=self.record.cursor,
            removed=self.record.removed,
            takes_tombstones=takes_tombstones,
            has_left_tombstones=has_claim and not has_base,
        )
        is_other_kind = takes_tombstones != self.record.takes_tombstones
        if is_other_kind:
            record = replace(record, cursor=b"")  # a cursor belongs to one kind of removal
        is_saved = is_other_kind or self._unsaved >= CURSOR_BATCHES
        if is_saved:
            self._records.put(txn, record)
        span = self._services.keyspace.head_span(record.head)
        removes = Removes.GARBAGE if takes_tombstones else Removes.SUPERSEDED
        keep = record.keep
        txn.remove(Removal(*span, removes, keep.threshold, rows, points=keep.points, after=record.cursor))
        return Batch(record, is_saved)

    def _merges(self, txn: Transaction) -> tuple[bool, bool]:
        """Whether the index has a base, and whether a merge of it is under way."""
        services = self._services
        table, index = services.keyspace.table_and_index(self.record.head)
        if table < USER_TABLES:
            return False, False
        has_base = services.manifests.get(txn, table, index) is not None
        return has_base, services.jobs.is_open(txn, services.merges.holder(txn, table, index))


def finish(
    txn: Transaction, services: SweepServices, finished: Iterable[HeadRemoval], now_at: Timestamp
) -> None:
    """Notes the ends of removals, of many heads together."""
    records = sweep_records(services.keyspace)
    for each in finished:
        stored = records.get(txn, each.record.head)
        if _is_under_way(stored, each.record):
            swept = replace(
                stored,
                stage=SweepStage.SWEPT,
                takes_tombstones=each.record.takes_tombstones,
                has_left_tombstones=each.record.has_left_tombstones,
                cursor=b"",
                removed=each.record.removed,
                finished_at=now_at,
                pinned=each.pinned,
            )
            records.put(txn, swept)


def _is_under_way(stored: SweepRecord | None, record: SweepRecord) -> TypeGuard[SweepRecord]:
    """Whether the removal of a record is still to be done."""
    return (
        stored is not None
        and stored.stage is SweepStage.PUBLISHED
        and stored.published_at == record.published_at
    )
