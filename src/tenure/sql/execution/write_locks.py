"""The locks that a statement of a READ COMMITTED block takes while it writes, beside those of rows it found.

    the unique keys that INSERT adds and ON CONFLICT asks for    another INSERT of the same key waits
    rows that a foreign key acts on                              as rows that UPDATE and DELETE find

Once it has waited, the statement reads on at a newer time: it finds the row that the other one has inserted,
and fails with 23505 at once. Only so many keys of one statement are locked; what was not locked is proved at
the commit, which ends in the constraint's own error.

Before the commit, foreign keys act on rows that came and lock them too. The commit itself takes no locks:
what comes while it is under way is proved in the section.

Walk: `statements.dml.writing` gives one to `table.write.TableWriter`; it asks `sql.execution.row_locking`.
"""

from collections.abc import Sequence

from tenure.catalog.descriptors.definitions import Table
from tenure.kv.transaction import Transaction
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.row_locking import acquire, holds

NEW_KEYS_MAX = 100
"""So many unique keys of a statement are locked: each lock is a record that other nodes read."""

ACTED_ROWS_MAX = 10_000
"""So many rows that foreign keys of a statement act on are locked."""


class WriteLocks:
    def __init__(self, execution: Execution, table: Table) -> None:
        self._execution = execution
        self._relation = table.name
        self._new_keys = self._acted_rows = 0

    def lock_new(self, txn: Transaction, keys: Sequence[bytes]) -> None:
        """Locks unique keys that are about to be looked for; they are read as of a time after that."""
        if not keys or holds(self._execution, keys):
            return
        self._new_keys += len(keys)
        if self._new_keys <= NEW_KEYS_MAX:
            acquire(self._execution, keys, relation=self._relation)
            txn.renew()

    def lock_read(self, txn: Transaction, keys: Sequence[bytes]) -> bool:
        """Locks rows that were read and are about to be changed; False if one has changed since: then they
        have to be read again, as of a newer time.
        """
        if not self._lock_rows(keys) or txn.proof.are_unchanged(keys):
            txn.proof.hold(keys)
            return True
        txn.renew()
        return False

    def _lock_rows(self, keys: Sequence[bytes]) -> bool:
        """Whether rows were locked that were not locked before."""
        execution = self._execution
        self._acted_rows += len(keys)
        if not keys or execution.block.is_committing or self._acted_rows > ACTED_ROWS_MAX:
            return False
        if holds(execution, keys):
            return False
        acquire(execution, keys, relation=self._relation)
        return True
