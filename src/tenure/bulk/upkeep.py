"""The lake's upkeep, in small steps: every node does it, and none has to.

    flush     indexes that have grown by enough get a flush, if they have more than `lake.flush_bytes`
    clean     revisions that were flushed `lake.clean_after` ago leave the store, but for those that an old
              transaction may have to see at its commit (`retention.long_reads`)
    drop      files that manifests have not named for `lake.file_grace` are deleted
    strays    so are files that no manifest names, and whose job has ended: they cannot be published any more

This node's commits count the growth of indexes; when it starts, it looks at every index once. After a flush
that failed it waits before it starts another (`bulk.flush_pauses`). Two nodes that do the same at once do no
harm: a flush is claimed, a mark is moved by one, a file deleted twice.

`Files` checks before it deletes whether the lake still carries the store's id, and cleaning checks it, too.

Invariant (strays): no file is deleted that a manifest names, or that a job which has not ended may still
publish. (Files are listed before the store is read: a listed file that belongs to an ended job and is not
named will never be named.)

Walk: `composition.background` runs `step` in a loop.
"""

import logging
from collections.abc import Iterator

from tenure.base.errors import RetryError
from tenure.base.settings import CLEAN_AFTER, FILE_GRACE, FLUSH_BYTES
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.bulk import flush
from tenure.bulk.flush_pauses import FlushPauses
from tenure.bulk.lakes import Lake
from tenure.catalog.descriptors.definitions import Table, is_dropped
from tenure.kv.keys import USER_TABLES
from tenure.kv.thresholds import cleaned_mark
from tenure.kv.transaction import Transaction
from tenure.retention.long_reads import cleaning_limit
from tenure.storage.locations import Locations
from tenure.table.lake.manifests import Manifest
from tenure.table.lake.opening import job_of
from tenure.table.lake.publishing import clean_some

STEP_SECONDS = 5.0
GROWN_SHARE = 4
"""An index that this node has let grow by a quarter of a flush's size is looked at: others write too."""

CLEAN_ROWS = 2_000
"""Revisions per commit that cleans: it holds the section, so it is short."""

CLEAN_COMMITS = 50
"""Commits of one step."""

STRAYS_SECONDS = 3_600.0
UNFINISHED_SECONDS = 86_400.0
"""The time between two passes over all files, and the age of a half-written file that is deleted: no write
takes so long.
"""

_log = logging.getLogger(__name__)


class Upkeep:
    def __init__(self, lake: Lake, locations: Locations | None = None) -> None:
        self._lake = lake
        self._locations = locations
        self._store = lake.store
        self._pauses = FlushPauses(lake.store.env, lake.store, lake.jobs)
        self._cleaned: dict[bytes, Timestamp] = {}
        self._unseen: Iterator[bytes] | None = None
        self._strays_due = lake.store.env.monotonic() + STRAYS_SECONDS

    def step(self) -> float:
        for head in self._grown():
            self._flush_if_large(head)
        for base in self._lake.bases.bases():
            self._clean(base.manifest)
        self._delete_dropped()
        if self._store.env.monotonic() >= self._strays_due:
            self._strays_due = self._store.env.monotonic() + STRAYS_SECONDS
            self.delete_strays()
        return STEP_SECONDS

    # ── flushing ───────────────────────────────────────────────────────────────────────────────

    def _grown(self) -> list[bytes]:
        """Indexes worth a look: those that have grown, and one after the other those not seen yet."""
        least = self._lake.settings()[FLUSH_BYTES] // GROWN_SHARE
        grown = self._store.volume.take(least)
        if self._unseen is None:
            self._unseen = iter(self._all_heads())
        unseen = next(self._unseen, None)
        looked_at = (*grown, *self._pauses.due(), *([unseen] if unseen else []))
        return [head for head in looked_at if self._is_of_user(head)]

    def _all_heads(self) -> list[bytes]:
        snapshot, keyspace = self._store.snapshot(), self._store.keyspace
        return [
            keyspace.head(found.id, index.id)
            for found in self._lake.catalog.list(snapshot)
            if isinstance(found, Table) and not is_dropped(found)
            for index in found.indexes
        ]

    def _is_of_user(self, head: bytes) -> bool:
        return self._store.keyspace.table_and_index(head)[0] >= USER_TABLES

    def _flush_if_large(self, head: bytes) -> None:
        base = self._lake.bases.of(head)
        span = self._store.keyspace.head_span(head)
        since_at = 0 if base is None else base.flushed_at
        spread = self._store.engine.spread(span.lo, span.hi, since_at, 1 << 40)
        if spread.size <= self._lake.settings()[FLUSH_BYTES] or not self._pauses.may_try(head):
            return
        table, index = self._store.keyspace.table_and_index(head)
        found = self._lake.catalog.get(self._store.snapshot(), table)
        if isinstance(found, Table) and not is_dropped(found):
            job = self._store.transact(
                lambda txn: flush.start(txn, self._lake, table, index, rows=spread.keys, name=found.name)
            )
            if job is not None:
                self._pauses.started(head, job.id)

    # ── cleaning ───────────────────────────────────────────────────────────────────────────────

    def _clean(self, manifest: Manifest) -> None:
        head = self._store.keyspace.head(manifest.table, manifest.index)
        clean_after = self._lake.settings()[CLEAN_AFTER]
        upto_at = min(manifest.flushed_at, add_seconds(self._store.clock.now(), -clean_after))
        cleaned_at = self._cleaned.get(head, 0)
        is_little = add_seconds(cleaned_at, clean_after / GROWN_SHARE) > upto_at
        if upto_at <= cleaned_at or (is_little and upto_at < manifest.flushed_at):
            return  # the mark need not move all the time
        self._lake.files.confirm()  # rows that leave the store are in that lake alone
        try:
            for _ in range(CLEAN_COMMITS):
                if self._clean_some(manifest, upto_at) < CLEAN_ROWS:
                    self._cleaned[head] = upto_at
                    return
        except RetryError:
            pass  # another node does it, or is ahead of this one

    def _clean_some(self, manifest: Manifest, upto_at: Timestamp) -> int:
        txn = self._store.begin()
        try:
            mark_at = cleaned_mark(txn, self._store.keyspace, self._head(manifest))
            if mark_at > manifest.flushed_at:
                raise RetryError("there is a newer base, which this node is about to hear of")
            upto_at = min(upto_at, self._limit(txn, manifest.table))
            clean_some(txn, self._store.keyspace, manifest, max(upto_at, mark_at), limit=CLEAN_ROWS)
            txn.commit()
            return txn.removed
        finally:
            txn.rollback()

    def _limit(self, txn: Transaction, table: int) -> Timestamp:
        """Up to where open transactions let revisions go; it commits only while they are protected as now."""
        state = self._lake.tracker.state
        if self._lake.tracker.version(txn) != state.version:
            self._lake.tracker.refresh_now()
            raise RetryError("the protections have changed")
        return cleaning_limit(state, table)

    def _head(self, manifest: Manifest) -> bytes:
        return self._store.keyspace.head(manifest.table, manifest.index)

    # ── files ──────────────────────────────────────────────────────────────────────────────────

    def _delete_dropped(self) -> None:
        grace = self._lake.settings()[FILE_GRACE]
        before_at = add_seconds(self._store.clock.now(), -grace)
        snapshot = self._store.snapshot()
        names = [file.name for file in self._lake.manifests.dropped(snapshot) if file.dropped_at < before_at]
        if not names:
            return
        self._lake.files.delete(names)

        def forget(txn: Transaction) -> None:
            for name in names:
                self._lake.manifests.forget_file(txn, name)

        self._store.transact(forget)

    def delete_strays(self) -> list[str]:
        """Deletes files that cannot be named any more; returns their names."""
        directory = str(self._lake.place.tenant)
        listed = [entry.name for page in self._lake.files.list(directory) for entry in page]
        snapshot = self._store.snapshot()
        named = {file.name for manifest in self._lake.manifests.all(snapshot) for file in manifest.files}
        named |= {file.name for file in self._lake.manifests.dropped(snapshot)}
        open_jobs = frozenset(control.id for control in self._lake.jobs.open(snapshot))
        strays = [name for name in listed if name not in named and _is_over(name, open_jobs)]
        if strays:
            _log.info("deleting %d files of the lake that nobody names", len(strays))
            self._lake.files.delete(strays)
        seconds_ago = self._store.env.wall_micros() - round(UNFINISHED_SECONDS * 1_000_000)
        self._lake.files.delete_unfinished(before_micros=seconds_ago)
        if self._locations is not None:  # exports that were killed leave files, too
            self._locations.delete_unfinished(before_micros=seconds_ago)
        return strays


def _is_over(name: str, open_jobs: frozenset[int]) -> bool:
    """Whether the job of a file has ended; a file of no job is not ours to delete."""
    job = job_of(name)
    return job is not None and job not in open_jobs
