"""Rows of a table that differ from what they were at a time: the row now, and the values of then.

    same primary index       the keys that have changed since then, each looked up at both times
    another one since        all rows of then, by their present keys, and all rows of now: the table was
                             emptied, its primary key was changed, or its rows were rewritten
    a column is there again  the same: rows that nobody has written since lack its values

What was read at the earlier time is judged by the threshold with each page, and once more when all keys are
known: a tombstone that a sweep has removed meanwhile would be missing among the changes.

Walk: `sql.statements.jobs.resetting` -> `FormerRows.differences` -> `table.lake.scanning` for an index with a
base.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.bulk.resetting.former_columns import former_columns
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.types.datatype import Datum
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.table.columns import Values
from tenure.table.read import at as row_at
from tenure.table.read import rows
from tenure.table.rows import Layout, Row

if TYPE_CHECKING:
    from tenure.table.lake.checked_files import CheckedFiles

PAGE_KEYS = 1_000


class RowDifference(NamedTuple):
    row: Row | None
    """As it is now; None: there is none."""
    former: Values | None
    """The values that it is to have, of the columns that had some; None: it is to go."""


class FormerRows:
    def __init__(
        self,
        store: Store,
        then: Layout,
        now: Layout,
        versions: Sequence[Table],
        at: Timestamp,
        *,
        files: "CheckedFiles | None" = None,
        protected: ProtectedRead | None = None,
    ) -> None:
        """`versions` are the table's, from that of `then` to that of `now`; `files` are those of the lake, if
        there is one; `protected` is what keeps that time, if something does.
        """
        self._store = store
        self._then = then
        self._now = now
        self._files = files
        self._protected = protected
        self._past = store.snapshot(at, protected)
        self._columns = former_columns(versions, at)

    def differences(self, txn: Transaction, rows_max: int) -> list[RowDifference] | None:
        """The rows that differ, as the transaction sees them; None if more than so many may."""
        is_same_index = self._then.table.primary == self._now.table.primary
        are_same_columns = all(id == source for id, source in self._columns.items())
        by_key = is_same_index and are_same_columns
        found = self._changed(txn) if by_key else self._paired(txn, rows_max)
        differences = []
        for number, each in enumerate(found):
            if number >= rows_max:
                return None
            if not self._is_same(each):
                differences.append(each)
        return differences

    def _changed(self, txn: Transaction) -> Iterator[RowDifference]:
        """Rows of the same primary index that were written since."""
        for keys in self._changed_keys(txn):
            txn.read_ahead(keys)
            self._past.read_ahead(keys)
            for key in keys:
                former = row_at(self._past, self._then, key)
                values = None if former is None else self._values(former)
                yield RowDifference(row_at(txn, self._now, key), values)

    def _paired(self, txn: Transaction, rows_max: int) -> Iterator[RowDifference]:
        """All rows of both times, by the present primary key."""
        former: dict[bytes, Values] = {}
        for row in islice(rows(self._past, self._then), rows_max + 1):
            values = self._values(row)
            key = self._key(values)
            if key is None or key in former:
                yield RowDifference(None, values)  # a second row of a key is refused when it is written
            else:
                former[key] = values
        for row in rows(txn, self._now):
            yield RowDifference(row, former.pop(row.key, None))
        for values in former.values():
            yield RowDifference(None, values)

    def _values(self, former: Row) -> Values:
        """By present columns; those that have a default alone are left out."""
        values: dict[int, Datum] = {
            id: kept.filled
            for id, kept in self._now.columns.items()
            if kept.is_public and kept.generated is None and kept.filled is not None
        }
        return values | {id: former.values[source] for id, source in self._columns.items()}

    def _key(self, values: Values) -> bytes | None:
        """None if the primary key gets its value when the row is written."""
        has_key = all(values.get(id) is not None for id in self._now.primary.columns)
        return self._now.key(values) if has_key else None

    def _is_same(self, difference: RowDifference) -> bool:
        row, former = difference
        if row is None or former is None:
            return row is None and former is None
        for kept in self._now.columns.values():
            if not kept.is_public or kept.generated is not None:
                continue
            if kept.id not in former and kept.default is not None:
                return False
            # By their texts: equal numbers may look different.
            if repr(row.values[kept.id]) != repr(former.get(kept.id)):
                return False
        return True

    # ── keys ───────────────────────────────────────────────────────────────────────────────────

    def _changed_keys(self, txn: Transaction) -> Iterator[list[bytes]]:
        """The keys of the primary index that have a revision after the earlier time.

        The whole index counts as read: a row that is written meanwhile would have to be reset, too.
        """
        if self._files is not None:
            yield from self._changed_in_lake(txn, self._files)
            return
        span = self._then.keyspace.head_span(self._then.primary.head)
        txn.read_span(span)
        newest = self._store.snapshot(txn.read_at)
        for page in newest.revisions(span, since_at=self._past.at, limit=PAGE_KEYS):
            yield sorted({revision.key for revision in page})
        self._past.read_span(span)

    def _changed_in_lake(self, txn: Transaction, files: "CheckedFiles") -> Iterator[list[bytes]]:
        # Arrow is imported when there is something to read: a node that never resets is smaller.
        from tenure.table.key_arrays import key_array, key_columns
        from tenure.table.lake.format import name_of
        from tenure.table.lake.revision_tables import ODD
        from tenure.table.lake.scanning import Scanner, ScanRequest

        primary = self._then.primary
        span = self._then.keyspace.head_span(primary.head)
        parts = key_columns(primary)
        request = ScanRequest(
            *(self._then, primary.id, tuple(part.column for part in parts), txn.read_at, self._past.at),
            protected=() if self._protected is None else (self._protected,),
        )
        scanner = Scanner(self._store, files, request, span)
        for table in scanner.tables():
            columns = {part.column: table.column(name_of(part.column)) for part in parts}
            keys = key_array(parts, columns, table.column(ODD)).to_pylist()
            for first in range(0, len(keys), PAGE_KEYS):
                yield [primary.head + key for key in keys[first : first + PAGE_KEYS]]
        txn.read_span(span, flushed_at=scanner.manifest.flushed_at)
