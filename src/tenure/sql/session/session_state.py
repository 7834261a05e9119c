"""The state of a session that statements use: its user, variables, locks, memory and time limits.

    SessionState ── Activity      the block and the statement under way
                 ├─ Variables     SET and SHOW
                 ├─ Interrupts    cancel, time-outs
                 ├─ SessionLocks  the owner of its locks
                 ├─ SessionMemory accounts
                 └─ SystemTables  names and rows of system tables

It drives nothing: `sql.clients.session` prepares, runs and commits, over this state.

Walk: `sql.clients.session` makes one; `sql.execution.execution` hands it to statements, `sql.names` reads it
while names are bound.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Protocol

from tenure.catalog.accounts.users import User
from tenure.catalog.descriptors.definitions import Database
from tenure.catalog.name_resolution import Path
from tenure.expr.types.datatype import Datum
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.sql.bind.relations import VirtualTable
from tenure.sql.session.activity import Activity
from tenure.sql.session.answers import BlockStatus, Endpoints, Notice
from tenure.sql.session.block import Block
from tenure.sql.session.generated_values import GeneratedValues
from tenure.sql.session.interrupts import Interrupts
from tenure.sql.session.services import Services
from tenure.sql.session.session_locks import SessionLocks
from tenure.sql.session.session_memory import SessionMemory
from tenure.sql.session.variables import NOTHING_SET, Variables, VariableState


class TableReader(Protocol):
    """The reader of a system table: a statement's run."""

    @property
    def session(self) -> "SessionState": ...

    @property
    def block(self) -> Block: ...


class SystemTables(Protocol):
    """The tables that are computed when they are read: `sql.tables.virtual` has them."""

    def table(self, name: Sequence[str], path: Path) -> VirtualTable | None:
        """One by its name; unqualified only where its schema is searched."""
        ...

    def has_schema(self, name: str) -> bool: ...

    def columns(self, key: str) -> list[str]: ...

    def rows(self, key: str, reader: TableReader) -> Iterable[tuple[Datum, ...]]: ...


class SessionState:
    def __init__(
        self,
        services: Services,
        system_tables: SystemTables,
        *,
        number: int,
        pid: int,
        user: str,
        database: Database,
        options: Mapping[str, str],
        endpoints: Endpoints,
    ) -> None:
        self.services = services
        self.env = services.env
        self.duck = services.duck
        self.system_tables = system_tables
        self.number = number
        self.pid = pid
        """The number by which its client cancels it."""
        self.user = user
        self.is_superuser = False
        self.database = database.id
        self.database_name = database.name
        self.endpoints = endpoints
        self.notices: list[Notice] = []
        self.variables = Variables(options)
        self.variables.fix("session_authorization", user)
        self.activity = Activity()
        self.on_close: list[Callable[[], None]] = []
        self.on_discard: list[Callable[[], None]] = []
        self.memory = SessionMemory(services.memory, user, number)
        self.interrupts = Interrupts(services.env, services.settings, self.variables, self.activity)
        self.locks = SessionLocks(services, on_close=self.on_close, on_discard=self.on_discard)
        self.generated = GeneratedValues(services, self.activity, self.locks.fence)
        self.on_discard.append(self.generated.discard_sequences)
        self.check = self.interrupts.check
        """Raises if the statement must not go on."""
        self._path = Path(0)

    @property
    def block(self) -> Block | None:
        return self.activity.block

    @property
    def is_inline(self) -> bool:
        return self.activity.is_inline

    @property
    def is_in_block(self) -> bool:
        """In one of BEGIN, or of several statements sent together."""
        activity = self.activity
        return activity.is_of_several or (activity.block is not None and activity.block.is_explicit)

    @property
    def status(self) -> BlockStatus:
        block = self.activity.block
        if block is None or not block.is_explicit:
            return BlockStatus.IDLE
        return BlockStatus.FAILED if block.is_failed else BlockStatus.IN_TRANSACTION

    @property
    def zone(self) -> tzinfo:
        return self.variables.zone

    @property
    def path(self) -> Path:
        """Where names are looked up."""
        schemas = self.variables.effects.search_path
        if schemas is not self._path.schemas:
            self._path = Path(self.database, schemas, self.user)
        return self._path

    def new_block(self, variables: VariableState = NOTHING_SET) -> Block:
        """A block beside the session's own, for what is planned or read apart; the caller closes it."""
        return Block(self.services, variables=variables)

    def role(self, source: Transaction | Snapshot | None = None) -> User | None:
        """The record of the session's user, as `source` has it; as of now without one."""
        services = self.services
        return services.users.get(services.store.snapshot() if source is None else source, self.user)

    def notice(
        self, message: str, severity: str = "NOTICE", sqlstate: str = "00000", *, detail: str = ""
    ) -> None:
        if self.variables.lets_pass(severity):
            self.notices.append(Notice(message, severity, sqlstate, detail))
