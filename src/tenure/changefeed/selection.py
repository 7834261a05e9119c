"""Filters and projections of a changefeed: CREATE CHANGEFEED ... AS SELECT a, b + 1 AS c FROM t WHERE a > 5.

    the new row matches             a message with the selected columns
    only the former row matched     a deletion: a consumer's copy has the rows that match
    neither                         nothing

The expressions are bound once, to the ids of columns, and depend on their row alone. So a renamed column
keeps its place, and each version of the table compiles them anew. When a column that they need is gone, the
feed ends with the next change.

Walk: `changefeed.feed` passes each change through `Selection.selected`; the encoder gets changes of
`SelectedRows` in place of a version's.
"""

from collections.abc import Sequence
from uuid import UUID

from tenure.base.errors import WrongState
from tenure.base.timestamp import to_text
from tenure.changefeed.records import FeedSelection
from tenure.changefeed.table_events import TableEvent
from tenure.changefeed.version_rows import MessageColumn, RowChange, Values, VersionRows
from tenure.expr.functions.function import Context
from tenure.expr.tree.compiled import compile
from tenure.expr.tree.expressions import decode
from tenure.expr.types.type_names import type_of

VERSIONS_MAX = 64
"""Compiled versions that are kept: more than a feed meets at a time."""

_CONTEXT = Context(0, 0, lambda: UUID(int=0), lambda: 0)
"""For expressions that depend on their row alone."""


class SelectedRows(VersionRows):
    """The rows of a version with the columns of a selection."""

    def __init__(self, rows: VersionRows, selection: FeedSelection) -> None:
        self.__dict__.update(rows.__dict__)  # all is as in its version, but for the columns of messages
        self._whole = rows
        types = {each.id: each.type for each in rows.columns} | {
            each.id: each.type for each in rows.key_columns
        }
        enums = {each.id: each for each in rows.version.enums}
        self.columns = tuple(
            MessageColumn(0, each.name, type_of(each.type, enums.__getitem__)) for each in selection.columns
        )
        self._evaluates = [
            compile(decode(each.expression.tree), types, enums.__getitem__) for each in selection.columns
        ]
        condition = selection.condition
        self._matches = (
            None if condition is None else compile(decode(condition.tree), types, enums.__getitem__)
        )

    def select(self, values: Values | None) -> Values | None:
        """The selected columns of a row; None if it does not match, or is not there."""
        if values is None:
            return None
        row = dict(zip(self._whole.read_ids, values, strict=True))
        if self._matches is not None and self._matches(row, _CONTEXT) is not True:
            return None
        return tuple([evaluate(row, _CONTEXT) for evaluate in self._evaluates])


class Selection:
    def __init__(self, selection: FeedSelection) -> None:
        self._selection = selection
        self._needed = {id for each in selection.expressions for id in each.columns}
        self._selected: dict[int, SelectedRows] = {}

    def selected(
        self, changes: Sequence[RowChange | TableEvent]
    ) -> tuple[list[RowChange | TableEvent], WrongState | None]:
        """The changes to emit, up to one that cannot be selected from any more; and why not."""
        found: list[RowChange | TableEvent] = []
        for each in changes:
            if isinstance(each, TableEvent):
                found.append(each)
                continue
            if not self._needed.issubset(each.rows.read_ids):
                name, at = each.rows.version.table.name, to_text(each.at)
                error = WrongState(f'table "{name}" has no longer all columns that are selected, at {at}')
                return found, error
            change = self._change(each)
            if change is not None:
                found.append(change)
        return found, None

    def _change(self, change: RowChange) -> RowChange | None:
        rows = self._rows(change.rows)
        former = rows if change.before_rows is None else self._former(change.before_rows)
        before = None if former is None else former.select(change.before)
        after = rows.select(change.after)
        if before is None and after is None:
            return None
        return RowChange(rows, change.at, change.key, after, before, former)

    def _former(self, version: VersionRows) -> SelectedRows | None:
        if not self._needed.issubset(version.read_ids):
            return None  # it had not these columns yet
        return self._rows(version)

    def _rows(self, version: VersionRows) -> SelectedRows:
        found = self._selected.get(id(version))
        if found is None or found._whole is not version:
            if len(self._selected) >= VERSIONS_MAX:
                self._selected.clear()
            found = self._selected[id(version)] = SelectedRows(version, self._selection)
        return found
