"""LISTEN, UNLISTEN and NOTIFY.

Walk: `statements.statement_table` -> `plan_listen`, `plan_unlisten`, `plan_notify`; these change the channels
of their session.
"""

from dataclasses import dataclass
from typing import ClassVar

from tenure.expr.types.datatype import Type
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control, Result
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.text.parse import Tree


@dataclass(frozen=True, slots=True)
class Listen(Control):
    channel: str
    is_short: ClassVar[bool] = False
    """It reads the store's clock."""
    is_undone: ClassVar[bool] = True

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_usable_block()
        session.channels.listen(self.channel, session.block)
        return Answer((), "LISTEN")


@dataclass(frozen=True, slots=True)
class Unlisten(Control):
    channel: str | None
    """None: all of them."""
    is_undone: ClassVar[bool] = True

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_usable_block()
        session.channels.unlisten(self.channel, session.block)
        return Answer((), "UNLISTEN")


@dataclass(frozen=True, slots=True)
class Notify:
    channel: str
    payload: str
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    parameters: ClassVar[tuple[Type, ...]] = ()
    is_short: ClassVar[bool] = False

    def run(self, execution: Execution) -> Result:
        execution.session.channels.notify(execution.block, self.channel, self.payload)
        return Result("NOTIFY")


def plan_listen(planner: Planner, tree: Tree) -> Listen:
    return Listen(tree.conditionname)


def plan_unlisten(planner: Planner, tree: Tree) -> Unlisten:
    return Unlisten(tree.conditionname or None)


def plan_notify(planner: Planner, tree: Tree) -> Notify:
    return Notify(tree.conditionname, tree.payload)
