"""`tenure_internal.*` about running things: leases, jobs, plans, settings, and the tables of
`sql.tables.running`.

    this node alone    leases · descriptor_cache · plan_cache · build_info
    the whole cluster  sessions · transactions · locks · nodes · jobs · blockers · cluster_settings · users

Users without the superuser role see only the jobs and statements of their own.

Walk: `sql.tables.all` collects `definitions`; SHOW statements query them.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from tenure.base.settings import AnySetting
from tenure.catalog.descriptors.definitions import Database, EnumType, Schema, Table, View
from tenure.catalog.descriptors.definitions import Sequence as Sequence_
from tenure.catalog.descriptors.equal_versions import logical_of, row_of
from tenure.catalog.leases.catalog_use import CatalogUse, Lease
from tenure.catalog.leases.wait_records import WaitRecords
from tenure.cluster.jobs.job_table import NOBODY
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.sessions.versions import PROGRAM
from tenure.cluster.settings import StoredSetting
from tenure.kv.keys import SETTINGS
from tenure.kv.records import Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.sql.execution.session_facts import VERSION, session_bytes
from tenure.sql.session.services import BulkServices
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables import blockers as blocker_tables
from tenure.sql.tables import running
from tenure.sql.tables.job_status import awaited_by_job, fraction, running_status
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.objects import objects
from tenure.sql.tables.session_state import STATEMENT_CHARS_MAX
from tenure.sql.tables.system import decimal_of, time_of
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define, is_superuser

# Leases


def _leases(node: NodeView, reader: TableReader) -> Rows:
    leases = node.leases
    uses = leases.uses()
    for lease in _held(uses, leases.peek()):
        bound = sum(1 for use in uses if use.lease is lease)
        yield (
            node.session_id().instance,
            decimal_of(lease.at),
            session_bytes(lease.session.id),
            decimal_of(lease.frontier_at),
            lease.is_closed,
            tuple(sorted(lease.pins)),
            bound,
        )


def _held(uses: list[CatalogUse], newest: Lease | None) -> list[Lease]:
    leases = {id(lease): lease for lease in (newest, *(use.lease for use in uses)) if lease is not None}
    return sorted(leases.values(), key=lambda each: each.at)


_KINDS = {
    Database: "database",
    Schema: "schema",
    Table: "table",
    View: "view",
    Sequence_: "sequence",
    EnumType: "type",
}


def _descriptor_cache(node: NodeView, reader: TableReader) -> Rows:
    newest = node.leases.newest
    if newest is None:
        return
    lease_at = decimal_of(newest.at)
    for each in filter(objects(reader).shows, newest.descriptors()):
        modified_at, kind = decimal_of(each.modified_at), _KINDS[type(each)]
        numbers = each.version, logical_of(each), row_of(each)
        is_locked = isinstance(each, Table) and each.is_locked
        yield each.id, kind, each.name, *numbers, is_locked, each.state.value, modified_at, lease_at


# Plans


def _plan_cache(node: NodeView, reader: TableReader) -> Rows:
    session, is_all = reader.session, is_superuser(reader)
    for key, plan in node.plans.entries():
        if is_all or key.path.user == session.user:
            yield (
                key.text[:STATEMENT_CHARS_MAX],
                key.path.user,
                key.path.database,
                key.path.schemas,
                type(plan.statement).__name__.lower(),
                plan.used_ids,
            )


# The cluster


def _nodes(node: NodeView, reader: TableReader) -> Rows:
    sessions = Sessions(node.store.keyspace)
    source, own = reader.block.source, node.session_id().instance
    expirations = {each.id.instance: each.expires_at for each in sessions.list(source)}
    for each in sessions.instances.scan(source):
        expires_at = expirations.get(each.id)
        yield (
            each.id,
            each.address,
            time_of(each.started_at),
            each.version,
            each.draining,
            None if expires_at is None else time_of(expires_at),
            each.id == own,
            node.long_turns.count if each.id == own else None,
        )


def _jobs(node: NodeView, reader: TableReader) -> Rows:
    return jobs_at(node.bulk, reader, reader.block.source)


def jobs_at(bulk: BulkServices, reader: TableReader, source: Transaction | Snapshot) -> Rows:
    """The jobs that the session's user may know of."""
    rights = reader.session.rights(reader.block)
    trouble, awaited = bulk.spark_trouble(), _awaited(bulk)
    for job, control, progress in bulk.jobs.list(source):
        if rights.has_rights_of(job.owner):
            yield (
                job.id,
                job.kind,
                job.description,
                job.owner,
                control.state.value,
                running_status(control, progress, trouble, awaited.get(job.id, ())) or None,
                time_of(job.created_at),
                time_of(control.started_at),
                time_of(control.finished_at),
                fraction(control, progress),
                control.run,
                control.error_text or None,
                control.claim_instance if control.claim != NOBODY else None,
            )


def _awaited(bulk: BulkServices) -> dict[int, list[str]]:
    """As of now: a wait is a matter of seconds."""
    now = bulk.store.snapshot()
    waits = WaitRecords(bulk.store.keyspace).list(now)
    return awaited_by_job(waits, lambda id: bulk.catalog.get(now, id))


def _cluster_settings(node: NodeView, reader: TableReader) -> Rows:
    records = Records(node.store.keyspace, SETTINGS, StoredSetting, key=("name",))
    stored = {each.name: each.text for each in records.scan(reader.block.source)}
    current = node.settings.current()
    for setting in sorted(current, key=lambda each: each.name):
        text = stored.get(setting.name) or current.text(setting.name)
        yield (
            setting.name,
            text,
            _kind(setting),
            setting.description,
            setting.render(setting.default),
            "cluster" if setting.name in stored else "default",
        )


def _kind(setting: AnySetting) -> str:
    if setting.kind.python_type is float and "duration" in setting.kind.name:
        return "duration"
    return {bool: "bool", int: "integer", float: "float", str: "text"}[setting.kind.python_type]


def _build_info(node: NodeView, reader: TableReader) -> Rows:
    yield "version", VERSION
    yield "program", str(PROGRAM)
    yield "instance", str(node.session_id().instance)
    yield "started", str(datetime.fromtimestamp(node.started_micros / 1_000_000, UTC))


def _users(node: NodeView, reader: TableReader) -> Rows:
    for each in node.users.all(reader.block.source):
        options = [
            word
            for word, is_so in (("SUPERUSER", each.is_superuser), ("NOLOGIN", not each.can_login))
            if is_so
        ]
        yield each.name, ", ".join(options), ()


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield from running.definitions(node)
    yield from _of_leases(node)
    yield from _of_plans(node)
    yield from _of_cluster(node)
    yield from _of_program(node)


def _of_leases(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.leases",
        partial(_leases, node),
        "The schema leases that this node uses.",
        ("node_id", "int8 not null", "This node's instance id."),
        ("lease_at", "numeric not null", "The time as of which the lease stands for the catalog."),
        ("session_id", "bytea not null", "The node session it hangs on."),
        ("frontier", "numeric not null", "Up to when it may be used, as last acknowledged."),
        ("is_closed", "bool not null", "Whether a newer one is there."),
        ("pinned_ids", "int8[] not null", "The descriptors that transactions use under it."),
        ("transactions", "int8 not null", "How many transactions are bound to it."),
        key=("lease_at",),
    )
    yield define(
        "tenure_internal.descriptor_cache",
        partial(_descriptor_cache, node),
        "The catalog in this node's memory, as of its newest lease.",
        ("id", "int8 not null", "The descriptor's id."),
        ("kind", "text not null", "database, schema, table, view, sequence or type."),
        ("name", "text not null", "The name."),
        ("version", "int8 not null", "The version."),
        ("logical", "int8 not null", "The version in which more changed than lock, owner or comment."),
        ("row", "int8 not null", "The version in which the reading of rows last changed."),
        ("is_locked", "bool not null", "Whether it is a table that is locked against changes just now."),
        ("state", "text not null", "public, adding, dropped, offline or collected."),
        ("modified_at", "numeric not null", "When this version was written."),
        ("lease_at", "numeric not null", "The time of the lease."),
        key=("id",),
    )
    yield from blocker_tables.definitions(node)


def _of_plans(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.plan_cache",
        partial(_plan_cache, node),
        "Statements whose plans this node keeps, the oldest first; constants are lifted out of them.",
        ("statement", "text not null", "The text."),
        ("user_name", "text not null", "The user for whom names were resolved."),
        ("database_id", "int8 not null", "In which database."),
        ("search_path", "text[] not null", "And in which schemas."),
        ("kind", "text not null", "The kind of statement."),
        ("descriptor_ids", "int8[] not null", "What it was planned over."),
    )


def _of_cluster(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.nodes",
        partial(_nodes, node),
        "The nodes of the cluster.",
        ("node_id", "int8 not null", "The instance id."),
        ("address", "text not null", "Where it serves SQL."),
        ("started", "timestamptz", "When it started."),
        ("version", "int8 not null", "The version of its program."),
        ("is_draining", "bool not null", "Whether it is about to stop."),
        ("expiration", "timestamptz", "When its session would expire without a further heartbeat."),
        ("is_this", "bool not null", "Whether it is the one that answers."),
        (
            "long_turns",
            "int8",
            "How often its door was held up for more than 50 ms since it started; null of other nodes.",
        ),
        key=("node_id",),
    )
    yield define(
        "tenure_internal.jobs",
        partial(_jobs, node),
        "The jobs of the cluster.",
        ("job_id", "int8 not null", "The job's id."),
        ("job_type", "text not null", "The kind of job."),
        ("description", "text not null", "The statement that asked for it."),
        ("user_name", "text not null", "Who asked for it."),
        ("status", "text not null", "Its state."),
        ("running_status", "text", "What it is doing, or what it waits for."),
        ("created", "timestamptz not null", "When it was asked for."),
        ("started", "timestamptz", "When it was first begun."),
        ("finished", "timestamptz", "When it ended."),
        ("fraction_completed", "float8 not null", "How much of it is done, from 0 to 1."),
        ("num_runs", "int8 not null", "How often it was begun or taken over."),
        ("error", "text", "Why it failed, or the last reason to try again."),
        ("coordinator_id", "int8", "The node that runs it."),
        key=("job_id",),
    )


def _of_program(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.cluster_settings",
        partial(_cluster_settings, node),
        "The cluster's settings.",
        ("variable", "text not null", "The name."),
        ("value", "text not null", "The value."),
        ("setting_type", "text not null", "bool, integer, float, text or duration."),
        ("description", "text not null", "What it decides."),
        ("default_value", "text not null", "What it is where nobody has set it."),
        ("origin", "text not null", "cluster if it was set, else default."),
        key=("variable",),
    )
    yield define(
        "tenure_internal.build_info",
        partial(_build_info, node),
        "This node's program.",
        ("field", "text not null", "What is told."),
        ("value", "text not null", "How it is."),
        key=("field",),
    )
    yield define(
        "tenure_internal.users",
        partial(_users, node),
        "Users and roles.",
        ("username", "text not null", "The name."),
        ("options", "text not null", "SUPERUSER, NOLOGIN."),
        ("member_of", "text[] not null", "The roles it is a member of."),
        key=("username",),
    )
