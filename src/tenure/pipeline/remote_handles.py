"""Handles of the store and the lake for other processes of the pipeline, which open them again by address.

An executor's Python process serves many tasks: it keeps the store and lake open until it is told to close
them.

Walk: kernels call `opened(place)`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tenure.base.env import SystemEnv
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Table
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tenure.storage.bucket import Credentials
from tenure.storage.files import Files, open_files
from tenure.table.lake.identity import LakeIdentity

if TYPE_CHECKING:
    from tenure.table.lake.checked_files import CheckedFiles

OPENED_MAX = 4


class StoreHandle(NamedTuple):
    store: str
    lake: str
    tenant: int
    credentials: Credentials | None = None
    """The lake's credentials, if they are not in the environment; never displayed."""
    identity: str = ""
    """The id that store and lake carry; empty in tests that need none."""


class TableVersion(NamedTuple):
    """A table as of a time, as it can be sent to other processes."""

    table: Table
    enums: tuple[EnumType, ...]


def version_of(table: int, get: Callable[[int], AnyDescriptor | None]) -> TableVersion | None:
    """A table with the types that it needs; None if it does not exist."""
    found = get(table)
    if not isinstance(found, Table):
        return None
    used = {column.type.enum for column in found.columns if column.type.enum}
    enums = [get(id) for id in sorted(used)]
    return TableVersion(found, tuple(enum for enum in enums if isinstance(enum, EnumType)))


class OpenHandles(NamedTuple):
    store: Store
    lake: Files
    checked: "CheckedFiles"
    """The lake's files as readers of rows open them."""

    def close(self) -> None:
        self.store.close()
        self.store.engine.close()


def opened(place: StoreHandle) -> OpenHandles:
    """Store and lake of a task; refused if the lake at the address is not the store's.

    Each task checks: another machine may have another directory at the same path, or its disk not mounted.
    """
    found = _opened(place)
    if place.identity:
        LakeIdentity(found.store, found.lake, place.identity).check()
    return found


@lru_cache(maxsize=OPENED_MAX)
def _opened(place: StoreHandle) -> OpenHandles:
    # Arrow is imported when there is something to read: nodes use handles without it.
    from tenure.table.lake.checked_files import CheckedFiles
    from tenure.table.lake.damage import damage_in

    env = SystemEnv()
    store = Store(open_engine(place.store, env), env, tenant=place.tenant)
    files = open_files(place.lake, place.credentials)
    return OpenHandles(store, files, CheckedFiles(files, damage_in(store)))


def close(place: StoreHandle) -> None:
    """For a process that goes on and has no more tasks there."""
    _opened(place).close()
    _opened.cache_clear()
