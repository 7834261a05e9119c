"""A SQL session: one client's conversation, from the first statement to the last.

    IDLE ──BEGIN──► IN_TRANSACTION ──error──► FAILED
      ▲                  │    ▲                 │
      └──COMMIT/ROLLBACK─┘    └───ROLLBACK TO───┤
      └───────────────ROLLBACK (or COMMIT)──────┘

A statement outside a block gets an implicit transaction. If nothing of its answer has been sent, and
nothing else belongs to that transaction, it is run again by itself when it meets a rival (40001):
where one can wait, in a thread, with growing pauses. Inside a block the client has to do that.

Statements that are short run on the door's loop and hand their commit over (`Pending`); all others
run in a thread and block there. Whatever would have to wait on the loop raises `NotShort` first.

Invariant (retry-unsent): a statement runs again by itself only if its client was told nothing of it.
Invariant (answer-after-commit): the answer of a statement that ends its transaction is given after the
commit is known.

Walk: `pgwire` -> `prepare`, `bind`, `execute`, `sync` -> `sql.planning` -> `Statement.run` ->
`Block.commit`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from functools import partial

from tenure.base.errors import InFailedTransaction, RetryError, TooFewParameters
from tenure.catalog.descriptors.definitions import Database
from tenure.catalog.name_resolution import Path
from tenure.expr.types.datatype import Datum, Type
from tenure.schema_change.changer import Requester
from tenure.sql import planning
from tenure.sql.session import transaction_modes
from tenure.sql.session.answers import Answer, BlockStatus, Endpoints, Notice, NotShort, Pending
from tenure.sql.session.block import Block
from tenure.sql.session.committing import Committing
from tenure.sql.session.execution import Execution
from tenure.sql.session.expression_context import Surroundings
from tenure.sql.session.interrupts import Interrupts
from tenure.sql.session.portal_runs import batch, check_may_run, control
from tenure.sql.session.portals import Portal, Portals, Prepared
from tenure.sql.session.preparing import ATTEMPTS, Preparing
from tenure.sql.session.services import Parts
from tenure.sql.session.session_memory import SessionMemory
from tenure.sql.session.variables import Variables
from tenure.sql.statement import ByName, Result
from tenure.sql.statements.dml.queries import Select
from tenure.sql.text.redaction import without_secrets

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.001, 0.25
"""Between two tries of an implicit transaction: they grow from the first to the second."""

EMPTY = Answer((), "", is_empty=True)


class Session:
    def __init__(
        self,
        parts: Parts,
        *,
        number: int,
        pid: int,
        user: str,
        database: Database,
        options: Mapping[str, str],
        endpoints: Endpoints,
    ) -> None:
        self.parts, self.env = parts, parts.env
        self.number = number
        self.pid = pid
        """What its client knows it by, to cancel it."""
        self.user = user
        self.database = database.id
        self.database_name = database.name
        self.endpoints = endpoints
        self.variables = Variables(options)
        self.variables.fix("session_authorization", user)
        self.notices: list[Notice] = []
        self.block: Block | None = None
        self.statement = ""
        """The text of what it is doing, or did last."""
        self._text = ""
        self.active_since_micros = 0
        self.is_active = False
        self.is_inline = False
        """It is on the door's loop, where nothing may wait."""
        self.memory = SessionMemory(parts.memory, user, number)
        self._portals = Portals(self.memory.account)
        self._is_string = self._has_executed = False
        """It runs the statements of one query string, or has run some since the last Sync."""
        self.is_several = False
        """The statement under way is one of several that are one implicit transaction: as in a block."""
        self.active_portal: Portal | None = None
        """The one that is being executed: it cannot close itself."""
        self._path = Path(0)
        time = self.interrupts = Interrupts(self)
        self.timeouts, self.received, self.cancel = time.timeouts, time.received, time.cancel
        self.check_time, self.start_reading = time.check_time, time.start
        self.is_superuser = False
        self._copying: Block | None = None
        """The implicit transaction that a COPY under way will end."""
        self.on_close: list[Callable[[], None]] = []
        self.on_discard: list[Callable[[], None]] = []
        self.preparing = Preparing(self)
        self.surroundings = Surroundings(self)

    # ── what the door is told ──────────────────────────────────────────────────────────────────

    @property
    def status(self) -> BlockStatus:
        block = self.block
        if block is None or not block.is_explicit:
            return BlockStatus.IDLE
        return BlockStatus.FAILED if block.is_failed else BlockStatus.IN_TRANSACTION

    @property
    def changed(self) -> dict[str, str]:
        return self.variables.reported

    @property
    def zone(self) -> tzinfo:
        return self.variables.zone

    @property
    def doing(self) -> str:
        return without_secrets(self._text)

    @property
    def holds_locks(self) -> bool:
        return self.surroundings.holds_locks()

    def parameters(self) -> dict[str, str]:
        return self.variables.all_reported()

    def notice(
        self, message: str, severity: str = "NOTICE", sqlstate: str = "00000", *, detail: str = ""
    ) -> None:
        if self.variables.lets_pass(severity):
            self.notices.append(Notice(message, severity, sqlstate, detail))

    # ── preparing ──────────────────────────────────────────────────────────────────────────────

    def split(self, text: str) -> list[str]:
        with self.memory.planning(text, self.interrupts):
            pieces = planning.split(text)
        self._is_string = len(pieces) > 1
        return pieces

    def prepare(
        self, name: str, text: str, types: Sequence[Type | None], *, inline: bool = False
    ) -> Prepared:
        self.is_inline, self._text = inline, text
        self.interrupts.start()
        try:
            with self.memory.planning(text, self.interrupts):
                prepared = self.preparing.make(text, tuple(types))
        except RetryError as error:
            if inline:
                raise NotShort from error
            raise
        finally:
            self.is_inline = False
        self._portals.add_prepared(name, prepared)
        return prepared

    def prepared(self, name: str) -> Prepared:
        prepared = self._portals.prepared_named(name)
        return self.preparing.with_labels_now(name, prepared) if prepared.has_enums else prepared

    def bind(self, portal: str, statement: str, values: Sequence[Datum], *, inline: bool = False) -> Portal:
        prepared = self._portals.prepared_named(statement)
        if len(values) != len(prepared.parameters):
            raise TooFewParameters(
                f"bind message supplies {len(values)} parameters, but prepared statement "
                f'"{statement}" requires {len(prepared.parameters)}'
            )
        if self.block is not None and self.block.is_failed:
            self.preparing.check_not_failed(prepared.text)
        columns = prepared.columns
        if prepared.is_by_name and isinstance(prepared.statement, ByName):
            columns = prepared.statement.columns_now(self)
        made = Portal(prepared, prepared.values(values), columns, prepared.is_short and inline)
        self._portals.add(portal, made)
        return made

    def portal(self, name: str) -> Portal:
        found = self._portals.portals.get(name)
        return self._portals.named(name) if found is None else found

    @property
    def portals(self) -> Portals:
        return self._portals

    def close_prepared(self, name: str) -> None:
        self._portals.remove_prepared(name)

    def close_portal(self, name: str) -> None:
        self._portals.remove(name)

    # ── running ────────────────────────────────────────────────────────────────────────────────

    def execute(self, portal: str, limit: int = 0, *, ends: bool, inline: bool = False) -> "Answer | Pending":
        made = self._portals.named(portal)
        prepared = made.prepared
        self._text = prepared.text
        if prepared.made is None:
            return EMPTY
        self.surroundings.fence()
        has_begun = made.rows is not None or made.is_done
        if has_begun or self.block is not None or made.is_failed:
            check_may_run(self, portal, made)
        elif prepared.lookup is not None and ends and inline and prepared.made.path == self.path:
            rows = prepared.lookup.rows(self.parts, prepared.made, made.values)
            if rows is not None:
                made.is_done, made.tag, made.counts = True, "SELECT", True
                return Answer(rows, "SELECT", True, True)
        made.stays = limit > 0
        has_executed, self._has_executed = self._has_executed, True
        self.is_several = self._is_string or has_executed
        if made.is_at_rest:
            self._start(prepared.text)
        told = len(self.notices)
        self.is_inline, self.active_portal = inline, made
        try:
            run = self._more if has_begun else self._execute
            if inline:
                answer = run(made, limit, ends, True)
            else:
                answer = self.memory.charged(made, partial(run, made, limit, ends, False))
        except NotShort:
            del self.notices[told:]  # they come again
            made.is_at_rest, self._has_executed = True, has_executed
            raise
        except BaseException:
            made.is_failed = True
            raise
        finally:
            self.is_inline = self.is_active = False
            self.active_portal = None
        made.is_at_rest = isinstance(answer, Answer) and 0 < limit <= len(answer.rows)
        return answer

    def _execute(self, portal: Portal, limit: int, ends: bool, inline: bool) -> "Answer | Pending":
        statement = portal.prepared.statement
        if isinstance(statement, planning.Control):
            if self.block is None and statement.is_undone and (self.is_several or not ends):
                self.block = self._begun(is_several=True)
            execution = Execution(self, self.block or self._begun(), portal.values, inline=inline)
            return control(execution, statement, portal, limit)
        block = self.block
        if block is None and ends:
            return self._implicit(portal, limit, inline)
        if block is None:
            block = self.block = self._begun(is_several=True)
        if block.is_failed:
            raise InFailedTransaction
        answer = self._answer(portal, self._run_in(block, portal, inline), limit)
        if ends and not block.is_explicit:
            return self._ended(block, answer, inline)
        return answer

    def _begun(self, *, is_explicit: bool = False, is_several: bool = False) -> Block:
        block = Block(self.parts, is_explicit=is_explicit, variables=self.variables.state)
        block.fence, block.charge = self.surroundings.fence, self.memory.hold_writes
        block.is_read_only = transaction_modes.reads_only(self)
        block.pause = self._pause if is_explicit else None
        if is_explicit or is_several:
            self.surroundings.retries.hold(block)
        return block

    def _pause(self, seconds: float) -> None:
        if self.is_inline:
            raise NotShort
        self.interrupts.pause(seconds)

    def _run_in(self, block: Block, portal: Portal, inline: bool) -> Result:
        """Runs in a block that goes on: what turns out not to be short leaves nothing behind."""
        if not inline or isinstance(portal.prepared.statement, Select):
            return self.run(portal, block, inline)
        place = block.mark()
        try:
            result = self.run(portal, block, inline)
        except NotShort:
            block.undo(place)
            raise
        block.forget(place)
        return result

    def _ended(
        self, block: Block, answer: Answer, inline: bool, again: Portal | None = None
    ) -> "Answer | Pending":
        """A statement that ends an implicit transaction was run: commits, unless more of it is to come.

        `again`: the portal that may be run once more if that fails.
        """
        if answer.copy is not None:
            self._copying = block
        if not answer.is_done or answer.copy is not None:
            return answer  # the transaction goes on with it
        if inline and block.has_writes:
            if not block.can_submit:
                raise NotShort
            return Committing(self, block, answer, again=again)
        self._commit(block)
        return answer

    def _start(self, text: str) -> None:
        self.statement = without_secrets(text)
        self.is_active = True
        self.active_since_micros = self.parts.env.wall_micros()
        self.interrupts.start()

    def _implicit(self, portal: Portal, limit: int, inline: bool) -> "Answer | Pending":
        """A statement that is a transaction of its own: run, committed, and run again if need be."""
        attempts = 1 if inline else ATTEMPTS
        pause_seconds, told = PAUSE_SECONDS, len(self.notices)
        proves_late = not limit
        while True:
            attempts -= 1
            block = self.block = self._begun()
            block.proves_late, proves_late = proves_late, False  # a second try looks first
            try:
                answer = self._answer(portal, self.run(portal, block, inline), limit)
                return self._ended(block, answer, inline, again=portal)
            except RetryError as error:
                self.abandon(portal)
                del self.notices[told:]
                if inline:
                    raise NotShort from error
                if attempts == 0:
                    raise
            except NotShort:
                self.abandon(portal)
                raise
            except BaseException:
                self.abandon()
                raise
            self.interrupts.pause(pause_seconds)
            pause_seconds = min(PAUSE_SECONDS_MAX, pause_seconds * 2)

    def run(self, portal: Portal, block: Block, inline: bool) -> Result:
        block.begin_statement(self.statement)
        statement = self.preparing.statement_for(portal.prepared, block)
        if inline and (not statement.is_short or portal.prepared.reads(self.parts.far_tables)):
            raise NotShort  # planned again, over a table that is another one now, or that lies elsewhere
        execution = Execution(
            self, block, portal.values, inline=inline, stays=portal.stays, account=portal.account
        )
        return statement.run(execution)

    def _answer(self, portal: Portal, result: Result, limit: int) -> Answer:
        portal.tag, portal.counts = result.tag, result.counts
        if result.copy is not None:
            return Answer((), result.tag, copy=result.copy)
        if result.rows is None:
            portal.is_done = True
            return Answer((), result.tag)
        portal.rows = result.rows
        return batch(self, portal, limit)

    def _more(self, portal: Portal, limit: int, ends: bool, inline: bool) -> "Answer | Pending":
        if portal.is_done or portal.rows is None:
            return Answer((), portal.tag, counts=portal.counts)
        block = self.block
        if block is None or block.is_explicit or not ends:
            return batch(self, portal, limit)
        if inline and block.has_writes and not block.can_submit:
            raise NotShort  # now: rows that are taken out do not come again
        return self._ended(block, batch(self, portal, limit), inline)

    # ── ending transactions ────────────────────────────────────────────────────────────────────

    def _commit(self, block: Block) -> None:
        try:
            with self.surroundings.retries.noting(block):
                block.commit(Requester(self.user, self.statement, self.interrupts.check_time))
        except BaseException:
            self.abandon()
            raise
        self.over(block)

    def over(self, block: Block) -> None:
        """It is committed."""
        block.close()
        self.block, self._has_executed = None, False
        self.variables.end_transaction()
        self._portals.end_transaction(is_committed=True)

    def abandon(self, again: Portal | None = None) -> None:
        """`again`: the portal whose statement is to be run once more."""
        if again is not None:
            again.start_over()
        block = self.block
        if block is None:
            return
        block.close()
        self.block, self._has_executed = None, False
        self.variables.restore(block.variables)
        self._portals.end_transaction(again, is_committed=False)

    def sync(self, *, inline: bool = False) -> "Pending | None":
        block = self.block
        self._is_string = self._has_executed = False
        if block is None:
            self._portals.end_transaction(is_committed=True)
            return None
        if block.is_explicit:
            return None
        if inline and block.has_writes:
            if not block.can_submit:
                raise NotShort
            return Committing(self, block, EMPTY)
        self._commit(block)
        return None

    def failed(self, error: BaseException | None = None) -> None:
        self.surroundings.failed(error)
        block = self.block
        self._is_string = self._has_executed = False
        if block is None:
            self._portals.end_transaction(is_committed=False)
            return
        if not block.is_explicit:
            self.abandon()
            return
        block.is_failed = True
        self.variables.restore(block.savepoints[-1].variables if block.savepoints else block.variables)
        if not block.savepoints:
            block.close()

    def finish_copy(self) -> None:
        """A COPY is done: if it was a transaction of its own, that is committed."""
        block, self._copying = self._copying, None
        if block is not None and block is self.block and not block.is_explicit:
            self._commit(block)

    @property
    def is_in_block(self) -> bool:
        """Of BEGIN, or of several statements sent together."""
        return self.is_several or (self.block is not None and self.block.is_explicit)

    # BEGIN, COMMIT and their like: `statements.session.transactions` calls these.

    def begin(self) -> Block:
        if self.block is not None and self.block.is_explicit:
            self.notice("there is already a transaction in progress", "WARNING", "25001")
            return self.block
        block = self.block = self.block or self._begun(is_explicit=True)
        block.is_explicit = True
        transaction_modes.begin(self)
        return block

    def commit(self, *, inline: bool, tag: str = "COMMIT") -> "Answer | Pending":
        block = self.block
        if block is None or not block.is_explicit:
            self.notice("there is no transaction in progress", "WARNING", "25P01")
            if block is not None:
                self._commit(block)
            else:
                self._portals.end_transaction(is_committed=True)
            return Answer((), tag)
        if block.is_failed:
            self.abandon()
            return Answer((), "ROLLBACK")
        if inline and block.has_writes:
            if not block.can_submit:
                raise NotShort
            return Committing(self, block, Answer((), tag))
        self._commit(block)
        return Answer((), tag)

    def rollback(self) -> Answer:
        if self.block is None or not self.block.is_explicit:
            self.notice("there is no transaction in progress", "WARNING", "25P01")
        self.abandon()
        self._portals.end_transaction(is_committed=False)
        return Answer((), "ROLLBACK")

    # ── names, time and interruption ───────────────────────────────────────────────────────────

    @property
    def path(self) -> Path:
        schemas = self.variables.effects.search_path
        if schemas is not self._path.schemas:
            self._path = Path(self.database, schemas, self.user)
        return self._path

    def check(self) -> None:
        """Raises if the statement must not go on."""
        self.interrupts.check()

    def close(self) -> None:
        self.interrupts.cancel()
        self.abandon()
        closing, self.on_close = self.on_close, []
        for each in closing:
            each()
        self._portals.end()
        self.memory.close()
