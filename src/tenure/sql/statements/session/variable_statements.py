"""SET, RESET and SHOW of a session's variables.

    SET [SESSION | LOCAL] name = value    SET TIME ZONE ...    RESET name | ALL    SHOW name | ALL

Walk: `statements.statement_table` -> `plan_set`, `plan_show` -> `sql.session.variables`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import InFailedTransaction, NotSupported
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.session_state import SessionState
from tenure.sql.session.transaction_modes import set_modes
from tenure.sql.session.variables import DEFINITIONS, MODES, definition
from tenure.sql.statements.session.transactions import (
    SetTransaction,
    options_of,
    plan_import,
    plan_set_transaction,
)
from tenure.sql.text import parse
from tenure.sql.text.parse import Tree

TEXT = type_of(TypeRef("text"))


@dataclass(frozen=True, slots=True)
class Set(Control):
    name: str
    value: str | None
    """None: the default."""
    is_local: bool = False
    tag: str = "SET"
    is_undone: ClassVar[bool] = True

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        _check(session.block)
        tag = self.tag
        if definition(self.name).name in MODES:
            set_modes(session, {definition(self.name).name: self._mode(session)})
        elif self.is_local:
            if not session.is_in_block:
                session.notice("SET LOCAL can only be used in transaction blocks", "WARNING", "25P01")
                return Answer((), tag)
            session.variables.set_local(self.name, self.value)
        else:
            session.variables.set(self.name, self.value)
        return Answer((), tag)

    def _mode(self, session: SessionState) -> str:
        if self.value is None:
            raise NotSupported(f'parameter "{self.name}" cannot be reset')
        return self.value


@dataclass(frozen=True, slots=True)
class ResetAll(Control):
    is_undone: ClassVar[bool] = True

    def control(self, execution: Execution) -> Answer:
        _check(execution.session.block)
        execution.session.variables.reset_all()
        return Answer((), "RESET")


@dataclass(frozen=True, slots=True)
class SetDefaults(Control):
    """SET SESSION CHARACTERISTICS AS TRANSACTION ..."""

    modes: tuple[tuple[str, str], ...]
    is_undone: ClassVar[bool] = True

    def control(self, execution: Execution) -> Answer:
        _check(execution.session.block)
        for name, value in self.modes:
            execution.session.variables.set(MODES[name], value)
        return Answer((), "SET")


@dataclass(frozen=True, slots=True)
class Show(Control):
    name: str
    columns: tuple[ResultColumn, ...]  # type: ignore[misc]

    def control(self, execution: Execution) -> Answer:
        _check(execution.session.block)
        return Answer(((execution.session.variables.show(self.name)[1],),), "SHOW")


@dataclass(frozen=True, slots=True)
class ShowAll(Control):
    columns: ClassVar[tuple[ResultColumn, ...]] = (
        ResultColumn("name", TEXT),
        ResultColumn("setting", TEXT),
        ResultColumn("description", TEXT),
    )

    def control(self, execution: Execution) -> Answer:
        variables = execution.session.variables
        rows = [
            (each.name, variables[each.name], each.description)
            for each in sorted(DEFINITIONS, key=lambda each: each.name.lower())
        ]
        return Answer(rows, "SHOW")


def _check(block: object) -> None:
    if getattr(block, "is_failed", False):
        raise InFailedTransaction


def plan_set(planner: Planner, tree: Tree) -> Control:
    match parse.option(tree, "kind"):
        case "VAR_SET_VALUE":
            return Set(tree.name, ", ".join(_values(tree)), tree.is_local)
        case "VAR_SET_DEFAULT":
            return Set(tree.name, None, tree.is_local)
        case "VAR_RESET":
            return Set(tree.name, None, tree.is_local, tag="RESET")
        case "VAR_RESET_ALL":
            return ResetAll()
        case "VAR_SET_MULTI":
            return _multi(planner, tree)
        case _:
            raise NotSupported("SET ... FROM CURRENT is not supported")


def _multi(planner: Planner, tree: Tree) -> Control:
    if tree.name == "TRANSACTION":
        return plan_set_transaction(planner, tree)
    if tree.name == "SESSION CHARACTERISTICS":
        return SetDefaults(options_of(tree.args).modes)
    if tree.name == "TRANSACTION SNAPSHOT":
        return plan_import(constant(parse.unwrap(tree.args[0])))
    raise NotSupported(f"SET {tree.name} is not supported")


def _values(tree: Tree) -> Iterator[str]:
    is_list = tree.name.lower() == "search_path"
    for each in parse.items(tree.args):
        is_interval = parse.kind(each) == "TypeCast"
        if is_interval:
            each = parse.unwrap(each.arg)
        text = f"INTERVAL '{constant(each)}'" if is_interval else constant(each)
        yield '"' + text.replace('"', '""') + '"' if is_list and not _is_plain(text) else text


def _is_plain(name: str) -> bool:
    return name.replace("_", "a").isalnum() and name == name.lower() and not name[:1].isdigit()


def constant(node: Tree) -> str:
    """A constant as text: SET takes words, numbers and strings alike."""
    match node.WhichOneof("val"):
        case "ival":
            return str(node.ival.ival)
        case "fval":
            return str(node.fval.fval)
        case "boolval":
            return "true" if node.boolval.boolval else "false"
        case _:
            return str(node.sval.sval)


def plan_show(planner: Planner, tree: Tree) -> Control:
    if tree.name == "all":
        return ShowAll()
    name = definition(tree.name).name if "." not in tree.name else tree.name
    return Show(tree.name, (ResultColumn(name, TEXT),))


__all__ = ["SetTransaction", "constant", "plan_set", "plan_show"]
