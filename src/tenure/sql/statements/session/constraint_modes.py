"""SET CONSTRAINTS: when a transaction checks its deferrable foreign keys.

Walk: `statements.statement_table` -> `plan_set_constraints`; it tells the block's
`table.deferred_references`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import UndefinedObject, UndefinedSchema, WrongObjectType
from tenure.catalog.descriptors.definitions import Deferral, Table, is_dropped
from tenure.sql.execution.deferred_checks import check_deferred
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.text.parse import Tree, items
from tenure.table.deferred_references import KeyId, ModeChange

TAG = "SET CONSTRAINTS"


@dataclass(frozen=True, slots=True)
class SetConstraints(Control):
    names: tuple[tuple[str, str], ...]
    """Schema, if it is said, and name; none: ALL."""
    is_deferred: bool
    is_short: ClassVar[bool] = False
    is_undone: ClassVar[bool] = True

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_usable_block()
        block = session.block
        if block is None or not session.is_in_block:
            session.notice(f"{TAG} can only be used in transaction blocks", "WARNING", "25P01")
            return Answer((), TAG)
        keys = frozenset(key for name in self.names for key in _found(session, block, *name))
        change = ModeChange(keys if self.names else None, self.is_deferred, tuple(block.savepoints))
        if not self.is_deferred:
            check_deferred(session, block, change)
        block.deferred.change(change)
        return Answer((), TAG)


def _found(session: SessionState, block: Block, schema: str, name: str) -> Iterator[KeyId]:
    """The foreign keys of a name, in the first schema of the search path that has a constraint of it."""
    tables = [each for each in _tables(block) if not is_dropped(each)]
    for id in _schemas(session, block, schema):
        inside = [each for each in tables if each.schema == id]
        keys = [(each.id, key) for each in inside for key in each.foreign_keys if key.name == name]
        unique = [index for each in inside for index in each.indexes if index.name == name]
        others = any(check.name == name for each in inside for check in each.checks)
        if any(key.deferral is Deferral.NEVER for _, key in keys) or others:
            raise WrongObjectType(f'constraint "{name}" is not deferrable')
        if unique and not any(index.is_deferrable for index in unique):
            raise WrongObjectType(f'constraint "{name}" is not deferrable')
        if keys or unique:
            yield from ((table, key.id) for table, key in keys)
            return
    raise UndefinedObject(f'constraint "{name}" does not exist')


def _tables(block: Block) -> Iterator[Table]:
    known = {each.id: each for each in block.descriptors()} | dict(block.draft.descriptors)
    return (each for each in known.values() if isinstance(each, Table))


def _schemas(session: SessionState, block: Block, schema: str) -> list[int]:
    path = session.path
    names = [schema] if schema else path.names()
    entries = [block.catalog.schema_entry(path.database, each) for each in names]
    if schema and entries[0] is None:
        raise UndefinedSchema(f'schema "{schema}" does not exist')
    return [each.id for each in entries if each is not None]


def plan_set_constraints(planner: Planner, tree: Tree) -> SetConstraints:
    names = tuple((each.schemaname, each.relname) for each in items(tree.constraints))
    return SetConstraints(names, tree.deferred)
