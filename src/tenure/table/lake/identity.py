"""A store and its lake carry one id, so that neither is mistaken for another's.

    store   one record    id, where the lake is, where the store was, BEGUN or SETTLED
    lake    one file      identity/<id>.json, and no other beside it

To a foreign store every file of a lake looks like a stray, and it would delete them. So a node refuses a lake
whose id is not the store's, and checks the id again before anything is deleted, in the lake or, after a
flush, from the store.

Ids alone do not tell a copy from the original. So the record also has the lake's location, which a copy of
the lake does not have, and the store's origin, which a copy of the store does not have. Where the lake lies
below the directory of the store's file, both are relative to it: a directory that was moved as a whole is
still accepted.

Invariant (lake-id): nothing is deleted from a lake whose id is not the store's.

Walk: `lake.opening` writes both; `LakeIdentity.check` is called before files are deleted, and by
`pipeline.remote_handles` when a task opens store and lake.
"""

import os
from collections.abc import Iterable
from enum import Enum
from urllib.parse import parse_qsl, unquote, urlencode

from tenure.base.errors import WrongLake
from tenure.kv.keys import STORE_LAKE, Keyspace
from tenure.kv.records import Record, Records
from tenure.kv.store import Store
from tenure.storage.engine import StoreOrigin
from tenure.storage.files import Files

DIRECTORY = "identity"
SUFFIX = ".json"
BESIDE = "beside:"
"""The prefix of a location that is relative to the directory of the store's file."""

NAMES_SHOWN = 3
USE_LAKE = "run `tenure store use-lake` with this --store and --lake"


class Stage(Enum):
    BEGUN = "begun"
    """The id is chosen; the lake may not have it yet. The next process to open the lake continues from
    here.
    """
    SETTLED = "settled"


class StoreLake(Record, frozen=True):
    """The lake that belongs to the store."""

    id: str
    location: str
    origins: tuple[str, ...]
    """Origins of the store: one of them is enough to recognize it, a copy has neither."""
    stage: Stage
    former: tuple[str, ...] = ()
    """While it is BEGUN: ids that the same lake may still have, and that are removed."""


def store_lakes(keyspace: Keyspace) -> Records[StoreLake]:
    return Records(keyspace, STORE_LAKE, StoreLake, key=())


class LakeIdentity:
    """The id under which a store and a lake were opened."""

    def __init__(self, store: Store, files: Files, id: str) -> None:
        self._store = store
        self._files = files
        self._records = store_lakes(store.keyspace)
        self.id = id

    def check(self) -> None:
        """Raises WrongLake unless the store and the lake both still carry the id."""
        stored = self._records.get(self._store.snapshot())
        if stored is None or stored.id != self.id or stored.stage is not Stage.SETTLED:
            raise WrongLake(
                f'lake "{self._files.address}" is no longer the lake of this store',
                hint="Start this process again, with the lake that the store has been given.",
            )
        refuse_other_ids(self._files, lake_ids(self._files), self.id)


def refuse_other_ids(files: Files, found: Iterable[str], id: str) -> None:
    """Raises WrongLake unless a lake has exactly this id."""
    ids = set(found)
    if ids == {id}:
        return
    if not ids:
        raise WrongLake(
            f'"{files.address}" is not the lake of this store: it has no id, and the store\'s lake has {id}',
            hint="Is its disk mounted, and is this the machine that has it? If the lake is lost, restore it "
            f"from a backup; if it lies elsewhere, give it with --lake. To begin a new one, {USE_LAKE}.",
        )
    if id in ids:
        others = ", ".join(sorted(ids - {id}))
        raise WrongLake(
            f'lake "{files.address}" is claimed by two stores: by this one, as {id}, and as {others}',
            hint=f"Give the other store a lake of its own, then remove {others} from the directory "
            f'"{DIRECTORY}" of this one.',
        )
    raise foreign(files)


def foreign(files: Files) -> WrongLake:
    return WrongLake(
        f'lake "{files.address}" belongs to another store',
        hint="Give this store a lake of its own with --lake. If the other store is gone for good, remove "
        "that directory, or its files in the bucket, first.",
    )


# ── in the lake ────────────────────────────────────────────────────────────────────────────────


def lake_ids(files: Files) -> list[str]:
    """The ids in a lake: one, in the normal case."""
    return [name.removesuffix(SUFFIX) for name in files.names_in(DIRECTORY)]


def id_file(id: str) -> str:
    return f"{DIRECTORY}/{id}{SUFFIX}"


# ── where they are ─────────────────────────────────────────────────────────────────────────────


def location_of(address: str, origin: StoreOrigin) -> str:
    """The stored location of the lake: the same text whenever it is the same place."""
    if not address.startswith("file://"):
        return _without_region(address)
    root, home = unquote(address.removeprefix("file://")), os.path.dirname(origin.path)
    if origin.path and os.path.commonpath([home, root]) == home:
        return BESIDE + os.path.relpath(root, home)
    return address


def _without_region(address: str) -> str:
    """A bucket is the same with and without its region."""
    place, _, query = address.partition("?")
    kept = [(name, value) for name, value in parse_qsl(query) if name != "AWS_REGION"]
    return f"{place}?{urlencode(kept)}" if kept else place


def origins_of(origin: StoreOrigin, location: str) -> tuple[str, ...]:
    path = os.path.basename(origin.path) if location.startswith(BESIDE) else origin.path
    return (origin.serial, path) if path else (origin.serial,)


def shown(location: str, origin: StoreOrigin) -> str:
    """A location as an operator would write it."""
    if not location.startswith(BESIDE):
        return location
    return os.path.normpath(os.path.join(os.path.dirname(origin.path), location.removeprefix(BESIDE)))
