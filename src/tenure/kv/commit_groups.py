"""How many of the commits that wait form the next group.

A group holds the engine's section until it is durable, and a heartbeat waits that long. So commits that write
much do not share a group: the heartbeat enters between them.

Walk: `kv.commits` calls `group_size` when it has the section.
"""

from collections.abc import Collection
from itertools import islice
from typing import Protocol

from tenure.storage.engine import Commit

GROUP_MAX = 128
"""Commits per group: beyond this, PostgreSQL's rate no longer grows but latency does."""

GROUP_ROWS_MAX, GROUP_BYTES_MAX = 10_000, 16 << 20
"""Writes of a group with more than one commit. A slow disk takes half a second for so many bytes."""


class WaitingCommit(Protocol):
    @property
    def commit(self) -> Commit: ...


def group_size(queue: Collection[WaitingCommit]) -> int:
    """All that wait, within the limits, and at least one."""
    if len(queue) < 2:
        return len(queue)
    rows = size_bytes = 0
    for number, waiting in enumerate(islice(queue, GROUP_MAX)):
        writes = waiting.commit.writes
        rows += len(writes)
        if rows <= GROUP_ROWS_MAX:
            size_bytes += sum([len(write.value) for write in writes if write.value is not None])
        if number and (rows > GROUP_ROWS_MAX or size_bytes > GROUP_BYTES_MAX):
            return number
    return min(GROUP_MAX, len(queue))
