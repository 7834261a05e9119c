"""Databases that become schemas while others use their tables by a name that both readings have: `d.a`.

    no d  ──►  database d with d.public.a  ──►  schema d of the default database, with the same a  ──►  no d

Walk: `schema_client.SHAPES` has them under their names; `schema_predicates` calls `conversions`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.base.errors import RetryError
from tenure.catalog.changes import database_conversion, drops
from tenure.catalog.changes.object_changes import create_database
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    ROOT,
    Database,
    NameKey,
    Table,
    is_dropped,
    place_of,
)
from tenure.catalog.leases.catalog_use import CatalogUse
from tenure.catalog.name_resolution import Path, resolve, schema_at
from tests.simulation.predicates import Violation
from tests.simulation.schema_changes import TABLES, table_of
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import Declared

if TYPE_CHECKING:
    from tests.simulation.schema_client import SchemaClient

NAME = "d"
PATH = Path(DEFAULT_DATABASE)


def create(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    catalog = client.process.catalog
    database, schema, table = (catalog.fresh_id(use.txn) for _ in range(3))
    create_database(use.draft, use, id=database, schema=schema, name=NAME, owner=ROOT)
    use.draft.create(table_of(table, 0, TABLES[0], schema, database=database))
    return True


def convert(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    catalog, id = client.process.catalog, use.id_at(NameKey(0, 0, NAME))
    if id is None:
        return False
    schemas = [each.id for each in catalog.schema_map(use.txn, id)]
    contents = [each.id for schema in schemas for each in catalog.names_in(use.txn, id, schema)]
    database_conversion.convert_to_schema(
        use.draft,
        use,
        id,
        parent=DEFAULT_DATABASE,
        schema=catalog.fresh_id(use.txn),
        schemas=schemas,
        contents=contents,
    )
    client.trace.seen["database converted"] += 1
    return True


def drop(client: "SchemaClient", use: CatalogUse, declared: Declared) -> bool:
    """The schema that a database has become, with all that is in it."""
    schema, catalog = schema_at(use, PATH, NAME), client.process.catalog
    if schema is None:
        return False
    contents = [each.id for each in catalog.names_in(use.txn, DEFAULT_DATABASE, schema.id)]
    drops.drop_schemas(use.draft, use, [schema.id], contents, is_cascade=True)
    return True


def write_in(client: "SchemaClient") -> None:
    """Rows of `d.a`, whatever `d` is."""

    def run(use: CatalogUse) -> None:
        found = resolve(use, client.process.catalog, (NAME, TABLES[0]), PATH, renew=lambda: None)
        if not isinstance(found, Table):
            return
        if found.draining and place_of(found) in found.draining:
            raise RetryError("it is on its way out")
        client.record(use).named[place_of(found)] = found.id
        client.think()
        client.write(use, found)
        client.trace.seen["table of a database that is converted written"] += 1

    client.using(run)


def conversions(index: SchemaIndex) -> Iterator[Violation]:
    """I39: with the commit that drops a converted database, its tables are in the schema, by their ids."""
    for id, versions in index.versions.items():
        for at, descriptor, txn in versions:
            if not isinstance(descriptor, Database) or not descriptor.converted_to:
                continue
            former = index.version_at(id, at - 1)
            if former is None or is_dropped(former):
                continue
            for table_id in _tables_of(index, id, at - 1):
                moved = index.version_at(table_id, at)
                if (
                    not isinstance(moved, Table)
                    or moved.schema != descriptor.converted_to
                    or is_dropped(moved)
                ):
                    message = f"table {table_id} did not come along when database {id} became a schema"
                    yield Violation("I39", message, txn.landed, (txn.id,))


def _tables_of(index: SchemaIndex, database: int, at: int) -> Iterator[int]:
    for id in index.versions:
        found = index.version_at(id, at)
        if isinstance(found, Table) and found.database == database and not is_dropped(found):
            yield id


CHANGES = {"create database": create, "convert": convert, "drop converted": drop}
SHAPES = {"write in d": write_in}
WEIGHTS = {"create database": 0.5, "convert": 0.7, "drop converted": 0.4, "write in d": 2.0}
PROFILES = {
    "conversions": {
        "write in d": 6.0,
        "write": 1.0,
        "create database": 1.5,
        "convert": 2.0,
        "drop converted": 1.0,
        "create schema": 0.5,
        "rename schema": 0.5,
    }
}
