"""`tenure_internal.*` about retention: zones in force, protections.

    zone_configurations     every object, the ttl in force for it, and the zone it comes from
    protected_timestamps    who keeps which history of what, for superusers
    snapshots               named snapshots

Walk: `sql.tables.all` collects `definitions`; SHOW ZONE CONFIGURATION and SHOW PROTECTED TIMESTAMPS query
them.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple
from uuid import UUID

from tenure.base.timestamp import micros_of
from tenure.catalog.descriptors.definitions import AnyDescriptor, Database, Schema, Table, visible
from tenure.catalog.descriptors.zones import DEFAULT_ZONE, ZoneKey, all_zones, effective_ttl
from tenure.expr.types.interval import Interval
from tenure.retention.protections.protection_catalog import ProtectionCatalog
from tenure.retention.protections.protection_records import Protection, job_of
from tenure.retention.snapshots import named_snapshots
from tenure.retention.sweeping.sweep_records import sweep_records
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.objects import Objects, objects
from tenure.sql.tables.system import decimal_of, time_of
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define
from tenure.sql.text.quoting import quoted


class ZonePlace(NamedTuple):
    """An object that can have a zone, and where it inherits from."""

    key: ZoneKey
    kind: str
    name: str
    place: tuple[int, ...] = ()
    """Its database, schema, table and index, as far as it has them."""

    @property
    def text(self) -> str:
        return f"{self.kind.upper()} {self.name}"


def _zone_configurations(node: NodeView, reader: TableReader) -> Rows:
    zones = all_zones(reader.block.source, node.store.keyspace)
    places = {each.key: each for each in _places(objects(reader))}
    for each in places.values():
        seconds, source = effective_ttl(zones, *each.place)
        yield (*each.key, each.kind, each.name, seconds, places[source].text, each.key in zones)


def _places(listed: Objects) -> Iterator[ZonePlace]:
    yield ZonePlace(DEFAULT_ZONE, "range", "default")
    for database in listed.of(Database):
        yield ZonePlace((database.id, 0), "database", quoted(database.name), (database.id,))
    for schema in listed.of(Schema):
        yield ZonePlace((schema.id, 0), "schema", name_of(listed, schema), (schema.database, schema.id))
    for table in listed.of(Table):
        name, place = name_of(listed, table), (table.database, table.schema, table.id)
        yield ZonePlace((table.id, 0), "table", name, place)
        for index in visible(table.indexes):
            key = (table.id, index.id)
            yield ZonePlace(key, "index", f"{name}@{quoted(index.name)}", (*place, index.id))


def name_of(listed: Objects, each: AnyDescriptor) -> str:
    """An object's full name, from its database on."""
    if isinstance(each, Database):
        return quoted(each.name)
    if isinstance(each, Schema):
        return f"{quoted(listed.database_of(each))}.{quoted(each.name)}"
    return f"{quoted(listed.database_of(each))}.{listed.qualified(each)}"


# Protections


def _protected_timestamps(node: NodeView, reader: TableReader) -> Rows:
    listed, source = objects(reader), reader.block.source
    now_micros = micros_of(node.store.clock.wall_at())
    pinned = Counter[bytes]()
    for record in sweep_records(node.store.keyspace).scan(source):
        pinned.update(dict(record.pinned))
    for each in ProtectionCatalog(node.store.keyspace).list_all(source).records:
        yield (
            UUID(bytes=each.id),
            decimal_of(each.at),
            each.mode.name.lower(),
            each.meta_type,
            each.meta.decode(errors="replace"),
            job_of(each),
            time_of(each.at),
            Interval(micros=max(now_micros - micros_of(each.at), 0)),
            time_of(each.expires_at or 0),
            tuple(_target_names(node, reader, listed, each)),
            pinned.get(each.id),
        )


def _target_names(
    node: NodeView, reader: TableReader, listed: Objects, protection: Protection
) -> Iterator[str]:
    for id in protection.objects:
        yield _object_name(node, reader, listed, id)
    for lo, _ in protection.spans:
        table, index = node.store.keyspace.table_and_index(lo)
        found = listed.by_id.get(table)
        named = [each.name for each in found.indexes if each.id == index] if isinstance(found, Table) else []
        if found is None or not named:
            yield f"span of {table}/{index}"
        else:
            yield f"INDEX {name_of(listed, found)}@{quoted(named[0])}"


def _object_name(node: NodeView, reader: TableReader, listed: Objects, id: int) -> str:
    """By kind and full name; that of a dropped object is the last that it had."""
    found = listed.by_id.get(id)
    if found is not None:
        return f"{type(found).__name__.upper()} {name_of(listed, found)}"
    path = list(_dropped_path(node, reader, id))
    if not path:
        return f"object {id} (gone)"
    return f"{type(path[-1]).__name__.upper()} {'.'.join(quoted(each.name) for each in path)} (dropped)"


def _dropped_path(node: NodeView, reader: TableReader, id: int) -> Iterator[AnyDescriptor]:
    """A stored object after those that contain it."""
    found = node.catalog.get(reader.block.source, id)
    if found is None:
        return
    if isinstance(found, Schema):
        yield from _dropped_path(node, reader, found.database)
    elif not isinstance(found, Database):
        yield from _dropped_path(node, reader, found.schema)
    yield found


def _snapshots(node: NodeView, reader: TableReader) -> Rows:
    listed = objects(reader)
    for each in named_snapshots(node.store.keyspace).scan(reader.block.source):
        found = listed.by_id.get(each.target) or next(_dropped_path(node, reader, each.target), None)
        if found is not None and not listed.shows(found):
            continue
        target = _object_name(node, reader, listed, each.target)
        yield (
            each.name,
            decimal_of(each.at),
            time_of(each.at),
            target,
            each.owner,
            time_of(each.expires_at or 0),
        )


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.zone_configurations",
        partial(_zone_configurations, node),
        "How long history of each object is kept, and which zone decides it.",
        ("id", "int8 not null", "The descriptor's id; 0 is the default of everything."),
        ("index_id", "int8 not null", "The index; 0 is the whole object."),
        ("kind", "text not null", "range, database, schema, table or index."),
        ("name", "text not null", "The object's full name."),
        ("gc_ttl_seconds", "int8 not null", "The ttl in force."),
        ("source", "text not null", "The object whose zone sets it."),
        ("has_zone", "bool not null", "Whether the object has a zone of its own."),
        key=("id", "index_id"),
    )
    yield define(
        "tenure_internal.protected_timestamps",
        partial(_protected_timestamps, node),
        "Protections: who keeps which history, and of what.",
        ("id", "uuid not null", "The protection's id."),
        ("ts", "numeric not null", "The timestamp that is protected."),
        ("mode", "text not null", "at: that time alone; after: all from there on."),
        ("owner_kind", "text not null", "What kind of thing it belongs to."),
        ("owner", "text not null", "Which one."),
        ("job_id", "int8", "The job, if a job has it."),
        ("protected_at", "timestamptz", "The wall time of the timestamp."),
        ("age", "interval not null", "How long ago that was."),
        ("expires", "timestamptz", "When its owner is ended for it; null: never."),
        ("targets", "text[] not null", "The databases, schemas, tables and indexes that it covers."),
        (
            "pinned_bytes",
            "int8",
            "What would be gone without it, as of the last sweep; null: unknown.",
        ),
        key=("id",),
        is_restricted=True,
    )
    yield define(
        "tenure_internal.snapshots",
        partial(_snapshots, node),
        "Named snapshots: times that users keep readable.",
        ("name", "text not null", "The snapshot's name, for AS OF SNAPSHOT."),
        ("ts", "numeric not null", "The timestamp that it shows."),
        ("taken", "timestamptz", "The wall time of the timestamp."),
        ("target", "text not null", "The database, schema or table that it keeps."),
        ("owner", "text not null", "The role that has taken it."),
        ("expires", "timestamptz", "When it is dropped; null: never."),
        key=("name",),
    )
