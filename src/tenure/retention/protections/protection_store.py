"""The store of protections: they are made, moved and released in the caller's transaction.

    protect        checks everything first, then writes the record and the meta record; it may follow another
                   protection of the same time, which has promised already what both cover
    move_forward   a `protect_after` gives up history that its owner no longer needs
    hand_over      another owner; the time stays
    release        the history may go

Every refusal comes before the first write, so the transaction stays usable and can commit without
the protection. A job and its protection are written in one transaction: they appear together or not at all.

`protect` has in its read set: the meta record, all zones, the thresholds of the catalog's heads and of every
index it covers, and the descriptors that say what it covers. A sweep reads the meta record at the version its
tracker has and writes thresholds, a zone change reads the meta record: of two that do not see each other only
one commits. Zones are read as one span: they change rarely, and a change conflicts with each protection.

A deadline that `protect` has set stays on the transaction if it goes back to a savepoint before it.

Invariant (following): a protection that follows another one is there before the other can go, and keeps the
same time of what both cover.
Invariant (I27): what a protection needs was not removed before it was made, and is not until its release.
Invariant (I31): the meta record's version grows by one with each mutation, and its counters are those of the
records that exist.

Walk: owners of protections call this; it reads `table_histories`, asks `coverage` and `promise`, and writes
`protection_records` and the meta record of the catalog.
"""

from collections.abc import Callable, Collection, Iterable
from functools import cache
from uuid import UUID

from tenure.base.errors import (
    InvalidParameter,
    ProtectionNotFound,
    SnapshotTooOld,
    TooManyProtections,
    WrongState,
)
from tenure.base.settings import PROTECTED_RECORDS_MAX, PROTECTED_SPANS_MAX, Settings
from tenure.base.timestamp import Timestamp, from_bytes, to_text
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import Table
from tenure.catalog.descriptors.protection_meta import ProtectionMeta, protection_meta
from tenure.catalog.descriptors.zones import all_zones
from tenure.catalog.leases.access_sources import StoredAccess
from tenure.kv.keys import DESCRIPTORS, NAMES, SCHEMA_MAPS, Span, disjoint
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.records import replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.retention.protections.coverage import covered, covers_by_span, touches
from tenure.retention.protections.promise import check_thresholds, deadline
from tenure.retention.protections.protection_records import (
    ID_BYTES,
    Mode,
    Protection,
    Targets,
    protections,
    record_key,
)
from tenure.retention.protections.table_histories import TableHistories, read_histories
from tenure.storage.engine import HEAD_BYTES


class ProtectionStore:
    def __init__(self, store: Store, catalog: Catalog, settings: Callable[[], Settings]) -> None:
        self._store = store
        self._keyspace = store.keyspace
        self._catalog = catalog
        self._settings = settings
        self._records = protections(store.keyspace)
        self._meta = protection_meta(store.keyspace)
        self._catalog_heads = [self._keyspace.head(each) for each in (DESCRIPTORS, NAMES, SCHEMA_MAPS)]

    def protect(
        self,
        txn: Transaction,
        at: Timestamp,
        mode: Mode,
        meta_type: str,
        meta: bytes,
        targets: Targets,
        *,
        expires_at: Timestamp | None = None,
        following: bytes | None = None,
        role: str = "",
    ) -> bytes:
        """Makes a protection and returns its id: once this commits, nothing that it covers has been removed,
        or will be before its release.

        `following` is the id of a protection of exactly this time: what that one covers is there, however
        old it is. `role` has asked for it: unless it is a superuser's, it gets no more of all protections
        than it leaves to others.

        Sets the transaction's deadline. Raises if history has been removed or may be (72000), if there are
        too many protections (53400), or if the one to follow has been released; the transaction can be used
        on.
        """
        spans = disjoint(targets.spans)
        assert all(map(self._keyspace.owns_span, spans)), "a span of another tenant"
        if not (targets.objects or spans):
            raise InvalidParameter("a protection needs a target")
        objects = tuple(sorted(set(targets.objects)))
        protection = Protection(self._fresh_id(), at, mode, meta_type, meta, objects, spans, expires_at, role)
        histories = read_histories(txn, self._store, self._catalog, protection, self._tables_in(spans))
        meta_record = self._counted(self._current_meta(txn), protection, 1)
        self._check_limits(meta_record)
        self._check_share(txn, role, meta_record)
        former = None if following is None else self.read(txn, following)
        deadline_at = self._check_promise(txn, protection, histories, former)
        txn.deadline_at = deadline_at if txn.deadline_at is None else min(txn.deadline_at, deadline_at)
        self._records.put(txn, protection)
        self._meta.put(txn, meta_record)
        return protection.id

    def read(self, txn: Transaction | Snapshot, id: bytes) -> Protection:
        found = self._records.get(txn, id)
        if found is None:
            raise ProtectionNotFound(f'protection "{UUID(bytes=id)}" does not exist')
        return found

    def release(self, txn: Transaction, id: bytes) -> None:
        """Raises ProtectionNotFound if it is not there; the transaction can be used on."""
        txn.read_ahead([self._records.key(id), self._meta.key()])
        protection = self.read(txn, id)
        self._records.delete(txn, id)
        self._meta.put(txn, self._counted(self._current_meta(txn), protection, -1))

    def move_forward(self, txn: Transaction, id: bytes, at: Timestamp) -> None:
        """Protects from a later time on: less than before, so nothing has to be checked.

        If it expires, it does so as long after its time as before.
        """
        protection = self.read(txn, id)
        if protection.mode is not Mode.AFTER:
            raise WrongState("a protection of one time cannot be moved")
        if not protection.at <= at <= txn.read_at:
            raise InvalidParameter(f"a protection at {to_text(protection.at)} cannot move to {to_text(at)}")
        if at > protection.at:
            expires_at = protection.expires_at
            later_at = None if expires_at is None else expires_at + (at - protection.at)
            self._exchange(txn, protection, replace(protection, at=at, expires_at=later_at))

    def hand_over(self, txn: Transaction, id: bytes, meta_type: str, meta: bytes) -> None:
        """Gives a protection to another owner."""
        protection = self.read(txn, id)
        self._exchange(txn, protection, replace(protection, meta_type=meta_type, meta=meta))

    def protected_read(self, protection: Protection) -> ProtectedRead:
        """Lets reads at the protection's time pass below thresholds, of the indexes that it covers.

        The catalog of that time stays readable as long as the protection is there.
        """
        assert protection.mode is Mode.AT, "a protection of all later times keeps thresholds below it"
        snapshot = self._store.snapshot(protection.at)

        @cache
        def heads(table: int) -> Collection[bytes]:
            found = self._catalog.get(snapshot, table)
            return covered(self._keyspace, protection, [found]) if isinstance(found, Table) else ()

        def covers(head: bytes) -> bool:
            table, _ = self._keyspace.table_and_index(head)
            return covers_by_span(protection, head) or head in heads(table)

        return ProtectedRead(protection.at, record_key(self._keyspace, protection.id), covers)

    # ── checks of `protect` ────────────────────────────────────────────────────────────────────

    def _check_limits(self, counters: ProtectionMeta) -> None:
        settings = self._settings()
        for count, setting, noun in (
            (counters.records, PROTECTED_RECORDS_MAX, "protections"),
            (counters.spans + counters.objects, PROTECTED_SPANS_MAX, "targets of protections"),
        ):
            if count > settings[setting]:
                raise TooManyProtections(
                    f"there would be {count} {noun}, and {settings[setting]} are allowed",
                    hint=f'SHOW PROTECTED TIMESTAMPS lists their owners; "{setting.name}" is the limit.',
                )

    def _check_share(self, txn: Transaction, role: str, counters: ProtectionMeta) -> None:
        """Refuses a role that would leave less to others than it has itself."""
        left = self._settings()[PROTECTED_RECORDS_MAX] - counters.records + 1
        if not role or 2 * counters.records <= self._settings()[PROTECTED_RECORDS_MAX]:
            return  # nobody can have too many yet
        of_role = 1 + sum(each.role == role for each in self._records.scan(txn))
        if of_role <= left or StoredAccess(self._catalog, txn).roles.is_superuser(role):
            return
        raise TooManyProtections(
            f'role "{role}" has {of_role - 1} protections, and {left} are left for all',
            hint="SHOW PROTECTED TIMESTAMPS lists their owners: jobs and snapshots. A role leaves as many to "
            f'others as it has itself; "{PROTECTED_RECORDS_MAX.name}" can be raised.',
        )

    def _check_promise(
        self, txn: Transaction, protection: Protection, histories: TableHistories, former: Protection | None
    ) -> Timestamp:
        """Refuses what cannot be promised; returns the time before which the promise can be made."""
        promised: Collection[bytes] = ()
        if former is not None:
            assert (former.at, former.mode) == (protection.at, Mode.AT), "it has promised another time"
            assert protection.mode is Mode.AT, "one time says nothing of later ones"
            promised = self._covered(former, histories)
        wanted = self._covered(protection, histories)
        from_times = {head: from_at for head, from_at in wanted.items() if head not in promised}
        indexes = {self._keyspace.table_and_index(head) for head in from_times}
        from_times |= dict.fromkeys(self._catalog_heads, protection.at)
        thresholds = self._thresholds(txn, from_times)
        for lo, hi in protection.spans:
            thresholds |= self._thresholds_within(txn, Span(lo, hi))
        from_times = {head: protection.at for head in thresholds if head not in promised} | from_times
        check_thresholds(from_times, thresholds, lambda head: self._name(head, histories))
        deadline_at = deadline(protection, all_zones(txn, self._keyspace), histories, indexes)
        if max(txn.read_at, self._store.clock.now()) >= deadline_at:
            raise SnapshotTooOld(
                f"{to_text(protection.at)} cannot be protected: its ttl ended at {to_text(deadline_at)}",
                hint="Protect a later time, or keep history longer with gc.ttlseconds.",
            )
        return deadline_at

    def _covered(self, protection: Protection, histories: TableHistories) -> dict[bytes, Timestamp]:
        found = {
            head: from_at
            for versions in histories.versions.values()
            for head, from_at in covered(self._keyspace, protection, versions).items()
        }
        for lo, hi in protection.spans:
            head = lo[:HEAD_BYTES]
            if len(head) == HEAD_BYTES and touches(Span(lo, hi), head):
                found.setdefault(head, protection.at)  # one that no table's version names, too
        return found

    def _thresholds(self, txn: Transaction, heads: Iterable[bytes]) -> dict[bytes, Timestamp]:
        wanted = sorted(heads)
        values = txn.get_many([self._keyspace.threshold_key(head) for head in wanted])
        return {
            head: from_bytes(value) for head, value in zip(wanted, values, strict=True) if value is not None
        }

    def _thresholds_within(self, txn: Transaction, span: Span) -> dict[bytes, Timestamp]:
        guard = self._keyspace.guard(span)
        keys = Span(guard.threshold_first, guard.threshold_last + b"\0")
        return {key[HEAD_BYTES:]: from_bytes(value) for key, value in txn.scan(keys)}

    def _tables_in(self, spans: Iterable[Span]) -> set[int] | None:
        """The tables that spans touch; None if one of them touches several."""
        tables = set()
        for span in spans:
            guard = self._keyspace.guard(span)
            first, last = (
                self._keyspace.table_and_index(key[HEAD_BYTES:])[0]
                for key in (guard.threshold_first, guard.threshold_last)
            )
            if first != last:
                return None
            tables.add(first)
        return tables

    def _name(self, head: bytes, histories: TableHistories) -> str:
        table, index = self._keyspace.table_and_index(head)
        descriptor = histories.newest.get(table)
        return f"{table}/{index}" if descriptor is None else descriptor.name

    # ── records ────────────────────────────────────────────────────────────────────────────────

    def _fresh_id(self) -> bytes:
        return UUID(int=self._store.env.rng.getrandbits(8 * ID_BYTES), version=4).bytes

    def _current_meta(self, txn: Transaction) -> ProtectionMeta:
        return self._meta.get(txn) or ProtectionMeta()

    def _exchange(self, txn: Transaction, former: Protection, protection: Protection) -> None:
        self._records.put(txn, protection)
        grown = len(self._records.encode(protection)) - len(self._records.encode(former))
        meta = self._current_meta(txn)
        self._meta.put(txn, replace(meta, version=meta.version + 1, bytes=meta.bytes + grown))

    def _counted(self, meta: ProtectionMeta, protection: Protection, count: int) -> ProtectionMeta:
        """The meta record with so many more of this protection: 1 or -1."""
        return ProtectionMeta(
            meta.version + 1,
            meta.records + count,
            meta.spans + count * len(protection.spans),
            meta.bytes + count * len(self._records.encode(protection)),
            meta.objects + count * len(protection.objects),
        )
