"""The server: listens, checks its connections, drains; on one asyncio loop in a thread of its own.

Several processes can share one port: `inherited` is the descriptor of a socket that their parent listens on.
A request to cancel may then reach the wrong one, which hands it to `route_cancel`.

A pass over all connections, several times a second, closes those that are too slow to log in or idle for too
long.

Invariant (drain-keeps-transactions): a drain ends a connection in a transaction only when time is up.

Walk: `front.py` makes a `Server`, starts it, drains it and stops it; each client gets a `pgwire.door`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from tenure.base.env import Env
from tenure.pgwire.connection_slots import ConnectionSlots
from tenure.pgwire.door import Door, shutting_down
from tenure.pgwire.listeners import Listener, SharedListener, listen_alone
from tenure.pgwire.login.startup import Authenticator, Service
from tenure.pgwire.login.tls import Tls
from tenure.pgwire.threads.server_state import DoorLimits, ServerState, UserLimits
from tenure.pgwire.turns import Turns
from tenure.sql.session.answers import Clients
from tenure.sql.session.long_turns import LongTurns

ARRIVAL_SECONDS = 0.5
"""A connection that was accepted begins in the next turn of the loop."""

STOP_SECONDS = 10.0
"""How long a stop waits for statements that were cancelled."""


class Server:
    """Serves from `start` to `stop`."""

    def __init__(
        self,
        clients: Clients,
        authenticator: Authenticator,
        env: Env,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        instance: Callable[[], int] = lambda: 1,
        tls: Tls | None = None,
        route_cancel: Callable[[int, bytes], None] = lambda _pid, _secret: None,
        inherited: int | None = None,
        limits: DoorLimits | None = None,
        user_limits: Callable[[], UserLimits] = UserLimits,
        long_turns: LongTurns | None = None,
    ) -> None:
        limits = limits or DoorLimits()
        self._env = env
        self.address = (host, port)
        """Where it listens, once it has started."""
        self._inherited = inherited
        self._seats = ConnectionSlots(
            instance,
            seats_max=limits.seats_max,
            kept_for_root=limits.kept_for_root,
            user_seats_max=lambda: user_limits().connections,
        )
        service = Service(
            clients,
            authenticator,
            self._seats,
            route_cancel=route_cancel,
            has_tls=tls is not None,
            turns=Turns(env.monotonic, env.thread_seconds, long_turns or LongTurns()),
            monotonic=env.monotonic,
        )
        self._hall = ServerState(service, env, limits, tls, user_limits)
        self._listener: Listener | None = None

    def start(self) -> tuple[str, int]:
        """Returns where it listens. Raises OSError if it cannot."""
        self._task = self._env.spawn("pgwire", self._serve)
        try:
            self._on_loop(self._listen)
        except OSError:
            self._end_loop()
            raise
        return self.address

    @property
    def connections(self) -> int:
        return len(self._hall.doors)

    def cancel(self, pid: int, digest: bytes) -> None:
        """Handles a request that another process has routed here, with its secret's digest; from any
        thread.
        """
        self._hall.loop.call_soon_threadsafe(self._seats.cancel_by_digest, pid, digest)

    def drain(self, timeout_seconds: float) -> bool:
        """Accepts no more clients, closes idle ones, waits for the transactions of the others. Returns
        whether all of them ended in time; the others are disconnected.
        """
        self._on_loop(self._begin_drain)
        is_empty = self._hall.emptied.wait(timeout_seconds)
        self._on_loop(self._cut_off)
        return is_empty

    def stop(self) -> None:
        if not self._hall.is_draining:
            self.drain(0.0)
        self._on_loop(self._abort)
        is_empty = self._hall.emptied.wait(STOP_SECONDS)
        self._hall.close(wait=is_empty)
        self._on_loop(self._see_out)
        self._end_loop()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._hall.loop)
        try:
            self._hall.loop.run_forever()
        finally:
            self._hall.loop.close()

    def _end_loop(self) -> None:
        self._hall.loop.call_soon_threadsafe(self._hall.loop.stop)
        self._task.join()

    def _on_loop(self, step: Callable[[], Any]) -> Any:
        async def run() -> Any:
            found = step()
            return await found if asyncio.iscoroutine(found) else found

        return asyncio.run_coroutine_threadsafe(run(), self._hall.loop).result()

    async def _listen(self) -> None:
        make_door = lambda: Door(self._hall)  # noqa: E731
        if self._inherited is None:
            self._listener = await listen_alone(self._hall.loop, make_door, *self.address)
        else:
            self._listener = SharedListener(
                self._hall.loop, make_door, self._inherited, connections=lambda: self.connections
            )
        self.address = self._listener.address
        self._pass()

    def _pass(self) -> None:
        now = self._env.monotonic()
        for door in tuple(self._hall.doors):
            door.check_time(now)
        self._hall.loop.call_later(self._hall.limits.pass_seconds, self._pass)

    async def _begin_drain(self) -> None:
        self._hall.is_draining = True
        if self._listener is not None:
            self._listener.pause()
            # asyncio loses a connection that it has accepted, but not begun, when a listener is closed.
            await _others_done()
            self._listener.close()
        if not self._hall.doors:
            self._hall.emptied.set()
        for door in tuple(self._hall.doors):
            door.settle()

    def _cut_off(self) -> None:
        for door in tuple(self._hall.doors):
            door.end(shutting_down())

    async def _see_out(self) -> None:
        """Closes connections that came in after the last pass."""
        await _others_done()
        self._abort()
        for _ in range(2):
            await asyncio.sleep(0)  # for their transports to close

    def _abort(self) -> None:
        for door in tuple(self._hall.doors):
            door.abort()


async def _others_done() -> None:
    """Waits a moment for other tasks of the loop; a client that stalls its handshake is not waited for
    long.
    """
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=ARRIVAL_SECONDS)
