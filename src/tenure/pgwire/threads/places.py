"""Places: bound the number of threads that run at once, shared among users; waiting threads have no place.

    enter ──► QUEUED ──► RUNNING ──────────────────────────► OVER
                 │         │  ▲ └─ leave: it waits ─┐          ▲
                 │         │  └─ RETURNING ◄─ AWAY ◄┘          │
                 └─ withdrawn (canceled, or its time is up) ───┘

A statement that waits for others (a lock, a job, pg_sleep, a schema change) leaves its place and comes back
through the queue, so waits never keep other statements out; each costs a thread, of which no user has more
than `statements_max`. Statements inside a transaction are not counted there, as the statements that fill the
cap may be waiting for them.

Places are given to users in turn. A user who runs less than a share of the places gets one at once, even if
others have taken all: so long statements of one user do not keep others out, and no more run than the places,
plus a share for each user who came late. In a user's own queue returning statements are first, then those in
a transaction.

Invariant (waits-hold-no-place): a statement that waits for others takes no place from running ones.
Invariant (users-in-turn): a user who has less than a share of the places waits for nobody else's statements.

Walk: `pgwire.door` makes an `Errand` for each call and lets it `enter`; `pgwire.threads.server_state` makes
the `Places`; the env calls `leave` and `come_back` wherever the core waits.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

from tenure.base.env import Env, Event
from tenure.pgwire.threads.short_calls import OnDone
from tenure.pgwire.threads.thread_crew import Crew


class State(Enum):
    QUEUED = "queued"
    RUNNING = "running"
    AWAY = "away"
    RETURNING = "returning"
    OVER = "over"


class Errand:
    """One call that a client waits for. As a place: its thread's right to run."""

    def __init__(
        self, places: "Places", call: Callable[[], Any], on_done: OnDone, *, user: str, is_inside: bool
    ) -> None:
        self._places = places
        self._call = call
        self._on_done = on_done
        self.user = user
        self.is_inside = is_inside
        """It belongs to a transaction, or to a session with locks, that others may wait for."""
        self.state = State.QUEUED
        self.may_go_on: Event | None = None
        """For a call that has waited: set when it has a place again."""

    def leave(self) -> None:
        self._places.leave(self)

    def come_back(self, *, at_once: bool) -> None:
        self._places.come_back(self, at_once=at_once)

    def run(self) -> None:
        value, error = None, None
        try:
            with self._places.env.holding(self):
                value = self._call()
        except BaseException as failure:
            error = failure
        self._places.end(self)
        self._on_done(value, error)
        value = error = None  # the error's traceback refers to this frame


class _User:
    """The statements of one user."""

    def __init__(self) -> None:
        self.running = 0
        self.under_way = 0
        """The number of calls that began outside of transactions: running, or waiting for something."""
        self.returning: deque[Errand] = deque()
        self.inside: deque[Errand] = deque()
        self.beginning: deque[Errand] = deque()

    @property
    def has_queued(self) -> bool:
        return bool(self.returning or self.inside or self.beginning)

    def next_queue(self, statements_max: int) -> deque[Errand] | None:
        """The queue whose first call may run; None if there is none, or the user has too many under way."""
        if self.returning or self.inside:
            return self.returning or self.inside
        return self.beginning if self.beginning and self.under_way < statements_max else None

    def queue_of(self, errand: Errand) -> deque[Errand]:
        if errand.state is State.RETURNING:
            return self.returning
        return self.inside if errand.is_inside else self.beginning


class Places:
    """`statements_max` is called each time, as it is a setting."""

    def __init__(self, env: Env, crew: Crew, *, places_max: int, statements_max: Callable[[], int]) -> None:
        self.env = env
        self._crew = crew
        self._places_max = places_max
        self._statements_max = statements_max
        self._lock = env.lock()
        self._users: dict[str, _User] = {}
        """Users with calls here."""
        self._queued: dict[str, None] = {}
        """The users with queued calls, in the order of their turns."""
        self._users_running = 0
        self.running = 0

    def enter(self, errand: Errand) -> None:
        """Runs it now, or in its turn."""
        with self._lock:
            self._queue(errand)
            chosen = self._give_places()
        self._begin(chosen)

    def withdraw(self, errand: Errand) -> bool:
        """Returns whether it had not begun, and now never will. One that is returning gets its place at
        once.
        """
        with self._lock:
            if errand.state is State.QUEUED:
                self._unqueue(errand)
                errand.state = State.OVER
                self._forget_if_idle(errand.user)
                return True
            if errand.state is State.RETURNING:
                self._unqueue(errand)
                self._take(errand)
                assert errand.may_go_on is not None
                errand.may_go_on.set()
        return False

    def leave(self, errand: Errand) -> None:
        """Called before it waits."""
        with self._lock:
            errand.state = State.AWAY
            self._give_back(errand)
            chosen = self._give_places()
        self._begin(chosen)

    def come_back(self, errand: Errand, *, at_once: bool) -> None:
        """Called after it has waited: returns when it has a place."""
        with self._lock:
            errand.state = State.RETURNING
            if at_once:
                self._take(errand)
                return
            may_go_on = errand.may_go_on = self.env.event()
            self._queue(errand)
            chosen = self._give_places()
        self._begin(chosen)
        may_go_on.wait()

    def end(self, errand: Errand) -> None:
        with self._lock:
            errand.state = State.OVER
            if not errand.is_inside:
                self._users[errand.user].under_way -= 1
            self._give_back(errand)
            chosen = self._give_places()
        self._begin(chosen)

    # ── under the lock ─────────────────────────────────────────────────────────────────────────

    def _queue(self, errand: Errand) -> None:
        user = self._users.setdefault(errand.user, _User())
        user.queue_of(errand).append(errand)
        self._queued.setdefault(errand.user)

    def _unqueue(self, errand: Errand) -> None:
        user = self._users[errand.user]
        user.queue_of(errand).remove(errand)
        if not user.has_queued:
            del self._queued[errand.user]

    def _give_places(self) -> list[tuple[State, Errand]]:
        """Removes from the queues those that may run now; returns them with their former states."""
        chosen: list[tuple[State, Errand]] = []
        while self._queued and (errand := self._next()) is not None:
            chosen.append((errand.state, errand))
            self._unqueue(errand)
            self._take(errand)
            if errand.user in self._queued:
                del self._queued[errand.user]  # its next turn is after the others'
                self._queued[errand.user] = None
        return chosen

    def _next(self) -> Errand | None:
        is_room, statements_max = self.running < self._places_max, self._statements_max()
        share = self._places_max if is_room else self._share()
        for name in self._queued:
            user = self._users[name]
            if is_room or user.running < share:
                queue = user.next_queue(statements_max)
                if queue is not None:
                    return queue[0]
        return None

    def _share(self) -> int:
        """The number of places for each user who runs or wants to."""
        new = sum(1 for name in self._queued if not self._users[name].running)
        return max(1, self._places_max // (self._users_running + new))

    def _take(self, errand: Errand) -> None:
        user = self._users.setdefault(errand.user, _User())
        if errand.state is State.QUEUED and not errand.is_inside:
            user.under_way += 1
        self._users_running += not user.running
        user.running += 1
        self.running += 1
        errand.state = State.RUNNING

    def _give_back(self, errand: Errand) -> None:
        user = self._users[errand.user]
        user.running -= 1
        self.running -= 1
        self._users_running -= not user.running
        self._forget_if_idle(errand.user)

    def _forget_if_idle(self, name: str) -> None:
        user = self._users[name]
        if not (user.running or user.under_way or user.has_queued):
            del self._users[name]

    # ── without it ─────────────────────────────────────────────────────────────────────────────

    def _begin(self, chosen: list[tuple[State, Errand]]) -> None:
        for state, errand in chosen:
            if state is State.QUEUED:
                self._crew.run(errand.run)
            else:
                assert errand.may_go_on is not None
                errand.may_go_on.set()
