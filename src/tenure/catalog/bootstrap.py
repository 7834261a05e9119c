"""The contents of a new store: two databases, their `public` schemas, a zone, a meta record, `root`.

Walk: `composition.catalog_layer` calls `bootstrap` at every start, before the first lease; it writes once.
"""

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.accounts.users import Users
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
from tenure.catalog.descriptors.zones import GC_TTL_SECONDS, Zone, zones
from tenure.kv.keys import Keyspace
from tenure.kv.transaction import Transaction


def bootstrap(txn: Transaction, keyspace: Keyspace, catalog: Catalog) -> bool:
    """Writes the first catalog of a tenant; False if it exists already."""
    if catalog.get(txn, SYSTEM_DATABASE) is not None:
        return False
    for database, schema, name in (
        (SYSTEM_DATABASE, SYSTEM_SCHEMA, "system"),
        (DEFAULT_DATABASE, DEFAULT_SCHEMA, "defaultdb"),
    ):
        first = (1, ZERO_AT)
        made = Database(database, *first, name, ROOT, DescriptorState.PUBLIC, (), ())
        public = Schema(schema, *first, PUBLIC_SCHEMA, ROOT, DescriptorState.PUBLIC, (), (), database)
        for descriptor in (made, public):
            catalog.put(txn, descriptor)
            catalog.put_name(txn, place_of(descriptor), descriptor.id)
        catalog.put_schema_entry(txn, SchemaEntry(database, PUBLIC_SCHEMA, schema, DescriptorState.PUBLIC))
    protection_meta(keyspace).put(txn, ProtectionMeta())
    zones(keyspace).put(txn, Zone(0, 0, GC_TTL_SECONDS))
    Users(keyspace).create_root(txn)
    return True
