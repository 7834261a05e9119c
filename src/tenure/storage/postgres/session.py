"""Connections to PostgreSQL: how they are made, kept and pooled.

    Connector   makes a connection with all its settings
    Link        one connection for one purpose, made anew when it broke
    Pool        connections for reads

A thread that waits here, for an answer, a connection or a place in line, calls its check ten times a second.
If the check raises, the connection is closed, so that a late answer cannot reach another statement. So a
statement ends when it is canceled or its time is up, even if the server hangs. Only a commit that was sent is
waited for a little longer.

Errors are translated here, on the way out of every use of a connection, by `postgres.errors`.

Walk: `storage.postgres.postgres_engine`, its probe and its listener use these; no other module imports
psycopg.
"""

import select
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, TypeAlias

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8BinaryDumper

from tenure.base.env import Env, Event
from tenure.base.errors import Abandoned, InvalidParameter, TenureError, Unavailable
from tenure.base.interruptible import (
    LOOK_SECONDS,
    Check,
    abandonable,
    checked_by,
    current_check,
    patient,
    unchecked,
)
from tenure.storage.postgres.distance import Distance
from tenure.storage.postgres.errors import FATAL, translate
from tenure.storage.postgres.group import BYTEA_ARRAY_OID, INT8_ARRAY_OID, ByteaArray, Int8Array

Rows: TypeAlias = list[tuple[Any, ...]]
Arguments: TypeAlias = Mapping[str, object] | Sequence[object]

STATEMENT_SECONDS = 60
"""Bounds a section: the largest commit takes a few seconds, and a stalled server must not take longer."""
LOCK_SECONDS = 30
"""Bounds the queue before a section; half of the former, so that the two causes can be told apart."""
IDLE_IN_TRANSACTION_SECONDS = 10
"""No transaction of ours waits for its client, except while the probe runs."""
CONNECT_SECONDS = 5
COMMIT_GRACE_SECONDS = 0.5
"""How much longer a sent commit is waited for when its statement must end: mostly it is about to be decided,
and a known outcome is better than an unknown one.
"""
POOL_WAIT_SECONDS = 30.0

_NETWORK: dict[str, str | int] = {
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "tenure",
    # A peer that vanished is noticed after about ten seconds, below a node session's expiry.
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SETTINGS = {
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": f"{LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_SECONDS}s",
    "timezone": "UTC",
    # Nested loops over index scans, planned once: statistics lag behind tables that grow fast.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
_CONFIGURE = "SELECT set_config(s.name, s.value, false) FROM unnest(%s::text[], %s::text[]) AS s(name, value)"


class StoreConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose waits call the check of their thread."""

    def wait(
        self, gen: Generator[Any, Any, Any], interval: float = LOOK_SECONDS, timeout: float | None = None
    ) -> Any:
        check = current_check()
        return super().wait(gen if check is unchecked else _checking(gen, check), interval, timeout)


def _checking(gen: Generator[Any, Any, Any], check: Check) -> Generator[Any, Any, Any]:
    """The same exchange with the server, with a check whenever nothing arrived for a moment."""
    wanted = next(gen)
    while True:
        ready = yield wanted
        if not ready:
            check()
        try:
            wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


class Connector:
    """Knows the database's address and the settings of our sessions; never shows the password."""

    def __init__(self, dsn: str, schema: str) -> None:
        options = _parse(dsn)
        self._options = {**_NETWORK, "sslmode": default_sslmode(options), **options}
        self._password = str(self._options.get("password") or "")
        self._settings = {**_SETTINGS, "search_path": f'"{schema}", pg_temp'}

    def __repr__(self) -> str:
        shown = {name: self._options.get(name) for name in ("host", "port", "dbname")}
        return f"Connector({shown})"

    def connect(self) -> StoreConnection:
        with self.translating():
            connection = StoreConnection.connect(autocommit=True, **self._options)
            try:
                _register(connection)
                connection.execute(_CONFIGURE, [list(self._settings), list(self._settings.values())])
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def translating(
        self, connection: StoreConnection | None = None, *, awaiting: bool = False
    ) -> Iterator[None]:
        """Translates psycopg's errors; `awaiting` says that a commit may be on its way."""
        try:
            yield
        except psycopg.Error as error:
            text = str(error).strip()
            if self._password:
                text = text.replace(self._password, "********")
            if connection is not None and error.diag.severity_nonlocalized in FATAL:
                connection.close()  # the server has closed it, but we would notice only at the next use
            is_broken = connection is not None and connection.closed
            raise translate(error, text, is_broken=is_broken, awaiting=awaiting) from error


def _parse(dsn: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(dsn)
    except psycopg.Error:
        # libpq quotes the part it cannot read, which may be the password.
        raise InvalidParameter(
            "the connection string of the store is malformed",
            hint='Write it like "postgresql://user:password@host:5432/database".',
        ) from None


def default_sslmode(options: Mapping[str, Any]) -> str:
    """The mode if the connection string names none: over a network, certificate and name are checked. libpq's
    own default would accept any certificate, and a connection without one.
    """
    hosts = str(options.get("host") or options.get("hostaddr") or "").split(",")
    return "prefer" if all(map(_is_this_machine, hosts)) else "verify-full"


def _is_this_machine(host: str) -> bool:
    """Judged by the text: the name is not resolved, as the resolver may not be trusted."""
    if host in ("", "localhost") or host.startswith(("/", "@")):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Int8ArrayDumper(Dumper):
    format = pq.Format.BINARY
    oid = INT8_ARRAY_OID

    def dump(self, obj: Int8Array) -> bytes:
        return obj.encode()


class _ByteaArrayDumper(Dumper):
    format = pq.Format.BINARY
    oid = BYTEA_ARRAY_OID

    def dump(self, obj: ByteaArray) -> bytes:
        return obj.encode()


def _register(connection: StoreConnection) -> None:
    # Every int is a bigint: the type must not depend on the value, or no statement stays prepared.
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(Int8Array, _Int8ArrayDumper)
    connection.adapters.register_dumper(ByteaArray, _ByteaArrayDumper)


def is_alive(connection: StoreConnection) -> bool:
    """Whether an idle connection seems usable; an idle one with data to read was closed by the server."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def run(connection: StoreConnection, query: bytes, arguments: Arguments) -> Rows:
    return connection.execute(query, arguments, prepare=True, binary=True).fetchall()


def _close(connection: StoreConnection) -> None:
    connection.close()


class Link:
    """One connection for one purpose, one statement at a time."""

    def __init__(self, connector: Connector, env: Env, distance: Distance) -> None:
        self._connector = connector
        self._env = env
        self._distance = distance
        self._lock = env.lock()
        self._connection: StoreConnection | None = None
        self._is_closed = False

    def run(self, query: bytes, arguments: Arguments) -> Rows:
        """Runs a statement that changes something. Raises Disconnected if no answer came, Abandoned if the
        caller stopped waiting.
        """
        with self._lock:
            connection = self._connected()
            check = patient(current_check(), self._env, COMMIT_GRACE_SECONDS)
            with self._connector.translating(connection, awaiting=True), checked_by(_abandoning(check)):
                try:
                    with self._distance.crossed():
                        return run(connection, query, arguments)
                except Abandoned:
                    connection.close()
                    raise

    def _connected(self) -> StoreConnection:
        if self._is_closed:
            raise Unavailable("the store is closed")
        if self._connection is not None and is_alive(self._connection):
            return self._connection
        if self._connection is not None:
            self._connection.close()
        self._connection = None  # stays so if connecting fails
        check = current_check()
        with checked_by(_abandoning(check, was_sent=False)):
            self._connection = abandonable(self._env, "connecting", self._connector.connect, _close)
        return self._connection

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()


def _abandoning(check: Check, *, was_sent: bool = True) -> Check:
    """Wraps what a check raises in a store error, for the other members of the group."""
    if check is unchecked:
        return unchecked

    def ask() -> None:
        try:
            check()
        except TenureError as error:
            abandoned = Abandoned("the store was not waited for any longer")
            abandoned.was_sent = was_sent
            raise abandoned from error

    return ask


class Pool:
    """Up to `size` connections; callers wait in line while all are in use."""

    def __init__(self, connector: Connector, env: Env, size: int, distance: Distance) -> None:
        self._connector = connector
        self._env = env
        self._distance = distance
        self._lock = env.lock()
        self._idle: list[StoreConnection] = []
        self._free = size
        self._waiting: list[Event] = []
        self._is_closed = False

    def run(self, query: bytes, arguments: Arguments) -> Rows:
        """Runs a read; on a connection that turns out dead it is run once more on a fresh one."""
        with self._turn():
            connection = self._take()
            try:
                return self._try(connection, query, arguments)
            except Unavailable:
                if not connection.closed:
                    raise  # the database is there and answered: too busy, too slow
            self._drop_idle()  # the cause has most likely broken them all
            return self._try(self._connect(), query, arguments)

    def _connect(self) -> StoreConnection:
        return abandonable(self._env, "connecting", self._connector.connect, self._give_back)

    def _try(self, connection: StoreConnection, query: bytes, arguments: Arguments) -> Rows:
        try:
            with self._connector.translating(connection), self._distance.crossed():
                return run(connection, query, arguments)
        finally:
            if connection.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                connection.close()  # the caller stopped waiting: its answer may still come
            self._give_back(connection)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._lock:
            place = self._env.event() if self._free == 0 else None
            if place is None:
                self._free -= 1
            else:
                self._waiting.append(place)
        if place is not None:
            self._wait(place)
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.pop(0).set()  # the turn goes on to the next in line
            else:
                self._free += 1

    def _wait(self, place: Event) -> None:
        check = current_check()
        until = self._env.monotonic() + POOL_WAIT_SECONDS
        look_seconds = POOL_WAIT_SECONDS if check is unchecked else LOOK_SECONDS
        try:
            with self._env.waiting(holds=True):
                while not place.wait(look_seconds):
                    check()
                    if self._env.monotonic() >= until:
                        raise Unavailable("all connections to the store are in use")
        except BaseException:
            with self._lock:
                has_turn = place not in self._waiting
                if not has_turn:
                    self._waiting.remove(place)
            if has_turn:
                self._pass_on()  # the turn came at the last moment
            raise

    def _take(self) -> StoreConnection:
        with self._lock:
            if self._is_closed:
                raise Unavailable("the store is closed")
            connection = self._idle.pop() if self._idle else None
        if connection is not None and is_alive(connection):
            return connection
        if connection is not None:
            connection.close()
        return self._connect()

    def _give_back(self, connection: StoreConnection) -> None:
        with self._lock:
            if not connection.closed and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        self._drop_idle()
