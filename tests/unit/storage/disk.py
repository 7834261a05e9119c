"""A disk that can be made to fail: an SQLite file system before the real one."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


class Disk(apsw.VFS):
    """Give its `name` to the engine; then fill it up, or let its fsync fail."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_full = False
        self.loses_syncs = False
        self.synced: list[str] = []
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "_File":  # noqa: N802
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._disk.is_full:
            raise apsw.exception_for(apsw.SQLITE_FULL)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._disk.loses_syncs:
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)
        self._disk.synced.append(self._name)


@contextmanager
def failing_disk(name: str) -> Iterator[Disk]:
    disk = Disk(name)
    try:
        yield disk
    finally:
        disk.unregister()
