"""The reads of this node that are open: what may have to be protected because it lasts long.

    a transaction       every use of the leased catalog; it may write unless its block or statement cannot
    a fixed past time   AS OF SYSTEM TIME; it only reads

Transactions are those that the leases have anyway, so a short statement costs nothing more here. Blocks that
read the past add themselves, and remove themselves at their end.

Walk: `sql.session.block` calls `add` and `remove`; `retention.long_reads` asks `list_all` in each step.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from tenure.base.env import Env
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.leases.historical import HistoricalUse
from tenure.kv.protected_reads import ProtectedRead


class LeaseUses(Protocol):
    """The part of a lease scheme that is needed here."""

    def uses(self) -> list[CatalogUse]: ...


class TransactionRead:
    def __init__(self, use: CatalogUse) -> None:
        self._use = use
        self.may_write = not use.reads_only
        self.role = use.role

    @property
    def at(self) -> Timestamp | None:
        return self._use.txn.earliest_at

    def tables(self) -> list[Table]:
        return _tables(self._use.used())

    def allow(self, protected: ProtectedRead) -> None:
        self._use.txn.allow(protected)


class PastRead:
    may_write = False

    def __init__(self, past: HistoricalUse) -> None:
        self._past = past
        self.at: Timestamp | None = past.snapshot.at
        self.role = past.role

    def tables(self) -> list[Table]:
        return _tables(self._past.used())

    def allow(self, protected: ProtectedRead) -> None:
        self._past.snapshot.allow(protected)


class OpenReads:
    def __init__(self, env: Env, leases: LeaseUses) -> None:
        self._leases = leases
        self._lock = env.lock()
        self._past: dict[HistoricalUse, None] = {}

    def add(self, past: HistoricalUse) -> None:
        with self._lock:
            self._past[past] = None

    def remove(self, past: HistoricalUse) -> None:
        with self._lock:
            self._past.pop(past, None)

    def list_all(self) -> Mapping[object, TransactionRead | PastRead]:
        """The open reads, by the objects that identify them."""
        with self._lock:
            past = list(self._past)
        found: dict[object, TransactionRead | PastRead] = {
            use: TransactionRead(use) for use in self._leases.uses()
        }
        return found | {each: PastRead(each) for each in past}


def _tables(descriptors: Iterable[AnyDescriptor]) -> list[Table]:
    return [each for each in descriptors if isinstance(each, Table)]
