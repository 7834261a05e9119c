"""Blocks that failed with 40001: the next try holds their tables, so that it does not fail by the same
writers.

    BEGIN ... UPDATE t ... ALTER TABLE t ... COMMIT ──► 40001: t was written to meanwhile
    BEGIN ──► t is held for this block ──► ... COMMIT ──► released

A block that changes the schema commits more slowly than writers do, and its reads must still be valid at the
commit. If it fails by that, the session remembers which tables it used. The next block, most likely the
client's next try, holds them before it reads anything (`cluster.locks.table_holds`). If it fails, too, the
block after it holds the same tables again.

The memory serves one block. A client that does something else next holds up the writers of those tables
until that block ends, for `table_holds.HOLD_SECONDS` at most. Blocks without changes of the schema are not
remembered.

Walk: `sql.execution.session_transactions` calls `hold` when a block begins, `commit` when it ends,
and `lost`.
"""

from tenure.base.errors import RetryError
from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.locks.lock_waits import LockOptions
from tenure.schema_change.declared_changes import Requester
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState

MEMORY_SECONDS = 60.0
"""How long a session remembers a lost block: clients try again within seconds."""


class Retries:
    def __init__(self, session: SessionState) -> None:
        self._session = session
        self._tables: frozenset[int] = frozenset()
        """The tables that the failed block used."""
        self._until = 0.0
        """When they are forgotten, on the monotonic clock."""
        self._block: Block | None = None
        """The current or last block; single statements are retried by the session."""
        self._held_tables: frozenset[int] = frozenset()
        """The tables held for it."""
        session.on_discard.append(self._forget)

    def hold(self, block: Block) -> None:
        """Holds the tables of the last failed block for one that begins; goes on without if it cannot get
        them."""
        wanted = self._tables and self._wanted(block)
        if wanted and self._session.is_inline:
            raise NotShort
        self._block, self._held_tables, self._tables = block, wanted, frozenset()
        if wanted:
            self._hold(block, sorted(wanted))

    def _wanted(self, block: Block) -> frozenset[int]:
        is_recent = self._session.services.env.monotonic() <= self._until
        return self._tables if is_recent and not block.is_read_only else frozenset()

    def _hold(self, block: Block, wanted: list[int]) -> None:
        session = self._session
        holds = session.services.locks.tables
        block.on_end.append(lambda: holds.release(wanted))
        owner = session.locks.owner_in(block)
        timeout, check = session.variables.seconds("lock_timeout"), session.interrupts.check_time
        try:
            holds.hold(owner, wanted, LockOptions(timeout=timeout, canceled=check))
        except BaseException:
            block.close()
            raise

    def commit(self, block: Block, requester: Requester) -> None:
        """Commits a block; afterwards the tables that it used are not known any more."""
        if block is not self._block:
            block.commit(requester)
            return
        used = self._used(block)
        try:
            block.commit(requester)
        except RetryError:
            self._remember(block, used)
            raise
        self._forget()

    def lost(self, block: Block) -> None:
        """A statement of the block has failed with 40001, and so the block has."""
        self._remember(block, self._used(block))

    def _used(self, block: Block) -> frozenset[int]:
        """The tables of a block that changes the schema, without those that it creates; else none."""
        use = block.begun
        if block is not self._block or use is None or not use.draft:
            return frozenset()
        ids = {*use.draft.declared, *use.pins}
        return frozenset(
            id for id in ids if isinstance(use.descriptor(id), Table) and not use.draft.is_new(id)
        )

    def _remember(self, block: Block, used: frozenset[int]) -> None:
        if block is self._block:
            self._tables = used | self._held_tables
            self._until = self._session.services.env.monotonic() + MEMORY_SECONDS

    def _forget(self) -> None:
        self._block, self._tables, self._held_tables = None, frozenset(), frozenset()
