"""The SQL sessions of a node: opened by its door, listed for system tables.

Walk: `front.py` makes `SqlSessions`; the door calls `open` once a user has logged in.
"""

from tenure.base.errors import RetryError, UndefinedDatabase
from tenure.base.retries import Retries
from tenure.base.settings import DEFAULT_TRANSACTION_ISOLATION
from tenure.catalog.accounts.privileges import CONNECT
from tenure.catalog.descriptors.definitions import Database, NameKey, is_dropped
from tenure.sql.clients.session import Session
from tenure.sql.execution.plan_cache import PlanCache
from tenure.sql.execution.preparing import ATTEMPTS, PAUSES
from tenure.sql.session.answers import Endpoints
from tenure.sql.session.block import Block
from tenure.sql.session.services import Services
from tenure.sql.session.session_state import SessionState, SystemTables
from tenure.sql.statements.ddl.definition_services import DefinitionServices
from tenure.sql.statements.statement_table import node_statements

NOWHERE = Endpoints()
IGNORED = ("user", "database", "options", "replication")
"""The entries of the start-up packet that are not session variables."""

DEFAULT = "defaultdb"
MAINTENANCE = ("postgres", "template1")
"""Where tools connect that are about other databases, or about roles. Without a database of that name, it is
the default one."""


class SqlSessions:
    def __init__(
        self,
        services: Services,
        system_tables: SystemTables,
        plans: PlanCache,
        states: dict[int, SessionState],
    ) -> None:
        """`states` are those of the open sessions, by number: system tables read them."""
        self._services = services
        self._system_tables = system_tables
        self._plans = plans
        self._states = states
        self._statements = node_statements(services.bulk, _defining(services), services.settings)
        self._lock = services.env.lock()
        self._next = 1
        self._open: dict[int, Session] = {}

    def open(
        self,
        *,
        user: str,
        database: str,
        options: dict[str, str],
        endpoints: Endpoints = NOWHERE,
        pid: int = 0,
    ) -> Session:
        """Raises UndefinedDatabase (3D000), or the error of an invalid option."""
        found = self._database(database)
        with self._lock:
            number, self._next = self._next, self._next + 1
        isolation = self._services.settings.current()[DEFAULT_TRANSACTION_ISOLATION]
        given = {name: value for name, value in options.items() if name not in IGNORED}
        kept = {"default_transaction_isolation": isolation} | given
        state = SessionState(
            self._services,
            self._system_tables,
            number=number,
            pid=pid or number,
            user=user,
            database=found,
            options=kept,
            endpoints=endpoints,
        )
        state.access.log_in(user)
        state.access.of(user).require(found, CONNECT)
        state.is_superuser = state.access.of(user).is_superuser
        state.variables.fix("is_superuser", "on" if state.is_superuser else "off")
        state.on_close.append(lambda: self._closed(number))
        session = Session(state, self._plans, self._statements)
        with self._lock:
            self._open[number], self._states[number] = session, state
        return session

    def _closed(self, number: int) -> None:
        with self._lock:
            self._open.pop(number, None)
            self._states.pop(number, None)

    def all(self) -> list[Session]:
        with self._lock:
            return list(self._open.values())

    def _database(self, name: str) -> Database:
        retries = Retries(ATTEMPTS, PAUSES, self._services.env)
        while True:
            block = Block(self._services)
            try:
                found = self._find(block, name)
                if found is None and name in MAINTENANCE:
                    found = self._find(block, DEFAULT)
                if found is None:
                    raise UndefinedDatabase(f'database "{name}" does not exist')
                return found
            except RetryError as error:
                # For instance while the node gets a new lease: that does not mean that the database does not
                # exist.
                retries.failed(error)
            finally:
                block.close()
            retries.pause()

    def _find(self, block: Block, name: str) -> Database | None:
        id = block.catalog.id_at(NameKey(0, 0, name))
        if id is None:
            id = self._services.catalog.id_at(block.source, NameKey(0, 0, name))
            if id is not None:
                self._services.leases.renew()
                raise RetryError(f'database "{name}" is newer than this node\'s schema lease')
        found = None if id is None else block.descriptor(id)
        return found if isinstance(found, Database) and not is_dropped(found) else None


def _defining(services: Services) -> DefinitionServices:
    return DefinitionServices(
        services.env,
        services.store,
        services.catalog,
        services.leases,
        services.changer,
        services.users,
        services.sequences,
        services.snapshots,
        services.settings,
        services.bulk.jobs,
    )
