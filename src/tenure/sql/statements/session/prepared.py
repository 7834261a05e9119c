"""PREPARE, EXECUTE and DEALLOCATE; DISCARD.

A prepared statement of SQL and one of the wire are the same thing; only who names it differs.

    PREPARE find (int) AS SELECT ... WHERE id = $1        EXECUTE find(7)

Walk: `statements.statement_table` -> `plan_*`; EXECUTE runs the statement that the name stands for.
"""

from dataclasses import dataclass
from functools import partial

from tenure.base.errors import ActiveTransaction, NotSupported
from tenure.expr.tree.cheap_expressions import cost
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.compiled import compile
from tenure.expr.types.datatype import Type
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.portals import Portals, Prepared
from tenure.sql.execution.preparing import Preparing
from tenure.sql.execution.statement import ByName, Control, Result
from tenure.sql.session.answers import Answer, NotShort, ResultColumn
from tenure.sql.session.inline import INPUT_BYTES_MAX, STEPS_MAX
from tenure.sql.statements.session.transactions import TransactionStatement
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree


@dataclass(frozen=True, slots=True)
class Prepare(Control):
    portals: Portals
    preparing: Preparing
    name: str
    text: str
    types: tuple[Type | None, ...]

    def control(self, execution: "Execution") -> Answer:
        session = execution.session
        session.require_usable_block()
        if execution.inline and len(self.text) > INPUT_BYTES_MAX:
            raise NotShort  # it is planned here
        with session.memory.planning(self.text, session.interrupts):
            prepared = self.preparing.make(self.text, self.types)
        prepared.from_sql = True
        self.portals.add_prepared(self.name, prepared)
        return Answer((), "PREPARE")


@dataclass(frozen=True, slots=True)
class Execute(ByName):
    portals: Portals
    preparing: Preparing
    name: str
    text: str
    prepared: Prepared | None
    """The statement of that name; None if there was none."""
    arguments: tuple[Evaluate, ...]
    columns: tuple[ResultColumn, ...] | None
    parameters: tuple[Type, ...]
    has_cheap_arguments: bool = False

    @property
    def is_short(self) -> bool:
        prepared = self.prepared
        is_short = prepared is not None and prepared.is_short and self.has_cheap_arguments
        return is_short and prepared is not None and not isinstance(prepared.statement, Control)

    def columns_now(self) -> tuple[ResultColumn, ...] | None:
        now = self.portals.prepared.get(self.name)
        return None if now is None else now.columns

    def run(self, execution: Execution) -> Result:
        session, block = execution.session, execution.block
        prepared = self.preparing.named(self.name)
        if prepared is not self.prepared:
            if execution.inline:
                raise NotShort
            return self.preparing.plan_again(self.text, self.parameters, block).run(execution)
        if prepared.plan is None:
            return Result("EXECUTE")  # of an empty statement
        arguments = [each((), execution.context) for each in self.arguments]
        statement = self.preparing.statement_for(prepared, block)
        if execution.inline and not statement.is_short:
            raise NotShort
        values = prepared.values(arguments)
        if isinstance(statement, TransactionStatement):
            raise NotSupported(f"EXECUTE of {statement.verb} is not supported")
        if isinstance(statement, Control):
            answer = statement.control(Execution(session, block, values))
            assert isinstance(answer, Answer), "what commits was refused"
            return Result(answer.tag, iter(answer.rows) if statement.columns is not None else None)
        inline, stays = execution.inline, execution.stays
        account = None if inline else execution.account
        return statement.run(Execution(session, block, values, inline=inline, stays=stays, account=account))


@dataclass(frozen=True, slots=True)
class Deallocate(Control):
    portals: Portals
    name: str
    """"" is ALL."""

    def control(self, execution: "Execution") -> Answer:
        session = execution.session
        session.require_usable_block()
        if self.name:
            self.portals.prepared_named(self.name)
            self.portals.remove_prepared(self.name)
            return Answer((), "DEALLOCATE")
        self.portals.forget_prepared()
        return Answer((), "DEALLOCATE ALL")


@dataclass(frozen=True, slots=True)
class Discard(Control):
    """DISCARD ALL: the session as it was when it was opened."""

    portals: Portals
    what: str

    def control(self, execution: "Execution") -> Answer:
        session = execution.session
        if self.what == "ALL":
            if session.is_in_block:
                raise ActiveTransaction("DISCARD ALL cannot run inside a transaction block")
            self.portals.forget_prepared()
            self.portals.close_all()
            session.variables.reset_all()
            for each in session.on_discard:
                each()
            session.begin_anew()
        elif self.what == "TEMP":
            session.temporary.discard(None if session.block is None else session.block.use)
        elif self.what == "SEQUENCES":
            session.generated.discard_sequences()
        return Answer((), f"DISCARD {self.what}")


def plan_prepare(portals: Portals, preparing: Preparing, planner: Planner, tree: Tree) -> Prepare:
    types = tuple(planner.type_of(parse.unwrap(each)) for each in tree.argtypes)
    return Prepare(portals, preparing, tree.name, planner.text_after_as(tree), types)


def plan_execute(portals: Portals, preparing: Preparing, planner: Planner, tree: Tree) -> Execute:
    prepared = preparing.named(tree.name) if tree.name in portals.prepared else None
    execute = partial(Execute, portals, preparing, tree.name, planner.text)
    if prepared is None:
        return execute(None, (), None, ())  # it may exist when this runs
    nodes = planner.arguments(tree.params, prepared.parameters, f'prepared statement "{tree.name}"')
    arguments = tuple(compile(each, {}, planner.names.enum) for each in nodes)
    types = planner.parameters.types()
    is_cheap = cost(nodes) <= STEPS_MAX
    return execute(prepared, arguments, prepared.columns, types, is_cheap)


def plan_deallocate(portals: Portals, planner: Planner, tree: Tree) -> Deallocate:
    return Deallocate(portals, "" if tree.isall else tree.name)


def plan_discard(portals: Portals, planner: Planner, tree: Tree) -> Discard:
    return Discard(portals, parse.option(tree, "target").removeprefix("DISCARD_"))
