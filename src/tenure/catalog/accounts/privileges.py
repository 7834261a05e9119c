"""Privileges: which there are for each kind of object, and what GRANT and REVOKE make of a list of them.

    ann=rw*/OWNER, public=r/ann       ann may read and write, and let others write; she let everybody read

An entry is what one role granted another: bits, and those that may be granted on. The owner stands as
`OWNER`, as grantor and as grantee. All functions are over values.

Invariant (grant-chains): no privilege outlives the grant option that it was granted by.

Walk: `sql.statements.ddl.privileges.grants` calls `granted` and `revoked`;
`catalog.accounts.rights` asks `held`.
"""

from collections.abc import Container, Iterable, Sequence

from tenure.base.errors import DependentObjects, InvalidGrant
from tenure.catalog.descriptors.definitions import (
    AnyDescriptor,
    Database,
    EnumType,
    Schema,
    View,
)
from tenure.catalog.descriptors.definitions import Sequence as SequenceDescriptor
from tenure.catalog.descriptors.role_records import OWNER, PUBLIC_ROLE, AclEntry
from tenure.kv.records import replace

Entries = tuple[AclEntry, ...]

SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER = (1 << bit for bit in range(7))
USAGE, CREATE, CONNECT, TEMPORARY, MAINTAIN = (1 << bit for bit in range(7, 12))
IMPORT, EXPORT, BACKUP, CHANGEFEED = (1 << bit for bit in range(16, 20))
"""Those that PostgreSQL does not have."""

WORDS = {
    "SELECT": SELECT,
    "INSERT": INSERT,
    "UPDATE": UPDATE,
    "DELETE": DELETE,
    "TRUNCATE": TRUNCATE,
    "REFERENCES": REFERENCES,
    "TRIGGER": TRIGGER,
    "USAGE": USAGE,
    "CREATE": CREATE,
    "CONNECT": CONNECT,
    "TEMPORARY": TEMPORARY,
    "MAINTAIN": MAINTAIN,
    "IMPORT": IMPORT,
    "EXPORT": EXPORT,
    "BACKUP": BACKUP,
    "CHANGEFEED": CHANGEFEED,
}
LETTERS = dict(zip(WORDS, "rawdDxtUCcTmiebf", strict=True))
"""PostgreSQL's, for `relacl`, and more."""

_TABLE = SELECT | INSERT | UPDATE | DELETE | TRUNCATE | REFERENCES | TRIGGER | MAINTAIN
OF_KIND = {
    "database": CREATE | CONNECT | TEMPORARY,
    "schema": USAGE | CREATE,
    "table": _TABLE | IMPORT | EXPORT | BACKUP | CHANGEFEED,
    "sequence": USAGE | SELECT | UPDATE,
    "type": USAGE,
    "column": SELECT | INSERT | UPDATE | REFERENCES,
}
_OF_PUBLIC = {"database": CONNECT | TEMPORARY, "type": USAGE}


def kind_of(descriptor: AnyDescriptor) -> str:
    """The key of `OF_KIND`; a view has the privileges of a table."""
    match descriptor:
        case Database():
            return "database"
        case Schema():
            return "schema"
        case SequenceDescriptor():
            return "sequence"
        case EnumType():
            return "type"
    return "table"


def noun_of(descriptor: AnyDescriptor) -> str:
    """As messages call it."""
    return "view" if isinstance(descriptor, View) else kind_of(descriptor)


def initial(kind: str) -> Entries:
    """The privileges of an object for which none were ever granted or revoked."""
    if kind == "column":
        return ()
    all_of_owner = AclEntry(OWNER, OWNER, OF_KIND[kind])
    public = _OF_PUBLIC.get(kind, 0)
    return (all_of_owner, AclEntry(PUBLIC_ROLE, OWNER, public)) if public else (all_of_owner,)


def words_of(bits: int) -> list[str]:
    return [word for word, bit in WORDS.items() if bits & bit]


def held(entries: Entries, roles: Container[str], owner: str) -> int:
    """What somebody with the privileges of these roles may do."""
    bits = 0
    for each in entries:
        grantee = each.grantee or owner
        if grantee == PUBLIC_ROLE or grantee in roles:
            bits |= each.privileges
    return bits


def grantable(entries: Entries, roles: Container[str], owner: str, kind: str) -> int:
    """What somebody with the privileges of these roles may grant; the owner always may grant all."""
    if owner in roles:
        return OF_KIND[kind]
    bits = 0
    for each in entries:
        if (each.grantee or owner) in roles:
            bits |= each.grantable
    return bits


def best_grantor(entries: Entries, roles: Iterable[str], owner: str, bits: int) -> tuple[str, int]:
    """In whose name a grant is made, and which of the privileges that one may grant.

    The owner's, if that is one of the roles; else the one of them that may grant most.
    """
    ordered = sorted(roles)
    if owner in ordered:
        return OWNER, bits
    found, options = "", 0
    for role in ordered:
        own = 0
        for each in entries:
            own |= each.grantable if each.grantee == role else 0
        if (own & bits).bit_count() > options.bit_count():
            found, options = role, own & bits
    return found, options


def granted(
    entries: Entries, *, grantee: str, grantor: str, bits: int, with_option: bool, owner: str
) -> Entries:
    entries = normal(entries, owner)
    grantee, grantor = _symbol(grantee, owner), _symbol(grantor, owner)
    if with_option and grantee == PUBLIC_ROLE:
        raise InvalidGrant("grant options can only be granted to roles")
    if with_option:
        _check_circularity(entries, grantee, grantor, bits)
    option = bits if with_option and grantee != OWNER else 0
    return _merged((*entries, AclEntry(grantee, grantor, bits, option)))


def _check_circularity(entries: Entries, grantee: str, grantor: str, bits: int) -> None:
    """Refuses a grant option that would come back to the role that has it from this grantor."""
    if OWNER in (grantor, grantee):
        return
    left = entries
    for each in entries:
        if each.grantee == grantee:
            left = _without(left, each.grantee, each.grantor, bits, option_only=True, cascade=True)
    if _options(left, grantor) & bits != _options(entries, grantor) & bits:
        raise InvalidGrant("grant options cannot be granted back to your own grantor")


def revoked(
    entries: Entries, *, grantee: str, grantor: str, bits: int, option_only: bool, cascade: bool, owner: str
) -> Entries:
    """Raises DependentObjects (2BP01) if others have it by way of the grantee, without CASCADE."""
    entries = normal(entries, owner)
    return _without(
        entries,
        _symbol(grantee, owner),
        _symbol(grantor, owner),
        bits,
        option_only=option_only,
        cascade=cascade,
    )


def _without(
    entries: Entries, grantee: str, grantor: str, bits: int, *, option_only: bool, cascade: bool
) -> Entries:
    before = _options(entries, grantee)
    changed = tuple(
        replace(
            each,
            privileges=each.privileges if option_only else each.privileges & ~bits,
            grantable=each.grantable & ~bits,
        )
        if (each.grantee, each.grantor) == (grantee, grantor)
        else each
        for each in entries
    )
    changed = tuple(each for each in changed if each.privileges)
    lost = before & ~_options(changed, grantee)
    if not lost or grantee == OWNER:
        return changed
    for each in changed:
        if each.grantor == grantee and each.privileges & lost:
            if not cascade:
                raise dependents_exist()
            changed = _without(changed, each.grantee, grantee, lost, option_only=False, cascade=True)
    return changed


def without_orphans(entries: Entries, above: Entries, *, cascade: bool) -> Entries:
    """The privileges of a column without those whose grantor may not grant them any more: neither by the
    column's privileges nor by `above`, those of its table.

    Raises DependentObjects (2BP01) if there are such, without CASCADE.
    """
    for each in entries:
        options = _options(entries, each.grantor) | _options(above, each.grantor)
        lost = 0 if each.grantor == OWNER else each.privileges & ~options
        if lost:
            if not cascade:
                raise dependents_exist()
            left = _without(entries, each.grantee, each.grantor, lost, option_only=False, cascade=True)
            return without_orphans(left, above, cascade=True)
    return entries


def dependents_exist() -> DependentObjects:
    return DependentObjects("dependent privileges exist", hint="Use CASCADE to revoke them too.")


def without_role(entries: Entries, role: str, owner: str) -> Entries:
    """Nothing that the role was granted or has granted, nor what others have by way of it."""
    entries = normal(entries, owner)
    while named := [each for each in entries if role in (each.grantee, each.grantor)]:
        each = named[0]
        entries = _without(
            entries, each.grantee, each.grantor, each.privileges, option_only=False, cascade=True
        )
    return entries


def with_renamed_role(entries: Entries, name: str, new_name: str) -> Entries:
    def renamed(role: str) -> str:
        return new_name if role == name else role

    return tuple(
        replace(each, grantee=renamed(each.grantee), grantor=renamed(each.grantor)) for each in entries
    )


def for_members(entries: Entries, members: Sequence[str], owner: str) -> Entries:
    """What everybody has, for some roles in place of everybody; the same, if PUBLIC is among these."""
    if PUBLIC_ROLE in members:
        return entries
    rest = [each for each in entries if each.grantee != PUBLIC_ROLE]
    of_all = [each for each in entries if each.grantee == PUBLIC_ROLE]
    return normal((*rest, *(replace(each, grantee=role) for each in of_all for role in members)), owner)


def normal(entries: Entries, owner: str) -> Entries:
    """With the owner's name as OWNER: it may have been granted something before it became the owner."""
    return _merged(
        replace(each, grantee=_symbol(each.grantee, owner), grantor=_symbol(each.grantor, owner))
        for each in entries
    )


def _symbol(name: str, owner: str) -> str:
    return OWNER if name == owner else name


def _options(entries: Entries, grantee: str) -> int:
    bits = 0
    for each in entries:
        bits |= each.grantable if each.grantee == grantee else 0
    return bits


def _merged(entries: Iterable[AclEntry]) -> Entries:
    found: dict[tuple[str, str], AclEntry] = {}
    for each in entries:
        key = each.grantee, each.grantor
        there = found.get(key)
        if there is None:
            found[key] = each
        else:
            found[key] = replace(
                there,
                privileges=there.privileges | each.privileges,
                grantable=there.grantable | each.grantable,
            )
    return tuple(each for each in found.values() if each.privileges)


def check_known(words: Sequence[str], kind: str, noun: str) -> int:
    """The bits of words. Raises for one that there is not (42601), or not for this kind (0LP01)."""
    bits = 0
    for word in words:
        bit = WORDS["TEMPORARY" if word.upper() == "TEMP" else word.upper()]
        if not bit & OF_KIND[kind]:
            raise InvalidGrant(f"invalid privilege type {word.upper()} for {noun}")
        bits |= bit
    return bits
