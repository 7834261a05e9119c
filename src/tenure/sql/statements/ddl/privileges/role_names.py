"""ALTER ROLE a RENAME TO b.

Everything that names a role names it by its name: memberships, privileges, owners, jobs, snapshots. They are
all rewritten in the transaction of the rename, found by what role objects list and not by reading the
catalog; each object that the role owns gets a new version. Sessions know their role by its id
(`sql.session.session_rights`), and go on under the new name.

Walk: `statements.ddl.object_names` -> `rename_role` -> `catalog.accounts.role_definitions`, the draft.
"""

from tenure.base.errors import NotSupported
from tenure.catalog.accounts import role_definitions
from tenure.catalog.accounts.privileges import with_renamed_role
from tenure.catalog.changes.object_changes import set_owner
from tenure.catalog.descriptors.role_records import key_of
from tenure.kv.records import replace
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.privileges.role_objects import is_linked, owned_by, privileges_naming
from tenure.sql.text.parse import Tree


def rename_role(definer: Definer, tree: Tree) -> None:
    name, new_name = tree.subname, tree.newname
    role_definitions.existing(definer.role_graph(), name)
    if name == definer.session.session_user:
        raise NotSupported("session user cannot be renamed")
    if name == definer.owner:
        raise NotSupported("current user cannot be renamed")
    role = role_definitions.renaming(definer.role_graph(), definer.owner, name, new_name)
    owned = owned_by(definer, name)
    granted = privileges_naming(definer, name)
    memberships = definer.role_graph().memberships
    definer.set_record(("role", name), None)
    definer.set_record(key_of(role), role)
    for membership in memberships:
        names = {
            field: new_name for field in ("role", "member", "grantor") if getattr(membership, field) == name
        }
        if names:
            definer.set_record(key_of(membership), None)
            renamed = replace(membership, **names)
            definer.set_record(key_of(renamed), renamed)
    for each in granted:
        definer.set_record(
            key_of(each), replace(each, entries=with_renamed_role(each.entries, name, new_name))
        )
    for descriptor in owned:
        if not is_linked(descriptor):
            set_owner(definer.draft, definer.use, descriptor.id, new_name)
    _rename_stored(definer, name, new_name)


def _rename_stored(definer: Definer, name: str, new_name: str) -> None:
    """What is no part of the leased catalog is written with the transaction."""
    txn, records = definer.use.txn, definer.node.catalog.roles
    definer.node.users.rename(txn, name, new_name)
    definer.node.jobs.rename_owner(txn, name, new_name)
    definer.node.snapshots.rename_owner(txn, name, new_name)
    for defaults in list(records.all_defaults(txn)):
        renamed = replace(
            defaults,
            role=new_name if defaults.role == name else defaults.role,
            entries=with_renamed_role(defaults.entries, name, new_name),
        )
        if renamed != defaults:
            records.delete_defaults(txn, defaults)
            records.put_defaults(txn, renamed)
