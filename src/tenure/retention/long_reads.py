"""Reads that last longer than history is kept: this node protects them before the ttl catches up with them.

    age of a read     0 ─── 80 % of its ttl, or a second before ─── ttl ──────────►
                      nothing to do        protected here             history may go

    reads alone       protect_at its time: it reads on in the name of the protection
    may write         protect_after its time: its commit must see all newer revisions, in the store

A read is a transaction or a snapshot with the tables that it has used so far. For one that may write, the
time that flushed revisions stay in the store counts like a ttl, because cleaning removes what its commit has
to see: such a protection needs a time above the cleaned marks, and cleaning heeds it (`cleaning_limit`).

Each step looks at the reads that are open: it protects what has become old, tables that an old read has used
for the first time, and releases what is over. A lowered ttl counts from the next step on. At most a quarter
of all protections may be of this kind, and of those no role gets more than are left for others. A read that
could not be protected goes on without, and is refused once a threshold has passed it.

The owner of these protections is the node's session: the reconciler releases those of a dead one.

Invariant (long-read): a read that is older than its ttl either is protected or fails.

Walk: `composition.protection_layer` runs `step` in a loop, and hands in how to list the reads of sessions;
`schema_change.walk` gets `reading`, `changefeed.client_stream` gets `follow`; `bulk.upkeep` asks
`cleaning_limit`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from tenure.base.errors import ProtectionNotFound, RetryError, SnapshotTooOld, TooManyProtections
from tenure.base.settings import CLEAN_AFTER, PROTECTED_RECORDS_MAX, Settings
from tenure.base.timestamp import MAX_AT, Timestamp, seconds_between, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import DescriptorState, Table
from tenure.catalog.descriptors.zones import GC_TTL_SECONDS_MIN, Zone, ZoneKey, all_zones, effective_ttl
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.thresholds import cleaned_mark
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_catalog import ProtectionCatalog
from tenure.retention.protections.protection_records import Mode, Protection, Targets
from tenure.retention.protections.protection_store import ProtectionStore
from tenure.retention.tracking.tracker import TrackedState

OWNER = "read"
"""The `meta_type` of these protections; `meta` is the id of the node's session."""

STEP_SECONDS = 0.25
"""Short beside the shortest ttl of a second."""

DUE_SHARE = 0.8
"""The share of its ttl after which a read is protected."""

MARGIN_SECONDS = 1.0
"""The time that a step has for it: a read of a short ttl is protected earlier."""

DUE_SHARE_MIN = 0.25
"""The smallest share after which that may be."""

RECORDS_SHARE = 4
"""One of so many protections may belong to a read."""

_log = logging.getLogger(__name__)


class OpenRead(Protocol):
    """A transaction or snapshot of this node."""

    @property
    def at(self) -> Timestamp | None:
        """The earliest time that it reads at; None: it has read nothing yet."""
        ...

    @property
    def may_write(self) -> bool: ...

    @property
    def role(self) -> str:
        """Who has logged in to read; empty: the node itself."""
        ...

    def tables(self) -> Collection[Table]:
        """Those that it has used so far."""
        ...

    def allow(self, protected: ProtectedRead) -> None:
        """Lets it read on below the threshold, in the name of a protection."""
        ...


class SnapshotRead:
    """A snapshot that tables are read from."""

    may_write = False
    role = ""

    def __init__(self, snapshot: Snapshot, tables: Sequence[Table]) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self.at: Timestamp | None = snapshot.at

    def tables(self) -> Collection[Table]:
        return self._tables

    def allow(self, protected: ProtectedRead) -> None:
        self._snapshot.allow(protected)


class LongReads:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        protections: ProtectionStore,
        open_reads: Callable[[], Mapping[object, OpenRead]],
        session: Callable[[], SessionId],
        settings: Callable[[], Settings],
    ) -> None:
        """`open_reads` returns the reads by what identifies them as long as they are open."""
        self._store = store
        self._catalog = catalog
        self._protections = protections
        self._list = ProtectionCatalog(store.keyspace)
        self._open_reads = open_reads
        self._session = session
        self._settings = settings
        self._lock = store.env.lock()
        self._of_work: dict[object, OpenRead] = {}
        """The reads of work that belongs to no SQL session."""
        self._held: dict[object, dict[int, bytes]] = {}
        """The protections of each read, by table."""
        self._refused: set[object] = set()
        """Reads that could not be protected, and were reported."""

    @contextmanager
    def reading(self, snapshot: Snapshot, tables: Sequence[Table]) -> Iterator[None]:
        """Counts a snapshot among the open reads while work is done on it."""
        key = object()
        with self._lock:
            self._of_work[key] = SnapshotRead(snapshot, tables)
        try:
            yield
        finally:
            with self._lock:
                del self._of_work[key]

    def follow(self, read: OpenRead) -> Callable[[], None]:
        """Counts a read among the open ones, until the function returned is called."""
        key = object()
        with self._lock:
            self._of_work[key] = read

        def end() -> None:
            with self._lock:
                self._of_work.pop(key, None)

        return end

    def step(self) -> float:
        with self._lock:
            reads = {**self._open_reads(), **self._of_work}
        self._release([key for key in self._held if key not in reads])
        self._refused &= reads.keys()
        zones: dict[ZoneKey, Zone] | None = None
        now_at = self._store.clock.now()
        for key, read in reads.items():
            at = read.at
            if at is None or seconds_between(at, now_at) < DUE_SHARE_MIN * GC_TTL_SECONDS_MIN:
                continue  # too young for any ttl
            zones = all_zones(self._store.snapshot(), self._store.keyspace) if zones is None else zones
            due = self._due(read, at, now_at, zones, self._held.get(key, {}))
            if due:
                self._protect(key, read, at, due, reads)
        return STEP_SECONDS

    def close(self) -> None:
        """Releases all; the reads of this node are over."""
        self._release(list(self._held))

    def _due(
        self,
        read: OpenRead,
        at: Timestamp,
        now_at: Timestamp,
        zones: Mapping[ZoneKey, Zone],
        held: Mapping[int, bytes],
    ) -> list[int]:
        """The tables of a read that are to be protected now."""
        tables = {each.id: each for each in read.tables() if each.id not in held}
        if not tables:
            return []
        age = seconds_between(at, now_at)
        seconds: float = min(_kept_seconds(each, zones) for each in tables.values())
        if read.may_write:
            seconds = min(seconds, self._settings()[CLEAN_AFTER])
        return sorted(tables) if age >= _due_seconds(seconds) else []

    def _protect(
        self,
        key: object,
        read: OpenRead,
        at: Timestamp,
        tables: list[int],
        reads: Mapping[object, OpenRead],
    ) -> None:
        mode = Mode.AFTER if read.may_write else Mode.AT
        of_role = {
            id
            for other, held in self._held.items()
            if read.role and reads[other].role == read.role
            for id in held.values()
        }
        try:
            wanted = tables if read.may_write else self._public_at(at, tables)
            if not wanted:
                return
            protection = self._store.transact(
                lambda txn: self._protected(txn, at, mode, wanted, read.role, len(of_role))
            )
        except (SnapshotTooOld, TooManyProtections) as error:
            if key not in self._refused:
                self._refused.add(key)
                _log.warning("a read at %s is not protected: %s", to_text(at), error)
            return
        except RetryError:
            return  # the next step tries again; the other reads need their protections now
        self._held.setdefault(key, {}).update(dict.fromkeys(wanted, protection.id))
        if mode is Mode.AT:
            read.allow(self._protections.protected_read(protection))

    def _public_at(self, at: Timestamp, tables: Iterable[int]) -> list[int]:
        """Those that have history at a time: a later statement of a block may use a table that came later."""
        snapshot = self._store.snapshot(at)
        found = {id: self._catalog.get(snapshot, id) for id in tables}
        return [id for id, each in found.items() if each is not None and each.state is DescriptorState.PUBLIC]

    def _protected(
        self, txn: Transaction, at: Timestamp, mode: Mode, tables: list[int], role: str, of_role: int
    ) -> Protection:
        """`of_role` is how many protections the reads of this role have on this node."""
        used = sum(each.meta_type == OWNER for each in self._list.list_all(txn).records)
        left = self._settings()[PROTECTED_RECORDS_MAX] // RECORDS_SHARE - used
        if left <= 0:
            raise TooManyProtections(f"{used} long reads are protected already")
        if of_role >= left:
            raise TooManyProtections(
                f'{of_role} long reads of role "{role}" are protected, and {left} are left for others'
            )
        meta = self._session().to_bytes()
        id = self._protections.protect(txn, at, mode, OWNER, meta, Targets(tuple(tables)))
        if mode is Mode.AFTER:
            self._check_not_cleaned(txn, at, tables)
        return self._protections.read(txn, id)

    def _check_not_cleaned(self, txn: Transaction, at: Timestamp, tables: Iterable[int]) -> None:
        """The commit of a transaction needs the newer revisions in the store itself."""
        keyspace = self._store.keyspace
        for id in tables:
            table = self._catalog.get(txn, id)
            for index in table.indexes if isinstance(table, Table) else ():
                if cleaned_mark(txn, keyspace, keyspace.head(id, index.id)) > at:
                    raise SnapshotTooOld("newer revisions have left the store for the lake already")

    def _release(self, keys: Collection[object]) -> None:
        ids = {id for key in keys for id in self._held[key].values()}
        if ids:
            self._store.transact(lambda txn: self._release_in(txn, ids))
        for key in keys:
            del self._held[key]

    def _release_in(self, txn: Transaction, ids: Iterable[bytes]) -> None:
        for id in sorted(ids):
            try:
                self._protections.release(txn, id)
            except ProtectionNotFound:
                continue  # the reconciler took this node for dead


def _due_seconds(kept_seconds: float) -> float:
    """The age at which a read is protected, whose history is kept for so long."""
    early = max(kept_seconds - MARGIN_SECONDS, DUE_SHARE_MIN * kept_seconds)
    return min(DUE_SHARE * kept_seconds, early)


def _kept_seconds(table: Table, zones: Mapping[ZoneKey, Zone]) -> int:
    """The shortest ttl of a table's indexes."""
    place = table.database, table.schema, table.id
    return min(effective_ttl(zones, *place, each.id).seconds for each in table.indexes)


def cleaning_limit(state: TrackedState, table: int) -> Timestamp:
    """The time above which a table's revisions must stay in the store, for transactions that may write."""
    times = [
        each.at for each in state.records_of([table]) if each.meta_type == OWNER and each.mode is Mode.AFTER
    ]
    return min(times, default=MAX_AT)
