"""Where a process of the pipeline finds what it works on: the store and the lake, opened again by address.

An executor's Python process serves many tasks: what it has opened it keeps, until it is told to close it.

Walk: kernels call `opened(place)`.
"""

from functools import lru_cache
from typing import NamedTuple

from tenure.base.env import SystemEnv
from tenure.catalog.descriptors import EnumType, Table
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tenure.storage.bucket import Credentials
from tenure.storage.files import Files, open_files
from tenure.table.lake.identity import LakeIdentity

OPENED_MAX = 4


class Place(NamedTuple):
    store: str
    lake: str
    tenant: int
    credentials: Credentials | None = None
    """Of the lake, if they are not in the environment; never shown."""
    identity: str = ""
    """The id that store and lake carry; empty in tests that need none."""


class Version(NamedTuple):
    """A table as of a time, as it can be sent to other processes."""

    table: Table
    enums: tuple[EnumType, ...]


class Opened(NamedTuple):
    store: Store
    lake: Files

    def close(self) -> None:
        self.store.close()
        self.store.engine.close()


@lru_cache(maxsize=OPENED_MAX)
def opened(place: Place) -> Opened:
    env = SystemEnv()
    store = Store(open_engine(place.store, env), env, tenant=place.tenant)
    found = Opened(store, open_files(place.lake, place.credentials))
    if place.identity:
        _check(found, place.identity)
    return found


def _check(found: Opened, identity: str) -> None:
    """Another machine may have another directory at the same path."""
    try:
        LakeIdentity(found.store, found.lake, identity).check()
    except BaseException:
        found.close()
        raise


def close(place: Place) -> None:
    """For a process that goes on and has no more tasks there."""
    opened(place).close()
    opened.cache_clear()
