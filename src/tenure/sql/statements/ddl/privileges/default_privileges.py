"""ALTER DEFAULT PRIVILEGES: what the new objects of a role are granted.

    ALTER DEFAULT PRIVILEGES FOR ROLE ann GRANT SELECT ON TABLES TO bob              in place of the kind's
    ALTER DEFAULT PRIVILEGES FOR ROLE ann IN SCHEMA s GRANT SELECT ON TABLES TO bob  besides those

They are written with the statement's transaction, and read in the store when an object is made.

Walk: `statements.ddl.ddl_statements` -> `alter_defaults` -> `catalog.accounts.privileges`.
"""

from tenure.base.errors import InsufficientPrivilege, InvalidGrant, NotSupported
from tenure.catalog.accounts.privileges import (
    OF_KIND,
    Entries,
    check_known,
    initial,
)
from tenure.catalog.descriptors.role_records import EVERYWHERE, OWNER, DefaultPrivileges
from tenure.sql.statements.ddl.definition import Definer
from tenure.sql.statements.ddl.privileges.grants import Act, grantee_of, word_of
from tenure.sql.statements.ddl.schemas import schema_named
from tenure.sql.text.parse import Tree, child, items, option

KINDS = {
    "OBJECT_TABLE": "table",
    "OBJECT_SEQUENCE": "sequence",
    "OBJECT_SCHEMA": "schema",
    "OBJECT_TYPE": "type",
}


def alter_defaults(definer: Definer, tree: Tree) -> str | None:
    action = tree.action
    kind = KINDS.get(option(action, "objtype"))
    if kind is None:
        raise NotSupported("default privileges of this kind of object are not supported")
    if any(each.cols for each in items(action.privileges)):
        raise InvalidGrant("default privileges cannot be set for columns")
    words = [word_of(each) for each in items(action.privileges)]
    bits = check_known(words, kind, kind) if words else OF_KIND[kind]
    grantees = [grantee_of(definer, each) for each in items(action.grantees)]
    options = {each.defname: items(child(each, "arg").items) for each in items(tree.options)}
    roles = [definer.role(each) for each in options.get("roles", ())] or [definer.owner]
    schemas = [schema_named(definer, each.sval).id for each in options.get("schemas", ())] or [EVERYWHERE]
    for role in roles:
        if not definer.rights.has_rights_of(role):
            raise InsufficientPrivilege("permission denied to change default privileges")
        for schema in schemas:
            for grantee in grantees:
                _change(definer, action, (role, schema, kind), grantee, bits)
    return None


def _change(definer: Definer, action: Tree, key: tuple[str, int, str], grantee: str, bits: int) -> None:
    records, txn = definer.node.catalog.roles, definer.use.txn
    role, schema, kind = key
    own: Entries = initial(kind) if schema == EVERYWHERE else ()
    stored = records.default(txn, *key)
    entries = own if stored is None else stored.entries
    act = Act(action.is_grant, (grantee,), action.grant_option, cascade=True)
    entries = act.on(entries, grantor=OWNER, bits=bits, owner=role)
    changed = DefaultPrivileges(role, schema, kind, entries)
    if entries == own:
        records.delete_defaults(txn, changed)
    else:
        records.put_defaults(txn, changed)
