"""The change signal on PostgreSQL: LISTEN on a connection of its own, in a task of its own.

The task starts with the first subscriber, reconnects by itself with growing pauses, and then wakes all
subscribers once, because commits may have happened while it was disconnected. A signal is a hint: subscribers
also poll, slowly.

Walk: `PostgresEngine.subscribe` -> `NotifyListener.subscribe`; the exclusive section notifies.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from psycopg import sql

from tenure.base.env import Env, Task
from tenure.base.errors import TenureError
from tenure.base.retries import UNLIMITED, Pauses, Retries
from tenure.storage.postgres.group import decode_heads
from tenure.storage.postgres.session import Connector, StoreConnection
from tenure.storage.signals import Signals

LISTEN_SECONDS = 5.0
"""How long the listener waits at a time; only a wake-up that is lost at closing makes this noticeable."""
RECONNECT_PAUSES = Pauses(0.1, 5.0, spread=0.1)


class NotifyListener:
    """Turns NOTIFY into calls of the subscribers."""

    def __init__(self, connector: Connector, env: Env, channel: str) -> None:
        self._connector = connector
        self._env = env
        self._channel = channel
        self._lock = env.lock()
        self._signals = Signals(env)
        self._task: Task | None = None
        self._closing = env.event()

    def subscribe(
        self, wake: Callable[[], None], spans: Sequence[tuple[bytes, bytes]] = ()
    ) -> Callable[[], None]:
        stop = self._signals.subscribe(wake, spans)
        with self._lock:
            if self._task is None:
                self._task = self._env.spawn("store-listener", self._run)
        return stop

    def _run(self) -> None:
        retries = Retries(UNLIMITED, RECONNECT_PAUSES, self._env)
        while not self._closing.is_set():
            try:
                connection = self._connector.connect()
            except TenureError:
                self._closing.wait(retries.next_seconds())
                continue
            with connection, suppress(TenureError), self._connector.translating(connection):
                self._listen(connection)
                retries.succeeded()
            self._closing.wait(RECONNECT_PAUSES.first_seconds)

    def _listen(self, connection: StoreConnection) -> None:
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._signals.wake()  # commits may have happened while it was disconnected
        while not self._closing.is_set():
            for notify in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1):
                self._signals.wake(decode_heads(notify.payload))

    def close(self) -> None:
        self._closing.set()
        if self._task is None:
            return
        with suppress(TenureError):
            connection = self._connector.connect()
            with connection, self._connector.translating(connection):
                connection.execute("SELECT pg_notify(%s, '')", [self._channel])
        self._task.join(2 * LISTEN_SECONDS)
