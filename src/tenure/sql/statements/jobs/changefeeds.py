"""CREATE CHANGEFEED: the changes of tables go into files or to other machines, by a job.

    CREATE CHANGEFEED FOR [TABLE] t [, ...] INTO 'sink' [WITH option [= value], ...]
    CREATE CHANGEFEED FOR SCHEMA s | DATABASE d INTO ...
    CREATE CHANGEFEED FOR ...    without INTO: a stream to the client, `statements.jobs.changefeed_streams`
    ALTER CHANGEFEED job ...     `statements.jobs.changefeed_changes`
    CREATE CHANGEFEED [INTO ...] [WITH ...] AS SELECT ... FROM t [WHERE ...]
    SHOW CHANGEFEED JOBS

It needs the privilege CHANGEFEED on each table, and that the schema or database is the user's own. Files and
the network are the operator's: using them needs the role that `changefeed.sinks.destinations` names. The
statement is not part of any transaction.

Walk: `statements.statement_table` -> `plan_create` -> `CreateChangefeed.control` -> `changefeed.job.start`.
"""

from dataclasses import dataclass
from functools import partial

from tenure.catalog.accounts.rights import require_files
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.changefeed.job import start
from tenure.changefeed.records import FeedPayload
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Control, Statement
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.jobs.changefeed_changes import plan_alter
from tenure.sql.statements.jobs.changefeed_streams import StreamChangefeed
from tenure.sql.statements.jobs.feed_selections import read_selection
from tenure.sql.statements.jobs.feed_targets import (
    TAG,
    FeedTargets,
    beginning_of,
    check_may_feed,
    options_of,
    read_feed_options,
    read_targets,
)
from tenure.sql.statements.jobs.waiting_statements import create_job
from tenure.sql.statements.show.shows import query
from tenure.sql.text.quoting import quoted
from tenure.sql.text.tenure_statements import TokenReader

JOB_RESULT = (ResultColumn("job_id", type_of(TypeRef("int8"))),)


@dataclass(frozen=True, slots=True)
class CreateChangefeed(Control):
    bulk: BulkServices
    targets: FeedTargets
    location: str
    options: tuple[tuple[str, str | None], ...]
    columns = JOB_RESULT
    is_short = False

    def control(self, execution: Execution) -> Answer:
        feeds = check_may_feed(self.bulk, execution, self.targets)
        session = execution.session
        destination = feeds.destination(self.location)
        require_files(session.rights(), destination.role, destination.action)
        options = destination.adapted(options_of(execution, self.options))
        tables, begin = beginning_of(feeds, execution, self.targets, options)
        destination.check([each.name for each in tables])
        scope = self.targets.scope
        payload = FeedPayload(
            *(tables, self.location, options, begin, destination.shown, scope),
            given=self.options,
            selection=self.targets.selection,
        )
        selection = self.targets.selection
        described = f"{TAG} FOR {self.targets.shown} INTO '{destination.shown}'"
        if selection is not None:
            described = f"{TAG} INTO '{destination.shown}' AS {selection.text}"
        id = create_job(
            execution,
            lambda txn: start(txn, feeds, payload, owner=session.user, description=described),
        )
        return Answer([(id,)], TAG)


# Reading it


def plan_create(bulk: BulkServices, planner: Planner, reader: TokenReader) -> Control:
    targets = read_targets(planner, reader) if reader.take("for") else None
    location = reader.string() if reader.take("into") else None
    options = read_feed_options(reader)
    if targets is None:
        reader.expect("as")
        table, selection = read_selection(planner, reader.rest())
        targets = FeedTargets((table,), f"TABLE {quoted(table.name)}", selection=selection)
    reader.end()
    if location is None:
        return StreamChangefeed(bulk, targets, options)
    return CreateChangefeed(bulk, targets, location, options)


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
        ("alter", "changefeed"): partial(plan_alter, bulk),
        ("show", "changefeed", "jobs"): plan_show,
    }
