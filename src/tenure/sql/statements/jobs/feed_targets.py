"""What a changefeed follows, as SQL says it: tables, a schema or a database, and options.

Walk: `statements.jobs.changefeeds` and `statements.jobs.changefeed_streams` read a statement by
`read_targets` and `read_feed_options`; when it runs they call `check_may_feed`, `options_of`, `beginning_of`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.errors import (
    InvalidParameter,
    NotSupported,
    SyntaxFault,
    UndefinedTable,
    WrongObjectType,
)
from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.accounts.privileges import CHANGEFEED
from tenure.catalog.descriptors.definitions import NameKey, Table, is_dropped
from tenure.changefeed.job import FeedServices
from tenure.changefeed.options import FeedOptions, read_options
from tenure.changefeed.records import FeedPosition, FeedScope, FeedSelection, FeedTable
from tenure.changefeed.scope import full_name, tables_under
from tenure.changefeed.table_stream import first_position
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.show.shows import database_named, schema_named
from tenure.sql.text.as_of import timestamp_of
from tenure.sql.text.quoting import quoted
from tenure.sql.text.tenure_statements import TokenReader

TAG = "CREATE CHANGEFEED"


class FeedTargets(NamedTuple):
    """What a feed is to follow: tables, or all of a schema or database."""

    tables: tuple[Table, ...]
    shown: str
    """As SQL writes it, with full names."""
    scope: FeedScope | None = None
    selection: FeedSelection | None = None


def check_may_feed(
    bulk: BulkServices, execution: Execution, targets: FeedTargets, tag: str = TAG
) -> FeedServices:
    """Raises if the session may not follow these tables, or is in a transaction block."""
    session = execution.session
    session.require_no_block(tag)
    if bulk.feeds is None:
        raise NotSupported("this process has no changefeeds")
    rights = session.rights()
    if targets.scope is not None:
        found = bulk.feeds.sources.catalog.get(bulk.feeds.sources.store.snapshot(), targets.scope.id)
        if found is not None:
            rights.require_owner(found)
    for table in targets.tables:
        rights.require(table, CHANGEFEED)
    return bulk.feeds


def options_of(execution: Execution, options: Sequence[tuple[str, str | None]]) -> FeedOptions:
    now_micros = execution.session.env.wall_micros()
    return read_options(dict(options), lambda text: timestamp_of(text, now_micros))


def beginning_of(
    feeds: FeedServices, execution: Execution, targets: FeedTargets, options: FeedOptions
) -> tuple[tuple[FeedTable, ...], FeedPosition]:
    """The tables that a new feed begins with, and where."""
    store, catalog = feeds.sources.store, feeds.sources.catalog
    start_at: Timestamp = store.snapshot(options.cursor_at or None).at
    if options.end_at <= start_at:
        raise InvalidParameter('"end_time" is not after the beginning of the changefeed')
    snapshot = store.snapshot(start_at)
    tables = targets.tables
    for table in tables:
        then = catalog.get(snapshot, table.id)
        if not isinstance(then, Table) or is_dropped(then):
            raise UndefinedTable(f'relation "{table.name}" did not exist at the cursor')
    if targets.scope is not None:
        tables = tuple(tables_under(catalog, snapshot, targets.scope))
        for table in tables:
            execution.session.rights().require(table, CHANGEFEED)
    position = FeedPosition(
        tuple(first_position(each.id, options, start_at) for each in tables),
        scope_at=MAX_AT if targets.scope is None else start_at,
    )
    # The newest names, where there are any: a table may have been renamed since the cursor.
    now = store.snapshot()
    named = tuple(FeedTable(each.id, full_name(catalog, now, each)) for each in tables)
    return named, position


def read_targets(planner: Planner, reader: TokenReader) -> FeedTargets:
    if reader.take("schema"):
        path = reader.names()
        schema = schema_named(planner, path)
        return FeedTargets((), f"SCHEMA {_path(path)}", FeedScope(schema.id, schema.name))
    if reader.take("database"):
        name = database_named(planner, reader.name())
        id = planner.names.id_at(NameKey(0, 0, name)) or 0
        return FeedTargets((), f"DATABASE {quoted(name)}", FeedScope(id, name, is_database=True))
    reader.take("table")
    tables = [read_table(planner, reader.names())]
    while reader.take(","):
        tables.append(read_table(planner, reader.names()))
    if len({each.id for each in tables}) < len(tables):
        raise SyntaxFault("a changefeed follows each table once")
    names = ", ".join(_full_name(planner, each) for each in tables)
    return FeedTargets(tuple(tables), f"TABLE {names}")


def _path(names: Sequence[str]) -> str:
    return ".".join(map(quoted, names))


def read_table(planner: Planner, path: list[str]) -> Table:
    found = planner.names.object(path)
    name = ".".join(path)
    if found is None or getattr(found, "schema", None) is None:
        raise UndefinedTable(f'relation "{name}" does not exist')
    if not isinstance(found, Table):
        raise WrongObjectType(f'"{name}" is not a table')
    planner.names.require_permanent("a changefeed")
    return found


def _full_name(planner: Planner, table: Table) -> str:
    parents = (planner.names.descriptor(id) for id in (table.database, table.schema))
    return ".".join(quoted(each.name) for each in (*parents, table) if each is not None)


def read_feed_options(reader: TokenReader) -> tuple[tuple[str, str | None], ...]:
    if not reader.take("with"):
        return ()
    options: dict[str, str | None] = {}
    read_feed_option(reader, options)
    while reader.take(","):
        read_feed_option(reader, options)
    return tuple(options.items())


def read_feed_option(reader: TokenReader, options: dict[str, str | None]) -> None:
    name = reader.name()
    if name in options:
        raise SyntaxFault(f'option "{name}" is given twice')
    options[name] = _value(reader) if reader.take("=") else None


def _value(reader: TokenReader) -> str:
    sign = "-" if reader.take("-") else ""
    return sign + reader.string()
