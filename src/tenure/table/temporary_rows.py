"""The rows of temporary tables, and who removes them.

    CREATE TEMP TABLE    a record (node session, id), with the commit that brings the first rows
    DROP, end of session the rows are removed by their own node, then the record
    death of the node    any node finds the record of a dead session, and does the same

Rows are removed with all their history, in small commits. Nobody can read them any more: a transaction that
used them ran under the node session, and commits below its expiration.

Invariant (temporary-gone): a record is deleted only when nothing of its object is left in the store.
Invariant (temporary-alive): rows of another node's session are removed only if that session is dead.

Walk: `sql.session.temporary_tables` calls `note`, `discard` and `discard_index`; `sql.session.new_sequences`
`note`, `keep` and `discard_unpublished`; `composition.background` runs `step` in a loop, and `sweep` with the
reaper.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import TEMPORARY_OBJECTS, Span
from tenure.kv.records import Record, Records
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Removal, Removes
from tenure.table.sequences import Sequences

BATCH_ROWS = 5_000
"""Revisions removed by one commit: some ten milliseconds."""

STEP_COMMITS = 20
"""Commits of one step; the rest is for the next."""


class TemporaryObject(Record, frozen=True):
    """A table or sequence that lives as long as a SQL session of this node session; or a sequence that a
    transaction under way creates."""

    instance: int
    epoch_at: Timestamp
    id: int

    @property
    def session(self) -> SessionId:
        return SessionId(self.instance, self.epoch_at)


class _Discarded(NamedTuple):
    span: Span
    object: TemporaryObject | None
    """None for an index of a table that stays."""
    is_maybe_kept: bool = False
    """Whether it is removed only if its record is still there."""


class TemporaryRows:
    def __init__(self, store: Store, sequences: Sequences, deaths: Deaths) -> None:
        self.keyspace = store.keyspace
        self._store = store
        self._sequences = sequences
        self._deaths = deaths
        self._records = Records(
            store.keyspace, TEMPORARY_OBJECTS, TemporaryObject, key=("instance", "epoch_at", "id")
        )
        self._stepping = store.env.lock()
        self._discarded: deque[_Discarded] = deque()
        self.on_discarded: Callable[[], None] = lambda: None
        """Wakes the loop that calls `step`."""

    def note(self, txn: Transaction, session: SessionId, id: int) -> None:
        """Records a new temporary object of a node session, in the transaction that makes it."""
        self._records.put(txn, TemporaryObject(*session, id))

    def keep(self, txn: Transaction, session: SessionId, id: int) -> None:
        """An object that was noted is permanent from this commit on."""
        self._records.delete(txn, *session, id)

    def objects(self) -> list[TemporaryObject]:
        """All that is recorded, of all nodes."""
        return list(self._records.scan(self._store.snapshot()))

    def discard(self, session: SessionId, ids: list[int]) -> None:
        """Lets the rows of temporary objects be removed, which nobody uses any more."""
        for id in ids:
            object = TemporaryObject(*session, id)
            self._discarded.append(_Discarded(self.keyspace.table_span(id), object))
        self.on_discarded()

    def discard_index(self, table: int, index: int) -> None:
        """The same for one index of a temporary table, which got another or lost it."""
        self._discarded.append(_Discarded(self.keyspace.index_span(table, index), None))
        self.on_discarded()

    def discard_unpublished(self, session: SessionId, id: int) -> None:
        """Lets the value of a sequence be removed, unless a commit has kept it."""
        self._discarded.append(_Discarded(self.keyspace.table_span(id), TemporaryObject(*session, id), True))
        self.on_discarded()

    def step(self) -> float | None:
        """Removes some of the discarded rows; returns when to go on."""
        with self._stepping:
            for _ in range(STEP_COMMITS):
                if not self._discarded:
                    return None
                if self._remove(self._discarded[0]):
                    self._discarded.popleft()
        return 0.0

    def sweep(self) -> None:
        """Removes what dead node sessions have left: a slow step for a loop."""
        objects = self.objects()
        dead = {each for each in {each.session for each in objects} if self._deaths.expiry(each) is None}
        for object in objects:
            if object.session in dead:
                left = _Discarded(self.keyspace.table_span(object.id), object)
                while not self._remove(left):
                    pass

    def _remove(self, discarded: _Discarded) -> bool:
        """One commit; whether all is gone."""
        store, (span, object, is_maybe_kept) = self._store, discarded
        if is_maybe_kept and object is not None:
            store.transact(lambda txn: self._forget_unpublished(txn, object))
            return True
        at = store.snapshot().at

        def work(txn: Transaction) -> Transaction:
            txn.remove(Removal(span.lo, span.hi, Removes.FLUSHED, at, BATCH_ROWS))
            return txn

        if store.transact(work).removed:
            return False
        if object is not None:
            store.transact(lambda txn: self._forget(txn, object))
        return True

    def _forget_unpublished(self, txn: Transaction, object: TemporaryObject) -> None:
        if self._records.get(txn, object.instance, object.epoch_at, object.id) is not None:
            self._forget(txn, object)

    def _forget(self, txn: Transaction, object: TemporaryObject) -> None:
        self._sequences.forget(txn, object.id)
        self._records.delete(txn, object.instance, object.epoch_at, object.id)
