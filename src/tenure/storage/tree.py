"""A tree of files: what a local directory and a bucket of an object store have in common.

Files are written once and whole. A file exists, complete and durable, from the moment its `OutputStream` was
closed; a file that is not closed, for any reason, never exists. A name that is taken is refused when its file
is created, and again when it is closed.

    output = tree.create("a/b")     nothing to be seen yet
    output.write(...)
    output.close()                  there it is; or abort(): it never was

Names are relative, with `/` between their components. Callers have checked them: `storage.files` for names
that Tenure generates, `storage.locations` for those of users.

Invariant (whole-files): a file that can be seen is complete and survives a crash.
Invariant (written-once): an existing file is never overwritten.

Walk: `files.Files` and `locations.Location` are given one, a `directory.Directory` or a
`bucket.Bucket`.
"""

import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import IO, Any, NamedTuple, Protocol, Self

from tenure.base.errors import DiskFull, FileExists, FileMissing, InputOutput, NoPermission, StoreError

PAGE_ENTRIES = 1000
"""Files per page of a listing: as many as S3 returns."""


class TreeEntry(NamedTuple):
    name: str
    bytes: int
    modified_micros: int
    is_directory: bool = False
    is_odd: bool = False
    """A symbolic link, a device, a pipe: never opened, and told apart from a missing file."""


class InputStream(io.RawIOBase):
    """A stream that translates errors into Tenure's, also those of later reads."""

    def __init__(self, raw: Any, translated: Callable[[], AbstractContextManager[None]]) -> None:
        self._raw = raw
        self._translated = translated

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        with self._translated():
            data = self._raw.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._translated():
            return int(self._raw.seek(offset, whence))

    def tell(self) -> int:
        return int(self._raw.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()


class OutputStream:
    """A file that is being written. Left by an exception, as a context, or dropped, it is discarded.

    Not an `io.IOBase`: those close themselves when they are dropped, and closing publishes.
    """

    closed = True
    """True until the constructor is done, and again when the file was published or discarded."""

    def write(self, data: Any) -> int:
        raise NotImplementedError

    def tell(self) -> int:
        raise NotImplementedError

    def publish(self) -> None:
        raise NotImplementedError

    def discard(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Publishes the file; one that cannot be published is discarded."""
        if self.closed:
            return
        try:
            self.publish()
        except BaseException:
            self.abort()
            raise
        self.closed = True

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self.discard()

    def __del__(self) -> None:
        self.abort()

    def flush(self) -> None:
        """Does nothing: files appear whole or not at all."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class DuckConnection(Protocol):
    def register_filesystem(self, filesystem: Any) -> None: ...


class Tree(Protocol):
    @property
    def arrow(self) -> Any:
        """Opens files (`open_input_file`) for pyarrow's readers, as a pyarrow.fs.FileSystem does."""

    @property
    def duck_root(self) -> str: ...

    def duck_path(self, name: str) -> str: ...
    def let_duckdb_read(self, connection: DuckConnection) -> None: ...

    def translated(self, doing: str, shown: str) -> AbstractContextManager[None]:
        """Translates errors inside the context into Tenure's errors."""

    def open_input(self, name: str) -> IO[bytes]: ...
    def create(self, name: str, *, is_lasting: bool = True) -> OutputStream:
        """A file that need not last appears as well when it is published, but may be gone after a power
        cut.
        """

    def entry(self, name: str) -> TreeEntry | None: ...

    def children(self, directory: str) -> Iterator[TreeEntry]:
        """The entries directly in it, in name order; none if it does not exist."""

    def delete(self, names: Iterable[str]) -> None:
        """Missing files are ignored."""

    def delete_unfinished(self, *, before_micros: int) -> int:
        """Removes the files that crashed writers have left; returns their number."""


def walk(tree: Tree, directory: str) -> Iterator[TreeEntry]:
    """All files below, one directory at a time: no more than one listing is in memory at once."""
    pending = [directory]
    while pending:
        found = []
        for child in tree.children(pending.pop()):
            if child.is_directory:
                found.append(child.name)
            elif not child.is_odd:
                yield child
        pending.extend(reversed(found))


def join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory and name else directory or name


_KINDS: dict[int, type[StoreError]] = {
    errno.ENOENT: FileMissing,
    errno.EEXIST: FileExists,
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EACCES: NoPermission,
    errno.EPERM: NoPermission,
    errno.EROFS: NoPermission,
}


@contextmanager
def translated(doing: str, shown: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failure(doing, shown, error) from error


def failure(doing: str, shown: str, error: OSError) -> StoreError:
    """Translates the system's error: PostgreSQL's words, and no path but the requested one."""
    number = error.errno or (errno.ENOENT if isinstance(error, FileNotFoundError) else errno.EIO)
    return _KINDS.get(number, InputOutput)(f'could not {doing} "{shown}": {os.strerror(number)}')
