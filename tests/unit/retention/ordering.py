"""A store on which events of retention happen in any order, judged after each by the history of all writes.

    zones         up, down
    protections   protect at, protect after: of the schema, in one transaction
                  slow commit: of a protection of the table that was begun before all
    sweeps        sweep: a whole round; stale sweep: from the protections as they were before all
                  sweep begins, sweep goes on: a removal row by row, with other events in between
    the lake      flush begins, flush ends: a merge under its claim; clean
    tables        move, drop, undrop
    rows          delete

Merges are those of the simulator, over lists of revisions; all else is product code on one engine in memory.

Walk: `test_orders` makes an `OrderedStore` for each order and runs its events.
"""

from collections import Counter
from functools import partial
from typing import Any, cast

from tenure.base.errors import RetryError, SnapshotTooOld, UndefinedObject
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.catalog.changes.undrops import undrop
from tenure.catalog.changes.zone_changes import configure
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    AnyDescriptor,
    DescriptorState,
    NameKey,
    Schema,
    Table,
    is_dropped,
    next_version,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.zones import all_zones, effective_ttl
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.runs import Run
from tenure.kv.thresholds import cleaned_mark
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode, Protection, Targets
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping import removal
from tenure.retention.sweeping.publication import Decisions, publish
from tenure.retention.sweeping.removal import HeadRemoval, finish
from tenure.table.lake.keep import KEEP_ALL
from tenure.table.lake.manifests import Manifest
from tenure.table.lake.publishing import clean_some
from tenure.table.lake.publishing import publish as publish_base
from tests.simulation.lake_files import FileRow, SimBases, SimFiles, SimTree
from tests.simulation.lake_merges import Merge
from tests.simulation.retention_coverage import covered_from
from tests.unit.retention.protecting import OWNER
from tests.unit.retention.sweeping import SweptStore

TABLE, OTHER_SCHEMA = 200, 111
NAMES = ("k", "gone")

EVENTS = (
    "up",
    "down",
    "protect at",
    "protect after",
    "sweep",
    "stale sweep",
    "sweep begins",
    "sweep goes on",
    "flush begins",
    "flush ends",
    "clean",
    "move",
    "drop",
    "undrop",
    "delete",
)

FOLLOWS = {
    "sweep goes on": "sweep begins",
    "flush ends": "flush begins",
    "clean": "flush ends",
    "undrop": "drop",
}
"""Events that do nothing unless another has come before."""


class QuietTree(SimTree):
    """Files that are read at once."""

    def __init__(self) -> None:
        super().__init__(cast("Any", None))

    def read(self, name: str) -> tuple[FileRow, ...]:
        return self._contents[name]


class OrderedStore(SweptStore):
    def __init__(self, mode: Mode) -> None:
        super().__init__()
        self.mode = mode
        self.bases = SimBases(self.store, self.manifests, SimFiles(QuietTree()), cache_bytes=0)
        self.store.use_bases(self.bases)
        self.written: dict[str, list[tuple[Timestamp, str | None]]] = {name: [] for name in NAMES}
        self.outcomes: list[str] = []
        self.begun: HeadRemoval | None = None
        self.sweeping: Run | None = None
        self.merge: Merge | None = None
        self.merging = 0
        public = DescriptorState.PUBLIC
        self.publish(Schema(OTHER_SCHEMA, 1, 0, "other", ROOT, public, (), (), DEFAULT_DATABASE))
        self.create(TABLE)
        self.configure(60)
        self.at = self.write("k", "old")
        self.write("gone", "old")
        self.write("k", "new")
        self.env.advance(20)
        self.write("k", "newest")
        self.decisions = Decisions(self.services, self.tracker.refresh_now())
        self.slow = self.store.begin()
        self.protect_in(self.slow, TABLE, self.mode)

    def write(self, name: str, value: str | None) -> Timestamp:
        at = self.put(TABLE, name, value)
        self.written[name].append((at, value))
        return at

    def protect_in(self, txn: Transaction, target: int, mode: Mode) -> None:
        self.protections.protect(txn, self.at, mode, *OWNER, Targets((target,)))

    def configure(self, seconds: int) -> None:
        self.transact(lambda txn: configure(txn, self.keyspace, (TABLE, 0), gc_ttl_seconds=seconds))

    # ── events ─────────────────────────────────────────────────────────────────────────────────

    def happen(self, event: str) -> None:
        """Then it is checked that each protection was made in time, and that all promised times are there."""
        self.env.advance(2)
        records = len(self.state().records)
        try:
            outcome = self._do(event)
            self.outcomes.append(f"{event}: {outcome}" if outcome else event)
        except (RetryError, SnapshotTooOld, UndefinedObject) as error:
            self.outcomes.append(f"{event}: {error.sqlstate}")
        if len(self.state().records) > records:
            self._check_was_in_time()
        self.check()

    def _do(self, event: str) -> str:
        match event:
            case "up" | "down":
                self.configure(3_600 if event == "up" else 1)
            case "protect at" | "protect after":
                mode = Mode.AT if event == "protect at" else Mode.AFTER
                self.transact(lambda txn: self.protect_in(txn, DEFAULT_SCHEMA, mode))
            case "quick protect":
                self.transact(lambda txn: self.protect_in(txn, TABLE, self.mode))
            case "slow commit":
                self.slow.commit()
            case "sweep":
                self.sweep(TABLE)
            case "stale sweep":
                heads = [self.head(TABLE)]
                is_done = self.transact(lambda txn: publish(txn, self.services, self.decisions, heads))
                return "published" if is_done else "stale"
            case "delete":
                if not self._is_ended():
                    self.write("gone", None)
            case _:
                return self._do_long(event)
        return ""

    def _do_long(self, event: str) -> str:
        match event:
            case "sweep begins":
                return self._begin_sweep()
            case "sweep goes on":
                return self._go_on()
            case "flush begins":
                return self._begin_flush()
            case "flush ends":
                return self._end_flush()
            case "clean":
                return self._clean()
            case "move":
                if not self._is_ended():
                    self.alter(TABLE, schema=OTHER_SCHEMA)
            case "drop":
                if not self._is_ended():
                    self.drop(TABLE)
            case "undrop":
                self.transact(self._undrop)
            case _:
                raise AssertionError(f"there is no event {event!r}")
        return ""

    def _begin_sweep(self) -> str:
        """Publishes, and removes one row; its removal is kept."""
        heads, decisions = [self.head(TABLE)], Decisions(self.services, self.tracker.refresh_now())
        job = self.transact(lambda txn: gc.start(txn, self.services, table=TABLE))
        self.sweeping = self.claim(job)
        self.sweeping.transact(lambda txn: publish(txn, self.services, decisions, heads))
        record = self.record(self.head(TABLE))
        if record is None or self._is_ended():
            return "nothing to sweep"
        self.begun = HeadRemoval(self.services, record)
        removal.remove(self.sweeping, [self.begun], 1)
        return ""

    def _go_on(self) -> str:
        begun, run = self.begun, self.sweeping
        if begun is None or run is None:
            return "nothing under way"
        while not begun.is_over:
            removal.remove(run, [begun], 1)
        run.transact(lambda txn: finish(txn, self.services, [begun], self.store.clock.now()))
        return "finished" if begun.is_finished else "replaced"

    def _begin_flush(self) -> str:
        """Claims the index, and reads all that it merges."""

        def start(txn: Transaction) -> int:
            if self.jobs.is_open(txn, self.merges.holder(txn, TABLE, 1)):
                return 0
            job = self.jobs.create(txn, kind="flush")
            self.merges.claim(txn, TABLE, 1, job.id)
            return job.id

        self.merging = 0 if self._is_ended() else self.transact(start)
        if not self.merging:
            return "refused"
        record = self.record(self.head(TABLE))
        keep, files = KEEP_ALL if record is None else record.keep, cast("SimFiles", self.bases.files)
        self.merge = Merge(self.store, self.manifests, files, (TABLE, 1), keep, self, Counter())
        return ""

    def pick(self, count: int) -> int:
        return count - 1

    def pause(self) -> None:
        """A merge is read in one go here; others come between its beginning and its end."""

    def _end_flush(self) -> str:
        merge, job = self.merge, self.merging
        if merge is None or self._is_ended():
            return "nothing to flush"

        def work(txn: Transaction) -> None:
            publish_base(txn, self.keyspace, self.manifests, merge.began_with, merge.replaced(), merge.at)
            self.merges.release(txn, TABLE, 1, job)

        self.transact(work)
        fence = self.transact(lambda txn: self.jobs.claim(txn, job, self.member.liveness.session().id))
        assert fence is not None
        self.transact(lambda txn: self.jobs.step(txn, fence, JobState.SUCCEEDED))
        self.merge = None
        return ""

    def _clean(self) -> str:
        manifest: Manifest | None = self.manifests.get(self.store.snapshot(), TABLE, 1)
        if manifest is None:
            return "nothing to clean"
        mark_at = cleaned_mark(self.store.snapshot(), self.keyspace, self.head(TABLE))
        at = max(manifest.flushed_at, mark_at)
        self.transact(partial(clean_some, keyspace=self.keyspace, manifest=manifest, at=at, limit=100))
        return ""

    def _undrop(self, txn: Transaction) -> None:
        draft = Draft()
        undrop(draft, _CatalogOf(self, txn), [TABLE])
        self.catalog.put(txn, next_version(draft.declared[TABLE]))

    def _is_ended(self) -> bool:
        found = self.catalog.get(self.store.snapshot(), TABLE)
        return found is None or is_dropped(found)

    # ── the oracle ─────────────────────────────────────────────────────────────────────────────

    def _check_was_in_time(self) -> None:
        """I28."""
        found = self.catalog.get(self.store.snapshot(), TABLE)
        assert isinstance(found, Table)
        zones = all_zones(self.store.snapshot(), self.keyspace)
        ttl = effective_ttl(zones, found.database, found.schema, TABLE).seconds
        assert self.now() < add_seconds(self.at, ttl), self.outcomes
        assert self.threshold(self.head(TABLE)) <= self.at, self.outcomes

    def check(self) -> None:
        """I27, I30: all readable and all protected times show what was written; others are refused."""
        self.bases.load()
        versions, threshold_at = self._versions(), self.threshold(self.head(TABLE))
        times = {at for written in self.written.values() for at, _ in written} | {self.now()}
        for at in sorted(times):
            if not _was_there(versions, at):
                continue
            if at >= threshold_at:
                self._check_shown(at)
            else:
                assert self.refused_below(TABLE, at), self.outcomes
        for protection in self.state().records:
            from_at = covered_from(self.keyspace, protection, self.head(TABLE), versions)
            if from_at is not None:
                self._check_protected(protection, from_at, threshold_at)

    def _check_protected(self, protection: Protection, from_at: Timestamp, threshold_at: Timestamp) -> None:
        if protection.mode is Mode.AFTER:
            assert threshold_at <= from_at, self.outcomes
        else:
            self._check_shown(protection.at, protection)

    def _check_shown(self, at: Timestamp, protection: Protection | None = None) -> None:
        read = None if protection is None else self.protections.protected_read(protection)
        snapshot = self.store.snapshot(at, read)
        found = {name: snapshot.get(self.key(TABLE, name)) for name in NAMES}
        for name, written in self.written.items():
            values = [value for since_at, value in written if since_at <= at]
            expected = values[-1].encode() if values and values[-1] is not None else None
            assert found[name] == expected, (name, at, self.outcomes)

    def _versions(self) -> list[Table]:
        """All that the table has had: nothing of the catalog is swept here."""
        span = self.catalog.key(TABLE), self.catalog.key(TABLE) + b"\0"
        found = [
            self.catalog.decode(value)
            for key, _, value in self.revisions(self.keyspace.head(13))
            if span[0] <= key < span[1] and value is not None
        ]
        return [each for each in found if isinstance(each, Table)]


class _CatalogOf:
    """The catalog of a transaction, as changes of drafts ask it."""

    temporary = None

    def __init__(self, node: OrderedStore, txn: Transaction) -> None:
        self._node, self._txn = node, txn

    def descriptor(self, id: int) -> AnyDescriptor | None:
        return self._node.catalog.get(self._txn, id)

    def id_at(self, place: NameKey) -> int | None:
        return None


def _was_there(versions: list[Table], at: Timestamp) -> bool:
    current = [each for each in versions if each.modified_at <= at]
    return bool(current) and not (is_dropped(current[-1]) and not current[-1].draining)
