"""The state of a session that statements use: its user, variables, locks, memory and time limits.

    SessionState ── Activity      the block and the statement under way
                 ├─ Variables     SET and SHOW
                 ├─ Interrupts    cancel, time-outs
                 ├─ SessionLocks  the owner of its locks
                 ├─ TemporaryTables
                 ├─ SessionChannels  LISTEN and NOTIFY
                 ├─ SessionMemory accounts
                 └─ SystemTables  names and rows of system tables

It drives nothing: `sql.clients.session` prepares, runs and commits, over this state.

Walk: `sql.clients.session` makes one; `sql.execution.execution` hands it to statements, `sql.names` reads it
while names are bound.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import NamedTuple, Protocol

from tenure.base.errors import ActiveTransaction, InFailedTransaction
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.descriptors.definitions import Database
from tenure.catalog.name_resolution import USER, Path
from tenure.expr.types.datatype import Datum, Type
from tenure.sql.bind.relations import VirtualTable
from tenure.sql.session.activity import Activity
from tenure.sql.session.answers import BlockStatus, Endpoints, Notice
from tenure.sql.session.block import Block
from tenure.sql.session.channels import SessionChannels
from tenure.sql.session.generated_values import GeneratedValues
from tenure.sql.session.interrupts import Interrupts
from tenure.sql.session.services import Services
from tenure.sql.session.session_locks import SessionLocks
from tenure.sql.session.session_memory import SessionMemory
from tenure.sql.session.session_rights import SessionRights
from tenure.sql.session.temporary_tables import TemporaryTables
from tenure.sql.session.variables import NO_ROLE, NOTHING_SET, Effects, Variables, VariableState


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

    def is_restricted(self, key: str) -> bool:
        """Whether it is for superusers alone."""
        ...

    def columns(self, key: str) -> list[str]: ...

    def rows(
        self, key: str, reader: TableReader, sought: tuple[int, Sequence[Datum]] | None = None
    ) -> Iterable[tuple[Datum, ...]]:
        """All of them, or at least those with one of the values in a column."""
        ...

    def answers(self, reader: TableReader) -> Callable[[str, tuple[Datum, ...]], Datum]:
        """Answers functions about the catalog, such as pg_get_viewdef, by their names: for one statement."""
        ...

    def oid(self, key: str) -> int:
        """The oid of one by its key, for regclass."""
        ...

    def name_of(self, oid: int) -> str | None:
        """The name by which regclass shows one; None if none has this oid."""
        ...


class NamedStatement(NamedTuple):
    """A prepared statement."""

    name: str
    text: str
    parameters: tuple[Type, ...]
    columns: tuple[Type, ...] | None
    from_sql: bool
    """Made by PREPARE, not by the protocol."""


class OpenCursor(NamedTuple):
    """A cursor, or a portal of the protocol."""

    name: str
    text: str
    is_held: bool
    is_scrollable: bool


class NamedStatements(Protocol):
    """What a session has prepared and opened: `sql.execution.portals` has it."""

    def prepared_statements(self) -> Iterator[NamedStatement]: ...

    def cursors(self) -> Iterator[OpenCursor]: ...


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
        self._login = user
        self.is_superuser = False
        self.database = database.id
        self.database_name = database.name
        self.endpoints = endpoints
        self.notices: list[Notice] = []
        self.activity = Activity()
        self.access = SessionRights(self, services)
        self.variables = Variables(options, self.access.check_role)
        self.variables.fix("session_authorization", user)
        self.named_statements: NamedStatements | None = None
        """Set when the session is opened."""
        self.on_close: list[Callable[[], None]] = []
        self.on_discard: list[Callable[[], None]] = []
        self.memory = SessionMemory(services.memory, user, number)
        self.interrupts = Interrupts(services.env, services.settings, self.variables, self.activity)
        self.locks = SessionLocks(services, on_close=self.on_close, on_discard=self.on_discard)
        self.generated = GeneratedValues(services, self.activity, self.locks.fence)
        self.on_discard.append(self.generated.discard_sequences)
        self.check = self.interrupts.check
        """Raises if the statement must not go on."""
        self.channels = SessionChannels(services.notifications, services.env, database=database.id, pid=pid)
        self.on_close.append(self.channels.discard)
        self.on_discard.append(self.channels.discard)
        self._path: tuple[Path, Effects | None, object] = (Path(0), None, None)
        """With what it was derived from: variables and a lease."""
        self.temporary = TemporaryTables(services.temporary_rows, number, services.changer.fresh_id)
        self.on_close.append(self.temporary.close)
        self.on_discard.append(self.temporary.discard)

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

    def require_usable_block(self) -> None:
        """Raises InFailedTransaction (25P02) in a block that has failed."""
        block = self.activity.block
        if block is not None and block.is_failed:
            raise InFailedTransaction

    def require_no_block(self, statement: str) -> None:
        """The same; and ActiveTransaction (25001) in any other block, or among statements sent together."""
        self.require_usable_block()
        if self.activity.block is not None:
            raise ActiveTransaction(f"{statement} cannot run inside a transaction block")
        self.begin_anew()

    def begin_anew(self) -> None:
        """The statement under way commits by itself: one sent together with it is the first of others."""
        self.activity.has_executed = False

    @property
    def zone(self) -> tzinfo:
        return self.variables.zone

    @property
    def session_user(self) -> str:
        """The user that logged in."""
        return self.access.login_now(self._login)

    @property
    def user(self) -> str:
        """The current user: whose rights count, and who owns what is created."""
        role = self.variables.effects.role
        return self.session_user if role == NO_ROLE else self.access.name_now(role)

    @property
    def path(self) -> Path:
        """Where names are looked up: schemas that the user may not use are left out."""
        effects, newest = self.variables.effects, self.services.leases.newest
        path, of, lease = self._path
        temporary = self.temporary.schema_id
        if of is not effects or lease is not newest or path.temporary != temporary:
            path = self._usable(Path(self.database, effects.search_path, self.user, temporary))
            self._path = path, effects, newest
        return path

    def _usable(self, path: Path) -> Path:
        newest = self.services.leases.newest
        if newest is None:
            return path
        rights = self.access.current()
        if rights.is_superuser:
            return path
        kept = []
        for name in path.schemas:
            entry = newest.schema_entry(path.database, path.user if name == USER else name)
            if entry is None or rights.may_use_schema(entry.id):
                kept.append(name)
        return path if len(kept) == len(path.schemas) else path._replace(schemas=tuple(kept))

    def new_block(self, variables: VariableState = NOTHING_SET) -> Block:
        """A block beside the session's own, for what is planned or read apart; the caller closes it."""
        return Block(self.services, variables=variables, temporary=self.temporary, role=self.session_user)

    def rights(self, block: Block | None = None) -> Rights:
        """What the current user may do now; with a block, also by what its transaction has granted."""
        return self.access.current(block)

    def notice(
        self, message: str, severity: str = "NOTICE", sqlstate: str = "00000", *, detail: str = ""
    ) -> None:
        if self.variables.lets_pass(severity):
            self.notices.append(Notice(message, severity, sqlstate, detail))
