"""A copy of a store and its lake, made while nodes run: a separate store, with an id of its own.

    1  files that manifests name now                   most of the bytes; nothing waits for them
    2  the store's file, as of one moment, to PATH.unfinished, by SQLite's backup interface
    3  files that its manifests name and 1 has not      few; one that is gone by now: all again from 1
    4  a new id in both; the sessions of the original's running nodes are deleted
    5  PATH.unfinished gets its name

Files are written once, so a copied file is right for every later attempt. Each is compared with its checksum
on the way. A copy that was interrupted has no store at PATH; its lake is not empty, so no other store begins
there.

Invariant (whole-copy): a copy that can be opened as a store is complete, as of one moment.

Walk: `tenure store copy` calls `copy_store`.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import NamedTuple

from tenure.base.env import Env
from tenure.base.errors import (
    CorruptData,
    FileExists,
    FileMissing,
    InputOutput,
    InvalidParameter,
    NotSupported,
)
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.addresses import POSTGRES_PREFIXES, SQLITE_PREFIX, open_engine, redacted
from tenure.storage.engine import StoreOrigin
from tenure.storage.files import Files, open_files
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tenure.table.lake.identity import id_file, lake_ids
from tenure.table.lake.manifests import File, Manifest, Manifests
from tenure.table.lake.opening import open_lake, use_lake

UNFINISHED = ".unfinished"
BESIDE_A_STORE = ("-wal", "-shm", "-queue", "-section")
"""Files that an engine leaves beside its own, or may leave if it is killed."""

ATTEMPTS_MAX = 10
"""Each attempt fails only if a file was merged away, `lake.file_grace` ago, between the store's copy and its
own.
"""


class CopiedStore(NamedTuple):
    store: str
    lake: str
    files: int
    bytes: int


class OpenStore(NamedTuple):
    """A store and its lake, opened by a process that is no node."""

    engine: SqliteEngine
    store: Store
    files: Files
    jobs: Jobs
    sessions: Sessions

    def named(self) -> list[tuple[Manifest, File]]:
        manifests = Manifests(self.store.keyspace).all(self.store.snapshot())
        return [(manifest, file) for manifest in manifests for file in manifest.files]


def copy_store(source: str, lake: str, target: str, target_lake: str, env: Env) -> CopiedStore:
    """Copies a SQLite store with its lake; the target must not exist yet."""
    path = _path_of(target)
    if not os.path.isfile(_path_of(source)):
        raise FileMissing(f'store "{source}" does not exist')
    with ExitStack() as undo:
        opened = _open(undo, source, open_files(lake), env)
        open_lake(opened.store, opened.files, opened.jobs, opened.engine.origin())
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        copy = _Copy(opened, path, open_files(target_lake), env)
        copy.refuse_taken()
        with ExitStack() as unless_done:
            unless_done.callback(copy.remove)
            copy.copy()
            copy.identify()
            copy.publish()
            unless_done.pop_all()
        return CopiedStore(target, copy.files.address, len(copy.copied), sum(copy.copied.values()))


def _path_of(address: str) -> str:
    if address.startswith(POSTGRES_PREFIXES):
        raise NotSupported(
            f'store "{redacted(address)}" is in PostgreSQL, which `tenure store copy` does not copy',
            hint="Copy the database with pg_dump or a base backup, and after it the lake's files, within "
            "lake.file_grace or with all nodes stopped. Then run `tenure store use-lake` on the copies.",
        )
    path = address.removeprefix(SQLITE_PREFIX)
    if not address.startswith(SQLITE_PREFIX) or not path:
        raise InvalidParameter(f'"{redacted(address)}" is not a store', hint="Give sqlite:PATH.")
    return path


def _open(undo: ExitStack, address: str, files: Files, env: Env) -> OpenStore:
    engine = open_engine(address, env)
    assert isinstance(engine, SqliteEngine)
    undo.callback(engine.close)
    store = Store(engine, env)
    undo.callback(store.close)
    sessions = Sessions(store.keyspace)
    return OpenStore(engine, store, files, Jobs(store.keyspace, sessions, store.clock), sessions)


class _Copy:
    def __init__(self, source: OpenStore, path: str, files: Files, env: Env) -> None:
        self._source = source
        self._path = path
        self._unfinished = path + UNFINISHED
        self.files = files
        self._env = env
        self.copied: dict[str, int] = {}
        """Sizes of the files that are in the copy, by their names."""

    def refuse_taken(self) -> None:
        for path in (self._path, self._unfinished):
            if os.path.exists(path):
                raise FileExists(
                    f'file "{path}" exists',
                    hint="Name a file that is not there. What is left of a copy that was cut off may go.",
                )
        if next(self.files.list(), None) is not None:
            raise FileExists(
                f'lake "{self.files.address}" is not empty',
                hint="Give the copy an empty one with --to-lake.",
            )

    def copy(self) -> None:
        for _ in range(ATTEMPTS_MAX):
            with suppress(FileMissing):
                self._copy_files(self._source.named())
                self._source.engine.copy_to(self._unfinished)
                with ExitStack() as undo:
                    named = self._opened(undo).named()
                self._copy_files(named)
                self._drop_all_but({file.name for _, file in named})
                return
            self._remove_unfinished()
        raise InputOutput(
            "files of the lake are merged away faster than they can be copied",
            hint="Raise the cluster setting lake.file_grace, and copy again.",
        )

    def identify(self) -> None:
        """Makes the copy a store of its own, without sessions."""
        with ExitStack() as undo:
            copy = self._opened(undo)

            def release(txn: Transaction) -> None:
                for present in list(copy.sessions.list(txn)):
                    copy.sessions.release(txn, present.id)

            copy.store.transact(release)
            origin = StoreOrigin(copy.engine.origin().serial, os.path.realpath(self._path))
            use_lake(copy.store, self.files, copy.jobs, copy.sessions, origin)

    def publish(self) -> None:
        """From here on it can be opened: the file is complete, and its lake exists."""
        try:
            if os.path.exists(self._unfinished + "-wal"):
                raise InputOutput(f'file "{self._unfinished}" is in use by another program')
            os.link(self._unfinished, self._path)  # a rename would replace a file that exists by now
            _sync(os.path.dirname(self._path) or ".")
        except OSError as error:
            raise InputOutput(f'could not create file "{self._path}": {error.strerror}') from error
        self._remove_unfinished()

    def remove(self) -> None:
        """Removes what was written so far."""
        self._remove_unfinished()
        self.files.delete([*self.copied, *map(id_file, lake_ids(self.files))])

    def _opened(self, undo: ExitStack) -> OpenStore:
        return _open(undo, SQLITE_PREFIX + self._unfinished, self.files, self._env)

    def _copy_files(self, named: Iterable[tuple[Manifest, File]]) -> None:
        # Read and checked whole: Arrow is imported only if there is a file to check.
        from tenure.table.lake.format import has_checksum

        for manifest, file in named:
            if file.name in self.copied:
                continue
            data = self._source.files.read(file.name, bytes_max=file.size)
            if len(data) != file.size or not has_checksum(data, file.checksum):
                raise CorruptData(
                    f'file "{file.name}" of table {manifest.table}, index {manifest.index} is damaged: it is '
                    "not what was written",
                    hint="Restore the file from a backup. Nothing was copied.",
                )
            with self.files.create(file.name) as output:
                output.write(data)
            self.copied[file.name] = len(data)

    def _drop_all_but(self, names: set[str]) -> None:
        """Deletes files of an earlier attempt, which were merged away before the moment of the copy."""
        gone = [name for name in self.copied if name not in names]
        self.files.delete(gone)
        for name in gone:
            del self.copied[name]

    def _remove_unfinished(self) -> None:
        for suffix in ("", *BESIDE_A_STORE):
            with suppress(FileNotFoundError):
                os.unlink(self._unfinished + suffix)


def _sync(directory: str) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
