"""A fair queue of processes before an exclusive section, made of two file locks.

    arrive ──► [queue] ──► [section] ──► leave
                 │            ▲
                 └─ released ─┘ when the section is acquired

With one lock, a process that leaves can take it again before a sleeping one wakes, and starves it. Here a
process that leaves must queue again, behind the one that already waits for the section. Urgent callers
(heartbeats) skip the queue and compete with that one alone. The kernel releases both locks when a process
dies for any reason. It does not when a process is stopped (SIGSTOP): `section_holder` finds out which process
that is.

Walk: `storage.sqlite.section_turn` enters and leaves it around each BEGIN IMMEDIATE.
"""

import fcntl
import os

SECTION_SUFFIX, QUEUE_SUFFIX = "-section", "-queue"


class Turnstile:
    """One caller's pair of file descriptors: not for use by two threads at once."""

    def __init__(self, path: str, *, urgent: bool = False) -> None:
        self._queue = None if urgent else _open(path + QUEUE_SUFFIX)
        self._section = _open(path + SECTION_SUFFIX)

    def enter(self) -> None:
        """Waits for the section. A thread that waits in `flock` cannot be interrupted."""
        self._enter(fcntl.LOCK_EX)

    def try_enter(self) -> bool:
        """Enters only if no other process has the section or queues for it; returns whether it did."""
        try:
            self._enter(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _enter(self, how: int) -> None:
        if self._queue is None:
            fcntl.flock(self._section, how)
            return
        fcntl.flock(self._queue, how)
        try:
            fcntl.flock(self._section, how)
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def leave(self) -> None:
        fcntl.flock(self._section, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._queue is not None:
            os.close(self._queue)
        os.close(self._section)


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
