"""CREATE CHANGEFEED: the changes of tables go into files or to other machines, by a job.

    CREATE CHANGEFEED FOR [TABLE] t [, ...] INTO 'sink' [WITH option [= value], ...]
    SHOW CHANGEFEED JOBS

It needs the privilege CHANGEFEED on each table. Files and the network are the operator's: using them needs
the role that `changefeed.sinks.destinations` names. The statement is not part of any transaction.

Walk: `statements.statement_table` -> `plan_create` -> `CreateChangefeed.control` -> `changefeed.job.start`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tenure.base.errors import (
    InvalidParameter,
    NotSupported,
    SyntaxFault,
    UndefinedTable,
    WrongObjectType,
)
from tenure.base.timestamp import Timestamp
from tenure.catalog.accounts.privileges import CHANGEFEED
from tenure.catalog.accounts.rights import require_files
from tenure.catalog.descriptors.definitions import Table, TypeRef, is_dropped
from tenure.changefeed.job import FeedServices, start
from tenure.changefeed.options import FeedOptions, read_options
from tenure.changefeed.records import FeedPayload, FeedPosition, FeedTable
from tenure.changefeed.table_stream import first_position
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.jobs.waiting_statements import create_job
from tenure.sql.statements.show.shows import query
from tenure.sql.text.as_of import timestamp_of
from tenure.sql.text.quoting import quoted
from tenure.sql.text.tenure_statements import TokenReader

TAG = "CREATE CHANGEFEED"
JOB_RESULT = (ResultColumn("job_id", type_of(TypeRef("int8"))),)


@dataclass(frozen=True, slots=True)
class CreateChangefeed(Control):
    bulk: BulkServices
    tables: tuple[Table, ...]
    names: tuple[str, ...]
    """The full names of the tables, as SQL writes them."""
    location: str
    options: tuple[tuple[str, str | None], ...]
    columns = JOB_RESULT
    is_short = False

    def control(self, execution: Execution) -> Answer:
        feeds = check_may_feed(self.bulk, execution, self.tables)
        session = execution.session
        destination = feeds.destination(self.location)
        require_files(session.rights(), destination.role, destination.action)
        options = destination.adapted(options_of(execution, self.options))
        destination.check(self.names)
        begin = position_of(feeds, self.tables, options)
        payload = FeedPayload(self._feed_tables(), self.location, options, begin, destination.shown)
        described = f"{TAG} FOR TABLE {', '.join(self.names)} INTO '{destination.shown}'"
        id = create_job(
            execution,
            lambda txn: start(txn, feeds, payload, owner=session.user, description=described),
        )
        return Answer([(id,)], TAG)

    def _feed_tables(self) -> tuple[FeedTable, ...]:
        named = zip(self.tables, self.names, strict=True)
        return tuple(FeedTable(table.id, name) for table, name in named)


def check_may_feed(bulk: BulkServices, execution: Execution, tables: Sequence[Table]) -> FeedServices:
    """Raises if the session may not follow these tables, or is in a transaction block."""
    session = execution.session
    session.require_no_block(TAG)
    rights = session.rights()
    for table in tables:
        rights.require(table, CHANGEFEED)
    if bulk.feeds is None:
        raise NotSupported("this process has no changefeeds")
    return bulk.feeds


def options_of(execution: Execution, options: Sequence[tuple[str, str | None]]) -> FeedOptions:
    now_micros = execution.session.env.wall_micros()
    return read_options(dict(options), lambda text: timestamp_of(text, now_micros))


def position_of(feeds: FeedServices, tables: Sequence[Table], options: FeedOptions) -> FeedPosition:
    """Where a new feed begins."""
    store, catalog = feeds.sources.store, feeds.sources.catalog
    start_at: Timestamp = store.snapshot(options.cursor_at or None).at
    if options.end_at <= start_at:
        raise InvalidParameter('"end_time" is not after the beginning of the changefeed')
    snapshot = store.snapshot(start_at)
    for table in tables:
        then = catalog.get(snapshot, table.id)
        if not isinstance(then, Table) or is_dropped(then):
            raise UndefinedTable(f'relation "{table.name}" did not exist at the cursor')
    return FeedPosition(tuple(first_position(each.id, options, start_at) for each in tables))


# Reading it


def plan_create(bulk: BulkServices, planner: Planner, reader: TokenReader) -> Control:
    reader.expect("for")
    for noun in ("schema", "database"):
        if reader.take(noun):
            raise NotSupported(f"{TAG} FOR {noun.upper()} is not supported yet", hint="Name its tables.")
    reader.take("table")
    tables = [_table(planner, reader.names())]
    while reader.take(","):
        tables.append(_table(planner, reader.names()))
    if len({each.id for each in tables}) < len(tables):
        raise SyntaxFault("a changefeed follows each table once")
    location = reader.string() if reader.take("into") else None
    options = _options(reader)
    reader.end()
    if location is None:
        raise NotSupported(
            f"{TAG} without INTO is not supported yet", hint="Name a directory for files, or a webhook."
        )
    names = tuple(_full_name(planner, each) for each in tables)
    return CreateChangefeed(bulk, tuple(tables), names, location, options)


def _table(planner: Planner, path: list[str]) -> Table:
    found = planner.names.object(path)
    name = ".".join(path)
    if found is None or getattr(found, "schema", None) is None:
        raise UndefinedTable(f'relation "{name}" does not exist')
    if not isinstance(found, Table):
        raise WrongObjectType(f'"{name}" is not a table')
    planner.names.require_permanent("a changefeed")
    return found


def _full_name(planner: Planner, table: Table) -> str:
    """Tables of several schemas may have the same name."""
    parents = (planner.names.descriptor(id) for id in (table.database, table.schema))
    return ".".join(quoted(each.name) for each in (*parents, table) if each is not None)


def _options(reader: TokenReader) -> tuple[tuple[str, str | None], ...]:
    if not reader.take("with"):
        return ()
    options: dict[str, str | None] = {}
    while True:
        name = reader.name()
        if name in options:
            raise SyntaxFault(f'option "{name}" is given twice')
        options[name] = _value(reader) if reader.take("=") else None
        if not reader.take(","):
            return tuple(options.items())


def _value(reader: TokenReader) -> str:
    sign = "-" if reader.take("-") else ""
    return sign + reader.string()


def plan_show(planner: Planner, reader: TokenReader) -> Statement:
    reader.end()
    return query(
        planner,
        "SELECT job_id, description, user_name, status, running_status, created, high_water_timestamp, lag, "
        "emitted_rows, emitted_bytes, fast_path_share, sink, full_table_names, error "
        "FROM tenure_internal.changefeed_jobs ORDER BY created DESC, job_id DESC",
    )


def statements(bulk: BulkServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {
        ("create", "changefeed"): partial(plan_create, bulk),
        ("show", "changefeed", "jobs"): plan_show,
    }
