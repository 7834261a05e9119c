"""The turn of one SQLite connection in the section: among the threads of its process, then among processes.

    try_enter   never waits: False if another thread or process has the section, or queues for it
    enter       waits in a system call that cannot be interrupted
    leave       called by the thread that has entered

A statement must be able to stop while it waits, so its thread only tries; a thread that serves no single
statement enters (`kv.commits`). Other threads can see how long that one waits: the engine's poller looks at
`waits_since` and logs which process it waits for.

Walk: `storage.sqlite.sqlite_engine` gives one to each of its writers; it calls `storage.sqlite.turnstile`.
"""

from tenure.base.env import Env
from tenure.storage.sqlite.turnstile import Turnstile


class SectionTurn:
    def __init__(self, env: Env, turnstile: Turnstile) -> None:
        self._env = env
        self._turnstile = turnstile
        self._lock = env.lock()
        self._is_taken = False
        """Taken by a thread of this process, which has the section or waits for it."""
        self._freed = env.event()
        self.waits_since: float | None = None
        """Since when a thread has waited in the system call, on the monotonic clock."""

    def try_enter(self) -> bool:
        if not self._take():
            return False
        try:
            has_entered = self._turnstile.try_enter()
        except BaseException:
            self._give_back()
            raise
        if not has_entered:
            self._give_back()
        return has_entered

    def enter(self) -> None:
        if self.try_enter():
            return
        while not self._take():
            self._freed.wait()
        self.waits_since = self._env.monotonic()
        try:
            self._turnstile.enter()
        except BaseException:
            self._give_back()
            raise
        finally:
            self.waits_since = None

    def leave(self) -> None:
        try:
            self._turnstile.leave()
        finally:
            self._give_back()

    def close(self) -> None:
        self._turnstile.close()

    def _take(self) -> bool:
        with self._lock:
            if self._is_taken:
                self._freed.clear()
                return False
            self._is_taken = True
            return True

    def _give_back(self) -> None:
        with self._lock:
            self._is_taken = False
            self._freed.set()
