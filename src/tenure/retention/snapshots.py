"""Named snapshots: a time of a database, schema or table that a user keeps readable.

    CREATE SNAPSHOT ──► record: name, time, target, owner ─── a `protect_at` of that time
    DROP SNAPSHOT, or it expires ──► record and protection go in one transaction

A name is used once in the cluster. The reconciler deletes a snapshot that has expired. Snapshots stay as long
as users like, so they may take half of all protections at most: jobs and long reads need the others. Of that
half a role gets no more than it leaves to others, unless it is a superuser's.

Invariant (snapshot): a snapshot that exists can be read, however old it is.

Walk: `composition.protection_layer` makes `NamedSnapshots`, hands it to SQL sessions, and its `exists` and
`expire` to the reconciler; `sql.tables.retention` lists the records.
"""

from collections.abc import Callable

from tenure.base.errors import DuplicateObject, ProtectionNotFound, TooManyProtections, UndefinedObject
from tenure.base.settings import PROTECTED_RECORDS_MAX, Settings
from tenure.base.timestamp import Timestamp
from tenure.kv.keys import SNAPSHOTS, Keyspace
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.records import Record, Records, replace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.retention.protections.protection_store import ProtectionStore

OWNER = "snapshot"
"""The `meta_type` of these protections; `meta` is the snapshot's name."""

RECORDS_SHARE = 2
"""One of so many protections may belong to a snapshot."""


class NamedSnapshot(Record, frozen=True):
    name: str
    at: Timestamp
    target: int
    """The id of the database, schema or table."""
    owner: str
    protection: bytes
    expires_at: Timestamp | None = None


def named_snapshots(keyspace: Keyspace) -> Records[NamedSnapshot]:
    return Records(keyspace, SNAPSHOTS, NamedSnapshot, key=("name",))


class NamedSnapshots:
    def __init__(
        self, keyspace: Keyspace, protections: ProtectionStore, settings: Callable[[], Settings]
    ) -> None:
        self._records = named_snapshots(keyspace)
        self._protections = protections
        self._settings = settings

    def create(
        self,
        txn: Transaction,
        name: str,
        at: Timestamp,
        target: int,
        owner: str,
        expires_at: Timestamp | None = None,
        *,
        is_bounded: bool = True,
    ) -> None:
        """`is_bounded`: the owner has to leave some to others."""
        if self._records.get(txn, name) is not None:
            raise DuplicateObject(f'snapshot "{name}" already exists')
        owners = [each.owner for each in self._records.scan(txn)]
        self._check_limit(1 + len(owners))
        if is_bounded:
            self._check_share(owner, 1 + owners.count(owner), len(owners))
        id = self._protections.protect(
            *(txn, at, Mode.AT, OWNER, name.encode(), Targets((target,))),
            expires_at=expires_at,
            role=owner if is_bounded else "",
        )
        self._records.put(txn, NamedSnapshot(name, at, target, owner, id, expires_at))

    def _check_limit(self, count: int) -> None:
        allowed = self._settings()[PROTECTED_RECORDS_MAX] // RECORDS_SHARE
        if count > allowed:
            raise TooManyProtections(
                f"there would be {count} named snapshots, and {allowed} are allowed",
                hint="SHOW SNAPSHOTS lists them; one in "
                f'{RECORDS_SHARE} of "{PROTECTED_RECORDS_MAX.name}" is the limit.',
            )

    def _check_share(self, owner: str, count: int, taken: int) -> None:
        left = self._settings()[PROTECTED_RECORDS_MAX] // RECORDS_SHARE - taken
        if count > left:
            raise TooManyProtections(
                f'role "{owner}" has {count - 1} named snapshots, and {left} are left for all',
                hint="SHOW SNAPSHOTS lists them; a role leaves as many to others as it has itself. "
                f'"{PROTECTED_RECORDS_MAX.name}" can be raised.',
            )

    def find(self, txn: Transaction | Snapshot, name: str) -> NamedSnapshot:
        found = self._records.get(txn, name)
        if found is None:
            raise UndefinedObject(f'snapshot "{name}" does not exist', hint="SHOW SNAPSHOTS lists them.")
        return found

    def protected_read(self, txn: Transaction | Snapshot, snapshot: NamedSnapshot) -> ProtectedRead:
        return self._protections.protected_read(self._protections.read(txn, snapshot.protection))

    def drop(self, txn: Transaction, name: str) -> None:
        found = self.find(txn, name)
        self._records.delete(txn, name)
        try:
            self._protections.release(txn, found.protection)
        except ProtectionNotFound:
            return  # released by hand

    def rename_owner(self, txn: Transaction, owner: str, new_owner: str) -> None:
        for each in list(self._records.scan(txn)):
            if each.owner == owner:
                self._records.put(txn, replace(each, owner=new_owner))

    def exists(self, txn: Transaction, meta: bytes) -> bool:
        return self._records.get(txn, meta.decode()) is not None

    def expire(self, txn: Transaction, meta: bytes, reason: str) -> None:
        """Deletes the record of a snapshot that has expired; the reconciler releases its protection."""
        self._records.delete(txn, meta.decode())
