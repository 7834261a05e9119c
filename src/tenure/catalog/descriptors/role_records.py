"""Roles, memberships and privileges as records.

    role         name -> id and attributes                           ┐
    membership   (role, member, grantor) -> its options              ├ part of the leased catalog
    privileges   (descriptor, column) -> who was granted what        ┘
    defaults     (role, schema, kind) -> what new objects get        ┐ read in the store by statements
    role object  (role, kind, descriptor, column)                    ┘ that change them

Privileges are records beside their descriptor and no part of it: a grant makes no new version, so it waits
for no job, ends no plan and no draft can write an older one back. An object without a record has the default
privileges of its kind.

A transaction changes these in its draft, each change with the record that it was made from (`RecordChange`);
`publish` proves in the commit that this is still the stored one.

Invariant (role-objects): for each owner of an object and for each role that is named in its privileges there
is a role object, written in the same commit.

Walk: `catalog.descriptors.catalog_records` has one; `schema_change.changer` calls `publish` with a
transaction's draft, `catalog.changes.publisher` calls `move_owner` and `forget_columns`;
`catalog.leases.catalog_cache` keeps the leased part in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from tenure.base.errors import RetryError, UndefinedObject
from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.catalog.descriptors.definitions import Descriptor, Table, is_dropped
from tenure.kv.encoding import decode
from tenure.kv.keys import (
    DEFAULT_PRIVILEGES,
    MEMBERSHIPS,
    PRIVILEGES,
    ROLE_OBJECTS,
    ROLES,
    Keyspace,
    Span,
)
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES

PUBLIC_ROLE = "public"
"""Stands for all roles; no role can have this name."""
OWNER = ""
"""Stands for the owner in privileges: a change of the owner leaves them as they are."""
WHOLE_OBJECT = 0
"""In place of a column's id."""
EVERYWHERE = 0
"""In place of a schema's id."""


class Role(Record, frozen=True):
    name: str
    id: int
    is_superuser: bool = False
    can_login: bool = False
    inherits: bool = True
    """The default for its memberships: whether it has the privileges of the roles that it is a member of."""
    can_create_databases: bool = False
    can_create_roles: bool = False
    created_at: Timestamp = ZERO_AT


class Membership(Record, frozen=True):
    role: str
    member: str
    grantor: str
    has_admin: bool = False
    inherits: bool = True
    can_set: bool = True


class AclEntry(Record, frozen=True):
    """What one role granted another, as bits of `catalog.accounts.privileges`."""

    grantee: str
    grantor: str
    privileges: int
    grantable: int = 0


class ObjectPrivileges(Record, frozen=True):
    object: int
    column: int
    entries: tuple[AclEntry, ...]


class DefaultPrivileges(Record, frozen=True):
    """The privileges of the new objects of a role: in place of the kind's own, or, in a schema, besides."""

    role: str
    schema: int
    kind: str
    entries: tuple[AclEntry, ...]


class RoleObject(Record, frozen=True):
    """An object that a role owns, or whose privileges name it."""

    role: str
    kind: str
    object: int
    column: int


OWNED, NAMED = "owner", "privileges"

LeasedRecord: TypeAlias = Role | Membership | ObjectPrivileges
RecordKey: TypeAlias = tuple[str | int, ...]
"""("role", name), ("membership", role, member, grantor) or ("privileges", descriptor, column)."""


class RecordChange(NamedTuple):
    former: LeasedRecord | None
    record: LeasedRecord | None


_KINDS = ("role", "membership", "privileges")


def key_of(record: LeasedRecord) -> RecordKey:
    match record:
        case Role():
            return "role", record.name
        case Membership():
            return "membership", record.role, record.member, record.grantor
        case ObjectPrivileges():
            return "privileges", record.object, record.column


class RoleRecords:
    def __init__(self, keyspace: Keyspace) -> None:
        self._roles = Records(keyspace, ROLES, Role, key=("name",))
        self._memberships = Records(keyspace, MEMBERSHIPS, Membership, key=("role", "member", "grantor"))
        self._privileges = Records(keyspace, PRIVILEGES, ObjectPrivileges, key=("object", "column"))
        self._defaults = Records(
            keyspace, DEFAULT_PRIVILEGES, DefaultPrivileges, key=("role", "schema", "kind")
        )
        self._objects = Records(keyspace, ROLE_OBJECTS, RoleObject, key=("role", "kind", "object", "column"))
        self.span = Span(keyspace.table_span(ROLES).lo, keyspace.table_span(PRIVILEGES).hi)
        """The part that is leased."""
        self.heads: dict[bytes, Records[Role] | Records[Membership] | Records[ObjectPrivileges]] = {
            keyspace.head(ROLES): self._roles,
            keyspace.head(MEMBERSHIPS): self._memberships,
            keyspace.head(PRIVILEGES): self._privileges,
        }

        self._kinds = dict(zip(self.heads, _KINDS, strict=True))

    def key_at(self, key: bytes) -> RecordKey:
        """The key of a record by its bytes in the store."""
        return self._kinds[key[:HEAD_BYTES]], *cast("tuple[int | str, ...]", decode(key[HEAD_BYTES:]))

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def get(self, txn: Transaction | Snapshot, key: RecordKey) -> LeasedRecord | None:
        return self._records_of(key).get(txn, *key[1:])

    def get_many(self, txn: Transaction, keys: Sequence[RecordKey]) -> list[LeasedRecord | None]:
        """As `get` of each key; they are read together."""
        kinds = [self._records_of(key) for key in keys]
        values = txn.get_many([kind.key(*key[1:]) for kind, key in zip(kinds, keys, strict=True)])
        return [
            None if value is None else kind.decode(value) for kind, value in zip(kinds, values, strict=True)
        ]

    def _records_of(self, key: RecordKey) -> Records[Role] | Records[Membership] | Records[ObjectPrivileges]:
        match key[0]:
            case "role":
                return self._roles
            case "membership":
                return self._memberships
        return self._privileges

    def role(self, txn: Transaction | Snapshot, name: str) -> Role | None:
        return self._roles.get(txn, name)

    def roles(self, txn: Transaction | Snapshot) -> Iterator[Role]:
        return self._roles.scan(txn)

    def memberships(self, txn: Transaction | Snapshot) -> Iterator[Membership]:
        return self._memberships.scan(txn)

    def privileges(self, txn: Transaction | Snapshot, object: int, column: int) -> ObjectPrivileges | None:
        return self._privileges.get(txn, object, column)

    def defaults(self, txn: Transaction | Snapshot, role: str) -> Iterator[DefaultPrivileges]:
        return self._defaults.scan(txn, role)

    def default(
        self, txn: Transaction | Snapshot, role: str, schema: int, kind: str
    ) -> DefaultPrivileges | None:
        return self._defaults.get(txn, role, schema, kind)

    def all_defaults(self, txn: Transaction | Snapshot) -> Iterator[DefaultPrivileges]:
        return self._defaults.scan(txn)

    def objects(self, txn: Transaction | Snapshot, role: str) -> Iterator[RoleObject]:
        """The objects that it owns or that name it, without reading the catalog."""
        return self._objects.scan(txn, role)

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def publish(self, txn: Transaction, changes: Mapping[RecordKey, RecordChange]) -> None:
        """Writes the changes of a draft. Raises RetryError if one was made from another record."""
        keys = sorted(changes)
        for key, stored in zip(keys, self.get_many(txn, keys), strict=True):
            change = changes[key]
            if stored != change.former:
                raise RetryError(f"{key[0]} {key[1]} was changed meanwhile")
            if change.record is not None:
                self._put(txn, stored, change.record)
            elif stored is not None:
                self._delete(txn, stored)

    def put(self, txn: Transaction, record: LeasedRecord) -> None:
        self._put(txn, self.get(txn, key_of(record)), record)

    def _put(self, txn: Transaction, former: LeasedRecord | None, record: LeasedRecord) -> None:
        match record:
            case Role():
                stamp = None if record.created_at else "created_at"
                self._roles.put(txn, record, stamp=stamp)
            case Membership():
                self._memberships.put(txn, record)
            case ObjectPrivileges():
                assert former is None or isinstance(former, ObjectPrivileges)
                self._move_names(txn, record, named(former), named(record))
                self._privileges.put(txn, record)

    def _delete(self, txn: Transaction, record: LeasedRecord) -> None:
        match record:
            case Role():
                self._roles.delete(txn, record.name)
            case Membership():
                self._memberships.delete(txn, record.role, record.member, record.grantor)
            case ObjectPrivileges():
                self._move_names(txn, record, named(record), frozenset())
                self._privileges.delete(txn, record.object, record.column)

    def _move_names(
        self, txn: Transaction, record: ObjectPrivileges, former: frozenset[str], names: frozenset[str]
    ) -> None:
        for role in sorted(former - names):
            self._objects.delete(txn, role, NAMED, record.object, record.column)
        for role in sorted(names - former):
            self._objects.put(txn, RoleObject(role, NAMED, record.object, record.column))

    def put_defaults(self, txn: Transaction, defaults: DefaultPrivileges) -> None:
        """No entries: nobody gets anything."""
        self._defaults.put(txn, defaults)

    def delete_defaults(self, txn: Transaction, defaults: DefaultPrivileges) -> None:
        self._defaults.delete(txn, defaults.role, defaults.schema, defaults.kind)

    def move_owner(self, txn: Transaction, former: Descriptor | None, descriptor: Descriptor) -> None:
        """Called with each version that is published."""
        before = None if former is None or is_dropped(former) else former.owner
        after = None if is_dropped(descriptor) else descriptor.owner
        if before == after:
            return
        if before is not None:
            self._objects.delete(txn, before, OWNED, descriptor.id, WHOLE_OBJECT)
        if after is not None:
            # Read, so that of a new object and the drop of its owner only one commits.
            if self._roles.get(txn, after) is None:
                raise UndefinedObject(f'role "{after}" does not exist')
            self._objects.put(txn, RoleObject(after, OWNED, descriptor.id, WHOLE_OBJECT))

    def forget_columns(self, txn: Transaction, former: Descriptor | None, descriptor: Descriptor) -> None:
        """Called with each version that is published: the privileges of a column that is gone go with it."""
        if isinstance(former, Table) and isinstance(descriptor, Table):
            for column in sorted(
                {each.id for each in former.columns} - {each.id for each in descriptor.columns}
            ):
                record = self._privileges.get(txn, descriptor.id, column)
                if record is not None:
                    self._delete(txn, record)

    def forget(self, txn: Transaction, object: int) -> None:
        """Called when a descriptor is deleted."""
        for record in list(self._privileges.scan(txn, object)):
            self._delete(txn, record)


def named(record: ObjectPrivileges | None) -> frozenset[str]:
    """The roles that privileges name."""
    return frozenset() if record is None else _names(record.entries)


def _names(entries: tuple[AclEntry, ...]) -> frozenset[str]:
    names = {name for each in entries for name in (each.grantee, each.grantor)}
    return frozenset(names - {OWNER, PUBLIC_ROLE})
