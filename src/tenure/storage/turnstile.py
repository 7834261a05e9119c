"""A fair queue of processes before an exclusive section, made of two file locks.

    arrive ──► [queue] ──► [section] ──► leave
                 │            ▲
                 └─ released ─┘ when the section is had

With one lock, whoever leaves can take it again before a sleeper wakes, and starves it. Here a
process that leaves must queue again, behind the one that already stands at the section's door.
Urgent callers (heartbeats) skip the queue and compete with that one alone. The kernel releases
both locks when a process dies, however it dies.

Walk: `storage.sqlite` passes through around each BEGIN IMMEDIATE.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager


class Turnstile:
    """One caller's pair of file descriptors: not for use by two threads at once."""

    def __init__(self, path: str, *, urgent: bool = False) -> None:
        self._queue = None if urgent else _open(path + "-queue")
        self._section = _open(path + "-section")

    @contextmanager
    def pass_through(self) -> Iterator[None]:
        if self._queue is not None:
            fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._section, fcntl.LOCK_EX)
        finally:
            if self._queue is not None:
                fcntl.flock(self._queue, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._section, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._queue is not None:
            os.close(self._queue)
        os.close(self._section)


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
