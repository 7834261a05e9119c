"""REASSIGN OWNED and DROP OWNED: what makes a role free to be dropped.

    REASSIGN OWNED BY ann TO bob     bob owns what ann did, in this database, and databases
    DROP OWNED BY ann                drops what ann owns in this database, revokes what names her, and ends
                                     the memberships that she has given out

Walk: `statements.ddl.ddl_statements` -> these -> `statements.ddl.privileges.role_objects`, `catalog.changes`.
"""

from tenure.base.errors import DependentObjects, InsufficientPrivilege
from tenure.catalog.accounts import role_definitions
from tenure.catalog.accounts.privileges import dependents_exist, without_role
from tenure.catalog.changes.drops import drop_objects, drop_schemas
from tenure.catalog.changes.object_changes import set_owner
from tenure.catalog.descriptors.definitions import (
    ROOT,
    AnyDescriptor,
    Contained,
    Database,
    Schema,
    is_dropped,
)
from tenure.catalog.descriptors.role_records import key_of
from tenure.kv.records import replace
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.definition_rights import check_place
from tenure.sql.statements.ddl.privileges.grants import put_entries
from tenure.sql.statements.ddl.privileges.role_objects import is_linked, owned_by, privileges_naming
from tenure.sql.text.parse import Tree, items, option


def reassign_owned(definer: Definer, tree: Tree) -> str | None:
    to = definer.role(tree.newrole)
    if not definer.rights.has_rights_of(to):
        raise InsufficientPrivilege(
            "permission denied to reassign objects",
            detail=f'Only roles with privileges of role "{to}" may reassign objects to it.',
        )
    for role in _roles(definer, tree, "reassign objects"):
        for each in owned_by(definer, role):
            if not is_linked(each) and (isinstance(each, Database) or _is_here(definer, each)):
                if not isinstance(each, Contained):
                    check_place(definer.use, definer.rights, each, replace(each, owner=to))
                set_owner(definer.draft, definer.use, each.id, to)
    return None


def drop_owned(definer: Definer, tree: Tree) -> str | None:
    is_cascade = option(tree, "behavior") == "DROP_CASCADE"
    for role in _roles(definer, tree, "drop objects"):
        own = [each for each in owned_by(definer, role) if _is_here(definer, each)]
        objects = [each.id for each in own if isinstance(each, Contained) and not is_linked(each)]
        schemas = [each for each in own if isinstance(each, Schema)]
        drop_objects(definer.draft, definer.use, objects, is_cascade=is_cascade, qualifies=definer.qualifies)
        contents = [id for each in schemas for id in definer.contents(each.database, each.id)]
        left = [id for id in contents if not _is_gone(definer, id)]
        ids = [each.id for each in schemas]
        drop_schemas(
            definer.draft, definer.use, ids, left, is_cascade=is_cascade, qualifies=definer.qualifies
        )
        _revoke(definer, role)
    return None


def _roles(definer: Definer, tree: Tree, what: str) -> list[str]:
    roles = [definer.role(each) for each in items(tree.roles)]
    for role in roles:
        if role == ROOT:
            raise DependentObjects(
                f"cannot {what} owned by role {ROOT} because they are required by the database system"
            )
        if not definer.rights.has_rights_of(role):
            raise InsufficientPrivilege(
                f"permission denied to {what}",
                detail=f'Only roles with privileges of role "{role}" may {what} owned by it.',
            )
    return roles


def _is_here(definer: Definer, descriptor: AnyDescriptor) -> bool:
    return getattr(descriptor, "database", None) == definer.session.database


def _is_gone(definer: Definer, id: int) -> bool:
    found = definer.draft.declared.get(id)
    return found is not None and is_dropped(found)


def _revoke(definer: Definer, role: str) -> None:
    revoke_on_objects(definer, role)
    _end_memberships(definer, role)
    revoke_in_defaults(definer, role)


def revoke_in_defaults(definer: Definer, role: str) -> None:
    """Also in those of dropped schemas, which may come back."""
    records = definer.node.catalog.roles
    for defaults in list(records.all_defaults(definer.use.txn)):
        left = without_role(defaults.entries, role, defaults.role)
        if defaults.role == role:
            records.delete_defaults(definer.use.txn, defaults)
        elif left != defaults.entries:
            records.put_defaults(definer.use.txn, replace(defaults, entries=left))


def _end_memberships(definer: Definer, grantor: str) -> None:
    """Those that the role has given out, and what followed from them."""
    for each in definer.role_graph().memberships:
        if each.grantor == grantor:
            definer.set_record(key_of(each), None)
            remove_orphans(definer, each.role, cascade=True)


def remove_orphans(definer: Definer, role: str, *, cascade: bool) -> None:
    """What members have given out that have lost their admin option."""
    for each in role_definitions.orphans(definer.role_graph().memberships, role):
        if not cascade:
            raise dependents_exist()
        definer.set_record(key_of(each), None)


def revoke_on_objects(definer: Definer, role: str) -> None:
    """Also on dropped ones, which may come back."""
    for each in privileges_naming(definer, role):
        found = definer.draft.declared.get(each.object) or definer.use.descriptor(each.object)
        if found is not None:
            put_entries(
                definer, found, each.column, each.entries, without_role(each.entries, role, found.owner)
            )
