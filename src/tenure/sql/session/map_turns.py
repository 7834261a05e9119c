"""Turns of statements that change the map of a database: CREATE, ALTER and DROP SCHEMA.

    client 1   CREATE SCHEMA a  ──► begins, commits ──┐
    client 2   CREATE SCHEMA b  ··· waits ············└► begins, commits ──┐
    client 3   CREATE SCHEMA c  ··· waits ·································└► begins, commits

Each of them gives the database a new version, so of several that begin together one commits and the others
start over. On one node they go one after the other, in the order in which they came. Statements of other
nodes and of transaction blocks take no turn: they still start over. A statement that waits has begun nothing,
so that nobody waits for it.

Invariant (map-turns): statements of one node that change one map never make each other start over.

Walk: `sql.clients.session` calls `take` around a statement that is a transaction of its own.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tenure.base.env import Env, Event
from tenure.base.interruptible import LOOK_SECONDS


class MapTurns:
    def __init__(self, env: Env) -> None:
        self._env = env
        self._lock = env.lock()
        self._queues: dict[int, deque[Event]] = {}
        """By database; the first of each is the one whose turn it is."""

    @contextmanager
    def take(self, database: int, check: Callable[[], None]) -> Iterator[None]:
        """Waits for the turn; `check` raises to break the wait off."""
        turn = self._env.event()
        with self._lock:
            queue = self._queues.setdefault(database, deque())
            queue.append(turn)
            if len(queue) == 1:
                turn.set()
        try:
            while not turn.is_set():
                with self._env.waiting():
                    turn.wait(LOOK_SECONDS)
                check()
            yield
        finally:
            self._leave(database, turn)

    def _leave(self, database: int, turn: Event) -> None:
        with self._lock:
            queue = self._queues[database]
            queue.remove(turn)
            if queue:
                queue[0].set()
            else:
                del self._queues[database]
