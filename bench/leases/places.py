"""A catalog of 40,000 tables in 200 databases, written in bulk, and nodes over it.

Walk: the other modules of `bench.leases` make their stores here.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.store.places import store_path
from tenure.base.env import SystemEnv
from tenure.base.settings import DEFINITIONS, Settings
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import (
    ROOT,
    AnyDescriptor,
    Column,
    Database,
    DescriptorState,
    Index,
    KeyPart,
    NameKey,
    Schema,
    SchemaEntry,
    Table,
    TypeRef,
    next_version,
    place_of,
)
from tenure.front import Listen
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.node import Node, NodeOptions
from tenure.storage.addresses import SQLITE_PREFIX

DATABASES, TABLES = 200, 40_000
DATABASES_QUICK, TABLES_QUICK = 10, 400
FIRST_ID = 1_000
PER_COMMIT = 1_000


def objects(databases: int, tables: int) -> list[AnyDescriptor]:
    """Databases with a schema each, and tables spread over them; ids in this order."""
    made: list[AnyDescriptor] = []
    for number in range(databases):
        id = FIRST_ID + 2 * number
        made.append(Database(id, 0, ZERO_AT, f"db{number}", ROOT, DescriptorState.PUBLIC, (), ()))
        made.append(Schema(id + 1, 0, ZERO_AT, "public", ROOT, DescriptorState.PUBLIC, (), (), id))
    first_table = FIRST_ID + 2 * databases
    for number in range(tables):
        database = FIRST_ID + 2 * (number % databases)
        made.append(table(first_table + number, f"table{number}", database, database + 1))
    return made


def table(id: int, name: str, database: int, schema: int) -> Table:
    columns = tuple(
        Column(number, f"c{number}", TypeRef("int8"), is_nullable=number > 1) for number in range(1, 9)
    )
    primary = Index(1, f"{name}_pkey", (KeyPart(1),), is_unique=True, primary=1)
    second = Index(2, f"{name}_c2", (KeyPart(2),), primary=1)
    return Table(
        id,
        0,
        ZERO_AT,
        name,
        ROOT,
        DescriptorState.PUBLIC,
        (),
        (),
        database,
        schema,
        columns,
        1,
        (primary, second),
        next_column=9,
        next_index=3,
    )


def fill(store: Store, catalog: Catalog, made: Sequence[AnyDescriptor]) -> None:
    def write(part: Sequence[AnyDescriptor]) -> None:
        def run(txn: Transaction) -> None:
            for each in part:
                catalog.put(txn, next_version(each))
                catalog.put_name(txn, place_of(each), each.id)
                if isinstance(each, Schema):
                    catalog.put_schema_entry(
                        txn, SchemaEntry(each.database, each.name, each.id, DescriptorState.PUBLIC)
                    )

        store.transact(run)

    for start in range(0, len(made), PER_COMMIT):
        write(made[start : start + PER_COMMIT])


def change(store: Store, catalog: Catalog, id: int) -> None:
    """Gives a descriptor its next version, with nothing else in it."""

    def run(txn: Transaction) -> None:
        stored = catalog.get(txn, id)
        assert stored is not None
        catalog.put(txn, next_version(stored))

    store.transact(run)


@contextmanager
def nodes(count: int, *, settings: Settings | None = None) -> Iterator[list[Node]]:
    """Nodes over one new SQLite store, all in this process."""
    with store_path() as path, nodes_over(path, count, settings=settings) as started:
        yield started


@contextmanager
def nodes_over(
    path: str, count: int = 1, *, settings: Settings | None = None, listen: Listen | None = None
) -> Iterator[list[Node]]:
    """The same over a store that stays; with `listen` they have SQL sessions."""
    started: list[Node] = []
    try:
        for _ in range(count):
            options = NodeOptions(
                SQLITE_PREFIX + path, settings=settings or Settings(DEFINITIONS), listen=listen
            )
            started.append(Node(options, SystemEnv()))
        yield started
    finally:
        for node in reversed(started):
            node.stop()


def place(made: Sequence[AnyDescriptor], number: int) -> NameKey:
    """The place of the so manieth table."""
    tables = [each for each in made if isinstance(each, Table)]
    return place_of(tables[number])
