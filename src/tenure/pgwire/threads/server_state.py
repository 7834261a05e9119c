"""The state that the doors of one server share: the loop, its limits, and the threads.

    statements              places, which users share (`pgwire.threads.places`); superusers have their own
    lookups of users        a few threads: statements of others do not delay logins
    sessions being opened   a few more, so that an authenticated client goes first
    cancels of others       two
    sessions being closed   a few: their locks must not wait for others' statements

Walk: `pgwire.server` makes a `ServerState`; each `pgwire.door` has its statements run here.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tenure.base.env import Env, Event
from tenure.base.errors import TenureError, TooManyConnections
from tenure.base.settings import USER_CONNECTIONS_MAX, USER_STATEMENTS_MAX
from tenure.pgwire.connection_slots import KEPT_FOR_ROOT, SEATS_MAX
from tenure.pgwire.login.arrivals import Arrivals
from tenure.pgwire.login.startup import Service
from tenure.pgwire.login.tls import Tls
from tenure.pgwire.threads.gathered_commits import Gathering
from tenure.pgwire.threads.places import Places
from tenure.pgwire.threads.short_calls import OnDone, TurnTaking
from tenure.pgwire.threads.thread_crew import Crew
from tenure.pgwire.waits import InThread, Lane
from tenure.sql.session.answers import Client

PLACES, PLACES_FAR = 4, 8
"""Statements that run at once, where the store is in this process and where it is a server. In Python one
thread computes at a time, on any number of processors, and each that wants to compute delays a turn of the
loop by some 10 ms.
"""

LANE_THREADS = {Lane.LOOKUP: 4, Lane.OPENING: 4, Lane.CANCEL: 2}
"""Each call takes a millisecond or so."""

CLOSING_THREADS_MAX = 8

STARTING_MAX = 500
"""Connections that have not logged in yet: a flood of these must not use up the seats."""

LOGIN_SECONDS = 60.0
"""As PostgreSQL's authentication_timeout; a client that guessed passwords may have to wait for half of it."""

PASS_SECONDS = 0.25
"""The time between two passes over all connections: the precision of time-outs."""

_log = logging.getLogger(__name__)


class OpenDoor(Protocol):
    """A client's socket, as the server and the other doors see it: `pgwire.door.Door`."""

    def settle(self) -> None: ...
    def check_time(self, now: float) -> None: ...
    def end(self, error: TenureError) -> None: ...
    def abort(self) -> None: ...


class UserLimits(NamedTuple):
    """The limits of one user, on one node; superusers have none."""

    connections: int = USER_CONNECTIONS_MAX.default
    statements: int = USER_STATEMENTS_MAX.default


@dataclass(frozen=True)
class DoorLimits:
    seats_max: int = SEATS_MAX
    kept_for_root: int = KEPT_FOR_ROOT
    starting_max: int = STARTING_MAX
    places_max: int = PLACES
    login_seconds: float = LOGIN_SECONDS
    pass_seconds: float = PASS_SECONDS


class ServerState:
    def __init__(
        self,
        service: Service,
        env: Env,
        limits: DoorLimits,
        tls: Tls | None,
        user_limits: Callable[[], UserLimits] = UserLimits,
    ) -> None:
        self.service = service
        self.env = env
        self.limits = limits
        self.tls = tls
        self.loop = asyncio.new_event_loop()
        self.commits = Gathering(self._call_soon)
        self.doors: set[OpenDoor] = set()
        self.arrivals: Arrivals[OpenDoor] = Arrivals()
        self.is_draining = False
        self.emptied: Event = env.event()
        """While draining: set when the last connection has left."""
        self._told: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        """Calls of other threads, for the loop to make."""
        self._is_waking = False
        self._crew = Crew("sql", env)
        self._places = Places(
            env, self._crew, places_max=limits.places_max, statements_max=lambda: user_limits().statements
        )
        self._superuser_places = Places(
            env, self._crew, places_max=limits.places_max, statements_max=lambda: limits.seats_max
        )
        self._lanes = {
            lane: TurnTaking(f"door-{lane.value}", env, threads) for lane, threads in LANE_THREADS.items()
        }
        self._closing = ThreadPoolExecutor(CLOSING_THREADS_MAX, "door-closing")

    def tell(self, step: Callable[..., None], *found: object) -> None:
        """Has a function called on the loop, from another thread; many calls wake it only once."""
        self._told.append((step, found))
        if self._is_waking:
            return
        self._is_waking = True
        try:
            self.loop.call_soon_threadsafe(self._do_told)
        except RuntimeError:
            _log.info("a statement ended after its server")

    def _do_told(self) -> None:
        self._is_waking = False  # before the first is taken: a later `tell` wakes the loop again
        while self._told:
            step, found = self._told.popleft()
            try:
                step(*found)
            except Exception:
                _log.exception("a connection failed in a way that it should not")

    def _call_soon(self, step: Callable[..., None], *found: object) -> None:
        self.loop.call_soon(self._timed, step, *found)

    def _timed(self, step: Callable[..., None], *found: object) -> None:
        self.service.turns.begin()
        step(*found)
        self.service.turns.end(None)

    def places_of(self, client: Client) -> Places:
        return self._superuser_places if client.is_superuser else self._places

    def submit(self, wait: InThread, user: str, on_done: OnDone) -> None:
        """For calls before a session exists."""
        self._lanes[wait.lane].submit(user, wait.call, on_done)

    def close_client(self, client: Client) -> None:
        self._closing.submit(_close, client)

    def arrived(self, door: OpenDoor) -> None:
        """A login takes milliseconds, so any number of connections that do not log in keep no others out:
        those that proceed stay.
        """
        if len(self.arrivals) >= self.limits.starting_max:
            self.arrivals.slowest().end(TooManyConnections("sorry, too many clients already"))
        self.doors.add(door)

    def left(self, door: OpenDoor) -> None:
        self.doors.discard(door)
        if self.is_draining and not self.doors:
            self.emptied.set()

    def close(self, *, wait: bool) -> None:
        self._crew.close(wait=wait)
        for lane in self._lanes.values():
            lane.close(wait=wait)
        self._closing.shutdown(wait=wait)


def _close(client: Client) -> None:
    try:
        client.close()
    except Exception:
        _log.exception("a session could not be closed")
