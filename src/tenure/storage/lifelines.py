"""A proof that a process is dead: a file that it holds locked as long as it lives.

    start    make DIRECTORY/TOKEN, lock it (flock)      the kernel holds the lock for the process
    death    the kernel releases the lock               a process that gets it knows: the owner is gone
    end      remove the file, then release the lock     no file, no proof

A session names the file of its process: its name, its device and inode, and the kernel (the boot id) under
which the lock is held. Another process may conclude that this one is dead only if it runs under the same
kernel, has found that very file and got its lock. So another machine, a container with directories of its
own, a machine made from an image and a copy of the store's directory conclude nothing. The lifelines of a
store in a file lie beside the file; those of a store in a server lie in a directory of this user on this
machine.

A process that is stopped keeps its lock. So do processes that it forked and that live on: then nothing is
concluded, and its sessions expire as usual. A missing file proves nothing.

Invariant (death-is-proved): a process gives up its lock only when it has ended or has removed the file.

Walk: `composition.cluster_layer` makes one before its session; `cluster.sessions.reaped_sessions` asks
`is_dead` for the sessions that it finds.
"""

import fcntl
import logging
import os
import tempfile
from contextlib import suppress
from typing import NamedTuple

from tenure.base.env import Env
from tenure.storage.addresses import SQLITE_PREFIX, is_local

BOOT_ID = "/proc/sys/kernel/random/boot_id"
KEPT_SECONDS = 24 * 3600.0
"""A file without a holder is removed after this time: its session has expired long ago."""

_log = logging.getLogger(__name__)


class Lifeline(NamedTuple):
    """How a session refers to the file of its process."""

    token: str
    kernel: str
    """The boot id of the kernel under which the lock is held."""
    device: int
    inode: int


class Lifelines:
    """The lifelines that this process can check, and its own."""

    def __init__(self, directory: str, env: Env, *, kernel: str) -> None:
        """Raises OSError if files cannot be locked there."""
        self._directory = directory
        self._env = env
        self._kernel = kernel
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.lstat(directory)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(f"{directory} belongs to others, or others may write to it")
        self._token, self._descriptor = self._hold()

    def _hold(self) -> tuple[str, int]:
        while True:
            token = f"{self._env.rng.getrandbits(128):032x}"
            path = os.path.join(self._directory, token)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:  # `tidy` has not removed it before it was locked
                return token, descriptor
            os.close(descriptor)

    def own(self) -> Lifeline:
        found = os.fstat(self._descriptor)
        return Lifeline(self._token, self._kernel, found.st_dev, found.st_ino)

    def is_dead(self, lifeline: Lifeline) -> bool:
        """Whether the process of this lifeline is certainly dead."""
        if lifeline.kernel != self._kernel or not _is_token(lifeline.token):
            return False
        try:
            descriptor = os.open(self._path(lifeline), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            return _is_file_of(descriptor, lifeline) and _is_free(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, lifeline: Lifeline) -> None:
        """Removes the file of a dead process, once its sessions are cleaned up."""
        with suppress(OSError):
            os.unlink(self._path(lifeline))

    def tidy(self, now_seconds: float) -> None:
        """Removes files that have had no holder for long."""
        for entry in list(os.scandir(self._directory)):
            with suppress(OSError):
                is_old = entry.stat(follow_symlinks=False).st_mtime < now_seconds - KEPT_SECONDS
                if is_old and _is_token(entry.name) and self.is_dead(self._found(entry)):
                    os.unlink(entry.path)

    def _found(self, entry: "os.DirEntry[str]") -> Lifeline:
        found = entry.stat(follow_symlinks=False)
        return Lifeline(entry.name, self._kernel, found.st_dev, found.st_ino)

    def _path(self, lifeline: Lifeline) -> str:
        return os.path.join(self._directory, lifeline.token)

    def close(self) -> None:
        # In this order: a file that exists and is not locked means that its process is dead.
        self.remove(self.own())
        os.close(self._descriptor)


def open_lifelines(store: str, env: Env) -> Lifelines | None:
    """The lifelines of a store's processes on this machine; None where no death can be proved."""
    kernel = _boot_id()
    if not kernel:
        return None
    is_beside = is_local(store)
    directory = f"{store.removeprefix(SQLITE_PREFIX)}-nodes" if is_beside else _runtime_directory()
    try:
        return Lifelines(directory, env, kernel=kernel)
    except OSError as error:
        _log.info("the death of this process cannot be proved, its sessions will have to expire: %s", error)
        return None


def _runtime_directory() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return os.path.join(runtime, "tenure-nodes")
    return os.path.join(tempfile.gettempdir(), f"tenure-nodes-{os.geteuid()}")


def _boot_id() -> str:
    try:
        with open(BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


def _is_token(name: str) -> bool:
    """Names come from the store: none of them may lead out of the directory."""
    return len(name) == 32 and all(each in "0123456789abcdef" for each in name)


def _is_file_of(descriptor: int, lifeline: Lifeline) -> bool:
    found = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (lifeline.device, lifeline.inode)


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
