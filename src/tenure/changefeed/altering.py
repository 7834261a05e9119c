"""ALTER CHANGEFEED: what a feed follows and how it tells it, changed while it runs.

    the statement     writes a payload with the next number, and protects the tables that come
    the run           sees the number, commits what it has, and goes on by the new payload, in the same run
    the position      has the number that it goes by: a run after a crash does the rest

A table that comes is followed from the alteration on, or from a scan. Before a run tells a resolved timestamp
R it reads, at a time at or above R, that there is no new number. So an alteration is above every R that was
told, and nothing that is emitted because of it makes one of them a lie.

Walk: `sql.statements.jobs.changefeed_changes` makes a payload by `altered`; `changefeed.job` calls
`reconciled` when it begins and when it finds a new number.
"""

from collections.abc import Collection, Sequence

from tenure.base.errors import InvalidParameter
from tenure.base.timestamp import Timestamp
from tenure.changefeed.options import FeedOptions
from tenure.changefeed.records import (
    AddedTable,
    FeedPayload,
    FeedPosition,
    FeedTable,
    ScanKind,
    ScanPosition,
    TablePosition,
)
from tenure.kv.records import replace

FIXED = frozenset({"cursor", "initial_scan", "initial_scan_only", "no_initial_scan"})
"""Options that say how a feed begins."""


def altered(
    payload: FeedPayload,
    options: FeedOptions,
    given: Sequence[tuple[str, str | None]],
    *,
    added: Sequence[FeedTable],
    dropped: Collection[int],
    at: Timestamp,
    is_scanned: bool,
) -> FeedPayload:
    """The payload after an alteration at a time. Raises InvalidParameter if nothing would be left."""
    if payload.scope is not None and (added or dropped):
        raise InvalidParameter(
            f'the changefeed follows all tables of {payload.scope.noun} "{payload.scope.name}"'
        )
    if payload.selection is not None and (added or dropped):
        raise InvalidParameter("the changefeed selects from one table, which cannot be altered")
    there = {each.id for each in payload.tables}
    for each in added:
        if each.id in there:
            raise InvalidParameter(f'the changefeed follows table "{each.name}" already')
    if not there.issuperset(dropped):
        raise InvalidParameter("the changefeed does not follow a table that is to be dropped from it")
    tables = (*(each for each in payload.tables if each.id not in dropped), *added)
    if not tables and payload.scope is None:
        raise InvalidParameter("a changefeed follows a table at least", hint="Cancel its job.")
    number = payload.number + 1
    news = tuple(AddedTable(number, each.id, at, is_scanned) for each in added)
    # How it began is not altered.
    kept = replace(options, cursor_at=payload.options.cursor_at, initial_scan=payload.options.initial_scan)
    return replace(
        payload, tables=tables, options=kept, given=tuple(given), number=number, added=(*payload.added, *news)
    )


def reconciled(
    payload: FeedPayload, position: FeedPosition, *, told_at: Timestamp, now_at: Timestamp
) -> FeedPosition:
    """The position of a feed that goes by a payload from here on.

    `told_at` is the greatest resolved timestamp that may have been told, and `now_at` is above it.
    """
    if position.altered >= payload.number:
        return position
    followed = {each.id for each in payload.tables}
    kept = [each for each in position.tables if payload.scope is not None or each.table in followed]
    there = {each.table for each in kept}
    news = [
        _begun(each, told_at, now_at)
        for each in payload.added
        if each.number > position.altered and each.table in followed - there
    ]
    return replace(position, tables=(*kept, *news), altered=payload.number)


def _begun(added: AddedTable, told_at: Timestamp, now_at: Timestamp) -> TablePosition:
    if added.is_scanned:
        return TablePosition(added.table, now_at - 1, ScanPosition(ScanKind.ROWS, now_at))
    return TablePosition(added.table, max(added.at, told_at))
