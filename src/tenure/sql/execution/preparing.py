"""From text to prepared statements, and from those to plans that are valid for a transaction.

A statement is planned in the block there is, or in one that is over at once; its plan is kept for all
sessions. When it runs, in a later transaction, the plan is checked again: if the catalog has moved on the
statement is planned anew, and must still give the same columns.

Walk: `sql.clients.session` -> `make` -> `sql.text.lifted_constants`, `sql.execution.plan_cache`,
`sql.execution.planning`; `statement_for` before each run.
"""

from collections.abc import Callable
from dataclasses import replace

from tenure.base.errors import InFailedTransaction, PlanChanged, RetryError, UserError
from tenure.base.retries import Pauses, Retries
from tenure.catalog.descriptors.definitions import EnumType
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.sql.execution import planning
from tenure.sql.execution.plan_cache import CachedPlan, PlanCache, PlanKey
from tenure.sql.execution.planner import NO_STATEMENTS
from tenure.sql.execution.portals import Portals, Prepared
from tenure.sql.execution.statement import ByName, ReadOnlyStatement, Statement
from tenure.sql.session.answers import ResultColumn
from tenure.sql.session.block import Block
from tenure.sql.session.inline import INPUT_BYTES_MAX
from tenure.sql.session.session_state import SessionState
from tenure.sql.text.lifted_constants import lift

ATTEMPTS = 30
"""How often something is planned, or an implicit transaction tried, in all."""
PAUSES = Pauses(0.001, 0.25)
"""Between the attempts of an implicit transaction."""


class Preparing:
    def __init__(self, session: SessionState, portals: Portals, plans: PlanCache) -> None:
        self._session = session
        self._activity = session.activity
        self._portals = portals
        self._plans = plans
        self.statements = NO_STATEMENTS
        """Set once the session's statements are there: some of them prepare others."""

    def make(self, text: str, types: tuple[Type | None, ...] = ()) -> Prepared:
        block = self._activity.block
        if block is not None and block.is_failed and planning.is_statement(text, self.statements):
            self.check_not_failed(text)
        lifted = self._with_constants_lifted(text) if not types else None
        if lifted is not None:
            return lifted
        plan = self._with_catalog(lambda block: self._plan(text, types, block))
        return self._prepared(text, types, plan)

    def _with_constants_lifted(self, text: str) -> Prepared | None:
        """None if that is not possible, or fails: then the text itself is planned, and raises its own
        error. Errors that the text is not at fault for are raised at once."""
        lifted = lift(text)
        if lifted is None:
            return None
        try:
            plan = self._with_catalog(lambda block: self._plan(lifted.text, lifted.types, block))
            if plan is None or len(plan.statement.parameters) != len(lifted.texts):
                return None
            constants = lifted.values(plan.statement.parameters, self._session.zone)
        except UserError:
            return None
        prepared = self._prepared(lifted.text, lifted.types, plan)
        prepared.parameters, prepared.constants = (), constants
        prepared.is_short = prepared.is_short and len(text) <= INPUT_BYTES_MAX
        return prepared

    def _prepared(self, text: str, types: tuple[Type | None, ...], plan: CachedPlan | None) -> Prepared:
        if plan is None:
            return Prepared(text, types, None, (), None)
        statement = plan.statement
        is_short = statement.is_short and self._session.services.runs_inline
        lookup = statement.point_lookup if is_short and isinstance(statement, ReadOnlyStatement) else None
        prepared = Prepared(text, types, plan, statement.parameters, statement.columns, is_short, lookup)
        prepared.has_enums = any(each.ref.enum for each in statement.parameters)
        prepared.is_by_name = isinstance(statement, ByName)
        return prepared

    def named(self, name: str) -> Prepared:
        prepared = self._portals.prepared_named(name)
        return self._with_labels_now(name, prepared) if prepared.has_enums else prepared

    def _with_labels_now(self, name: str, prepared: Prepared) -> Prepared:
        """The same with its enums as they are, in the block too: labels come and change after it was
        prepared."""
        newest, block = self._session.services.leases.newest, self._activity.block
        found = {} if newest is None else {each: newest.descriptor(each) for each in _enums(prepared)}
        use = None if block is None else block.begun
        found |= {} if use is None else {id: each for id, each in use.draft.declared.items() if id in found}
        enums = {id: each for id, each in found.items() if isinstance(each, EnumType)}
        if enums.keys() != _enums(prepared):
            return prepared  # an enum is gone: running the statement raises the error
        types = tuple(type_of(each.ref, enums.__getitem__) for each in prepared.parameters)
        if types != prepared.parameters:
            prepared = self._portals.prepared[name] = replace(prepared, parameters=types)
        return prepared

    def _with_catalog(self, plan: Callable[[Block], CachedPlan | None]) -> CachedPlan | None:
        """Plans in the block there is, or in one of its own that is over at once."""
        session, current = self._session, self._activity.block
        if current is not None and not current.is_failed:
            current.follow_newest()
            return plan(current)
        retries = Retries(1 if session.is_inline else ATTEMPTS)
        while True:
            block = session.new_block()
            try:
                return plan(block)
            except RetryError as error:
                retries.failed(error)
            finally:
                block.close()

    def _plan(self, text: str, types: tuple[Type | None, ...], block: Block) -> CachedPlan | None:
        session = self._session
        key = PlanKey(text, session.path, types, (session.variables["TimeZone"],))
        plans = self._plans
        if block.past is None and not block.is_failed:
            # Only an existing view of the catalog is used: SET TRANSACTION must not start to read.
            cached = plans.find(key)
            if cached is not None and cached.is_good_for(block.use):
                return cached
            if cached is not None:
                plans.forget(key, cached)
        plan = planning.plan(session, block, text, types, self.statements)
        if plan is not None and plan.is_kept and block.past is None and not block.draft:
            plans.keep(key, plan)
        return plan

    def statement_for(self, prepared: Prepared, block: Block) -> Statement:
        """The plan of a prepared statement that is good for this transaction."""
        plan = prepared.plan
        assert plan is not None
        is_current = plan.path == self._session.path and block.past is None
        if not plan.is_kept or (is_current and plan.is_good_for(block.use)):
            plan.needs.require(self._session, block)
            return plan.statement
        fresh = self._plan(prepared.text, prepared.fixed_types, block)
        assert fresh is not None
        if _shape(fresh.statement.columns) != _shape(prepared.columns):
            raise PlanChanged("cached plan must not change result type")
        fresh.needs.require(self._session, block)
        prepared.plan = fresh
        if isinstance(fresh.statement, ReadOnlyStatement) and prepared.lookup is not None:
            prepared.lookup = fresh.statement.point_lookup
        return fresh.statement

    def plan_again(self, text: str, types: tuple[Type | None, ...], block: Block) -> Statement:
        """A statement that names another one, which was deallocated or was not prepared yet."""
        plan = planning.plan(self._session, block, text, types, self.statements)
        assert plan is not None
        plan.needs.require(self._session, block)
        return plan.statement

    def check_not_failed(self, text: str) -> None:
        """Raises InFailedTransaction (25P02) where the block has failed and the text does not end it."""
        block = self._session.block
        if block is not None and block.is_failed and not planning.ends_transaction(text):
            raise InFailedTransaction


def _enums(prepared: Prepared) -> set[int]:
    return {each.ref.enum for each in prepared.parameters if each.ref.enum}


def _shape(columns: tuple[ResultColumn, ...] | None) -> object:
    return None if columns is None else [(each.name, each.type.ref) for each in columns]
