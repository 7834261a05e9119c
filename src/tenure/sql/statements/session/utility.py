"""Statements that have nothing to do here, and are accepted so that clients and scripts go on.

Walk: `statements.statement_table` -> `plan_*`.
"""

from dataclasses import dataclass

from tenure.base.errors import (
    ActiveTransaction,
    DuplicateColumn,
    NotSupported,
    UndefinedColumn,
)
from tenure.catalog.descriptors.definitions import Table
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer
from tenure.sql.statements.ddl.definition import path_of
from tenure.sql.text.parse import Tree, items, names


@dataclass(frozen=True, slots=True)
class Nothing(Control):
    """Answers with its tag, and a notice why nothing was done."""

    tag: str
    why: str = ""
    not_in_block: bool = False
    sqlstate: str = "00000"
    """Of the notice."""

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_usable_block()
        if self.not_in_block and session.is_in_block:
            raise ActiveTransaction(f"{self.tag} cannot run inside a transaction block")
        if self.why:
            session.notice(self.why, "NOTICE", self.sqlstate)
        return Answer((), self.tag)


def plan_vacuum(planner: Planner, tree: Tree) -> Nothing:
    analyzes = not tree.is_vacuumcmd or any(each.defname == "analyze" for each in items(tree.options))
    for each in items(tree.rels):
        if items(each.va_cols) and not analyzes:
            raise NotSupported("ANALYZE option must be specified when a column list is provided")
        _check_there(planner, each)
    if tree.is_vacuumcmd:
        return Nothing("VACUUM", "VACUUM is not needed: old revisions are collected by themselves", True)
    return Nothing("ANALYZE", "ANALYZE is not needed: plans do not depend on statistics")


def _check_there(planner: Planner, tree: Tree) -> None:
    """Raises if a relation that the statement names, or a column of it, does not exist, or is named twice."""
    relation = planner.names.relation(path_of(tree.relation), 0)
    if not isinstance(relation, Table):
        return
    columns = names(tree.va_cols)
    for position, name in enumerate(columns):
        if relation.column_named(name) is None:
            raise UndefinedColumn(f'column "{name}" of relation "{relation.name}" does not exist')
        if name in columns[:position]:
            raise DuplicateColumn(f'column "{name}" of relation "{relation.name}" appears more than once')


def plan_checkpoint(planner: Planner, tree: Tree) -> Nothing:
    return Nothing("CHECKPOINT")
