"""Threads for statements: as many as are needed at once, and gone when they are not.

    run(call) ──► an idle thread, the one that worked last ──► idle again ──► idle for long: it ends
              └─► none is idle: a new one

The number of threads is not decided here: `pgwire.threads.places` bounds running statements, users' caps
waiting ones.

Invariant (crew-shrinks): a thread without work ends by itself, so that a peak leaves none behind.

Walk: `pgwire.threads.places` calls `run`; `pgwire.threads.server_state` makes it and closes it.
"""

from collections.abc import Callable

from tenure.base.env import Env, Event, Task

IDLE_SECONDS = 2.0
"""A new thread costs some 50 us, an idle one some 50 kB."""

Call = Callable[[], None]


class Crew:
    def __init__(self, name: str, env: Env, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._name = name
        self._env = env
        self._idle_seconds = idle_seconds
        self._lock = env.lock()
        self._idle: list[_Member] = []
        self._tasks: dict[_Member, Task] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def run(self, call: Call) -> None:
        """Calls it in a thread; it must not raise. After `close` nothing is called any more."""
        with self._lock:
            if self._is_closed:
                return
            member = self._idle.pop() if self._idle else None
            if member is None:
                member = _Member(call, self._env.event())
                self._tasks[member] = self._env.spawn(self._name, lambda: self._work(member))
                return
            member.call = call
        member.is_called.set()

    def close(self, *, wait: bool) -> None:
        """Calls under way go on; `wait` waits for them."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            tasks = list(self._tasks.values())
        for member in idle:
            member.is_called.set()
        if wait:
            for task in tasks:
                task.join()

    def _work(self, member: "_Member") -> None:
        while member.call is not None:
            member.call()
            member.call = None
            self._await_call(member)
        with self._lock:
            del self._tasks[member]

    def _await_call(self, member: "_Member") -> None:
        """Returns with a call, or without one if the thread is to end."""
        member.is_called.clear()
        with self._lock:
            if self._is_closed:
                return
            self._idle.append(member)
        if member.is_called.wait(self._idle_seconds):
            return
        with self._lock:
            if member in self._idle:
                self._idle.remove(member)
                return
        member.is_called.wait()  # it was called just now


class _Member:
    def __init__(self, call: Call, is_called: Event) -> None:
        self.call: Call | None = call
        self.is_called = is_called
