"""Which process has SQLite's section, and whether it is stopped: for the log, where commits wait for long.

A process that is stopped inside the section (SIGSTOP, a debugger, a frozen container) keeps the file lock
until it continues or dies. No other process may take the lock, as the holder may be about to write. So the
others name the holder in their logs.

Linux lists file locks in /proc/locks, with the process and the inode. Where there is no such list, or the
process belongs to another container, the holder is not known.

Walk: `storage.sqlite.poller` calls `find_holder` when a writer has waited for some seconds.
"""

import os
from pathlib import Path
from typing import NamedTuple

from tenure.storage.sqlite.turnstile import QUEUE_SUFFIX, SECTION_SUFFIX

PROC = Path("/proc")
STOPPED_STATES = frozenset("Tt")
"""States in /proc/PID/stat: stopped by a signal, or by a debugger."""


class Holder(NamedTuple):
    pid: int
    is_stopped: bool

    def __str__(self) -> str:
        if self.is_stopped:
            return f"process {self.pid}, which is stopped: `kill -CONT {self.pid}` lets it go on"
        return f"process {self.pid}"


def find_holder(path: str, proc: Path = PROC) -> Holder | None:
    """The process that has the section of the store at `path`, or else the first one in the queue; None if
    that is not known.
    """
    for suffix in (SECTION_SUFFIX, QUEUE_SUFFIX):
        pid = _pid_with_lock(path + suffix, proc)
        if pid is not None:
            return Holder(pid, _state(pid, proc) in STOPPED_STATES)
    return None


def _pid_with_lock(path: str, proc: Path) -> int | None:
    try:
        inode = str(os.stat(path).st_ino)
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        # "1: FLOCK ADVISORY WRITE 712 08:01:1835013 0 EOF"; waiters have "->" after the number.
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
            pid = int(fields[4])
            return pid if pid > 0 else None
    return None


def _state(pid: int, proc: Path) -> str:
    try:
        # "712 (name of the program) T ...": the name may contain anything.
        return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
