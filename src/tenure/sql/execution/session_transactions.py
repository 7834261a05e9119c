"""The transactions of one session: begun, committed, given up.

    IDLE ──BEGIN──► IN_TRANSACTION ──error──► FAILED
      ▲                  │    ▲                 │
      └──COMMIT/ROLLBACK─┘    └───ROLLBACK TO───┤
      └───────────────ROLLBACK (or COMMIT)──────┘

A statement outside of a block gets an implicit transaction, which ends with it, or at Sync where several
statements share it.

Invariant (answer-after-commit): the answer of a statement that ends its transaction is given after the
commit is known.

Walk: `sql.clients.session` -> `open`, `end_statement`, `sync`, `failed`; `statements.session.transactions` ->
`begin`, `commit`, `rollback`, `save`, `back_to`; all end in `Block.commit` or `Committing`.
"""

from tenure.base.errors import ConstraintViolation, RetryError
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.schema_change.declared_changes import Requester
from tenure.sql.execution.committing import Committing
from tenure.sql.execution.deferred_checks import check_deferred
from tenure.sql.execution.portals import Portal, Portals
from tenure.sql.execution.retries import Retries
from tenure.sql.execution.violation_details import hide_values
from tenure.sql.session import transaction_modes
from tenure.sql.session.answers import Answer, NotShort, Pending
from tenure.sql.session.block import Block, Savepoint
from tenure.sql.session.session_state import SessionState

EMPTY = Answer((), "", is_empty=True)


class SessionTransactions:
    def __init__(self, session: SessionState, portals: Portals) -> None:
        self._session = session
        self._activity = session.activity
        self._portals = portals
        self._retries = Retries(session)
        self._copying: Block | None = None
        """The implicit transaction that a COPY under way will end."""

    def open(self, *, is_explicit: bool = False, is_of_several: bool = False) -> Block:
        """The block for the next statement; it reads nothing yet."""
        session = self._session
        state, temporary = session.variables.state, session.temporary
        block = Block(
            session.services,
            is_explicit=is_explicit,
            variables=state,
            temporary=temporary,
            role=session.session_user,
        )
        block.fence, block.charge = session.locks.fence, session.memory.hold_writes
        block.is_single = not (is_explicit or is_of_several)
        transaction_modes.restore(session, block)
        block.pause = self._pause if is_explicit else None
        if is_explicit or is_of_several:
            self._retries.hold(block)
        return block

    def _pause(self, seconds: float) -> None:
        if self._activity.is_inline:
            raise NotShort
        self._session.interrupts.pause(seconds)

    # ── BEGIN, COMMIT and ROLLBACK ─────────────────────────────────────────────────────────────

    def begin(self) -> Block:
        activity = self._activity
        if activity.block is not None and activity.block.is_explicit:
            self._session.notice("there is already a transaction in progress", "WARNING", "25001")
            return activity.block
        block = activity.block = activity.block or self.open(is_explicit=True)
        block.is_explicit = True
        transaction_modes.begin(self._session, block)
        return block

    def commit(self, *, inline: bool, tag: str = "COMMIT") -> "Answer | Pending":
        block = self._activity.block
        if block is None or not block.is_explicit:
            self._session.notice("there is no transaction in progress", "WARNING", "25P01")
            if block is not None:
                self._commit(block)
            else:
                self._portals.end_transaction(is_committed=True)
            return Answer((), tag)
        if block.is_failed:
            self.abandon()
            return Answer((), "ROLLBACK")
        return self._committed(block, Answer((), tag), inline=inline)

    def rollback(self) -> Answer:
        block = self._activity.block
        if block is None or not block.is_explicit:
            self._session.notice("there is no transaction in progress", "WARNING", "25P01")
        self.abandon()
        self._portals.end_transaction(is_committed=False)
        return Answer((), "ROLLBACK")

    def save(self, block: Block, name: str) -> None:
        """SAVEPOINT: remembers the block, the variables, the locks and the portals."""
        locks, variables = self._session.locks.mark(), self._session.variables.state
        portals = self._portals.portals.copy()
        block.savepoints.append(Savepoint(name, block.mark(), variables, locks, portals))

    def back_to(self, block: Block, name: str) -> None:
        """ROLLBACK TO SAVEPOINT."""
        savepoint = block.back_to(name)
        self._session.variables.restore(savepoint.variables)
        transaction_modes.restore(self._session, block)
        self._session.locks.release_since(savepoint.locks)
        self._session.channels.back_to(savepoint)
        block.deferred.back_to(savepoint)
        self._portals.keep(savepoint.portals)

    # ── implicit transactions ──────────────────────────────────────────────────────────────────

    def end_statement(
        self, block: Block, answer: Answer, inline: bool, again: Portal | None = None
    ) -> "Answer | Pending":
        """A statement that ends an implicit transaction was run: commits, unless more of it is to come.

        `again`: the portal that may be run once more if that fails.
        """
        if answer.copy is not None:
            self._copying = block
        if not answer.is_done or answer.copy is not None:
            return answer  # more rows, or a COPY, are to come: the transaction goes on
        return self._committed(block, answer, inline=inline, again=again)

    def finish_copy(self) -> None:
        """A COPY is done: if it was a transaction of its own, that is committed."""
        block, self._copying = self._copying, None
        if block is not None and block is self._activity.block and not block.is_explicit:
            self._commit(block)

    def sync(self, *, inline: bool) -> "Pending | None":
        activity = self._activity
        block = activity.block
        activity.is_query_string = activity.has_executed = False
        if block is None:
            self._portals.end_transaction(is_committed=True)
            return None
        if block.is_explicit:
            return None
        answer = self._committed(block, EMPTY, inline=inline)
        return None if isinstance(answer, Answer) else answer

    def failed(self, error: BaseException | None) -> None:
        activity = self._activity
        block = activity.block
        if isinstance(error, RetryError) and block is not None:
            self._retries.lost(block)
        if isinstance(error, ConstraintViolation):
            self._name_schema(error)
            hide_values(error, self._session.rights(block), self._descriptor)
        activity.is_query_string = activity.has_executed = False
        if block is None:
            self._portals.end_transaction(is_committed=False)
            return
        if not block.is_explicit:
            self.abandon()
            return
        block.is_failed = True
        savepoints = block.savepoints
        self._session.variables.restore(savepoints[-1].variables if savepoints else block.variables)
        if not savepoints:
            block.close()

    def _name_schema(self, error: ConstraintViolation) -> None:
        """Adds the schema's name to an error: tables have only the id of their schema."""
        found = self._descriptor(error.schema_id)
        error.schema = "" if found is None else found.name

    def _descriptor(self, id: int) -> AnyDescriptor | None:
        """For what an error tells: by the newest lease, with the transaction's own changes."""
        block, newest = self._activity.block, self._session.services.leases.newest
        draft = block.begun.draft.descriptors if block is not None and block.begun is not None else {}
        found = draft.get(id)
        return newest.descriptor(id) if found is None and newest is not None else found

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def _committed(
        self, block: Block, answer: Answer, *, inline: bool, again: Portal | None = None
    ) -> "Answer | Pending":
        """The answer once it is committed; on the door's loop the commit is handed over."""
        if inline and (self._session.channels.needs_thread or block.deferred):
            raise NotShort
        if inline and block.has_writes:
            if not block.can_submit:
                raise NotShort
            return Committing(self, block, answer, again=again)
        self._commit(block)
        return answer

    def _commit(self, block: Block) -> None:
        session = self._session
        use, owner = block.begun, session.locks.existing_owner
        if block.is_explicit and use is not None and owner is not None:
            use.lock_owner = owner.number  # others may wait for its locks while it waits in its commit
        try:
            check_deferred(session, block)
            session.channels.before_commit()
            requester = Requester(
                session.user,
                self._activity.statement,
                session.interrupts.check_time,
                session.locks.end_transaction,
            )
            self._retries.commit(block, requester)
        except BaseException:
            self.abandon()
            raise
        self.over()

    def over(self) -> None:
        """The block is committed, which closes it."""
        self._activity.block, self._activity.has_executed = None, False
        self._session.variables.end_transaction()
        self._portals.end_transaction(is_committed=True)
        self._session.channels.end_transaction(is_committed=True)

    def abandon(self, again: Portal | None = None) -> None:
        """`again`: the portal whose statement is to be run once more."""
        if again is not None:
            again.start_over()
        block = self._activity.block
        if block is None:
            return
        block.close()
        self._activity.block, self._activity.has_executed = None, False
        self._session.variables.restore(block.variables)
        self._portals.end_transaction(again, is_committed=False)
        self._session.channels.end_transaction(is_committed=False)

    def lose(self, again: Portal | None) -> None:
        """The commit had a conflict: the notices of this try are dropped."""
        self.abandon(again)
        if again is not None:
            self._session.notices.clear()
