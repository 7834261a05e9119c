"""A few threads for many short calls, by turns of users: one with many queued calls gets no more turns.

    submit(key, call) ──► key's queue ─┐
    submit(key, call) ──► key's queue ─┼──► the next of each in turn ──► one of the threads
                                       ┘
Walk: `pgwire.threads.server_state` has one for each lane of calls before a session exists, with users as
keys.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tenure.base.env import Env

OnDone = Callable[[Any, BaseException | None], None]


class TurnTaking:
    def __init__(self, name: str, env: Env, threads_max: int) -> None:
        self._lock = env.lock()
        self._threads = ThreadPoolExecutor(threads_max, name)
        self._queues: dict[str, deque[tuple[Callable[[], Any], OnDone]]] = {}
        """The users in the order of their turns."""

    def submit(self, key: str, call: Callable[[], Any], on_done: OnDone) -> None:
        with self._lock:
            self._queues.setdefault(key, deque()).append((call, on_done))
        self._threads.submit(self._run_next)

    def _run_next(self) -> None:
        call, on_done = self._next()
        try:
            value = call()
        except BaseException as error:
            on_done(None, error)
        else:
            on_done(value, None)

    def _next(self) -> tuple[Callable[[], Any], OnDone]:
        with self._lock:
            key = next(iter(self._queues))
            queue = self._queues.pop(key)
            found = queue.popleft()
            if queue:
                self._queues[key] = queue  # its next turn is after the others'
            return found

    def close(self, *, wait: bool) -> None:
        self._threads.shutdown(wait=wait)
