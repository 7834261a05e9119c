"""What CREATE, ALTER and DROP ROLE and GRANT of a role make of roles: decisions over values.

Somebody with CREATEROLE may make roles that are no superusers, and change or drop those on which it has the
admin option; PostgreSQL gives the creator that option, and so does `creation`.

Invariant (admin-chains): no membership outlives the admin option that it was given out by.

Walk: `sql.statements.ddl.privileges.roles` calls these with the roles as its transaction sees them.
"""

from collections.abc import Iterable, Mapping, Sequence

from tenure.base.errors import (
    DependentObjects,
    DuplicateObject,
    InsufficientPrivilege,
    InvalidGrant,
    InvalidName,
    NameTooLong,
    NotSupported,
    ReservedName,
    UndefinedObject,
)
from tenure.catalog.accounts.rights import Rights
from tenure.catalog.accounts.role_graph import RoleGraph
from tenure.catalog.descriptors.definitions import ROOT
from tenure.catalog.descriptors.role_records import PUBLIC_ROLE, Membership, Role
from tenure.catalog.descriptors.validation import NAME_BYTES_MAX
from tenure.kv.records import replace

RESERVED, RESERVED_PREFIX = (PUBLIC_ROLE, "none"), "pg_"
_WORDS = {
    "is_superuser": "SUPERUSER",
    "can_create_databases": "CREATEDB",
    "can_create_roles": "CREATEROLE",
}
"""The attributes that only their owners may give to others."""


def creation(
    graph: RoleGraph, by: str, name: str, id: int, attributes: Mapping[str, bool]
) -> tuple[Role, Membership | None]:
    """The new role, and the membership by which its creator administers it."""
    creator = graph.role(by)
    if creator is None or not (creator.is_superuser or creator.can_create_roles):
        raise _denied("create", "Only roles with the CREATEROLE attribute may create roles.")
    _check_attributes("create", creator, attributes)
    check_name(name)
    if graph.role(name) is not None:
        raise DuplicateObject(f'role "{name}" already exists')
    role = Role(name, id, **dict(attributes))
    if creator.is_superuser:
        return role, None
    return role, Membership(name, by, ROOT, has_admin=True, inherits=False, can_set=False)


def alteration(graph: RoleGraph, by: str, name: str, attributes: Mapping[str, bool]) -> Role:
    """The role with other attributes; only its password, if there are none."""
    role = existing(graph, name)
    _refuse_predefined(name, "Cannot alter reserved roles.")
    changer = graph.role(by)
    if attributes or by != name:
        _require_power(graph, changer, role, "alter")
    assert changer is not None
    for attribute in ("is_superuser", "can_create_databases"):
        if attribute in attributes and not (changer.is_superuser or getattr(changer, attribute)):
            word = _WORDS[attribute]
            raise _denied("alter", f"Only roles with the {word} attribute may change the {word} attribute.")
    _check_attributes("alter", changer, attributes)
    if name == ROOT and not all(attributes.get(each, True) for each in ("is_superuser", "can_login")):
        raise NotSupported(f'role "{ROOT}" must be a superuser that can log in')
    return replace(role, **attributes)


def renaming(graph: RoleGraph, by: str, name: str, new_name: str) -> Role:
    """The role under its new name."""
    role = existing(graph, name)
    _refuse_predefined(name, f'Role names starting with "{RESERVED_PREFIX}" are reserved.')
    check_name(new_name)
    if graph.role(new_name) is not None:
        raise DuplicateObject(f'role "{new_name}" already exists')
    _require_power(graph, graph.role(by), role, "rename")
    if name == ROOT:
        raise NotSupported(f'role "{ROOT}" cannot be renamed')
    return replace(role, name=new_name)


def require_dropper(graph: RoleGraph, by: str) -> None:
    role = graph.role(by)
    if role is None or not (role.is_superuser or role.can_create_roles):
        raise _denied("drop", "Only roles with the CREATEROLE attribute may drop roles.")


def check_drop(graph: RoleGraph, by: str, name: str) -> None:
    role = existing(graph, name)
    _require_power(graph, graph.role(by), role, "drop")
    if name == ROOT or name.startswith(RESERVED_PREFIX):
        raise DependentObjects(f"cannot drop role {name} because it is required by the database system")


def grantor_of(graph: RoleGraph, by: str, role: str) -> str:
    """In whose name a membership is given out. Raises InsufficientPrivilege (42501)."""
    existing(graph, role)
    if graph.is_superuser(by):
        return ROOT
    if graph.is_superuser(role) or not graph.may_administer(by, role):
        raise InsufficientPrivilege(
            f'permission denied to grant role "{role}"',
            detail=f'Only roles with the ADMIN option on role "{role}" may grant this role.',
        )
    own = sorted(graph.with_rights_of(by))
    with_option = [each.member for member in own for each in graph.of_member(member) if _is_admin(each, role)]
    return by if by in with_option else with_option[0]


def check_grantor(graph: RoleGraph, rights: Rights, grantor: str, role: str, *, is_grant: bool) -> None:
    """GRANTED BY: the user has the privileges of that role, which itself may give out the membership."""
    verb, by = ("grant", "as") if is_grant else ("revoke", "granted by")
    refusal = f'permission denied to {verb} privileges {by} role "{grantor}"'
    if not rights.has_rights_of(grantor):
        raise InsufficientPrivilege(
            refusal,
            detail=f'Only roles with privileges of role "{grantor}" may {verb} privileges {by} this role.',
        )
    if is_grant and grantor != ROOT and not any(_is_admin(each, role) for each in graph.of_member(grantor)):
        raise InsufficientPrivilege(
            refusal, detail=f'The grantor must have the ADMIN option on role "{role}".'
        )


def orphans(memberships: Iterable[Membership], role: str) -> list[Membership]:
    """Those of a role whose grantors may not give them out any more: no chain of admin options leads from
    ROOT to them."""
    of_role = [each for each in memberships if each.role == role]
    administrators, found = {ROOT}, True
    while found:
        new = {each.member for each in of_role if each.has_admin and each.grantor in administrators}
        found = not new <= administrators
        administrators |= new
    return [each for each in of_role if each.grantor not in administrators]


def _check_circularity(memberships: Sequence[Membership], membership: Membership) -> None:
    """Refuses an admin option that would come back to the role that has it from this grantor."""
    role, member = membership.role, membership.member
    left = [
        replace(each, has_admin=False) if (each.role, each.member) == (role, member) else each
        for each in memberships
    ]
    if membership in orphans([*left, membership], role):
        raise InvalidGrant("ADMIN option cannot be granted back to your own grantor")


def _is_admin(membership: Membership, role: str) -> bool:
    return membership.has_admin and membership.role == role


def check_membership(graph: RoleGraph, membership: Membership) -> None:
    """Refuses a cycle of memberships, and one of admin options."""
    role, member = membership.role, membership.member
    if membership.has_admin:
        _check_circularity(graph.memberships, membership)
    if role == member or graph.is_member(role, member):
        raise InvalidGrant(f'role "{role}" is a member of role "{member}"')


def existing(graph: RoleGraph, name: str) -> Role:
    role = graph.role(name)
    if role is None:
        raise UndefinedObject(f'role "{name}" does not exist')
    return role


def _require_power(graph: RoleGraph, by: Role | None, role: Role, verb: str) -> None:
    if by is not None and by.is_superuser:
        return
    if role.is_superuser:
        raise _denied(verb, f"Only roles with the SUPERUSER attribute may {verb} roles with it.")
    if by is None or not by.can_create_roles or not graph.may_administer(by.name, role.name):
        raise _denied(
            verb,
            f'Only roles with the CREATEROLE attribute and the ADMIN option on role "{role.name}" '
            f"may {verb} this role.",
        )


def _check_attributes(verb: str, by: Role, attributes: Mapping[str, bool]) -> None:
    for attribute, word in _WORDS.items():
        if attributes.get(attribute) and not (by.is_superuser or getattr(by, attribute)):
            raise _denied(verb, f"Only roles with the {word} attribute may {verb} roles with it.")


def _denied(verb: str, detail: str) -> InsufficientPrivilege:
    return InsufficientPrivilege(f"permission denied to {verb} role", detail=detail)


def _refuse_predefined(name: str, detail: str) -> None:
    if name.startswith(RESERVED_PREFIX):
        raise ReservedName(f'role name "{name}" is reserved', detail=detail)


def check_name(name: str) -> None:
    if not name or "\0" in name:
        raise InvalidName(f'invalid role name: "{name}"')
    if len(name.encode(errors="surrogatepass")) > NAME_BYTES_MAX:
        raise NameTooLong(f'role name "{name}" is longer than {NAME_BYTES_MAX} bytes')
    if name in RESERVED:
        raise ReservedName(f'role name "{name}" is reserved')
    _refuse_predefined(name, f'Role names starting with "{RESERVED_PREFIX}" are reserved.')
