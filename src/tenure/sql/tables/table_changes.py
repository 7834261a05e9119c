"""table_changes(table, after, until): the changes of a table between two times, as rows.

    SELECT * FROM table_changes('orders', '-10m', '-1s')
    changed_at | operation | key | before | after

Every change that was committed after the first time, up to the second: the same that
a changefeed emits, with the row before and after as its table showed them then. Times are as in AS OF SYSTEM
TIME. It needs SELECT on the whole table.

The past does not change, so a transaction that reads it has nothing to prove at its commit. Its own writes
are not part of it.

Walk: `sql.tables.pg_catalog.answers` calls `table_changes` -> `changefeed.table_stream.TableStream`.
"""

from collections.abc import Iterator
from decimal import Decimal

from tenure.base.errors import InvalidParameter, NotSupported, UndefinedTable, WrongObjectType
from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.accounts.privileges import SELECT
from tenure.catalog.descriptors.definitions import Table, TypeRef
from tenure.changefeed.messages import Encoder
from tenure.changefeed.options import FeedOptions, InitialScan, SchemaPolicy
from tenure.changefeed.records import TablePosition
from tenure.changefeed.table_stream import TableStream
from tenure.changefeed.version_rows import RowChange
from tenure.expr.types.datatype import Datum
from tenure.expr.types.system_types import Reg
from tenure.expr.types.type_names import type_of
from tenure.sql.session.session_state import TableReader
from tenure.sql.tables.node_view import NodeView
from tenure.sql.text.as_of import moment

NAME = "table_changes"
JSONB = type_of(TypeRef("jsonb"))


def table_changes(
    node: NodeView, reader: TableReader, relation: Reg, after: str | Decimal, until: str | Decimal
) -> Iterator[tuple[Datum, ...]]:
    feeds = node.bulk.feeds
    if feeds is None:
        raise NotSupported(f"{NAME} cannot be used in this process")
    table = reader.block.catalog.descriptor(relation.oid)
    if not isinstance(table, Table) or reader.session.temporary.schema_id == table.schema:
        raise WrongObjectType(f'"{relation.name}" is not a table with a history')
    reader.session.rights(reader.block).require(table, SELECT)
    since_at, until_at = _time(node, after), _time(node, until)
    if until_at < since_at:
        raise InvalidParameter(f"{NAME}: the second time is before the first")
    if not isinstance(feeds.sources.catalog.get(node.store.snapshot(since_at), table.id), Table):
        raise UndefinedTable(f'relation "{table.name}" did not exist at {to_text(since_at)}')
    options = FeedOptions(
        diff=True,
        initial_scan=InitialScan.NO,
        cursor_at=since_at,
        end_at=until_at,
        policy=SchemaPolicy.NOBACKFILL,
    )
    sources = feeds.sources._replace(node=None)  # it asks for no lock
    return _rows(TableStream(sources, options, TablePosition(table.id, since_at)), options)


def _time(node: NodeView, time: str | Decimal) -> Timestamp:
    text = time if isinstance(time, str) else format(time, "f")
    found = moment(text, node.store.env.wall_micros())
    return node.store.snapshot(found).at  # the store clock has passed it: nothing is committed there any more


def _rows(stream: TableStream, options: FeedOptions) -> Iterator[tuple[Datum, ...]]:
    encoder = Encoder(options)
    try:
        while not stream.is_done and stream.ending is None:
            for change in stream.step().changes:
                if isinstance(change, RowChange):
                    yield _row(encoder, change)
    finally:
        stream.close()


def _row(encoder: Encoder, change: RowChange) -> tuple[Datum, ...]:
    operation = "update"
    if change.after is None:
        operation = "delete"
    elif change.before is None:
        operation = "insert"
    texts = (None if each is None else JSONB.parse(each) for each in encoder.texts(change))
    return (Decimal(to_text(change.at)), operation, *texts)
