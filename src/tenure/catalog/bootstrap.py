"""The contents of a new store: two databases, their `public` schemas, a zone, a meta record, `root`.

A store from before roles gets them here: a role for each user, a role object for each owned descriptor, and
for each schema `public` the right of everybody to use it. One from before the predefined roles gets those.

Walk: `composition.catalog_layer` calls `bootstrap` at every start, before the first lease; it writes once.
"""

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.accounts.predefined_roles import PREDEFINED
from tenure.catalog.accounts.public_schemas import privileges_of_public
from tenure.catalog.accounts.users import ROOT_ID, Users
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    PUBLIC_SCHEMA,
    ROOT,
    SYSTEM_DATABASE,
    SYSTEM_SCHEMA,
    Database,
    DescriptorState,
    Schema,
    SchemaEntry,
    place_of,
)
from tenure.catalog.descriptors.protection_meta import ProtectionMeta, protection_meta
from tenure.catalog.descriptors.role_records import Role
from tenure.catalog.descriptors.zones import GC_TTL_SECONDS, Zone, zones
from tenure.kv.keys import Keyspace
from tenure.kv.transaction import Transaction


def bootstrap(txn: Transaction, keyspace: Keyspace, catalog: Catalog) -> bool:
    """Writes the first catalog of a tenant; False if it exists already."""
    users = Users(keyspace)
    is_new = catalog.get(txn, SYSTEM_DATABASE) is None
    if is_new:
        _write_catalog(txn, catalog)
        protection_meta(keyspace).put(txn, ProtectionMeta())
        zones(keyspace).put(txn, Zone(0, 0, GC_TTL_SECONDS))
        users.create_root(txn)
    if is_new or catalog.roles.role(txn, ROOT) is None:
        _write_roles(txn, catalog, users)
    for role in PREDEFINED:
        if catalog.roles.role(txn, role.name) is None:
            users.create(txn, role)
    return is_new


def _write_catalog(txn: Transaction, catalog: Catalog) -> None:
    for database, schema, name in (
        (SYSTEM_DATABASE, SYSTEM_SCHEMA, "system"),
        (DEFAULT_DATABASE, DEFAULT_SCHEMA, "defaultdb"),
    ):
        first = (1, ZERO_AT)
        database_descriptor = Database(database, *first, name, ROOT, DescriptorState.PUBLIC, (), ())
        public = Schema(schema, *first, PUBLIC_SCHEMA, ROOT, DescriptorState.PUBLIC, (), (), database)
        for descriptor in (database_descriptor, public):
            catalog.put(txn, descriptor)
            catalog.put_name(txn, place_of(descriptor), descriptor.id)
        catalog.put_schema_entry(txn, SchemaEntry(database, PUBLIC_SCHEMA, schema, DescriptorState.PUBLIC))


def _write_roles(txn: Transaction, catalog: Catalog, users: Users) -> None:
    """The roles of a store that has none, and what belongs to the objects that it has."""
    for user in list(users.former(txn)):
        id = ROOT_ID if user.name == ROOT else catalog.fresh_id(txn)
        role = Role(user.name, id, user.is_superuser, user.can_login, created_at=user.created_at)
        users.create(txn, role, user.verifier)
    for descriptor in list(catalog.list(txn)):
        catalog.roles.move_owner(txn, None, descriptor)
        if isinstance(descriptor, Schema) and descriptor.name == PUBLIC_SCHEMA:
            catalog.roles.put(txn, privileges_of_public(descriptor.id))
