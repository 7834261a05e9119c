"""The memory of the machine and of this process: how much exists, how much is used, returning it.

Python frees objects; the C library keeps the pages they lay in, for the next ones. Two habits of glibc make a
node keep gigabytes: it raises the size from which a block is mapped by itself (and so unmapped when it is
freed) up to 32 MiB as large blocks come and go, and it gives back the middle of its heaps only when it is
asked. So the size is fixed when a process starts, and `trim` asks.

Walk: `cli` calls `settle_allocator`; `base.memory` asks `machine_bytes`, `resident_bytes` and `trim`.
"""

import ctypes
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

MAPPED_BYTES = 256 * 1024
"""Blocks from here on are mapped one by one, and unmapped when they are freed."""

PROCESSES_VARIABLE = "TENURE_PROCESSES"
"""An environment variable: how many nodes one command has started on this machine."""

_M_MMAP_THRESHOLD = -3
"""Constants of glibc's malloc.h."""

_OWN_PAGES = "/proc/self/statm"
_OWN_GROUPS = "/proc/self/cgroup"
_GROUPS = Path("/sys/fs/cgroup")


def settle_allocator() -> None:
    """Called once per process, before anything large is allocated."""
    library = _c_library()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)


def trim() -> None:
    """Returns free pages to the system. The call releases the GIL, so other threads go on meanwhile."""
    library = _c_library()
    if library is not None:
        library.malloc_trim(0)


def resident_bytes() -> int:
    """The resident memory of the process; 0 where the system does not report it."""
    try:
        with open(_OWN_PAGES, "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@cache
def machine_bytes() -> int:
    """The most that this process may use: its part of the machine's memory, or of its container's."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    processes = int(os.environ.get(PROCESSES_VARIABLE, "1"))
    return min(machine, container_bytes(_GROUPS, _own_groups()) or machine) // processes


def container_bytes(root: Path, group_lines: str) -> int | None:
    """The least limit of the process's control groups, of version 2 or 1; None if there is none.

    `group_lines` is the content of /proc/self/cgroup: lines of `number:controllers:path`.
    """
    found = []
    for line in group_lines.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        place = top / path.strip("/")
        # Inside a container its own group may be mounted as the root: then the path does not exist.
        for group in (place, *place.parents):
            found += _limit(group / name)
            if group == top:
                break
    return min(found, default=None)


def _limit(file: Path) -> list[int]:
    with suppress(OSError, ValueError):  # there is none, or it is "max"
        return [int(file.read_text(encoding="ascii"))]
    return []


def _own_groups() -> str:
    with suppress(OSError):
        return Path(_OWN_GROUPS).read_text(encoding="utf-8")
    return ""


@cache
def _c_library() -> "ctypes.CDLL | None":
    """glibc; other C libraries return free memory by themselves."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None
