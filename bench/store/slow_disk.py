"""A disk whose every fsync takes at least 2 ms: a VFS between SQLite and the real one.

Walk: `bench.store.commits` registers it and opens both sides through it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

NAME = "slow-fsync"
FSYNC_SECONDS = 0.002


class SlowDisk(apsw.VFS):
    def __init__(self) -> None:
        super().__init__(NAME, base="")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "SlowFile":  # noqa: N802
        return SlowFile("", name, flags)


class SlowFile(apsw.VFSFile):
    def xSync(self, flags: int) -> None:  # noqa: N802
        began = time.perf_counter()
        super().xSync(flags)
        time.sleep(max(0.0, FSYNC_SECONDS - (time.perf_counter() - began)))


@contextmanager
def slow_disk() -> Iterator[str]:
    """Lends the name of the VFS."""
    disk = SlowDisk()
    try:
        yield NAME
    finally:
        disk.unregister()
