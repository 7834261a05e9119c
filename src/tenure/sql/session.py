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
from itertools import islice
from uuid import UUID

from tenure.base.errors import RetryError, UserError
from tenure.base.settings import STATEMENT_TIMEOUT
from tenure.catalog.descriptors import Database
from tenure.catalog.descriptors import Sequence as Sequence_
from tenure.catalog.resolution import Path
from tenure.cluster.lock_table import Owner
from tenure.expr.datatype import Datum, Type
from tenure.expr.function import Context
from tenure.schema_change.changer import Asked
from tenure.sql import planning, result_size
from tenure.sql.answers import Answer, Column, Notice, NotShort, Pending, QueryCanceled, Status, Timeouts
from tenure.sql.block import Block
from tenure.sql.constants import lift
from tenure.sql.errors import (
    InFailedTransaction,
    PlanChanged,
    StatementTimeout,
    TooFewParameters,
    UndefinedTable,
    UndefinedVariable,
)
from tenure.sql.execution import Execution
from tenure.sql.facts import Answers, Facts
from tenure.sql.parts import Parts
from tenure.sql.plan_cache import Key, Made
from tenure.sql.portals import Portal, Portals, Prepared
from tenure.sql.redaction import without_password
from tenure.sql.statement import Result, Statement
from tenure.sql.statements.queries import Select
from tenure.sql.variables import Variables
from tenure.table.sequences import SessionSequences

BATCH_ROWS = 1_000
"""Rows given at once: enough to make the cost of a turn small, few enough to bound what waits."""

ATTEMPTS = 30
"""How often an implicit transaction is tried in all; pauses grow to a quarter of a second."""

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.001, 0.25

EMPTY = Answer((), "", is_empty=True)


class Session:
    def __init__(
        self,
        parts: Parts,
        *,
        number: int,
        user: str,
        database: Database,
        options: Mapping[str, str],
        address: str = "",
    ) -> None:
        self.parts = parts
        self.number = number
        self.pid = number
        self.user = user
        self.database = database.id
        self.database_name = database.name
        self.address = address
        self.variables = Variables(options)
        self.variables.fix("session_authorization", user)
        self.notices: list[Notice] = []
        self.block: Block | None = None
        self.statement = ""
        """The text of what it is doing, or did last."""
        self.active_since_micros = 0
        self.is_active = False
        self.is_inline = False
        """Something is being planned on the door's loop."""
        self.local: dict[str, object] = {}
        """What statements keep for the session: currval of sequences, advisory locks."""
        self._portals = Portals()
        self._path: Path | None = None
        self._interrupted = parts.env.event()
        self._deadline: float | None = None
        self._locals_of: dict[str, str] | None = None
        self._advisory_owner: Owner | None = None
        self._copying: Block | None = None
        """The implicit transaction that a COPY under way will end."""
        self._sequence_block: Block | None = None
        self._sequence_values = SessionSequences(parts.sequences, self._sequence)
        self.on_close: list[Callable[[], None]] = []
        self.on_discard: list[Callable[[], None]] = []

    # ── what the door is told ──────────────────────────────────────────────────────────────────

    @property
    def status(self) -> Status:
        block = self.block
        if block is None or not block.is_explicit:
            return Status.IDLE
        return Status.FAILED if block.is_failed else Status.IN_TRANSACTION

    @property
    def changed(self) -> dict[str, str]:
        return self.variables.reported

    @property
    def zone(self) -> tzinfo:
        return self.variables.zone

    def parameters(self) -> dict[str, str]:
        return self.variables.all_reported()

    def timeouts(self) -> Timeouts:
        return Timeouts(
            self.variables.seconds("idle_session_timeout") or 0.0,
            self.variables.seconds("idle_in_transaction_session_timeout") or 0.0,
        )

    def notice(self, message: str, severity: str = "NOTICE", sqlstate: str = "00000") -> None:
        self.notices.append(Notice(message, severity, sqlstate))

    # ── preparing ──────────────────────────────────────────────────────────────────────────────

    def split(self, text: str) -> list[str]:
        return planning.split(text)

    def prepare(
        self, name: str, text: str, types: Sequence[Type | None], *, inline: bool = False
    ) -> Prepared:
        self.is_inline = inline
        try:
            prepared = self.make_prepared(text, tuple(types))
        except RetryError as error:
            if inline:
                raise NotShort from error
            raise
        finally:
            self.is_inline = False
        self._portals.add_prepared(name, prepared)
        return prepared

    def make_prepared(self, text: str, types: tuple[Type | None, ...] = ()) -> Prepared:
        self._check_not_failed(text)
        lifted = self._with_constants_lifted(text) if not types else None
        if lifted is not None:
            return lifted
        made = self._with_catalog(lambda block: self._plan(text, types, block))
        return self._prepared(text, types, made)

    def _with_constants_lifted(self, text: str) -> Prepared | None:
        """None if that is not possible, or does not work out: then the text as it stands says why."""
        lifted = lift(text)
        if lifted is None:
            return None
        try:
            made = self._with_catalog(lambda block: self._plan(lifted.text, lifted.types, block))
            if made is None or len(made.statement.parameters) != len(lifted.texts):
                return None
            constants = lifted.values(made.statement.parameters)
        except UserError:
            return None
        prepared = self._prepared(lifted.text, lifted.types, made)
        prepared.parameters, prepared.constants = (), constants
        return prepared

    def _prepared(self, text: str, types: tuple[Type | None, ...], made: Made | None) -> Prepared:
        if made is None:
            return Prepared(text, types, None, (), None)
        statement = made.statement
        is_short = statement.is_short and self.parts.runs_inline
        lookup = statement.lookup if is_short and isinstance(statement, Select) else None
        return Prepared(text, types, made, statement.parameters, statement.columns, is_short, lookup)

    def _with_catalog(self, plan: "Callable[[Block], Made | None]") -> "Made | None":
        """Plans in the block there is, or in one of its own that is over at once."""
        if self.block is not None and not self.block.is_failed:
            return plan(self.block)
        attempts = 1 if self.is_inline else ATTEMPTS
        while True:
            attempts -= 1
            block = Block(self.parts, is_explicit=False, variables=self.variables.values)
            try:
                return plan(block)
            except RetryError:
                if attempts == 0:
                    raise
            finally:
                block.close()

    def _plan(self, text: str, types: tuple[Type | None, ...], block: Block) -> Made | None:
        key = Key(text, self.path, types, (self.variables["TimeZone"],))
        if block.past is None and not block.is_failed:
            made = self.parts.plans.find(key, block.use)
            if made is not None:
                return made
        made = planning.plan(self, block, text, types)
        if made is not None and made.is_kept and block.past is None and not block.draft:
            self.parts.plans.keep(key, made)
        return made

    def prepared(self, name: str) -> Prepared:
        return self._portals.prepared_named(name)

    def bind(self, portal: str, statement: str, values: Sequence[Datum], *, inline: bool = False) -> Portal:
        prepared = self._portals.prepared_named(statement)
        if len(values) != len(prepared.parameters):
            raise TooFewParameters(
                f"bind message supplies {len(values)} parameters, but prepared statement "
                f'"{statement}" requires {len(prepared.parameters)}'
            )
        if prepared.constants is not None:
            values = prepared.constants
        made = Portal(prepared, values, prepared.columns, prepared.is_short)
        self._portals.add(portal, made)
        return made

    def portal(self, name: str) -> Portal:
        return self._portals.named(name)

    @property
    def portals(self) -> Portals:
        return self._portals

    def close_prepared(self, name: str) -> None:
        self._portals.prepared.pop(name, None)

    def close_portal(self, name: str) -> None:
        self._portals.portals.pop(name, None)

    # ── running ────────────────────────────────────────────────────────────────────────────────

    def execute(self, portal: str, limit: int = 0, *, ends: bool, inline: bool = False) -> "Answer | Pending":
        made = self._portals.named(portal)
        if made.rows is not None or made.is_done:
            return self._more(made, limit, ends)
        prepared = made.prepared
        if prepared.made is None:
            return EMPTY
        if prepared.lookup is not None and ends and inline and self.block is None:
            rows = prepared.lookup.rows(self.parts, prepared.made, made.values)
            if rows is not None:
                made.is_done, made.tag, made.counts = True, "SELECT", True
                return Answer(rows, "SELECT", True, True)
        self._start(prepared.text)
        try:
            return self._execute(made, prepared.made.statement, limit, ends, inline)
        finally:
            self.is_active = False

    def _execute(
        self, made: Portal, statement: Statement, limit: int, ends: bool, inline: bool
    ) -> "Answer | Pending":
        if isinstance(statement, planning.Control):
            return statement.control(Execution(self, _no_block(self), made.values, inline=inline))
        block = self.block
        if block is None and ends:
            return self._implicit(made, limit, inline)
        if block is None:
            block = self.block = Block(self.parts, is_explicit=False, variables=self.variables.values)
        if block.is_failed:
            raise InFailedTransaction
        return self._answer(made, self._run(made, block, inline), limit)

    def _start(self, text: str) -> None:
        self.statement = without_password(text)
        self.is_active = True
        self.active_since_micros = self.parts.env.wall_micros()
        self._interrupted.clear()
        seconds = self._statement_seconds()
        self._deadline = None if seconds is None else self.parts.env.monotonic() + seconds

    def _statement_seconds(self) -> float | None:
        if "statement_timeout" in self.variables.values:
            return self.variables.seconds("statement_timeout")
        return self.parts.settings.current()[STATEMENT_TIMEOUT] or None

    def _implicit(self, portal: Portal, limit: int, inline: bool) -> "Answer | Pending":
        """A statement that is a transaction of its own: run, committed, and run again if need be."""
        attempts = 1 if inline else ATTEMPTS
        pause_seconds = PAUSE_SECONDS
        while True:
            attempts -= 1
            block = self.block = Block(self.parts, is_explicit=False, variables=self.variables.values)
            try:
                answer = self._answer(portal, self._run(portal, block, inline), limit)
                if answer.copy is not None:
                    self._copying = block
                if not answer.is_done or answer.copy is not None:
                    return answer  # the transaction goes on with it
                if inline and block.has_writes:
                    if not block.can_submit:
                        raise NotShort
                    return _Commit(self, block, answer, retries=True)
                self._commit(block)
                return answer
            except RetryError as error:
                self._abandon()
                _forget(portal)
                if inline:
                    raise NotShort from error
                if attempts == 0:
                    raise
            except BaseException:
                self._abandon()
                raise
            self._pause(pause_seconds)
            pause_seconds = min(PAUSE_SECONDS_MAX, pause_seconds * 2)

    def _pause(self, seconds: float) -> None:
        self._interrupted.wait(self.parts.env.rng.uniform(0, seconds))
        self.check()

    def _run(self, portal: Portal, block: Block, inline: bool) -> Result:
        block.begin_statement(self.statement)
        statement = self.statement_for(portal.prepared, block)
        execution = Execution(self, block, portal.values, inline=inline)
        return statement.run(execution)

    def statement_for(self, prepared: Prepared, block: Block) -> Statement:
        """The plan of a prepared statement that is good for this transaction."""
        made = prepared.made
        assert made is not None
        if not made.is_kept or (block.past is None and made.is_good_for(block.use)):
            return made.statement
        fresh = self._plan(prepared.text, prepared.types, block)
        assert fresh is not None
        if _shape(fresh.statement.columns) != _shape(prepared.columns):
            raise PlanChanged("cached plan must not change result type")
        prepared.made = fresh
        if isinstance(fresh.statement, Select) and prepared.lookup is not None:
            prepared.lookup = fresh.statement.lookup
        return fresh.statement

    def _answer(self, portal: Portal, result: Result, limit: int) -> Answer:
        portal.tag, portal.counts = result.tag, result.counts
        if result.copy is not None:
            return Answer((), result.tag, copy=result.copy)
        if result.rows is None:
            portal.is_done = True
            return Answer((), result.tag)
        portal.rows = result.rows
        return self._batch(portal, limit)

    def _batch(self, portal: Portal, limit: int) -> Answer:
        assert portal.rows is not None
        wanted = min(limit, BATCH_ROWS) if limit else BATCH_ROWS
        rows = list(islice(portal.rows, wanted))
        portal.is_done = len(rows) < wanted
        portal.given_bytes += result_size.bytes_of(rows, portal.columns or ())
        result_size.check(portal.given_bytes, self.parts.settings.current())
        return Answer(rows, portal.tag, is_done=portal.is_done, counts=portal.counts)

    def _more(self, portal: Portal, limit: int, ends: bool) -> "Answer | Pending":
        if portal.is_done or portal.rows is None:
            return Answer((), portal.tag, counts=portal.counts)
        answer = self._batch(portal, limit)
        block = self.block
        if answer.is_done and ends and block is not None and not block.is_explicit:
            self._commit(block)
        return answer

    # ── ending transactions ────────────────────────────────────────────────────────────────────

    def _commit(self, block: Block) -> None:
        block.asked = Asked(self.user, self.statement)
        try:
            block.commit()
        except BaseException:
            self.variables.restore(block.variables)
            raise
        finally:
            self._over(block)

    def _over(self, block: Block) -> None:
        block.close()
        if self.block is block:
            self.block = None
        if self._locals_of is not None:
            self.variables.restore(self._locals_of)
            self._locals_of = None
        self._portals.end_transaction()

    def _abandon(self) -> None:
        block = self.block
        if block is None:
            return
        self._locals_of = None
        self.variables.restore(block.variables)
        self._over(block)

    def sync(self, *, inline: bool = False) -> "Pending | None":
        block = self.block
        if block is None or block.is_explicit:
            return None
        if inline and block.has_writes:
            if not block.can_submit:
                raise NotShort
            return _Commit(self, block, EMPTY, retries=False)
        self._commit(block)
        return None

    def failed(self) -> None:
        block = self.block
        if block is None:
            return
        if not block.is_explicit:
            self._abandon()
            return
        block.is_failed = True
        if not block.savepoints:
            block.close()

    def finish_copy(self) -> None:
        """A COPY is done: if it was a transaction of its own, that is committed."""
        block, self._copying = self._copying, None
        if block is not None and block is self.block and not block.is_explicit:
            self._commit(block)

    # BEGIN, COMMIT and their like: `statements.transactions` calls these.

    def begin(self, *, is_read_only: bool) -> Block:
        if self.block is not None:
            if self.block.is_explicit:
                self.notice("there is already a transaction in progress", "WARNING", "25001")
            self.block.is_explicit = True
            return self.block
        self.block = Block(self.parts, is_explicit=True, variables=self.variables.values)
        self.block.is_read_only = is_read_only
        return self.block

    def commit(self, *, inline: bool, tag: str = "COMMIT") -> "Answer | Pending":
        block = self.block
        if block is None or not block.is_explicit:
            self.notice("there is no transaction in progress", "WARNING", "25P01")
            if block is not None:
                self._commit(block)
            return Answer((), tag)
        if block.is_failed:
            self._abandon()
            return Answer((), "ROLLBACK")
        if inline and block.has_writes:
            if not block.can_submit:
                raise NotShort
            return _Commit(self, block, Answer((), tag), retries=False)
        self._commit(block)
        return Answer((), tag)

    def rollback(self) -> Answer:
        if self.block is None or not self.block.is_explicit:
            self.notice("there is no transaction in progress", "WARNING", "25P01")
        self._abandon()
        return Answer((), "ROLLBACK")

    def set_local(self, name: str, value: str | None) -> None:
        """Until the transaction ends."""
        if self._locals_of is None:
            self._locals_of = self.variables.values
        self.variables.set(name, value)

    # ── names, time and interruption ───────────────────────────────────────────────────────────

    @property
    def path(self) -> Path:
        schemas = self.variables.search_path()
        path = self._path
        if path is None or path.schemas != schemas or path.database != self.database:
            path = self._path = Path(self.database, schemas, self.user)
        return path

    def context(self, block: Block, values: Sequence[Datum]) -> Context:
        env = self.parts.env
        return Context(
            now_micros=block.now_micros,
            statement_micros=self.active_since_micros,
            uuid=self._uuid,
            rowid=self.parts.rowids,
            clock_micros=env.wall_micros,
            given=values,
            zone=self.variables.zone,
            sequences=self._sequences(block),
            session=Facts(self, block),
            setting=self._setting,
            set_setting=self._set_setting,
            sleep=self.sleep,
            ask=Answers(self, block),
        )

    def _setting(self, name: str) -> str | None:
        try:
            return self.variables.show(name)[1]
        except UndefinedVariable:
            return None

    def _set_setting(self, name: str, value: str | None, is_local: bool) -> str:
        if is_local and self.block is not None and self.block.is_explicit:
            self.set_local(name, value)
        else:
            self.variables.set(name, value)
        return self.variables.show(name)[1]

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

    def _uuid(self) -> UUID:
        return UUID(int=self.parts.env.rng.getrandbits(128), version=4)

    def lock_owner(self, block: Block) -> Owner:
        """Whose the locks of a transaction are; they end with it."""
        if block.lock_owner is None:
            owner = block.lock_owner = Owner(self.parts.next_owner(), self.parts.store.clock.now())
            block.on_end.append(lambda: self.parts.locks.release(owner))
        return block.lock_owner

    def advisory_owner(self) -> Owner:
        """Whose the advisory locks of this session are; they end with it at the latest."""
        if self._advisory_owner is None:
            owner = self._advisory_owner = Owner(self.parts.next_owner(), self.parts.store.clock.now())
            self.on_close.append(lambda: self.parts.advisory.release_all(owner))
            self.on_discard.append(lambda: self.parts.advisory.unlock_all(owner))
        return self._advisory_owner

    def end_advisory(self) -> None:
        """Those of the transaction end with it."""
        self.parts.advisory.end_transaction(self.advisory_owner())

    def plan_query(self, text: str, block: Block, types: tuple[Type, ...]) -> "Select":
        """Plans a query in a block that reads the past."""
        made = planning.plan(self, block, text, types)
        assert made is not None and isinstance(made.statement, Select)
        return made.statement

    def check(self) -> None:
        if self._interrupted.is_set():
            raise QueryCanceled("canceling statement due to user request")
        if self._deadline is not None and self.parts.env.monotonic() > self._deadline:
            raise StatementTimeout("canceling statement due to statement timeout")
        block = self.block
        if block is not None and block.past is None and block.has_begun:
            block.use.check()

    def sleep(self, seconds: float) -> None:
        """Waits, unless it is canceled."""
        until = self.parts.env.monotonic() + seconds
        while (left := until - self.parts.env.monotonic()) > 0:
            if self._deadline is not None:
                left = min(left, max(0.0, self._deadline - self.parts.env.monotonic()) + 0.001)
            self._interrupted.wait(left)
            self.check()

    def cancel(self) -> None:
        self._interrupted.set()

    def close(self) -> None:
        self._interrupted.set()
        self._abandon()
        closing, self.on_close = self.on_close, []
        for each in closing:
            each()

    def _check_not_failed(self, text: str) -> None:
        if self.block is not None and self.block.is_failed and not planning.ends_transaction(text):
            raise InFailedTransaction


class _Commit:
    """The commit of a block that was run on the door's loop."""

    __slots__ = ("_answer", "_block", "_retries", "_session")

    def __init__(self, session: Session, block: Block, answer: Answer, *, retries: bool) -> None:
        self._session = session
        self._block = block
        self._answer = answer
        self._retries = retries

    def submit(self, on_done: Callable[[], None]) -> None:
        try:
            self._block.submit(on_done)
        except BaseException:
            self._session._abandon()
            raise

    def result(self) -> "Answer | Pending":
        session = self._session
        try:
            self._block.finish()
        except RetryError as error:
            session._abandon()
            if self._retries:
                raise NotShort from error
            raise
        except BaseException:
            session._abandon()
            raise
        session._over(self._block)
        return self._answer


def _forget(portal: Portal) -> None:
    portal.rows = None
    portal.is_done = False


def _no_block(session: Session) -> Block:
    if session.block is not None:
        return session.block
    return Block(session.parts, is_explicit=False, variables=session.variables.values)


def _shape(columns: tuple[Column, ...] | None) -> object:
    return None if columns is None else [(each.name, each.type.ref) for each in columns]
