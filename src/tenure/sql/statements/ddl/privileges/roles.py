"""CREATE, ALTER and DROP ROLE or USER; GRANT and REVOKE of a role.

Roles and memberships are changed in the transaction's draft, as all of the leased catalog is. A password is
turned into a verifier here, before anything is written; `sql.text.redaction` cuts it out of the statement's
text before others see it.

These statements read roles and memberships in their transaction: of two that would make a cycle together, or
of a grant to a role and its drop, only one commits.

Walk: `statements.ddl.ddl_statements` -> these -> `catalog.accounts.role_definitions`, the draft, and for
passwords `catalog.accounts.passwords`.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tenure.base.errors import (
    DependentObjects,
    DuplicateObject,
    NotSupported,
    ObjectInUse,
    SyntaxFault,
    UndefinedObject,
)
from tenure.catalog.accounts import role_definitions
from tenure.catalog.accounts.passwords import SALT_BYTES, stored_password
from tenure.catalog.descriptors.definitions import ROOT
from tenure.catalog.descriptors.role_records import Membership, key_of
from tenure.kv.records import replace
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.privileges.owned import remove_orphans, revoke_in_defaults, revoke_on_objects
from tenure.sql.statements.ddl.privileges.role_objects import mentions_of
from tenure.sql.text.parse import Tree, child, items, option

NOBODY = ""
"""The owner of the jobs of a role that was dropped: no role has this name, so the jobs fail."""

REFUSED = {"sysid": "SYSID", "validUntil": "VALID UNTIL"}
ATTRIBUTES = {
    "superuser": "is_superuser",
    "canlogin": "can_login",
    "inherit": "inherits",
    "createdb": "can_create_databases",
    "createrole": "can_create_roles",
}
MEMBERS = ("addroleto", "rolemembers", "adminmembers")


class RoleOptions(NamedTuple):
    attributes: dict[str, bool]
    verifier: str | None = None
    """None: the password stays as it is."""
    members: Mapping[str, Sequence[Tree]] = MappingProxyType({})
    """IN ROLE, ROLE and ADMIN."""


def create_role(definer: Definer, tree: Tree) -> str | None:
    options = _options(definer, tree.options)
    is_user = option(tree, "stmt_type") == "ROLESTMT_USER"
    attributes = {"can_login": is_user} | options.attributes
    graph, name = definer.role_graph(), tree.role
    role, membership = role_definitions.creation(graph, definer.owner, name, definer.fresh_id(), attributes)
    if definer.record(key_of(role)) is not None:
        raise DuplicateObject(f'role "{name}" already exists')
    definer.set_record(key_of(role), role)
    if membership is not None:
        definer.set_record(key_of(membership), membership)
    definer.node.users.set_password(definer.use.txn, name, options.verifier or "")
    for each in items(options.members.get("addroleto", ())):
        role_name = definer.role(each)
        _add(definer, role_name, name, _grantor(definer, role_name))
    for word in ("rolemembers", "adminmembers"):
        for each in items(options.members.get(word, ())):
            has_admin = word == "adminmembers"
            _add(definer, name, definer.role(each), _grantor(definer, name), has_admin=has_admin)
    return None


def alter_role(definer: Definer, tree: Tree) -> str | None:
    options = _options(definer, tree.options)
    if options.members:
        raise NotSupported("ALTER GROUP is not supported", hint="Use GRANT and REVOKE.")
    name = definer.role(tree.role)
    role = role_definitions.alteration(definer.role_graph(), definer.owner, name, options.attributes)
    if options.attributes:
        definer.set_record(key_of(role), role)
    if options.verifier is not None:
        definer.node.users.set_password(definer.use.txn, name, options.verifier)
    return None


def drop_role(definer: Definer, tree: Tree) -> str | None:
    role_definitions.require_dropper(definer.role_graph(), definer.owner)
    for each in items(tree.roles):
        if option(each, "roletype") != "ROLESPEC_CSTRING":
            raise NotSupported("cannot use special role specifier in DROP ROLE")
        name = each.rolename
        if definer.record(("role", name)) is None:
            if not tree.missing_ok:
                raise UndefinedObject(f'role "{name}" does not exist')
            definer.notice(f'role "{name}" does not exist, skipping')
            continue
        if name in (definer.owner, definer.session.session_user):
            raise ObjectInUse("current user cannot be dropped")
        role_definitions.check_drop(definer.role_graph(), definer.owner, name)
        _drop(definer, name)
    return None


def _drop(definer: Definer, name: str) -> None:
    """Only what the role owns and is named by is read, not the catalog."""
    lines = mentions_of(definer, name)
    if lines:
        raise DependentObjects(
            f'role "{name}" cannot be dropped because some objects depend on it',
            detail="\n".join(lines),
            hint="Use REASSIGN OWNED and DROP OWNED in each database first.",
        )
    for each in definer.role_graph().memberships:
        if name in (each.role, each.member):
            definer.set_record(key_of(each), None)
        elif name == each.grantor:
            raise DependentObjects(
                f'role "{name}" cannot be dropped because some objects depend on it',
                detail=f"privileges for membership of role {each.member} in role {each.role}",
            )
    revoke_on_objects(definer, name)
    revoke_in_defaults(definer, name)
    definer.set_record(("role", name), None)
    definer.node.users.set_password(definer.use.txn, name, "")
    # Another role of the name gets neither what it has started nor what it keeps.
    definer.node.jobs.rename_owner(definer.use.txn, name, NOBODY)
    definer.node.snapshots.rename_owner(definer.use.txn, name, ROOT)


# ── memberships ────────────────────────────────────────────────────────────────────────────────


def grant_roles(definer: Definer, tree: Tree) -> str | None:
    """GRANT a, b TO c, d [WITH ADMIN | INHERIT | SET ...], and REVOKE [... OPTION FOR] a, b FROM c, d."""
    options = {each.defname: bool(child(each, "arg").boolval) for each in items(tree.opt)}
    members = [definer.role(each) for each in items(tree.grantee_roles)]
    by = definer.role(tree.grantor) if child(tree, "grantor") is not None else ""
    is_cascade = option(tree, "behavior") == "DROP_CASCADE"
    for each in items(tree.granted_roles):
        role = _granted_role(definer, each)
        for member in members:
            grantor = _grantor(definer, role, by, is_grant=tree.is_grant)
            if tree.is_grant:
                _add(definer, role, member, grantor, **_fields(options))
            else:
                _remove(definer, role, member, grantor, options=_fields(options), cascade=is_cascade)
    return "GRANT ROLE" if tree.is_grant else "REVOKE ROLE"


_FIELDS = {"admin": "has_admin", "inherit": "inherits", "set": "can_set"}


def _fields(options: dict[str, bool]) -> dict[str, bool]:
    return {_FIELDS[name]: value for name, value in options.items()}


def _granted_role(definer: Definer, privilege: Tree) -> str:
    if privilege.cols:
        raise SyntaxFault("column names cannot be included in GRANT/REVOKE ROLE")
    return definer.role_named(privilege.priv_name)


def _grantor(definer: Definer, role: str, by: str = "", *, is_grant: bool = True) -> str:
    """In whose name a membership is given out or ended; `by`: of GRANTED BY."""
    graph = definer.role_graph()
    found = role_definitions.grantor_of(graph, definer.owner, role)
    if by and by != found:
        role_definitions.check_grantor(graph, definer.rights, by, role, is_grant=is_grant)
    return by or found


def _add(definer: Definer, role: str, member: str, grantor: str, **fields: bool) -> None:
    graph = definer.role_graph()
    joined = role_definitions.existing(graph, member)
    former = definer.record(("membership", role, member, grantor))
    assert former is None or isinstance(former, Membership)
    granted = replace(former or Membership(role, member, grantor, inherits=joined.inherits), **fields)
    role_definitions.check_membership(graph, granted)
    if granted == former:
        definer.notice(
            f'role "{member}" has already been granted membership in role "{role}" by role "{grantor}"'
        )
        return
    definer.set_record(key_of(granted), granted)


def _remove(
    definer: Definer, role: str, member: str, grantor: str, *, options: dict[str, bool], cascade: bool
) -> None:
    """The options named become false; without any, the membership ends."""
    key = ("membership", role, member, grantor)
    former = definer.record(key)
    if not isinstance(former, Membership):
        definer.session.notice(
            f'role "{member}" has not been granted membership in role "{role}" by role "{grantor}"',
            "WARNING",
            "01000",
        )
        return
    definer.set_record(key, replace(former, **dict.fromkeys(options, False)) if options else None)
    remove_orphans(definer, role, cascade=cascade)


# ── options ────────────────────────────────────────────────────────────────────────────────────


def _options(definer: Definer, nodes: Sequence[Tree]) -> RoleOptions:
    members: dict[str, Sequence[Tree]] = {}
    found = RoleOptions({}, None, members)
    names_before: set[str] = set()
    for each in items(nodes):
        name, value = each.defname, child(each, "arg")
        if name in names_before:
            raise SyntaxFault("conflicting or redundant options", position=each.location + 1)
        names_before.add(name)
        match name:
            case "password":
                found = found._replace(verifier=_verifier(definer, value))
            case _ if name in ATTRIBUTES:
                found.attributes[ATTRIBUTES[name]] = bool(value.boolval)
            case _ if name in MEMBERS:
                members[name] = value.items
            case _ if name in REFUSED:
                raise NotSupported(f"{REFUSED[name]} is not supported")
            case _:
                if getattr(value, "boolval", True):
                    definer.notice(f"{name.upper()} has no effect")
    return found


def _verifier(definer: Definer, value: Tree | None) -> str:
    if value is None:
        return ""
    verifier = stored_password(value.sval, salt=definer.node.env.rng.randbytes(SALT_BYTES))
    if not verifier:
        definer.notice("empty string is not a valid password, clearing password")
    return verifier
