"""`system.*`: the records below SQL, with the columns and keys of the design documents.

    schema leases    schema_lease, lease
    liveness         sqlliveness, sql_instances
    jobs             jobs
    retention        protected_ts_meta, protected_ts_timestamps, protected_ts_spans, zones
    catalog          descriptor, namespace
    cluster          settings, users, role_members

Rows are read at the transaction's own time, and are part of what its commit is checked against. An id of a
node session is sixteen bytes, the instance id and the epoch; a timestamp is the decimal that AS OF SYSTEM
TIME takes. Verifiers of passwords are never shown.

Walk: `sql.tables.all` asks for the `definitions`; a statement that names one asks for its rows.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from uuid import UUID

from tenure.base.timestamp import Timestamp, logical_of, micros_of, to_text
from tenure.catalog.descriptors.protection_meta import protection_meta
from tenure.catalog.descriptors.zones import zones
from tenure.catalog.leases.lease_rows import LeaseRows
from tenure.cluster.jobs.job_table import NOBODY
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.settings import StoredSetting
from tenure.kv.keys import DESCRIPTORS, SETTINGS
from tenure.kv.records import Records
from tenure.retention.protections.protection_records import protections
from tenure.sql.execution.session_facts import session_bytes
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.job_status import fraction
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define


def decimal_of(at: Timestamp) -> Decimal:
    """A timestamp as text."""
    return Decimal(to_text(at))


def time_of(at: Timestamp) -> datetime | None:
    """Its wall time; None for the zero timestamp."""
    return datetime.fromtimestamp(micros_of(at) / 1_000_000, UTC) if at else None


# Catalog


def _descriptors(node: NodeView, reader: TableReader) -> Rows:
    catalog, source = node.catalog, reader.block.source
    span = node.store.keyspace.table_span(DESCRIPTORS)
    for key, value in source.scan(span):
        (id,) = catalog.columns_of(key)
        yield id, value


def _names(node: NodeView, reader: TableReader) -> Rows:
    for each in node.catalog.names(reader.block.source):
        yield each.database, each.schema, each.name, each.id


def _zones(node: NodeView, reader: TableReader) -> Rows:
    keyspace = node.store.keyspace
    for each in zones(keyspace).scan(reader.block.source):
        yield each.descriptor, each.index, each.gc_ttl_seconds


# Leases and liveness


def _schema_leases(node: NodeView, reader: TableReader) -> Rows:
    keyspace = node.store.keyspace
    for each in LeaseRows(keyspace, Sessions(keyspace)).list(reader.block.source):
        wall, logical = micros_of(each.lease_at), logical_of(each.lease_at)
        yield each.instance, int(each.epoch_at), wall, logical, each.descriptors


def _expiring_leases(node: NodeView, reader: TableReader) -> Rows:
    from tenure.version_one.expiring_lease_rows import OldLeaseRows  # nothing else of SQL needs that package

    for each in OldLeaseRows(node.store.keyspace, node.catalog).list(reader.block.source):
        yield each.descriptor, each.version, each.instance, time_of(each.expires_at)


def _liveness(node: NodeView, reader: TableReader) -> Rows:
    sessions = Sessions(node.store.keyspace)
    for each in sessions.list(reader.block.source):
        yield session_bytes(each.id), decimal_of(each.expires_at)


def _instances(node: NodeView, reader: TableReader) -> Rows:
    sessions = Sessions(node.store.keyspace)
    # Their epochs are stamped at the commit, as those of sessions are: together they are the session's id.
    ids = {each.id.instance: each.id for each in sessions.list(reader.block.source)}
    for each in sessions.instances.scan(reader.block.source):
        session = ids.get(each.id)
        yield (
            each.id,
            each.address,
            None if session is None else session_bytes(session),
            time_of(each.started_at),
            each.version,
            each.draining,
        )


# Jobs


def _jobs(node: NodeView, reader: TableReader) -> Rows:
    for job, control, progress in node.bulk.jobs.list(reader.block.source):
        is_claimed = control.claim != NOBODY
        yield (
            job.id,
            control.state.value,
            time_of(job.created_at),
            job.payload,
            progress.data,
            session_bytes(control.claim) if is_claimed else None,
            control.claim_instance if is_claimed else None,
            job.kind,
            job.owner,
            job.description,
            control.run,
            time_of(control.started_at),
            time_of(control.finished_at),
            fraction(control, progress),
            control.error_text or None,
        )


# Retention


def _protection_meta(node: NodeView, reader: TableReader) -> Rows:
    found = protection_meta(node.store.keyspace).get(reader.block.source)
    if found is not None:
        yield True, found.version, found.records, found.spans, found.bytes, found.objects


def _protections(node: NodeView, reader: TableReader) -> Rows:
    for each in protections(node.store.keyspace).scan(reader.block.source):
        meta = each.meta_type, each.meta
        yield UUID(bytes=each.id), decimal_of(each.at), each.mode.value, *meta, each.objects or None


def _protected_spans(node: NodeView, reader: TableReader) -> Rows:
    for each in protections(node.store.keyspace).scan(reader.block.source):
        for lo, hi in each.spans:
            yield UUID(bytes=each.id), lo, hi


def _nothing(reader: TableReader) -> Rows:
    return ()


# Cluster


def _settings(node: NodeView, reader: TableReader) -> Rows:
    records = Records(node.store.keyspace, SETTINGS, StoredSetting, key=("name",))
    for each in records.scan(reader.block.source):
        yield each.name, each.text


def _users(node: NodeView, reader: TableReader) -> Rows:
    for each in node.users.all(reader.block.source):
        yield each.name, bool(each.verifier), each.is_superuser, each.can_login, time_of(each.created_at)


def _role_members(node: NodeView, reader: TableReader) -> Rows:
    for each in node.catalog.roles.memberships(reader.block.source):
        yield each.role, each.member, each.grantor, each.has_admin, each.inherits, each.can_set


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield from _catalog(node)
    yield from _leases(node)
    yield from _work(node)
    yield from _cluster(node)


def _catalog(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "system.descriptor",
        partial(_descriptors, node),
        "The newest version of every database, schema, table, view, sequence and type.",
        ("id", "int8 not null", "The descriptor's id."),
        ("descriptor", "bytea not null", "The record as it is stored."),
        key=("id",),
        is_restricted=True,
    )
    yield define(
        "system.namespace",
        partial(_names, node),
        "What names stand for; a name that is draining has its row until it is free.",
        ("parentID", "int8 not null", "The database; 0 of a database."),
        ("parentSchemaID", "int8 not null", "The schema; 0 of a database and of a schema."),
        ("name", "text not null", "The name."),
        ("id", "int8 not null", "The descriptor's id."),
        key=("parentID", "parentSchemaID", "name"),
        is_restricted=True,
    )
    yield define(
        "system.zones",
        partial(_zones, node),
        "How long history is kept; what an object does not say, it inherits.",
        ("id", "int8 not null", "The descriptor's id; 0 is the default of everything."),
        ("index_id", "int8 not null", "The index; 0 is the whole object."),
        ("gc_ttl_seconds", "int8", "How long; null: inherited."),
        key=("id", "index_id"),
        is_restricted=True,
    )


def _leases(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "system.schema_lease",
        partial(_schema_leases, node),
        "Which nodes may use the catalog as of which time.",
        ("nodeid", "int8 not null", "The instance id of the node."),
        ("epoch", "int8 not null", "The epoch of its session."),
        ("hlcwalltime", "int8 not null", "The time of the lease, in microseconds since 1970."),
        ("hlclogical", "int8 not null", "And its logical counter."),
        ("descriptor_ids", "int8[]", "What it still covers once it is narrowed; null: everything."),
        key=("hlcwalltime", "hlclogical", "nodeid", "epoch"),
        is_restricted=True,
    )
    yield define(
        "system.lease",
        partial(_expiring_leases, node),
        "The older scheme's leases, one per descriptor; empty once the cluster's version is finalized.",
        ("descID", "int8 not null", "The descriptor's id."),
        ("version", "int8 not null", "Its version."),
        ("nodeID", "int8 not null", "The instance id of the node."),
        ("expiration", "timestamptz not null", "When the lease ends."),
        key=("descID", "version", "expiration", "nodeID"),
        is_restricted=True,
    )
    yield define(
        "system.sqlliveness",
        partial(_liveness, node),
        "The node sessions that exist: only what is absent here is dead.",
        ("session_id", "bytea not null", "The instance id and the epoch, eight bytes each."),
        ("expiration", "numeric not null", "The timestamp before which nobody else deletes the session."),
        key=("session_id",),
        is_restricted=True,
    )
    yield define(
        "system.sql_instances",
        partial(_instances, node),
        "The nodes: their ids, and where they are reached.",
        ("id", "int8 not null", "The instance id."),
        ("addr", "text not null", "Where it serves SQL."),
        ("session_id", "bytea", "Its session in system.sqlliveness; null of a node of version 1."),
        ("started_at", "timestamptz", "When it started."),
        ("version", "int8 not null", "The version of its program."),
        ("is_draining", "bool not null", "Whether it is about to stop."),
        key=("id",),
        is_restricted=True,
    )


def _work(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "system.jobs",
        partial(_jobs, node),
        "Jobs: what was asked for, who holds it, how far it is.",
        ("id", "int8 not null", "The job's id."),
        ("state", "text not null", "pending, running, paused, ... , succeeded, failed, canceled."),
        ("created", "timestamptz not null", "When it was asked for."),
        ("payload", "bytea not null", "What is to be done, as its kind stores it."),
        ("progress", "bytea not null", "How far it is, as its kind stores it."),
        ("claim_session_id", "bytea", "The session that may run it; null: nobody's."),
        ("claim_instance_id", "int8", "And that session's instance id."),
        ("job_type", "text not null", "The kind of job."),
        ("owner", "text not null", "Who asked for it."),
        ("description", "text not null", "The statement that did."),
        ("num_runs", "int8 not null", "How often it was begun or taken over."),
        ("started", "timestamptz", "When it was first begun."),
        ("finished", "timestamptz", "When it ended."),
        ("fraction_completed", "float8 not null", "How much of it is done, from 0 to 1."),
        ("error", "text", "Why it failed, or the last reason to try again."),
        key=("id",),
        is_restricted=True,
    )
    yield define(
        "system.protected_ts_meta",
        partial(_protection_meta, node),
        "The one row that every protection moves.",
        ("_exists", "bool not null", "True: there is one row at most."),
        ("version", "int8 not null", "How often protections have changed."),
        ("rows", "int4 not null", "How many there are."),
        ("spans", "int4 not null", "How many spans they name."),
        ("total_bytes", "int8 not null", "How large they are."),
        ("objects", "int4 not null", "How many databases, schemas and tables they name."),
        key=("_exists",),
        is_restricted=True,
    )
    yield define(
        "system.protected_ts_timestamps",
        partial(_protections, node),
        "Protections: timestamps that must stay readable.",
        ("id", "uuid not null", "The protection's id."),
        ("ts", "numeric not null", "The timestamp that is protected."),
        ("mode", "int8 not null", "1: that time alone; 2: all from there on."),
        ("meta_type", "text not null", "What kind of thing it belongs to."),
        ("meta", "bytea", "Which one."),
        ("target", "int8[]", "The databases, schemas and tables that it covers; null: spans alone."),
        key=("id",),
        is_restricted=True,
    )
    yield define(
        "system.protected_ts_spans",
        partial(_protected_spans, node),
        "The spans that protections cover; of an index that one touches, all is kept.",
        ("id", "uuid not null", "The protection, in system.protected_ts_timestamps."),
        ("key", "bytea not null", "The first key of a span."),
        ("end_key", "bytea not null", "The first key behind it."),
        key=("id", "key", "end_key"),
        is_restricted=True,
    )


def _cluster(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "system.settings",
        partial(_settings, node),
        "Cluster settings that were set; the others have their defaults.",
        ("name", "text not null", "The setting's name."),
        ("value", "text not null", "Its value, as SHOW CLUSTER SETTING shows it."),
        key=("name",),
        is_restricted=True,
    )
    yield define(
        "system.users",
        partial(_users, node),
        "Users and roles.",
        ("username", "text not null", "The name."),
        ("has_password", "bool not null", "Whether there is a password; without one, none is right."),
        ("is_superuser", "bool not null", "Whether nothing is refused."),
        ("can_login", "bool not null", "Whether sessions can be opened in this name."),
        ("created", "timestamptz", "When it was made."),
        key=("username",),
        is_restricted=True,
    )
    yield define(
        "system.role_members",
        partial(_role_members, node),
        "Who is a member of which role.",
        ("role", "text not null", "The role."),
        ("member", "text not null", "Who belongs to it."),
        ("grantor", "text not null", "Who let the member in."),
        ("isAdmin", "bool not null", "Whether the member may let others in."),
        ("inherits", "bool not null", "Whether the member has the privileges of the role."),
        ("can_set", "bool not null", "Whether the member may SET ROLE to it."),
        key=("role", "member", "grantor"),
        is_restricted=True,
    )
