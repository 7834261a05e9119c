"""A tree of files in a local directory; no name and no symbolic link leads out of it.

Every component of a name is opened by itself, relative to the one before and without following links
(`openat` with O_NOFOLLOW). So there is no gap between a check and the use of what was checked: a directory
that is replaced by a link meanwhile is refused, whenever that happens. Only the path to the root itself,
which the operator chose, may contain links. Only plain files are opened: a pipe would make its reader wait
for ever.

    create   .unfinished/<process>-<number>   written, fsynced
             linked to its name               fails if there is one already
             every directory up to the root   fsynced: their entries are durable too

Publishing needs a file system with hard links, because a rename would replace an existing file. A writer that
crashes leaves a file in `.unfinished`, which `delete_unfinished` removes.

Invariant (no-way-out): no name and no symbolic link leads out of a directory.

Walk: `files.open_files` and `locations.Locations.resolve` make one.
"""

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import IO, Any

from tenure.base.errors import FileMissing, InputOutput, NoPermission
from tenure.storage.tree import DuckConnection, InputStream, OutputStream, TreeEntry, failure, translated

UNFINISHED = ".unfinished"
BUFFER_BYTES = 256 * 1024

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_numbers = count()


class Directory:
    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)

    @property
    def arrow(self) -> Any:
        from pyarrow import fs

        return fs.SubTreeFileSystem(self.root, fs.LocalFileSystem())

    @property
    def duck_root(self) -> str:
        return f"{self.root}/"

    def duck_path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def let_duckdb_read(self, connection: DuckConnection) -> None:
        """DuckDB reads local files by itself."""

    def translated(self, doing: str, shown: str) -> AbstractContextManager[None]:
        return translated(doing, shown)

    def open_input(self, name: str) -> IO[bytes]:
        *parents, last = name.split("/")
        with translated("open file", name), self.opened(parents) as directory:
            _refuse_link(last, directory, name)
            file = os.open(last, _READ, dir_fd=directory)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise InputOutput(f'could not open file "{name}": it is not a plain file')
            raw = open(file, "rb", buffering=0)  # noqa: SIM115 closed by the reader around it
        return io.BufferedReader(InputStream(raw, lambda: translated("read file", name)), BUFFER_BYTES)

    def create(self, name: str, *, is_lasting: bool = True) -> OutputStream:
        if self.entry(name) is not None:
            raise failure("create file", name, FileExistsError(errno.EEXIST, ""))
        with translated("create file", name):
            return _LocalOutput(self, name, is_lasting)

    def entry(self, name: str) -> TreeEntry | None:
        *parents, last = name.split("/")
        try:
            with translated("look at file", name), self.opened(parents) as directory:
                return _entry(name, os.stat(last or ".", dir_fd=directory, follow_symlinks=False))
        except FileMissing:
            return None

    def children(self, directory: str) -> Iterator[TreeEntry]:
        parts = directory.split("/") if directory else []
        entries = []
        try:
            with translated("list", directory), self.opened(parts) as opened, os.scandir(opened) as found:
                for each in found:
                    if each.name == UNFINISHED:
                        continue
                    try:
                        state = each.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted since
                        continue
                    entries.append(_entry("/".join([*parts, each.name]), state))
        except FileMissing:
            pass
        yield from sorted(entries)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            *parents, last = name.split("/")
            try:
                with translated("delete file", name), self.opened(parents) as directory:
                    os.unlink(last, dir_fd=directory)
            except FileMissing:
                pass

    def delete_unfinished(self, *, before_micros: int) -> int:
        unfinished = list(self.children(UNFINISHED))
        old = [each.name for each in unfinished if each.modified_micros < before_micros]
        self.delete(old)
        return len(old)

    def make_root(self) -> None:
        """Makes the root, durably, if it is not there."""
        with translated("create directory", self.root):
            missing = []
            path = self.root
            while not os.path.isdir(path):
                missing.append(path)
                path = os.path.dirname(path)
            for path in reversed(missing):
                os.makedirs(path, mode=0o700, exist_ok=True)
                above = os.open(os.path.dirname(path), _DIRECTORY)
                try:
                    _sync(above)
                finally:
                    os.close(above)

    @contextmanager
    def opened(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """The file descriptor of a directory, reached component by component.

        With `make`, missing directories are made, and every entry on the way is made durable: a directory
        that another process has just made may not be durable yet.
        """
        current = os.open(self.root, _DIRECTORY)
        try:
            for part in parts:
                if make:
                    _make_directory(part, current)
                below = _enter(part, current)
                current, above = below, current
                os.close(above)
            yield current
        finally:
            os.close(current)


class _LocalOutput(OutputStream):
    def __init__(self, directory: Directory, name: str, is_lasting: bool) -> None:
        self._directory = directory
        self._name = name
        self._is_lasting = is_lasting
        self._temporary, self._file = self._make_temporary()
        self.closed = False

    def write(self, data: Any) -> int:
        with translated("write file", self._name):
            return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def publish(self) -> None:
        with translated("write file", self._name):
            self._file.flush()
            if self._is_lasting:
                os.fsync(self._file.fileno())
            self._file.close()
            *parents, last = self._name.split("/")
            with (
                self._directory.opened([UNFINISHED]) as unfinished,
                self._directory.opened(parents, make=True) as directory,
            ):
                os.link(self._temporary, last, src_dir_fd=unfinished, dst_dir_fd=directory)
                try:
                    if self._is_lasting:
                        _sync(directory)
                except OSError:
                    os.unlink(last, dir_fd=directory)
                    raise
        self.discard()

    def discard(self) -> None:
        try:
            self._file.close()
        except OSError:  # an unfinished file need not be closed cleanly
            pass
        try:
            with self._directory.opened([UNFINISHED]) as unfinished:
                os.unlink(self._temporary, dir_fd=unfinished)
        except OSError:  # `delete_unfinished` removes it later
            pass

    def _make_temporary(self) -> tuple[str, IO[bytes]]:
        with self._directory.opened([UNFINISHED], make=True) as unfinished:
            while True:
                name = f"{os.getpid()}-{next(_numbers)}"
                try:
                    return name, open(os.open(name, _WRITE, 0o600, dir_fd=unfinished), "wb")
                except FileExistsError:  # made by a process of that number elsewhere, or long ago
                    continue


def _enter(part: str, directory: int) -> int:
    try:
        return os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except NotADirectoryError:  # Linux reports a link so
        _refuse_link(part, directory, part)
        raise


def _refuse_link(last: str, directory: int, shown: str) -> None:
    """Gives a better message: without it, opening fails as well."""
    try:
        state = os.stat(last, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(state.st_mode):
        raise NoPermission(f'could not open file "{shown}": symbolic links are not followed')


def _entry(name: str, state: os.stat_result) -> TreeEntry:
    is_directory = stat.S_ISDIR(state.st_mode)
    is_odd = not is_directory and not stat.S_ISREG(state.st_mode)
    return TreeEntry(name, state.st_size, state.st_mtime_ns // 1000, is_directory, is_odd)


def _make_directory(name: str, parent: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        pass
    _sync(parent)


def _sync(directory: int) -> None:
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without fsync of directories
            raise
