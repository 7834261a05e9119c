"""The system table of changefeeds: the jobs that run them, and how far they have come.

Walk: `tables.all` collects its definition; SHOW CHANGEFEED JOBS is a query over it.
"""

from collections.abc import Iterator
from functools import partial

from tenure.base.timestamp import micros_of, to_text
from tenure.changefeed.job import KIND
from tenure.changefeed.records import FeedPayload, FeedPosition
from tenure.cluster.jobs.job_states import TERMINAL
from tenure.expr.types.interval import Interval
from tenure.kv.records import unpack
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.job_status import running_status
from tenure.sql.tables.node_view import NodeView
from tenure.sql.tables.system import time_of
from tenure.sql.tables.virtual import Rows, VirtualDefinition, define, is_superuser


def _changefeed_jobs(node: NodeView, reader: TableReader) -> Rows:
    session, is_all = reader.session, is_superuser(reader)
    for job, control, progress in node.bulk.jobs.list(reader.block.source):
        if job.kind != KIND or not (is_all or job.owner == session.user):
            continue
        payload = unpack(job.payload, FeedPayload)
        position = unpack(progress.data, FeedPosition) if progress.data else payload.start
        at, is_over = position.resolved_at, control.state in TERMINAL
        lag = None if is_over or not at else max(0, node.store.env.wall_micros() - micros_of(at))
        yield (
            job.id,
            job.description,
            job.owner,
            control.state.value,
            running_status(control, progress, "") or None,
            time_of(job.created_at),
            to_text(at) if at else None,
            None if lag is None else Interval(0, 0, lag),
            position.rows,
            position.bytes,
            _fast_share(position),
            payload.shown_sink,
            _names(payload, position),
            control.error_text or None,
        )


def _fast_share(position: FeedPosition) -> float | None:
    found = position.fast_rows + position.slow_rows
    return position.fast_rows / found if found else None


def _names(payload: FeedPayload, position: FeedPosition) -> tuple[str, ...]:
    first = {each.id: each.name for each in payload.tables}
    return tuple(each.name or first[each.table] for each in position.tables)


def definitions(node: NodeView) -> Iterator[VirtualDefinition]:
    yield define(
        "tenure_internal.changefeed_jobs",
        partial(_changefeed_jobs, node),
        "The changefeeds of the session's user, or all of them for a superuser.",
        ("job_id", "int8 not null", "The job that runs it."),
        ("description", "text not null", "The statement that created it."),
        ("user_name", "text not null", "Its owner."),
        ("status", "text not null", "The job's state."),
        ("running_status", "text", "What it does or waits for."),
        ("created", "timestamptz not null", "When."),
        ("high_water_timestamp", "text", "All changes up to here are in the sink; null before the first."),
        ("lag", "interval", "How long ago that was; null of one that has ended."),
        ("emitted_rows", "int8 not null", "Messages in the sink, as of the last checkpoint."),
        ("emitted_bytes", "int8 not null", "Their bytes."),
        ("fast_path_share", "float8", "The share of changes that needed no look for a schema change."),
        ("sink", "text not null", "Where they go, without secrets."),
        ("full_table_names", "text[] not null", "The tables, by their names when they came to it."),
        ("error", "text", "Why it failed."),
        key=("job_id",),
    )
