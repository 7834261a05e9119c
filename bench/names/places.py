"""Many schemas in one database, and many databases, with their tables: written in bulk.

Walk: the modules of `bench.names` make their catalogs here, over the nodes of `bench.leases.places`.
"""

from bench.leases.places import FIRST_ID, fill, table
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    PUBLIC_SCHEMA,
    ROOT,
    AnyDescriptor,
    Database,
    DescriptorState,
    Schema,
)
from tenure.node import Node


def table_name(number: int) -> str:
    return f"t{number}"


def schema_name(number: int) -> str:
    return f"app{number}"


def database_name(number: int) -> str:
    return f"db{number}"


def fill_schemas(node: Node, count: int) -> None:
    """Gives the default database so many schemas."""
    contents: list[AnyDescriptor] = []
    for number in range(count):
        id = FIRST_ID + 2 * number
        contents.append(_schema(id, schema_name(number), DEFAULT_DATABASE))
        contents.append(table(id + 1, table_name(0), DEFAULT_DATABASE, id))
    fill(node.store, node.catalog, contents)
    node.leases.renew()


def fill_databases(node: Node, count: int, *, first_id: int, tables: int) -> None:
    """Makes so many other databases, each with a schema `public` and tables in it."""
    contents: list[AnyDescriptor] = []
    for number in range(count):
        database = first_id + number * (2 + tables)
        name, public = database_name(number), database + 1
        contents.append(Database(database, 0, ZERO_AT, name, ROOT, DescriptorState.PUBLIC, (), ()))
        contents.append(_schema(public, PUBLIC_SCHEMA, database))
        contents += [table(public + 1 + each, table_name(each), database, public) for each in range(tables)]
    fill(node.store, node.catalog, contents)
    node.leases.renew()


def _schema(id: int, name: str, database: int) -> Schema:
    return Schema(id, 0, ZERO_AT, name, ROOT, DescriptorState.PUBLIC, (), (), database)
