"""CREATE SNAPSHOT and DROP SNAPSHOT: users keep the present of an object readable.

    CREATE SNAPSHOT name FOR { TABLE t | SCHEMA [d.]s | DATABASE d } [EXPIRES 'interval']
    DROP SNAPSHOT [IF EXISTS] name

    SELECT ... FROM t AS OF SNAPSHOT name

A snapshot is taken of the committed rows as of the statement, so it is not part of a transaction block. The
owner of the object may take it; its own owner and superusers may drop it.

Walk: `statements.ddl.ddl_statements` -> `plan_create`, `plan_drop`; they call the named snapshots of
`ddl.definition_services`.
"""

from dataclasses import dataclass
from typing import ClassVar

from tenure.base.errors import (
    InsufficientPrivilege,
    InvalidParameter,
    SyntaxFault,
    UndefinedObject,
    UserError,
)
from tenure.base.timestamp import add_seconds
from tenure.catalog.descriptors.definitions import AnyDescriptor, TypeRef
from tenure.expr.types.interval import Interval
from tenure.expr.types.type_names import type_of
from tenure.kv.transaction import Transaction
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.session_state import SessionState
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.ddl.zones import ZoneTarget, find_target, read_target
from tenure.sql.text.tenure_statements import TokenReader

_INTERVAL = type_of(TypeRef("interval"))
KINDS = ("table", "schema", "database")


@dataclass(frozen=True, slots=True)
class CreateSnapshot(Control):
    node: DefinitionServices
    text: str
    name: str
    target: ZoneTarget
    expires_after: float | None
    """In seconds; None: never."""
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    is_short = False

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_no_block("CREATE SNAPSHOT")
        target = self._target(session)
        session.rights().require_owner(target)
        store = self.node.store
        at = store.snapshot().at
        expires_at = None if self.expires_after is None else add_seconds(at, self.expires_after)
        is_bounded = not session.rights().is_superuser
        store.transact(
            lambda txn: self.node.snapshots.create(
                *(txn, self.name, at, target.id, session.user, expires_at), is_bounded=is_bounded
            )
        )
        return Answer((), "CREATE SNAPSHOT")

    def _target(self, session: SessionState) -> AnyDescriptor:
        block = session.new_block()
        try:
            found = find_target(Definer(self.node, Execution(session, block, ()), self.text), self.target)
        finally:
            block.close()
        assert found.descriptor is not None, "it is no default of everything"
        return found.descriptor


@dataclass(frozen=True, slots=True)
class DropSnapshot(Control):
    node: DefinitionServices
    name: str
    if_exists: bool
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    is_short = False

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_no_block("DROP SNAPSHOT")
        try:
            self.node.store.transact(lambda txn: self._drop(txn, session))
        except UndefinedObject:
            if not self.if_exists:
                raise
            session.notice(f'snapshot "{self.name}" does not exist, skipping', "NOTICE", "00000")
        return Answer((), "DROP SNAPSHOT")

    def _drop(self, txn: Transaction, session: SessionState) -> None:
        snapshots = self.node.snapshots
        owner = snapshots.find(txn, self.name).owner
        if not session.rights().has_rights_of(owner):
            raise InsufficientPrivilege(f"must be owner of snapshot {self.name}")
        snapshots.drop(txn, self.name)


def plan_create(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Control:
    name = reader.name()
    reader.expect("for")
    if reader.peek() not in KINDS:
        raise reader.fault()
    target = read_target(reader)
    expires_after = _seconds(reader.string()) if reader.take("expires") else None
    reader.end()
    return CreateSnapshot(node, planner.text, name, target, expires_after)


def plan_drop(node: DefinitionServices, planner: Planner, reader: TokenReader) -> Control:
    if_exists = reader.take("if", "exists")
    name = reader.name()
    reader.end()
    return DropSnapshot(node, name, if_exists)


def _seconds(text: str) -> float:
    try:
        span = _INTERVAL.parse(text)
    except UserError as error:
        raise SyntaxFault(f'EXPIRES takes an interval, and "{text}" is none') from error
    assert isinstance(span, Interval)
    seconds = (span.months * 30 + span.days) * 86_400 + span.micros / 1_000_000
    if seconds <= 0:
        raise InvalidParameter("a snapshot expires after some time, not before it is taken")
    return seconds
