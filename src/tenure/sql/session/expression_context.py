"""What surrounds the expressions and locks of a session: time, randomness, sequences, settings, owners.

Walk: `sql.session.execution` asks for the `context` of a statement; `sql.session.session_facts` asks for
owners.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from tenure.base.errors import (
    ConstraintViolation,
    LocksLost,
    RetryError,
    SessionLost,
    UndefinedTable,
    UndefinedVariable,
)
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.cluster.locks.lock_table import LockOwner
from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Datum
from tenure.kv.transaction import Transaction
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.retries import Retries
from tenure.sql.session.session_facts import FactAnswers, SessionFacts
from tenure.sql.session.transaction_modes import set_modes
from tenure.sql.session.variables import MODES, definition
from tenure.sql.tables import regs
from tenure.table.sequences import SessionSequences

if TYPE_CHECKING:
    from tenure.sql.session.session import Session

UUID_BITS, UUIDS_AT_ONCE = 128, 16
UUID_MASK = (1 << UUID_BITS) - 1

T = TypeVar("T")


class Surroundings:
    def __init__(self, session: "Session") -> None:
        self._session = session
        self._parts = session.parts
        self._owner: LockOwner | None = None
        self._random: list[int] = []
        """Drawn and not used yet."""
        self._sequence_block: Block | None = None
        self._sequence_values = SessionSequences(
            session.parts.sequences, self._sequence, self._may_wait, self._may_write, self.fence
        )
        self.discard_sequences = self._sequence_values.discard
        session.on_discard.append(self.discard_sequences)
        self.retries = Retries(session)

    def context(self, block: Block, values: Sequence[Datum]) -> Context:
        env = self._parts.env
        return Context(
            now_micros=block.now_micros,
            statement_micros=self._session.active_since_micros,
            uuid=self._uuid,
            rowid=self._parts.rowids,
            clock_micros=env.wall_micros,
            given=values,
            zone=self._session.variables.zone,
            sequences=self._sequences(block),
            session=SessionFacts(self._session, block),
            setting=self._setting,
            set_setting=self._set_setting,
            sleep=self._session.interrupts.sleep,
            find_object=lambda kind, sought: regs.find(self._session, block, kind, sought),
            ask=FactAnswers(self._session, block),
        )

    def _setting(self, name: str) -> str | None:
        try:
            return self._session.variables.show(name)[1]
        except UndefinedVariable:
            return None

    def _set_setting(self, name: str, value: str | None, is_local: bool) -> str:
        session = self._session
        mode = definition(name).name
        if mode in MODES and value is not None:
            set_modes(session, {mode: value})
        elif is_local and session.block is not None:
            session.variables.set_local(name, value)
        else:
            session.variables.set(name, value)
        return session.variables.show(name)[1]

    def failed(self, error: BaseException | None) -> None:
        """A statement has failed; its block has not been closed yet."""
        block = self._session.block
        if isinstance(error, RetryError) and block is not None:
            self.retries.lost(block)
        self._name_schema(error)

    def _name_schema(self, error: BaseException | None) -> None:
        """Tables know the numbers of their schemas only; clients are told names."""
        if isinstance(error, ConstraintViolation):
            block, newest = self._session.block, self._parts.leases.newest
            draft = block.begun.draft.descriptors if block is not None and block.begun is not None else {}
            found = draft.get(error.schema_id)
            if found is None and newest is not None:
                found = newest.descriptor(error.schema_id)
            error.schema = "" if found is None else found.name

    def _sequences(self, block: Block) -> SessionSequences:
        """The values that this session was given last, over the catalog as the block sees it."""
        self._sequence_block = block
        return self._sequence_values

    def _sequence(self, id: int) -> Sequence_:
        assert self._sequence_block is not None
        found = self._sequence_block.descriptor(id)
        if not isinstance(found, Sequence_):
            raise UndefinedTable(f"could not open relation with OID {id}")
        return found

    def _may_write(self, function: str) -> None:
        assert self._sequence_block is not None
        self._sequence_block.require_writable(f"{function}()")

    def _may_wait(self) -> None:
        """Asked before the store is written: not on the door's loop."""
        if self._session.is_inline:
            raise NotShort

    def _uuid(self) -> UUID:
        if not self._random:
            # Each call of the kernel lets other threads have the interpreter: so it is asked seldom.
            drawn = self._parts.env.rng.getrandbits(UUID_BITS * UUIDS_AT_ONCE)
            self._random = [(drawn >> UUID_BITS * n) & UUID_MASK for n in range(UUIDS_AT_ONCE)]
        return UUID(int=self._random.pop(), version=4)

    # ── locks ──────────────────────────────────────────────────────────────────────────────────

    @property
    def lock_owner(self) -> LockOwner | None:
        """Whose the locks of this session are, if it has ever locked anything; from any thread."""
        return self._owner

    def owner(self) -> LockOwner:
        """Whose all locks of this session are: one owner, so that a wait for a row is seen in one cycle
        with a wait for a number.
        """
        if self._owner is None:
            owner = self._owner = LockOwner(self._parts.next_owner(), self._parts.store.clock.now())
            self._session.on_close.append(lambda: self._parts.advisory.release_all(owner))
            self._session.on_discard.append(lambda: self._parts.advisory.unlock_all(owner))
        return self._owner

    @property
    def owner_number(self) -> int | None:
        """Of the owner of this session's locks, if it has locked anything yet."""
        return None if self._owner is None else self._owner.number

    def owner_in(self, block: Block) -> LockOwner:
        """The same, about to lock something that ends with the transaction."""
        if not block.has_locks:
            block.has_locks = True
            block.on_end.append(self._end_transaction)
        return self.owner()

    def _end_transaction(self) -> None:
        self._parts.locks.release(self.owner())
        self._parts.advisory.end_transaction(self.owner())

    def holds_locks(self) -> bool:
        """Whether others may wait for this session, though it is in no transaction."""
        return self._owner is not None and self._parts.advisory.is_holding(self._owner)

    def mark_locks(self) -> tuple[int, int]:
        if self._owner is None:
            return 0, 0
        return self._parts.locks.mark(self._owner), self._parts.advisory.mark(self._owner)

    def release_since(self, mark: tuple[int, int]) -> None:
        """Gives up what the transaction has locked since then."""
        if self._owner is not None:
            self._parts.locks.release_since(self._owner, mark[0])
            self._parts.advisory.release_since(self._owner, mark[1])

    # ── what is held through the node's session ────────────────────────────────────────────────

    def fence(self, txn: Transaction | None = None) -> None:
        """Raises LocksLost if this session held advisory locks that the node has lost.

        A transaction that is about to commit is bounded by what is held: it commits before that can be lost.
        Rows that are locked are no matter of this: they are proved by the transaction that locked them.
        """
        if self._owner is not None:
            try:
                if txn is None:
                    self._parts.advisory.check(self._owner)
                else:
                    self._parts.advisory.fence(self._owner, txn)
            except SessionLost as error:
                raise LocksLost(str(error), detail=error.detail, hint=error.hint) from error

    def transact(self, run: Callable[[Transaction], T]) -> T:
        """Runs what a statement writes outside of its block, within the same bounds."""

        def fenced(txn: Transaction) -> T:
            result = run(txn)
            self.fence(txn)
            return result

        return self._parts.store.transact(fenced)
