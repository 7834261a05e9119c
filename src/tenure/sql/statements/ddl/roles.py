"""CREATE, ALTER and DROP ROLE or USER.

A password is turned into a verifier here, before anything is written; `sql.text.redaction` cuts it out
of the statement's text before others see it. Roles do not restrict yet who may create and read objects. Only
superusers may create roles; every user may change the own password.

Walk: `statements.ddl.ddl_statements` -> these -> the users of the cluster, `catalog.accounts.passwords`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.errors import (
    DependentObjects,
    NotSupported,
    ObjectInUse,
    SyntaxFault,
    UndefinedObject,
)
from tenure.catalog.accounts import rights
from tenure.catalog.accounts.passwords import SALT_BYTES, stored_password
from tenure.catalog.descriptors.definitions import is_dropped
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.text.parse import Tree, child, items, option

REFUSED = {
    "addroleto": "IN ROLE",
    "rolemembers": "ROLE",
    "adminmembers": "ADMIN",
    "sysid": "SYSID",
    "validUntil": "VALID UNTIL",
}


class RoleOptions(NamedTuple):
    verifier: str | None = None
    is_superuser: bool | None = None
    can_login: bool | None = None

    @property
    def is_password_alone(self) -> bool:
        return self.is_superuser is None and self.can_login is None


def create_role(definer: Definer, tree: Tree) -> str | None:
    options = _options(definer, tree.options)
    _require_superuser(definer, "permission denied to create role")
    is_user = option(tree, "stmt_type") == "ROLESTMT_USER"
    definer.node.users.create(
        definer.use.txn,
        tree.role,
        verifier=options.verifier or "",
        is_superuser=bool(options.is_superuser),
        can_login=is_user if options.can_login is None else options.can_login,
    )
    return None


def alter_role(definer: Definer, tree: Tree) -> str | None:
    options = _options(definer, tree.options)
    name = definer.role(tree.role)
    if name != definer.owner or not options.is_password_alone:
        _require_superuser(definer, "permission denied to alter role")
    definer.node.users.alter(
        definer.use.txn,
        name,
        verifier=options.verifier,
        is_superuser=options.is_superuser,
        can_login=options.can_login,
    )
    return None


def drop_role(definer: Definer, tree: Tree) -> str | None:
    _require_superuser(definer, "permission denied to drop role")
    users = definer.node.users
    for each in items(tree.roles):
        if option(each, "roletype") != "ROLESPEC_CSTRING":
            raise NotSupported("cannot use special role specifier in DROP ROLE")
        name = each.rolename
        if users.get(definer.use.txn, name) is None:
            if not tree.missing_ok:
                raise UndefinedObject(f'role "{name}" does not exist')
            definer.notice(f'role "{name}" does not exist, skipping')
            continue
        if name == definer.owner:
            raise ObjectInUse("current user cannot be dropped")
        _require_owns_nothing(definer, name)
        users.drop(definer.use.txn, name)
    return None


def _require_owns_nothing(definer: Definer, name: str) -> None:
    """Reads the whole catalog: an object created for the role meanwhile makes the transaction retry."""
    catalog, declared = definer.node.catalog, definer.draft.declared
    stored = {each.id: each for each in catalog.list(definer.use.txn)} | declared
    owned = [each for each in stored.values() if each.owner == name and not is_dropped(each)]
    if owned:
        lines = [f"owner of {type(each).__name__.lower()} {each.name}" for each in owned]
        raise DependentObjects(
            f'role "{name}" cannot be dropped because some objects depend on it', detail="\n".join(lines)
        )


def _require_superuser(definer: Definer, message: str) -> None:
    role = definer.node.users.get(definer.use.txn, definer.owner)
    rights.require_superuser(role, message, detail="Only superusers may create, alter and drop roles.")


def _options(definer: Definer, nodes: Sequence[Tree]) -> RoleOptions:
    found = RoleOptions()
    seen: set[str] = set()
    for each in items(nodes):
        name, value = each.defname, child(each, "arg")
        if name in seen:
            raise SyntaxFault("conflicting or redundant options", position=each.location + 1)
        seen.add(name)
        match name:
            case "password":
                found = found._replace(verifier=_verifier(definer, value))
            case "superuser":
                found = found._replace(is_superuser=bool(value.boolval))
            case "canlogin":
                found = found._replace(can_login=bool(value.boolval))
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
