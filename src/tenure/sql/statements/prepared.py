"""PREPARE, EXECUTE and DEALLOCATE; DISCARD.

A prepared statement of SQL and one of the wire are the same thing; only who names it differs.

    PREPARE find (int) AS SELECT ... WHERE id = $1        EXECUTE find(7)

Walk: `sql.planning` -> `plan_*`; EXECUTE runs the statement that the name stands for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenure.expr.compiled import Evaluate
from tenure.expr.datatype import Type
from tenure.sql import parse
from tenure.sql.answers import Answer, Column
from tenure.sql.errors import ActiveTransaction, InFailedTransaction
from tenure.sql.execution import Execution
from tenure.sql.parse import Tree
from tenure.sql.portals import Prepared
from tenure.sql.statement import Control, Result

if TYPE_CHECKING:
    from tenure.sql.planning import Planner


@dataclass(frozen=True, slots=True)
class Prepare(Control):
    name: str
    text: str
    types: tuple[Type | None, ...]

    def control(self, execution: "Execution") -> Answer:
        session = execution.session
        if session.block is not None and session.block.is_failed:
            raise InFailedTransaction
        prepared = session.preparing.make(self.text, self.types)
        prepared.from_sql = True
        session.portals.add_prepared(self.name, prepared)
        return Answer((), "PREPARE")


@dataclass(frozen=True, slots=True)
class Execute:
    name: str
    prepared: Prepared
    arguments: tuple[Evaluate, ...]
    columns: tuple[Column, ...] | None
    parameters: tuple[Type, ...]

    @property
    def is_short(self) -> bool:
        return self.prepared.is_short

    def run(self, execution: Execution) -> Result:
        prepared = execution.session.prepared(self.name)
        given = [each((), execution.context) for each in self.arguments]
        statement = execution.session.preparing.statement_for(prepared, execution.block)
        values = prepared.values(given)
        session, block = execution.session, execution.block
        return statement.run(
            Execution(session, block, values, inline=execution.inline, stays=execution.stays)
        )


@dataclass(frozen=True, slots=True)
class Deallocate(Control):
    name: str
    """"" is ALL."""

    def control(self, execution: "Execution") -> Answer:
        session = execution.session
        if session.block is not None and session.block.is_failed:
            raise InFailedTransaction
        if self.name:
            session.prepared(self.name)
            session.close_prepared(self.name)
            return Answer((), "DEALLOCATE")
        session.portals.prepared.clear()
        return Answer((), "DEALLOCATE ALL")


@dataclass(frozen=True, slots=True)
class Discard(Control):
    """DISCARD ALL: the session as it was when it was opened."""

    what: str

    def control(self, execution: "Execution") -> Answer:
        session = execution.session
        if self.what == "ALL":
            if session.block is not None and session.block.is_explicit:
                raise ActiveTransaction("DISCARD ALL cannot run inside a transaction block")
            session.portals.prepared.clear()
            session.portals.portals.clear()
            session.variables.reset_all()
            for each in session.on_discard:
                each()
        elif self.what == "SEQUENCES":
            session.surroundings.discard_sequences()
        return Answer((), f"DISCARD {self.what}")


def plan_prepare(planner: "Planner", tree: Tree) -> Prepare:
    types = tuple(planner.type_of(parse.unwrap(each)) for each in tree.argtypes)
    return Prepare(tree.name, planner.text_after_as(tree), types)


def plan_execute(planner: "Planner", tree: Tree) -> Execute:
    prepared = planner.session.prepared(tree.name)
    arguments = planner.arguments(tree.params, prepared.parameters, f'prepared statement "{tree.name}"')
    return Execute(tree.name, prepared, arguments, prepared.columns, planner.parameters.types())


def plan_deallocate(planner: "Planner", tree: Tree) -> Deallocate:
    return Deallocate("" if tree.isall else tree.name)


def plan_discard(planner: "Planner", tree: Tree) -> Discard:
    return Discard(parse.option(tree, "target").removeprefix("DISCARD_"))
