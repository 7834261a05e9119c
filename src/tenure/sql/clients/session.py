"""A SQL session: one client's conversation, from the first statement to the last.

    Session ── SessionState         who is served, variables, locks, memory, time
            ├─ Portals              prepared statements and portals, by name
            ├─ Preparing            text ─► plan
            ├─ PortalRuns           portal ─► rows
            └─ SessionTransactions  begin, commit, give up

If nothing of a statement's answer has been sent, and nothing else belongs to its implicit transaction, the
session runs it again after a conflict (40001): in a thread, with growing pauses. Inside a block the client
has to do that.

Statements that are short run on the door's loop and hand their commit over (`Pending`); all others
run in a thread and block there. A statement that would have to wait on the loop raises `NotShort` first.

Invariant (retry-unsent): a statement runs again by itself only if its client was told nothing of it.

Walk: `pgwire` -> `prepare`, `bind`, `execute`, `sync` -> `sql.execution.planning` -> `Statement.run` ->
`Block.commit`.
"""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from functools import partial

from tenure.base.errors import InFailedTransaction, RetryError, SnapshotTooOld, TooFewParameters
from tenure.base.retries import Retries
from tenure.cluster.notifications import Arrival
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import Encoding
from tenure.sql.execution import planning
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.old_reads import with_name
from tenure.sql.execution.plan_cache import CachedPlan, PlanCache
from tenure.sql.execution.planner import StatementTable
from tenure.sql.execution.portal_runs import PortalRuns
from tenure.sql.execution.portals import Portal, Portals, Prepared
from tenure.sql.execution.preparing import ATTEMPTS, PAUSES, Preparing
from tenure.sql.execution.session_transactions import EMPTY, SessionTransactions
from tenure.sql.execution.statement import ByName, Control, MapChange, ReadOnlyStatement, Result
from tenure.sql.session.answers import Answer, BlockStatus, Notice, NotShort, Pending
from tenure.sql.session.block import Block
from tenure.sql.session.session_memory import SessionMemory
from tenure.sql.session.session_state import SessionState
from tenure.sql.statements.statement_table import session_statements
from tenure.sql.text.redaction import without_secrets


class Session:
    def __init__(self, state: SessionState, plans: PlanCache, statements: StatementTable) -> None:
        self.state = state
        self.env = state.env
        self.portals = state.named_statements = Portals(state.memory.account)
        self.preparing = Preparing(state, self.portals, plans)
        self._activity = state.activity
        self._runs = PortalRuns(state, self.portals, self.preparing)
        self._transactions = SessionTransactions(state, self.portals)
        self.preparing.statements = session_statements(
            statements, state.services.codecs, self.portals, self.preparing, self._runs, self._transactions
        )
        time = self._interrupts = state.interrupts
        self.timeouts, self.received, self.cancel = time.timeouts, time.received, time.cancel
        self.check_time, self.start_reading = time.check_time, time.start

    # ── state for the door ─────────────────────────────────────────────────────────────────────

    @property
    def status(self) -> BlockStatus:
        return self.state.status

    @property
    def is_superuser(self) -> bool:
        return self.state.is_superuser

    @property
    def memory(self) -> SessionMemory:
        return self.state.memory

    @property
    def notices(self) -> list[Notice]:
        return self.state.notices

    @property
    def changed(self) -> dict[str, str]:
        return self.state.variables.reported

    @property
    def zone(self) -> tzinfo:
        return self.state.variables.zone

    @property
    def encoding(self) -> Encoding:
        return self.state.variables.encoding

    @property
    def has_arrivals(self) -> bool:
        return self.state.channels.has_arrivals

    def take_arrivals(self) -> list[Arrival]:
        return self.state.channels.take()

    def check_arrivals(self) -> None:
        self.state.channels.check()

    def on_arrival(self, call: Callable[[], None]) -> None:
        self.state.channels.on_arrival = call

    @property
    def doing(self) -> str:
        return without_secrets(self._activity.text)

    @property
    def holds_locks(self) -> bool:
        return self.state.locks.is_holding()

    def parameters(self) -> dict[str, str]:
        return self.state.variables.all_reported()

    # ── preparing ──────────────────────────────────────────────────────────────────────────────

    def split(self, text: str) -> list[str]:
        with self.state.memory.planning(text, self._interrupts):
            pieces = planning.split(text, self.preparing.statements)
        self._activity.is_query_string = len(pieces) > 1
        return pieces

    def prepare(
        self, name: str, text: str, types: Sequence[Type | None], *, inline: bool = False
    ) -> Prepared:
        activity = self._activity
        activity.is_inline, activity.text = inline, text
        self._interrupts.start()
        try:
            with self.state.memory.planning(text, self._interrupts):
                prepared = self.preparing.make(text, tuple(types))
        except RetryError as error:
            if inline:
                raise NotShort from error
            raise
        except SnapshotTooOld as error:
            raise with_name(self.state.services, error) from error
        finally:
            activity.is_inline = False
        self.portals.add_prepared(name, prepared)
        return prepared

    def prepared(self, name: str) -> Prepared:
        return self.preparing.named(name)

    def bind(self, portal: str, statement: str, values: Sequence[Datum], *, inline: bool = False) -> Portal:
        prepared = self.portals.prepared_named(statement)
        if len(values) != len(prepared.parameters):
            raise TooFewParameters(
                f"bind message supplies {len(values)} parameters, but prepared statement "
                f'"{statement}" requires {len(prepared.parameters)}'
            )
        block = self._activity.block
        if block is not None and block.is_failed:
            self.preparing.check_not_failed(prepared.text)
        columns = prepared.columns
        if prepared.is_by_name and isinstance(prepared.statement, ByName):
            columns = prepared.statement.columns_now()
        bound = Portal(prepared, prepared.values(values), columns, prepared.is_short and inline)
        self.portals.add(portal, bound)
        return bound

    def portal(self, name: str) -> Portal:
        return self.portals.named(name)

    def close_prepared(self, name: str) -> None:
        self.portals.remove_prepared(name)

    def close_portal(self, name: str) -> None:
        self.portals.remove(name)

    # ── running ────────────────────────────────────────────────────────────────────────────────

    def execute(self, portal: str, limit: int = 0, *, ends: bool, inline: bool = False) -> "Answer | Pending":
        bound, activity, state = self.portals.named(portal), self._activity, self.state
        prepared = bound.prepared
        plan = prepared.plan
        activity.text = prepared.text
        if plan is None:
            return EMPTY
        state.locks.fence()
        has_begun = bound.rows is not None or bound.is_done
        if has_begun or activity.block is not None or bound.is_failed:
            self._runs.check_may_run(portal, bound)
        elif prepared.lookup is not None and ends and inline and self._is_current(plan):
            plan.needs.require(state, None)
            rows = prepared.lookup.rows(state.services, plan.lease, plan.used_ids, bound.values)
            if rows is not None:
                bound.is_done, bound.tag, bound.counts = True, "SELECT", True
                return Answer(rows, "SELECT", True, True)
        bound.stays = limit > 0
        has_executed, activity.has_executed = activity.has_executed, True
        activity.is_of_several = activity.is_query_string or has_executed
        if bound.is_at_rest:
            self._start(prepared.text)
        told = len(state.notices)
        activity.is_inline, self.portals.active = inline, bound
        try:
            run = self._more if has_begun else self._execute
            if inline:
                answer = run(bound, limit, ends, True)
            else:
                answer = self._charged(bound, partial(run, bound, limit, ends, False))
        except NotShort:
            del state.notices[told:]  # the next try adds them again
            bound.is_at_rest, activity.has_executed = True, has_executed
            raise
        except SnapshotTooOld as error:
            bound.is_failed = True
            raise with_name(state.services, error) from error
        except BaseException:
            bound.is_failed = True
            raise
        finally:
            activity.is_inline = activity.is_active = False
            self.portals.active = None
        bound.is_at_rest = isinstance(answer, Answer) and 0 < limit <= len(answer.rows)
        return answer

    def _is_current(self, plan: CachedPlan) -> bool:
        """Whether names mean what they meant when it was planned, as far as the session itself decides."""
        return plan.path == self.state.path and plan.temporary is self.state.temporary.current

    def _start(self, text: str) -> None:
        activity = self._activity
        activity.statement = without_secrets(text)
        activity.is_active = True
        activity.since_micros = self.state.env.wall_micros()
        self._interrupts.start()

    def _charged(self, portal: Portal, run: "partial[Answer | Pending]") -> "Answer | Pending":
        memory = self.state.memory
        if portal.account is None:
            portal.account = memory.open_statement()
        return memory.charged(portal.account, run)

    def _execute(self, portal: Portal, limit: int, ends: bool, inline: bool) -> "Answer | Pending":
        statement, activity, transactions = portal.prepared.statement, self._activity, self._transactions
        if isinstance(statement, Control):
            if activity.block is None and statement.is_undone and (activity.is_of_several or not ends):
                activity.block = transactions.open(is_of_several=True)
            block = activity.block or transactions.open()
            execution = Execution(self.state, block, portal.values, inline=inline)
            return self._runs.control(execution, statement, portal, limit)
        if activity.block is None and ends:
            return self._implicit(portal, limit, inline)
        if activity.block is None:
            activity.block = transactions.open(is_of_several=True)
        block = activity.block
        if block.is_failed:
            raise InFailedTransaction
        is_last = ends and not block.is_explicit
        if inline and is_last and not block.can_submit:
            raise NotShort  # raised now, since a statement that was run is not run again
        answer = self._runs.answer(portal, self._run_in(block, portal, inline), limit)
        if is_last:
            return transactions.end_statement(block, answer, inline)
        return answer

    def _run_in(self, block: Block, portal: Portal, inline: bool) -> Result:
        """Runs in a block that goes on: a statement that turns out not to be short leaves no effects."""
        if not inline or isinstance(portal.prepared.statement, ReadOnlyStatement):
            return self._runs.run(portal, block, inline)
        place = block.mark()
        try:
            result = self._runs.run(portal, block, inline)
        except NotShort:
            block.undo(place)
            raise
        block.forget(place)
        return result

    def _implicit(self, portal: Portal, limit: int, inline: bool) -> "Answer | Pending":
        """A statement that is a transaction of its own: run, committed, and run again if need be."""
        statement, state = portal.prepared.statement, self.state
        if isinstance(statement, MapChange) and statement.changes_map:
            with state.services.map_turns.take(state.database, self._interrupts.check_time):
                return self._implicit_now(portal, limit, inline)
        return self._implicit_now(portal, limit, inline)

    def _implicit_now(self, portal: Portal, limit: int, inline: bool) -> "Answer | Pending":
        transactions, notices = self._transactions, self.state.notices
        retries: Retries | None = None
        told, proves_late = len(notices), not limit
        while True:
            block = self._activity.block = transactions.open()
            block.proves_late, proves_late = proves_late, False  # a second try looks first
            try:
                answer = self._runs.answer(portal, self._runs.run(portal, block, inline), limit)
                return transactions.end_statement(block, answer, inline, again=portal)
            except RetryError as error:
                transactions.abandon(portal)
                del notices[told:]
                if inline:
                    raise NotShort from error
                if retries is None:
                    retries = Retries(ATTEMPTS, PAUSES, self.env, sleep=self._interrupts.pause)
                retries.failed(error)
            except NotShort:
                transactions.abandon(portal)
                raise
            except BaseException:
                transactions.abandon()
                raise
            retries.pause()

    def _more(self, portal: Portal, limit: int, ends: bool, inline: bool) -> "Answer | Pending":
        if portal.is_done or portal.rows is None:
            return Answer((), portal.tag, counts=portal.counts)
        block = self._activity.block
        if block is None or block.is_explicit or not ends:
            return self._runs.batch(portal, limit)
        if inline and block.has_writes and not block.can_submit:
            raise NotShort  # raised now, since rows that were taken out are not given again
        return self._transactions.end_statement(block, self._runs.batch(portal, limit), inline)

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def sync(self, *, inline: bool = False) -> "Pending | None":
        return self._transactions.sync(inline=inline)

    def failed(self, error: BaseException | None = None) -> None:
        self._transactions.failed(error)

    def close(self) -> None:
        self.cancel()
        self._transactions.abandon()
        closing = self.state.on_close[:]
        self.state.on_close.clear()
        for each in closing:
            each()
        self.portals.end()
        self.state.memory.close()
