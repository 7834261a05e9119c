"""Session information for expressions: user, database, settings, locks, and which sessions are alive.

Walk: `sql.execution.expression_context` puts a `SessionFacts` and `FactAnswers` into the Context of each
statement.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal

from tenure.base.errors import InvalidParameter, RetryError
from tenure.base.timestamp import from_bytes, to_text
from tenure.catalog.descriptors.definitions import DescriptorState
from tenure.catalog.name_resolution import PG_TEMP
from tenure.cluster.locks.advisory_locks import AdvisoryKey, AdvisoryLevel
from tenure.cluster.locks.lock_table import LockMode
from tenure.cluster.locks.lock_waits import WaitPolicy
from tenure.cluster.sessions.session_records import SessionId
from tenure.expr.functions import privilege_functions
from tenure.expr.functions.callback_functions import LIVENESS
from tenure.expr.functions.session_functions import FACTS
from tenure.expr.types.datatype import Datum
from tenure.sql.execution import privilege_answers
from tenure.sql.session.answers import NotShort
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.session.waits import waiting

VERSION = "PostgreSQL 18.0 (Tenure 0.1.0)"

SESSION_ID_BYTES = 16
"""How system.sqlliveness shows a session: the instance id, then the epoch."""


class SessionFacts(Mapping[str, Datum]):
    """Computed on demand: most statements need none of it."""

    def __init__(self, session: SessionState, block: Block) -> None:
        self._session = session
        self._block = block

    def __getitem__(self, name: str) -> Datum:
        session = self._session
        match name:
            case "user":
                return session.user
            case "session_user":
                return session.session_user
            case "database":
                return session.database_name
            case "schemas":
                return self._schemas()
            case "temporary_schema":
                return self._temporary_schema()
            case "pid":
                return session.pid
            case "version":
                return VERSION
            case "logical_timestamp":
                return Decimal(to_text(self._block.read_at))
            case "started_at":
                return datetime.fromtimestamp(session.services.started_micros / 1_000_000, UTC)
            case "transaction":
                return self._block.now_micros
            case "client_addr" | "client_port" | "server_addr" | "server_port":
                return getattr(session.endpoints, name.replace("addr", "address")) or None
        return FACTS[name]

    def _temporary_schema(self) -> str:
        temporary = self._session.temporary.current
        return "" if temporary is None else temporary.schema.name

    def _schemas(self) -> tuple[str, ...]:
        catalog, path = self._block.catalog, self._session.path
        temporary, tables = self._temporary_schema(), self._session.system_tables
        named = [temporary if each == PG_TEMP else each for each in path.names()]
        entries = [(each, catalog.schema_entry(path.database, each)) for each in named if each]
        return tuple(
            name
            for name, entry in entries
            if name == temporary
            or tables.has_schema(name)
            or (entry is not None and entry.state is DescriptorState.PUBLIC)
        )

    def __iter__(self) -> Iterator[str]:
        return iter(FACTS)

    def __len__(self) -> int:
        return len(FACTS)


class FactAnswers:
    """Answers callback functions by name, in one statement."""

    def __init__(self, session: SessionState, block: Block) -> None:
        self._session = session
        self._block = block
        self._catalog: Callable[[str, tuple[Datum, ...]], Datum] | None = None
        """Made when a function about the catalog is first called."""

    @property
    def session(self) -> SessionState:
        return self._session

    @property
    def block(self) -> Block:
        return self._block

    def __call__(self, name: str, arguments: tuple[Datum, ...]) -> Datum:
        if name == LIVENESS:
            return is_alive(self._session, arguments[0])
        if name in privilege_functions.NAMES:
            return privilege_answers.answer(self._session, self._block, name, arguments)
        if self._session.is_inline:
            raise NotShort  # the locks are in the store, and a catalog may be large
        if name == "pg_notify":
            self._session.channels.notify(self._block, *arguments)
            return ""
        if name == "pg_listening_channels":
            return self._session.channels.listened
        if "advisory" not in name:
            if self._catalog is None:
                self._catalog = self._session.system_tables.answers(self)
            return self._catalog(name, arguments)
        if name == "pg_advisory_unlock_all":
            self._session.services.advisory.unlock_all(self._session.locks.owner())
            return ""
        if name.startswith("pg_advisory_unlock"):
            return self._unlock(name, arguments)
        return self._lock(name, arguments)

    def _lock(self, name: str, numbers: tuple[Datum, ...]) -> Datum:
        session = self._session
        is_try = name.startswith("pg_try")
        is_in_transaction = "_xact" in name
        owner = session.locks.owner_in(self._block) if is_in_transaction else session.locks.owner()
        key, is_acquired = AdvisoryKey(session.database, numbers), False
        try:
            with waiting(session, self._block) as how:
                is_acquired = session.services.advisory.acquire(
                    owner,
                    key,
                    level=AdvisoryLevel.TRANSACTION if is_in_transaction else AdvisoryLevel.SESSION,
                    mode=_mode(name),
                    wait=WaitPolicy.SKIP if is_try else WaitPolicy.WAIT,
                    timeout=how.timeout,
                    canceled=how.canceled,
                )
        except RetryError:
            if is_acquired and not is_in_transaction:
                session.services.advisory.unlock(owner, key, mode=_mode(name))  # the statement runs again
            raise
        return is_acquired if is_try else ""

    def _unlock(self, name: str, numbers: tuple[Datum, ...]) -> bool:
        session = self._session
        key = AdvisoryKey(session.database, numbers)
        is_freed = session.services.advisory.unlock(session.locks.owner(), key, mode=_mode(name))
        if not is_freed:
            kind = "ShareLock" if _mode(name) is LockMode.SHARE else "ExclusiveLock"
            session.notice(f"you don't own a lock of type {kind}", "WARNING")
        return is_freed


def _mode(name: str) -> LockMode:
    return LockMode.SHARE if name.endswith("_shared") else LockMode.EXCLUSIVE


def session_bytes(id: SessionId) -> bytes:
    return id.instance.to_bytes(8, "big") + int(id.epoch_at).to_bytes(8, "big")


def is_alive(session: SessionState, data: bytes) -> bool:
    """Whether a session is there, asked of the store."""
    if len(data) != SESSION_ID_BYTES:
        raise InvalidParameter(f"a session id has {SESSION_ID_BYTES} bytes, not {len(data)}")
    id = SessionId(int.from_bytes(data[:8], "big"), from_bytes(data[8:]))
    return session.services.is_alive(id)
