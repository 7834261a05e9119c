"""Reconciliation: releases the protections whose owner is gone, and those that have expired.

Owners release their protections themselves: a job in the transaction that ends it, a node when a read is
over. What an older version of the code or a dead node has left is found here, by the kind of its owner:

    owner is there       stays; it is reported once it is older than `ALARM_SECONDS`
    owner is gone        released in a transaction that has found the owner absent
    expired              the owner fails with the reason, in one commit; released once the owner is over
    of an unknown kind   stays: a newer version may have made it

Invariant (I32): a protection whose owner is gone does not outlive the next step of some node.

Walk: `composition.protection_layer` runs `step` in a loop; it calls the `Owner` of each protection's kind.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple
from uuid import UUID

from tenure.base.errors import ProtectionNotFound
from tenure.base.timestamp import Timestamp, seconds_between, to_text
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_catalog import ProtectionCatalog
from tenure.retention.protections.protection_records import Protection
from tenure.retention.protections.protection_store import ProtectionStore

STEP_SECONDS = 60.0
"""The time between two looks: an orphan holds history back for so long at most."""

ALARM_SECONDS = 86_400.0
"""The age of a protection that is reported: nothing below it has been collected for a day."""

_log = logging.getLogger(__name__)


class Owner(NamedTuple):
    """A kind of owner, by what `meta` says."""

    exists: Callable[[Transaction, bytes], bool]
    fail: Callable[[Transaction, bytes, str], None]
    """Ends an owner whose protection has expired, with the reason; one that is ending is left alone."""


class Reconciler:
    def __init__(self, store: Store, protections: ProtectionStore, owners: Mapping[str, Owner]) -> None:
        self._store = store
        self._protections = protections
        self._owners = owners
        self._list = ProtectionCatalog(store.keyspace)
        self._reported: set[bytes] = set()

    def step(self) -> float:
        now_at = self._store.clock.now()
        records = self._list.list_all(self._store.snapshot()).records
        self._reported &= {each.id for each in records}
        for each in records:
            owner = self._owners.get(each.meta_type)
            if owner is not None:
                self._store.transact(partial(self._settle, each, owner, now_at))
            self._report(each, now_at)
        return STEP_SECONDS

    def _settle(self, listed: Protection, owner: Owner, now_at: Timestamp, txn: Transaction) -> None:
        # Its owner may have released it since it was listed, and have another one by now: that must not fail.
        try:
            protection = self._protections.read(txn, listed.id)
        except ProtectionNotFound:
            return
        is_expired = protection.expires_at is not None and protection.expires_at <= now_at
        if is_expired and owner.exists(txn, protection.meta):
            owner.fail(txn, protection.meta, f"its protection of {to_text(protection.at)} has expired")
        if owner.exists(txn, protection.meta):
            return
        try:
            self._protections.release(txn, protection.id)
        except ProtectionNotFound:
            return  # an owner that has just been failed has released it itself
        _log.warning("protection %s was left by its owner and is released", UUID(bytes=protection.id))

    def _report(self, protection: Protection, now_at: Timestamp) -> None:
        age = seconds_between(protection.at, now_at)
        if age > ALARM_SECONDS and protection.id not in self._reported:
            self._reported.add(protection.id)
            _log.warning(
                "protection %s of %s %s keeps history since %s",
                *(UUID(bytes=protection.id), protection.meta_type, protection.meta, to_text(protection.at)),
            )
