"""Stops a node's process at a moment when it has no part of SQLite's section, so that other nodes go on.

    acquire queue and section ──► SIGSTOP ──► every thread has stopped ──► release both

A process that is stopped inside the section keeps the file lock, and no other process commits until it
continues. One that waits in the queue keeps the queue likewise. Whoever holds both locks knows that the
process has neither: its threads that wait for them leave their system calls when they stop. The section of
PostgreSQL is one call without a client's part in it, so there nothing is acquired.

Walk: `outlasting` -> `stop_outside_section`.
"""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.storage.sqlite.turnstile import QUEUE_SUFFIX, SECTION_SUFFIX

SQLITE = "sqlite:"


def stop_outside_section(process: "subprocess.Popen[str]", store: str) -> None:
    """Stops a child of this process; returns when all its threads have stopped."""
    with _section_held(store):
        process.send_signal(signal.SIGSTOP)
        state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert state is not None and state.si_code == os.CLD_STOPPED, f"process {process.pid} has ended"


@contextmanager
def _section_held(store: str) -> Iterator[None]:
    if not store.startswith(SQLITE):
        yield
        return
    path = store.removeprefix(SQLITE)
    descriptors = [os.open(path + suffix, os.O_RDWR) for suffix in (QUEUE_SUFFIX, SECTION_SUFFIX)]
    try:
        for descriptor in descriptors:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
