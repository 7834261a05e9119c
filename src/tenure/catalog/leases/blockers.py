"""Blockers: the lease rows that a waiting node waits for.

    system.schema_lease   covers a descriptor as of L; its holder is dead when its session is gone

A row that blocks a wait is a `Blocker`: the awaited descriptors that it covers, its owner, and how to delete
it if its holder is dead. Rows that block a wait never appear later, so they are read fresh. Until a cluster
is finalized there is another table of rows (`version_one.expiring_lease_table`).

Invariant (I15): the row of a holder that may still use it is never deleted here.

Walk: `catalog.leases.lease_waits` calls `blockers`, and `is_used_by_others` for a publisher;
`composition.catalog_layer` chooses which tables this node respects; `composition.background` calls `sweep`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from tenure.base.errors import RetryError
from tenure.base.timestamp import seconds_between
from tenure.catalog.leases.lease_rows import LeaseHolder, LeaseRow, LeaseRows
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

AGAIN_SECONDS = 0.02
"""The pause between two attempts to delete a row that another transaction is changing."""

SWEPT_ROWS_MAX = 1_000
"""How many rows are read in one sweep; dead nodes leave far fewer."""


class BlockingRow(Protocol):
    @property
    def instance(self) -> int: ...

    @property
    def holders(self) -> tuple[LeaseHolder, ...]:
        """The transactions of the node that use what the row covers, as far as the row names them."""
        ...


class Blocker(NamedTuple):
    row: BlockingRow
    covered: Sequence[AwaitedDescriptor]
    """The awaited descriptors that it covers."""
    is_own: bool
    clear: Callable[[], float | None]
    """Deletes it if its holder is dead; else returns when to look again."""
    session: SessionId | None = None
    """The session whose death ends it; None for one that expires by itself."""


class LeaseTable(Protocol):
    def span(self) -> Span: ...

    def blockers(self, source: Snapshot, awaited: Sequence[AwaitedDescriptor]) -> Iterator[Blocker]: ...

    def is_used_by_others(self, source: Transaction | Snapshot, ids: Sequence[int]) -> bool:
        """Whether another node's row covers any of these, in any version."""
        ...

    def sweep(self) -> int:
        """Deletes rows of dead holders, a limited number; returns how many rows there were."""
        ...


class SchemaLeaseTable:
    def __init__(self, store: Store, rows: LeaseRows, deaths: Deaths, own: Callable[[], SessionId]) -> None:
        self._store = store
        self._rows = rows
        self._deaths = deaths
        self._own = own

    def span(self) -> Span:
        return self._rows.span()

    def blockers(self, source: Snapshot, awaited: Sequence[AwaitedDescriptor]) -> Iterator[Blocker]:
        own = self._own()
        for row in self._rows.before(source, max(each.before_at for each in awaited)):
            covered = [
                each for each in awaited if row.lease_at < each.before_at and row.covers(each.descriptor)
            ]
            if covered:
                yield self._blocker(row, covered, own)

    def _blocker(self, row: LeaseRow, covered: Sequence[AwaitedDescriptor], own: SessionId) -> Blocker:
        return Blocker(row, covered, row.session == own, lambda: self._clear(row), row.session)

    def _clear(self, row: LeaseRow) -> float | None:
        expires_at = self._deaths.expiry(row.session)
        if expires_at is not None:
            seconds = seconds_between(self._store.clock.now(), expires_at)
            if seconds > 0:
                return seconds
            if not self._deaths.bury(row.session):
                return AGAIN_SECONDS
        try:
            self._store.transact(lambda txn: self._rows.delete_abandoned(txn, row))
        except RetryError:
            return AGAIN_SECONDS
        return None

    def is_used_by_others(self, source: Transaction | Snapshot, ids: Sequence[int]) -> bool:
        own = self._own()
        others = (row for row in self._rows.list(source) if row.session != own)
        return any(row.covers(id) for row in others for id in ids)

    def sweep(self) -> int:
        found = list(islice(self._rows.list(self._store.snapshot()), SWEPT_ROWS_MAX))
        for row in found:
            if self._deaths.expiry(row.session) is None:
                self._clear(row)
        return len(found)
