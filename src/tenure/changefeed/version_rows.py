"""Rows as one version of a table shows them: the columns of messages, and the key.

A deleted row is known by its key alone. Where the key in the store is not exactly the columns' values (equal
numbers can be written differently), the key columns of a deletion come from the row that was deleted.

Walk: `changefeed.table_stream` makes one per version; `changefeed.table_scan` and `changefeed.lake_changes`
decode with it, `changefeed.messages` encodes by its columns.
"""

from typing import NamedTuple

from tenure.catalog.descriptors.equal_versions import row_of
from tenure.changefeed.table_events import shown_columns
from tenure.expr.types.datatype import Datum, Type
from tenure.kv.keys import Keyspace, Span
from tenure.pipeline.remote_handles import TableVersion
from tenure.storage.engine import HEAD_BYTES
from tenure.table.rows import Layout, key_values

Values = tuple[Datum, ...]


class MessageColumn(NamedTuple):
    id: int
    name: str
    type: Type


class VersionRows:
    def __init__(self, version: TableVersion, keyspace: Keyspace) -> None:
        enums = {enum.id: enum for enum in version.enums}
        self.version = version
        table = version.table
        self.identity = (table.id, row_of(table), *(row_of(enum) for enum in version.enums))
        """Equal for rows that are read alike."""
        self.layout = layout = Layout(version.table, keyspace, enums.__getitem__)
        self.span = keyspace.index_span(version.table.id, version.table.primary)
        self.columns = tuple(
            MessageColumn(each.id, each.name, layout.columns[each.id].type)
            for each in shown_columns(version.table)
        )
        self.key_columns = tuple(
            MessageColumn(kept.id, version.table.column(kept.id).name, kept.type)
            for kept, _ in layout.primary.parts
        )
        ids = dict.fromkeys(each.id for each in (*self.columns, *self.key_columns))
        self.read_ids = tuple(ids)
        """The columns that are read: those of messages first, then key columns that are hidden."""
        self.has_moving_columns = any(not kept.is_public for kept in layout.columns.values())
        self.generated_ids = frozenset(
            each.id for each in version.table.columns if each.generated is not None
        )
        self._read = layout.reader(layout.primary, self.read_ids)
        self._key_places = tuple(self.read_ids.index(each.id) for each in self.key_columns)
        self.is_key_exact = layout.primary.in_key.issuperset(layout.primary.columns)

    def decode(self, key: bytes, value: bytes) -> Values:
        """The columns `read_ids` of a row."""
        return self._read(key, value)

    def key_of(self, values: Values) -> Values:
        """The key columns of a decoded row."""
        return tuple([values[place] for place in self._key_places])

    def key_in(self, key: bytes) -> Values | None:
        """The key columns from a key of the store; None if it does not contain them exactly."""
        if not self.is_key_exact:
            return None
        found = key_values(self.layout.primary, key[HEAD_BYTES:])
        return tuple([found[each.id] for each in self.key_columns])

    def span_after(self, cursor: bytes) -> Span:
        """The rows from a key without its head on."""
        return Span(self.span.lo[:HEAD_BYTES] + cursor, self.span.hi)


class RowChange(NamedTuple):
    rows: VersionRows
    at: int
    key: Values
    after: Values | None
    """The columns `read_ids`; None: the row is deleted."""
    before: Values | None = None
    before_rows: VersionRows | None = None
    """The version that `before` is shown by."""
