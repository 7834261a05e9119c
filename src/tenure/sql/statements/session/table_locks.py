"""LOCK TABLE, in the modes that reading and writing take: what a block uses, it goes on using as it is.

    ACCESS SHARE                      what SELECT takes
    ROW SHARE, ROW EXCLUSIVE          what SELECT ... FOR UPDATE and INSERT take

These keep out nothing but changes of the table's definition. A block that has used a table is kept from those
anyway: it pins the version of the descriptor, and the next but one is not published before the block ends. So
LOCK TABLE is a use of the tables, with its own privileges. The modes that keep other rows' readers or writers
out are refused, since nothing locks a table here.

Walk: `statements.statement_table` -> `plan`.
"""

from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import NoTransaction, NotSupported, WrongObjectType
from tenure.catalog.accounts.privileges import DELETE, INSERT, SELECT, TRUNCATE, UPDATE
from tenure.catalog.accounts.rights import denied
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, View
from tenure.expr.types.datatype import Type
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Result
from tenure.sql.session.answers import ResultColumn
from tenure.sql.statements.ddl.definition import path_of
from tenure.sql.text.parse import Tree, items

ACCESS_SHARE, ROW_SHARE, ROW_EXCLUSIVE = 1, 2, 3
"""PostgreSQL's numbers of the modes."""
_CHANGING = UPDATE | DELETE | TRUNCATE
_PRIVILEGES = {
    ACCESS_SHARE: _CHANGING | INSERT | SELECT,
    ROW_SHARE: _CHANGING | INSERT,
    ROW_EXCLUSIVE: _CHANGING | INSERT,
}
"""One of these is needed."""


@dataclass(frozen=True, slots=True)
class LockTable:
    tables: tuple[AnyDescriptor, ...]
    mode: int
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    parameters: ClassVar[tuple[Type, ...]] = ()
    is_short: ClassVar[bool] = True

    def run(self, execution: Execution) -> Result:
        session = execution.session
        if not session.is_in_block:
            raise NoTransaction("LOCK TABLE can only be used in transaction blocks")
        rights = session.rights(execution.block)
        for each in self.tables:
            if not rights.held(each) & _PRIVILEGES[self.mode]:
                raise denied(each)
        return Result("LOCK TABLE")


def plan(planner: Planner, tree: Tree) -> LockTable:
    if tree.mode not in _PRIVILEGES:
        raise NotSupported(
            "LOCK TABLE in a mode that keeps readers or writers out is not supported",
            hint="Lock rows by SELECT ... FOR UPDATE, or a name of your own by pg_advisory_xact_lock.",
        )
    return LockTable(tuple(_lockable(planner, each) for each in items(tree.relations)), tree.mode)


def _lockable(planner: Planner, tree: Tree) -> AnyDescriptor:
    """Raises WrongObjectType (42809) of a sequence or system table."""
    name = path_of(tree)
    found = planner.names.object(name)
    if found is None:
        planner.names.relation(name, tree.location + 1)
    if not isinstance(found, Table | View):
        raise WrongObjectType(f'cannot lock relation "{name[-1]}"')
    return found
