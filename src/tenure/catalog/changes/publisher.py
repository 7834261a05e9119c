"""Publishing: the next versions of descriptors and their names, in one transaction.

A version may be written when no lease older than its predecessor covers the descriptor. That is proved
beforehand by waiting (`settle`), or, for a publisher that is alone, in the very transaction (`alone`). The
proof is a timestamp per descriptor, the predecessor's modification time; the transaction reads the
predecessor again and refuses another one. Since older rows never appear, the proof stays valid until then.

Invariant (I12): one version per commit, each made from the one before it.
Invariant (I33): a version that changes `row` neither follows a locked one nor is locked itself.
Invariant (I38): names and maps follow their descriptors in the same commit.

Walk: `schema_change.changer` and `schema_change.walk` call `settle`, then `publish` in their
transaction.
"""

from collections.abc import Iterable, Mapping, Sequence

from tenure.base.errors import RetryError
from tenure.base.timestamp import Timestamp
from tenure.catalog.changes.zone_changes import follow_indexes
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    Schema,
    is_dropped,
    next_version,
    place_of,
)
from tenure.catalog.descriptors.drafts import Draft
from tenure.catalog.descriptors.equal_versions import logical_of, numbered
from tenure.catalog.descriptors.locks import refusal
from tenure.catalog.descriptors.name_entries import changed_maps, map_entries, move_names
from tenure.catalog.leases.lease_waits import LeaseWaiter, LeaseWaits
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

Settled = Mapping[int, Timestamp]
"""Descriptors that are leased in one version only, by that version's modification time."""


class Publisher:
    def __init__(self, store: Store, catalog: Catalog, waits: LeaseWaits) -> None:
        self._store = store
        self._catalog = catalog
        self._waits = waits

    def affected(self, descriptors: Iterable[AnyDescriptor]) -> list[int]:
        """The stored descriptors that get a new version when these are published, databases included."""
        snapshot = self._store.snapshot()
        ids: set[int] = set()
        for descriptor in descriptors:
            former = self._catalog.get(snapshot, descriptor.id)
            ids |= {descriptor.id} if former is not None else set()
            if map_entries(former) != map_entries(descriptor):
                entries = map_entries(former).keys() | map_entries(descriptor).keys()
                ids |= {database for database, _ in entries}
        return sorted(ids)

    def settle(self, ids: Iterable[int], waiter: LeaseWaiter, *, timeout: float | None = None) -> Settled:
        """Waits until each of these is leased in one version only."""
        stored = self._stored(self._store.snapshot(), ids)
        awaited = [AwaitedDescriptor(each.id, each.modified_at, each.version) for each in stored]
        self._waits.await_gone(awaited, waiter, timeout=timeout)
        return _settled(stored)

    def await_gone(self, awaited: Sequence[AwaitedDescriptor], waiter: LeaseWaiter) -> None:
        self._waits.await_gone(awaited, waiter)

    def _stored(self, source: Transaction | Snapshot, ids: Iterable[int]) -> list[AnyDescriptor]:
        found = (self._catalog.get(source, id) for id in sorted(ids))
        return [descriptor for descriptor in found if descriptor is not None]

    def is_alone(self, source: Transaction | Snapshot, ids: Sequence[int]) -> bool:
        """Whether no other node's lease covers any of these, as of the source."""
        return self._waits.is_alone(source, ids)

    def alone(self, txn: Transaction, ids: Sequence[int]) -> Settled:
        """The same in the publishing transaction, which then commits only if this still holds."""
        if not self.is_alone(txn, ids):
            raise RetryError("another node has begun to use what this transaction changes")
        return _settled(self._stored(txn, ids))

    def publish(
        self,
        txn: Transaction,
        descriptors: Sequence[AnyDescriptor],
        settled: Settled,
        *,
        is_alone: bool = False,
    ) -> None:
        """Writes the next versions; each descriptor's `version` is the one it was made from.

        `is_alone`: they were proved by `alone`, and are held on this node.
        """
        formers = {each.id: self._catalog.get(txn, each.id) for each in descriptors}
        moves = [(formers[descriptor.id], descriptor) for descriptor in descriptors]
        maps = changed_maps(moves)
        for former, descriptor in moves:
            self._check(former, descriptor, settled)
            has_new_map = descriptor.id in maps
            following = numbered(former, next_version(descriptor), has_new_map=has_new_map)
            _check_lock(former, following, is_alone=is_alone)
            self._catalog.put(txn, following)
            self._catalog.roles.move_owner(txn, former, descriptor)
            self._catalog.roles.forget_columns(txn, former, descriptor)
            follow_indexes(txn, self._store.keyspace, former, descriptor)
        databases = move_names(txn, self._catalog, moves)
        for id in sorted(databases - {descriptor.id for descriptor in descriptors}):
            database = self._catalog.get(txn, id)
            assert isinstance(database, Database), "a map belongs to a database"
            self._check(database, database, settled)
            self._catalog.put(txn, numbered(database, next_version(database), has_new_map=True))
        for descriptor in descriptors:
            self._check_family(txn, formers[descriptor.id], descriptor)

    def _check_family(
        self, txn: Transaction, former: AnyDescriptor | None, descriptor: AnyDescriptor
    ) -> None:
        """Refuses an object under a dropped parent, and the drop of a parent that has objects.

        Both read what the other writes: of a new table and the drop of its schema, only one commits.
        """
        if is_dropped(descriptor):
            if former is not None and not is_dropped(former):
                self._check_empty(txn, descriptor)
        elif former is None or is_dropped(former) or place_of(former) != place_of(descriptor):
            parent_id = _parent_id(descriptor)
            parent = self._catalog.get(txn, parent_id) if parent_id else None
            if parent_id and (parent is None or is_dropped(parent)):
                raise RetryError(f'what "{descriptor.name}" was to be made in has been dropped')

    def _check_empty(self, txn: Transaction, parent: AnyDescriptor) -> None:
        match parent:
            case Database():
                entries = self._catalog.names_in(txn, parent.id, 0)
            case Schema():
                entries = self._catalog.names_in(txn, parent.database, parent.id)
            case _:
                return
        for entry in list(entries):
            child = self._catalog.get(txn, entry.id)
            if child is not None and not is_dropped(child) and _parent_id(child) == parent.id:
                raise RetryError(f'"{child.name}" was made in "{parent.name}" meanwhile')

    def _check(self, former: AnyDescriptor | None, descriptor: AnyDescriptor, settled: Settled) -> None:
        found = 0 if former is None else former.version
        if found != descriptor.version:
            raise RetryError(
                f'"{descriptor.name}" was changed meanwhile: it has version {found}, not {descriptor.version}'
            )
        if former is not None and settled.get(former.id) != former.modified_at:
            raise RetryError(f'"{former.name}" is not known to be leased in one version only')


def _check_lock(former: AnyDescriptor | None, following: AnyDescriptor, *, is_alone: bool) -> None:
    """The gate: every version of every descriptor passes here."""
    reason = refusal(former, following, is_alone=is_alone)
    if reason:
        raise RetryError(reason)


def check_made_from(draft: Draft, stored: AnyDescriptor) -> None:
    """A change that was declared on an older version than one that equals the stored one starts over."""
    logical = draft.logicals.get(stored.id, logical_of(stored))
    if logical != logical_of(stored):
        raise RetryError(
            f'"{stored.name}" was changed meanwhile: it has version {stored.version}, '
            f"not {draft.made_from[stored.id]}"
        )


def _parent_id(descriptor: AnyDescriptor) -> int:
    """The id of its schema or database; 0 for a database."""
    match descriptor:
        case Database():
            return 0
        case Schema():
            return descriptor.database
        case _:
            return descriptor.schema


def _settled(descriptors: Sequence[AnyDescriptor]) -> Settled:
    return {descriptor.id: descriptor.modified_at for descriptor in descriptors}
