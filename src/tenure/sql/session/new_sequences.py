"""Sequences that a block creates, and whose values it has drawn before it commits.

    nextval of a sequence of this block ──► a record (node session, id), before its first value is stored
    COMMIT                              ──► the record goes with the commit that publishes the sequence
    ROLLBACK, a failed COMMIT           ──► the record is still there: value and record are removed
    death of the node                   ──► the same, by another node

Values are stored outside of the block, so a rollback would leave them for ever. A commit whose outcome is not
known leaves the record to the sweep that follows the end of the node session.

Walk: `sql.session.generated_values` calls `note`; `sql.session.block` calls `keep`, `leave` and `settle`.
"""

from tenure.catalog.descriptors.definitions import Sequence
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.store import Store
from tenure.table.temporary_rows import TemporaryRows


class NewSequences:
    def __init__(self, store: Store, rows: TemporaryRows) -> None:
        self._store = store
        self._rows = rows
        self._noted: dict[int, SessionId] = {}

    def is_unknown(self, use: CatalogUse, id: int) -> bool:
        """Whether a sequence must be noted before it gives a value; temporary ones have a record anyway."""
        if id in self._noted or use.lease is None:
            return False  # before the cluster is finalized there is no lease that a record could hang on
        sequence = use.draft.new_descriptors().get(id)
        temporary = 0 if use.temporary is None else use.temporary.schema.id
        return isinstance(sequence, Sequence) and sequence.schema != temporary

    def note(self, use: CatalogUse, id: int) -> None:
        assert use.lease is not None
        session = use.lease.session.id
        self._store.transact(lambda txn: self._rows.note(txn, session, id))
        self._noted[id] = session

    def keep(self, use: CatalogUse) -> None:
        """Before a commit: what it publishes is permanent."""
        for id, session in self._noted.items():
            if id in use.draft.new_descriptors():
                self._rows.keep(use.txn, session, id)

    def leave(self) -> None:
        """The outcome of the commit is not known."""
        self._noted.clear()

    def settle(self) -> None:
        """The block is over: what was not published is removed."""
        for id, session in self._noted.items():
            self._rows.discard_unpublished(session, id)
        self._noted.clear()
