"""Opening a lake for a store: checks that it is the store's own, and marks a new one.

    judge       compares the store's record and the lake's ids              OPEN, BEGIN, FINISH, or a refusal
    BEGIN       the lake has no file that the store does not know, and all that it names ──► record BEGUN
    FINISH      identity/<id>.json is written ──► no other id is there ──► the same again ──► record SETTLED

Nodes that open a new store and a new lake at the same moment agree on the record, and all do the rest. A
crash leaves BEGUN, and the next process to open the lake finishes it. Two new stores that are given one lake
each write their own file before they look: at least one of them sees the other's and is refused.

By `use_lake` an operator declares that a lake is the store's, from where it is now: after a move of the lake,
or of the store. It gives both a new id, so that copies that carry the old one are refused.

Invariant (one-lake): nodes of one store that are accepted have one lake.

Walk: `composition.table_layer` calls `open_lake` when its session is there; `bulk.store_copy` and `tenure
store use-lake` call `use_lake`.
"""

import json
import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto
from typing import NamedTuple

from tenure.base.errors import FileExists, RetryError, WrongLake
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.records import replace
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import StoreOrigin
from tenure.storage.files import Files
from tenure.table.lake.identity import (
    NAMES_SHOWN,
    USE_LAKE,
    LakeIdentity,
    Stage,
    StoreLake,
    foreign,
    id_file,
    lake_ids,
    location_of,
    origins_of,
    refuse_other_ids,
    shown,
    store_lakes,
)
from tenure.table.lake.manifests import Manifests

ATTEMPTS_MAX = 10
"""Each attempt fails only because another process has written the record meanwhile."""

FORMAT = 1
"""The format of the file in the lake."""

UNSHARED = (
    "the lake %s is a directory of this machine, while the store is in a server: nodes and workers on other "
    "machines are refused unless they reach this very directory by this path; s3:// is reached by all"
)

_log = logging.getLogger(__name__)
_JOB = re.compile(r"j(\d+)-r\d+-")


class Verdict(Enum):
    OPEN = auto()
    BEGIN = auto()
    FINISH = auto()
    FOREIGN = auto()
    """The lake carries the id of another store."""
    ELSEWHERE = auto()
    """The store's lake is at another place."""
    MOVED = auto()
    """The same, but this lake carries the store's id: it was moved, or is a copy."""
    COPIED = auto()
    """The store itself is at another place: it was moved, or is a copy."""


class Contents(NamedTuple):
    """The files of a lake that a store names, and the others."""

    missing: list[str]
    unknown: list[str]


def open_lake(store: Store, files: Files, jobs: Jobs, origin: StoreOrigin) -> LakeIdentity:
    """Returns the id under which both are open; raises WrongLake if the lake is not the store's.

    From then on `files` checks that id before it deletes anything.
    """
    identity = _Opening(store, files, jobs, origin).open()
    files.confirm_by(identity.check)
    if files.is_local and not origin.path:
        _log.warning(UNSHARED, files.address)
    return identity


def use_lake(
    store: Store,
    files: Files,
    jobs: Jobs,
    sessions: Sessions,
    origin: StoreOrigin,
    *,
    with_unknown_files: bool = False,
) -> int:
    """Makes a lake the store's under a new id; returns how many of its files the store does not know.

    Refused while nodes are running, if the lake is another store's, lacks a file that the store names or,
    unless the operator confirms them, has files that it does not know.
    """
    return _Opening(store, files, jobs, origin).use(sessions, with_unknown_files=with_unknown_files)


def judge(stored: StoreLake | None, location: str, origins: Iterable[str], ids: Iterable[str]) -> Verdict:
    """The verdict on a lake at a location that has these ids."""
    has = set(ids)
    is_elsewhere = stored is not None and stored.location != location
    if stored is None or (stored.stage is Stage.BEGUN and is_elsewhere and not stored.former):
        return Verdict.FOREIGN if has else Verdict.BEGIN
    of_store = {stored.id, *stored.former}
    if is_elsewhere:
        return Verdict.MOVED if has & of_store else Verdict.ELSEWHERE
    if stored.stage is Stage.BEGUN:
        return Verdict.FOREIGN if has - of_store else Verdict.FINISH
    return Verdict.OPEN if set(origins) & set(stored.origins) else Verdict.COPIED


class _Opening:
    def __init__(self, store: Store, files: Files, jobs: Jobs, origin: StoreOrigin) -> None:
        self._store = store
        self._files = files
        self._jobs = jobs
        self._origin = origin
        self._records = store_lakes(store.keyspace)
        self._manifests = Manifests(store.keyspace)
        self._location = location_of(files.address, origin)
        self._origins = origins_of(origin, self._location)

    def open(self) -> LakeIdentity:
        for _ in range(ATTEMPTS_MAX):
            stored = self._records.get(self._store.snapshot())
            try:
                id = self._try_opening(stored)
            except WrongLake:
                # An id that looks foreign may be one that another node of this store has just begun.
                if self._records.get(self._store.snapshot()) == stored:
                    raise
                continue
            if id is not None:
                return LakeIdentity(self._store, self._files, id)
        raise RetryError(f'lake "{self._files.address}": other processes are opening it all the time')

    def _try_opening(self, stored: StoreLake | None) -> str | None:
        """The id under which the lake is open; None if the record has changed meanwhile."""
        ids = lake_ids(self._files)
        verdict = judge(stored, self._location, self._origins, ids)
        if verdict is Verdict.OPEN:
            assert stored is not None
            refuse_other_ids(self._files, ids, stored.id)
            self._refresh(stored)
            return stored.id
        if verdict is Verdict.BEGIN:
            self._refuse_unfit(self._contents(), with_unknown=False)
            stored = self._begin(stored, former=())
        elif verdict is not Verdict.FINISH:
            raise self._refusal(verdict, stored)
        if stored is not None and self._finish(stored, is_said=bool(stored.former)):
            return stored.id
        return None

    def use(self, sessions: Sessions, *, with_unknown_files: bool) -> int:
        for _ in range(ATTEMPTS_MAX):
            stored = self._records.get(self._store.snapshot())
            former = () if stored is None else (stored.id, *stored.former)
            ids = lake_ids(self._files)
            if set(ids) - set(former):
                raise foreign(self._files)
            contents = self._contents()
            self._refuse_unfit(contents, with_unknown=with_unknown_files)
            begun = self._begin(stored, former=former, sessions=sessions)
            if begun is not None and self._finish(begun, is_said=True):
                return len(contents.unknown)
        raise RetryError(f'lake "{self._files.address}": other processes are opening it all the time')

    # ── the record ─────────────────────────────────────────────────────────────────────────────

    def _refresh(self, stored: StoreLake) -> None:
        """A store that was recognized by one of its origins is recorded with the current ones."""
        if stored.origins != self._origins:
            self._replace(stored, replace(stored, origins=self._origins))

    def _begin(
        self, stored: StoreLake | None, *, former: tuple[str, ...], sessions: Sessions | None = None
    ) -> StoreLake | None:
        """Writes a BEGUN record; None if another process was first."""
        id = self._store.env.rng.randbytes(16).hex()
        begun = StoreLake(id, self._location, self._origins, Stage.BEGUN, former)
        return begun if self._replace(stored, begun, sessions) else None

    def _replace(self, stored: StoreLake | None, record: StoreLake, sessions: Sessions | None = None) -> bool:
        def work(txn: Transaction) -> bool:
            if self._records.get(txn) != stored:
                return False
            if sessions is not None:
                self._refuse_running(txn, sessions)
            self._records.put(txn, record)
            return True

        return self._store.transact(work)

    def _refuse_running(self, txn: Transaction, sessions: Sessions) -> None:
        """A node that ran on would write to the former lake; one that starts now reads the new record."""
        for present in list(sessions.list(txn)):
            if present.expires_at < self._store.clock.now():
                sessions.delete_expired(txn, present.id)
        for instance in sessions.instances.scan(txn):  # nodes of version 1 have no more than this
            raise WrongLake(
                f"node {instance.id} is running on this store, or was a moment ago",
                hint="Stop all nodes and workers first. A killed one counts until its session expires.",
            )

    # ── the lake ───────────────────────────────────────────────────────────────────────────────

    def _finish(self, begun: StoreLake, *, is_said: bool) -> bool:
        """Marks the lake and settles the record; False if the record has changed meanwhile."""
        if begun.id not in lake_ids(self._files):
            self._mark(begun.id)
        try:
            if set(lake_ids(self._files)) - {begun.id, *begun.former}:
                raise foreign(self._files)
            self._refuse_unfit(self._contents(), with_unknown=is_said)
        except WrongLake:
            self._files.delete([id_file(begun.id)])
            raise
        self._files.delete([id_file(id) for id in begun.former])
        settled = replace(begun, stage=Stage.SETTLED, former=())
        return self._replace(begun, settled) or self._records.get(self._store.snapshot()) == settled

    def _mark(self, id: str) -> None:
        with suppress(FileExists), self._files.create(id_file(id)) as output:
            output.write(json.dumps({"format": FORMAT, "id": id}).encode())

    def _contents(self) -> Contents:
        # Files first: one that is published meanwhile is named, and need not have been listed.
        directory = str(self._store.keyspace.tenant)
        listed = [entry.name for page in self._files.list(directory) for entry in page]
        snapshot = self._store.snapshot()
        named = frozenset(file.name for each in self._manifests.all(snapshot) for file in each.files)
        missing = [name for name in sorted(named.difference(listed)) if not self._files.exists(name)]
        dropped = {file.name for file in self._manifests.dropped(snapshot)}
        unknown = [name for name in listed if name not in named and name not in dropped]
        return Contents(missing, [name for name in unknown if not self._is_of_job(name)])

    def _is_of_job(self, name: str) -> bool:
        """Whether a job of this store has made a file; jobs' ids are times, so no other store has it."""
        job = job_of(name)
        return job is not None and self._jobs.get(self._store.snapshot(), job) is not None

    def _refuse_unfit(self, contents: Contents, *, with_unknown: bool) -> None:
        """Raises WrongLake unless the lake has all files that the store names and, optionally, no others."""
        if contents.missing:
            raise WrongLake(
                f'lake "{self._files.address}" lacks {_some(contents.missing)}, named by this store',
                hint="Give the lake that has them with --lake, or restore them from a backup.",
            )
        if contents.unknown and not with_unknown:
            raise WrongLake(
                f'lake "{self._files.address}" has {_some(contents.unknown)}, which this store does not know',
                hint="If they are another store's, give this one a lake of its own with --lake. If they were "
                f"left over and may be deleted, {USE_LAKE} and --with-unknown-files.",
            )

    def _refusal(self, verdict: Verdict, stored: StoreLake | None) -> WrongLake:
        if verdict is Verdict.FOREIGN or stored is None:
            return foreign(self._files)
        if verdict is Verdict.COPIED:
            return WrongLake(
                f'this store was moved or copied: it was "{stored.origins[-1]}" when its lake was used last, '
                f'and is "{self._origins[-1]}" now',
                hint="If it was moved, and nobody uses the former one, stop all nodes and "
                f"{USE_LAKE}. If it was copied, copy the lake too and give the copy. "
                "`tenure store copy` does both.",
            )
        lake = shown(stored.location, self._origin)
        if verdict is Verdict.MOVED:
            return WrongLake(
                f'the lake of this store is "{lake}", and "{self._files.address}" carries the same id',
                hint="If it was moved there, and no other store uses it, stop all nodes and "
                f"{USE_LAKE}. If not, give --lake {lake}.",
            )
        return WrongLake(
            f'"{self._files.address}" is not the lake of this store, which is "{lake}"',
            hint=f"Give --lake {lake}, on a machine that reaches it. All nodes and workers have one lake. "
            "If it was moved, give the place where it is now.",
        )


def job_of(name: str) -> int | None:
    """The job that has made a file of the lake; None if its name does not say."""
    found = _JOB.search(name)
    return None if found is None else int(found[1])


def _some(names: list[str]) -> str:
    """How many, and a few of them."""
    more = ", ..." if len(names) > NAMES_SHOWN else ""
    quoted = ", ".join(f'"{name}"' for name in names[:NAMES_SHOWN])
    return f"{len(names)} {'file' if len(names) == 1 else 'files'} ({quoted}{more})"
