"""`tenure_internal.gc_status`: the last sweep of each index and of the system's records.

Users without the superuser role see only the tables that they own.

Walk: `sql.tables.all` collects `definitions`; SHOW GC STATUS queries it.
"""

from collections.abc import Iterator
from functools import partial
from uuid import UUID

from tenure.catalog.descriptors.definitions import AnyDescriptor, Table
from tenure.kv.keys import USER_TABLES
from tenure.retention.sweeping.heads import CATALOG_TABLES
from tenure.retention.sweeping.sweep_records import SweepRecord, sweep_records
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.system import decimal_of, time_of
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define, is_superuser


def _rows(node: NodeView, reader: TableReader) -> Rows:
    source, keyspace, is_all = reader.block.source, node.store.keyspace, is_superuser(reader)
    found: dict[int, AnyDescriptor | None] = {}

    def descriptor(id: int) -> AnyDescriptor | None:
        if id not in found:
            found[id] = node.catalog.get(source, id)
        return found[id]

    for record in sweep_records(keyspace).scan(source):
        table_id, index_id = keyspace.table_and_index(record.head)
        table = descriptor(table_id) if table_id >= USER_TABLES else None
        if not is_all and (table is None or table.owner != reader.session.user):
            continue
        names: list[str | None] = [None, None, None, None]
        if isinstance(table, Table):
            index = next((each.name for each in table.indexes if each.id == index_id), None)
            parents = [descriptor(id) for id in (table.database, table.schema)]
            names = [*(None if each is None else each.name for each in parents), table.name, index]
        yield table_id, index_id, *names, *_figures(record, table_id)


def _figures(record: SweepRecord, table: int) -> Iterator[object]:
    kind = "index" if table >= USER_TABLES else "catalog" if table in CATALOG_TABLES else "system"
    yield kind
    yield record.stage.value
    yield decimal_of(record.keep.threshold)
    yield record.ttl_seconds
    by_ttl = "gc.system_ttl" if kind == "system" else "gc.ttlseconds"
    yield f"protection {UUID(bytes=record.held_by)}" if record.held_by else by_ttl
    yield len(record.keep.points)
    yield record.removed
    yield record.garbage_rows
    yield time_of(record.published_at)
    yield time_of(record.finished_at)


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.gc_status",
        partial(_rows, node),
        "The last sweep of each index, of the catalog and of the system's records.",
        ("table_id", "int8 not null", "The table; below 100 the system's own records."),
        ("index_id", "int8 not null", "The index of the table."),
        ("database_name", "text", "The table's database."),
        ("schema_name", "text", "The table's schema."),
        ("table_name", "text", "The table's name; null if it is gone."),
        ("index_name", "text", "The index's name; null if it is gone."),
        ("kind", "text not null", "index, catalog or system."),
        ("stage", "text not null", "published, swept, collecting or collected."),
        ("threshold", "numeric not null", "The oldest time that can be read."),
        ("ttl_seconds", "float8 not null", "How long history is kept without protections."),
        ("held_by", "text not null", "What keeps the threshold from being later."),
        ("kept_points", "int8 not null", "How many older times can be read by their protections."),
        (
            "revisions_removed",
            "int8 not null",
            "How many revisions the last sweep has removed from the store.",
        ),
        ("garbage_rows", "int8 not null", "About how many rows of the lake's files nobody can read."),
        ("published", "timestamptz", "When the threshold was published."),
        ("finished", "timestamptz", "When the last removal was finished."),
        key=("table_id", "index_id"),
    )
