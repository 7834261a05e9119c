"""ALTER CHANGEFEED: tables come and go, options change, while the feed runs or is paused.

    ALTER CHANGEFEED job ADD t [, ...] [WITH initial_scan] | DROP t [, ...] | SET option [= value] [, ...]
                       | UNSET option [, ...] ...

The parts may come in any number; all of them are one alteration. It needs to be the owner of the job, and the
privilege CHANGEFEED on tables that come.

Walk: `statements.jobs.changefeeds` lists `plan_alter` -> `AlterChangefeed.control` ->
`changefeed.altering.altered`, `changefeed.job.alter`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.base.errors import InvalidParameter, SyntaxFault, UndefinedObject
from tenure.catalog.descriptors.definitions import Table
from tenure.changefeed.altering import FIXED, altered
from tenure.changefeed.job import KIND, FeedServices, alter, stored_payload
from tenure.changefeed.options import FeedOptions
from tenure.changefeed.records import FeedPayload, FeedTable
from tenure.changefeed.scope import full_name
from tenure.kv.transaction import Transaction
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.jobs.feed_targets import (
    FeedTargets,
    check_may_feed,
    options_of,
    read_feed_option,
    read_feed_options,
    read_table,
)
from tenure.sql.statements.jobs.job_statements import require_job_owner
from tenure.sql.text.tenure_statements import TokenReader

TAG = "ALTER CHANGEFEED"
Given = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class AlterChangefeed(Control):
    bulk: BulkServices
    job: int
    added: tuple[Table, ...]
    dropped: tuple[Table, ...]
    options: Given
    unset: tuple[str, ...]
    is_scanned: bool
    is_short = False

    def control(self, execution: Execution) -> Answer:
        feeds = check_may_feed(self.bulk, execution, FeedTargets(self.added, ""), TAG)
        execution.session.locks.transact(lambda txn: self._alter(txn, feeds, execution))
        return Answer((), TAG)

    def _alter(self, txn: Transaction, feeds: FeedServices, execution: Execution) -> None:
        job = feeds.jobs.get(txn, self.job)
        if job is None or job.kind != KIND or not feeds.jobs.is_open(txn, self.job):
            raise UndefinedObject(f"there is no changefeed with job id {self.job} that is not over")
        require_job_owner(execution.session.rights(), job)
        payload = stored_payload(txn, feeds, self.job)
        given = {**dict(payload.given), **dict(self.options)}
        for name in self.unset:
            if name not in given:
                raise InvalidParameter(f'option "{name}" is not set')
            del given[name]
        catalog = feeds.sources.catalog
        now = feeds.sources.store.snapshot(txn.read_at)
        new = altered(
            *(payload, self._options(feeds, execution, payload, tuple(given.items())), tuple(given.items())),
            added=[FeedTable(each.id, full_name(catalog, now, each)) for each in self.added],
            dropped=[each.id for each in self.dropped],
            at=txn.read_at,
            is_scanned=self.is_scanned,
        )
        alter(txn, feeds, self.job, new)

    def _options(
        self, feeds: FeedServices, execution: Execution, payload: FeedPayload, given: Given
    ) -> FeedOptions:
        return feeds.destination(payload.sink).adapted(options_of(execution, given))


def plan_alter(bulk: BulkServices, planner: Planner, reader: TokenReader) -> Control:
    job = reader.number()
    added: list[Table] = []
    dropped: list[Table] = []
    options: dict[str, str | None] = {}
    unset: list[str] = []
    is_scanned = False
    while not reader.is_over:
        if reader.take("add"):
            added += _tables(planner, reader)
            is_scanned = _is_scanned(read_feed_options(reader)) or is_scanned
        elif reader.take("drop"):
            dropped += _tables(planner, reader)
        elif reader.take("set"):
            read_feed_option(reader, options)
            while reader.take(","):
                read_feed_option(reader, options)
        elif reader.take("unset"):
            unset.append(reader.name())
            while reader.take(","):
                unset.append(reader.name())
        else:
            raise reader.fault()
    _check(added, dropped, options, unset)
    return AlterChangefeed(
        *(bulk, job, tuple(added), tuple(dropped), tuple(options.items()), tuple(unset), is_scanned)
    )


def _tables(planner: Planner, reader: TokenReader) -> list[Table]:
    reader.take("table")
    found = [read_table(planner, reader.names())]
    while reader.take(","):
        found.append(read_table(planner, reader.names()))
    return found


def _is_scanned(options: Given) -> bool:
    """ADD ... WITH initial_scan | no_initial_scan."""
    names = [name for name, _ in options]
    if names not in ([], ["initial_scan"], ["no_initial_scan"]):
        raise SyntaxFault("a table is added WITH initial_scan or no_initial_scan")
    return names == ["initial_scan"]


def _check(
    added: Sequence[Table], dropped: Sequence[Table], options: dict[str, str | None], unset: Sequence[str]
) -> None:
    if not (added or dropped or options or unset):
        raise SyntaxFault("ALTER CHANGEFEED adds or drops a table, or sets or unsets an option")
    ids = [each.id for each in (*added, *dropped)]
    if len(set(ids)) < len(ids):
        raise SyntaxFault("a table is named twice")
    for name in (*options, *unset):
        if name in FIXED:
            raise InvalidParameter(f'option "{name}" says how a changefeed begins, and cannot be altered')
