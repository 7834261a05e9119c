"""Whether the machine has room for one more large value.

What queries hold is counted where they hold it (`sql.rows.run`), batch by batch; a single batch of values of
64 MiB each would be too much before anybody counts. So whoever makes a large value asks here first, and
the answer is by what the process really has: half of the machine's memory, or of its container's, is
for a node. Beyond that a statement fails, and not the node.

Walk: functions of `expr` that make large values call `check_room`.
"""

import os
from functools import cache

from tenure.base.errors import UserError

LARGE_BYTES = 1 << 20
"""Below this nobody asks: such values are counted by whoever holds them."""

_CONTAINER_LIMIT = "/sys/fs/cgroup/memory.max"
_OWN_PAGES = "/proc/self/statm"


class OutOfMemory(UserError):
    sqlstate = "53200"


def check_room(size_bytes: int) -> None:
    """Raises OutOfMemory if a node should not take as much more."""
    if resident_bytes() + size_bytes > node_bytes_max():
        raise OutOfMemory(
            f"the node has no room for a value of {size_bytes} bytes",
            hint="Ask for smaller values, or for fewer at a time.",
        )


def resident_bytes() -> int:
    """What the process has in memory; 0 where the system does not say."""
    try:
        with open(_OWN_PAGES, "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@cache
def node_bytes_max() -> int:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open(_CONTAINER_LIMIT, encoding="ascii") as file:
            container = int(file.read())
    except (OSError, ValueError):  # none, or "max"
        container = machine
    return min(machine, container) // 2
