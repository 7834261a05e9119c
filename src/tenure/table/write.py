"""Writing rows: every element of the table according to its state.

    element       delete_only                 write_only                        public
    column        its value is dropped when   `computed`, or else its default   as given, or else
                  the row is written          on insert and carried over on     its default
                                              update; nobody can give it
      generated   -                           what follows from the row         the same
      NOT NULL    -                           enforced, unless on its way out   enforced
    index         its entries are removed,    kept up to date; unique: against  the same
                  none is added               what is there so far
    check         -                           enforced, for any goal            enforced
      not_null    -                           enforced on its column            enforced
    foreign key   -                           enforced, its actions done        enforced
    enum member   -                           may be read and kept, not written may be written

Two versions of a table are in use at a time. While an index is not public, a key of a unique one may belong
to another row that is equal to this one: so an entry is only removed after a check whose it is. An absent
entry is removed as well: its tombstone hides the entry that a backfill as of an earlier time brings. An
update that does not change an entry leaves it alone, unless the row gets another primary key: a backfill
would look for it under the former one.

Invariant (write-states): after every commit of two writers on adjacent versions, each index that
is relied upon has exactly the entries of the rows, and each other one a part of them.
Invariant (delete-only): a writer adds nothing to an element that is delete_only.
Invariant (write-all): nothing of a row is written before all of it has been checked.

A row whose primary key changes has other keys in all indexes; it needs no further treatment.

A DEFERRABLE constraint is checked when the statement ends. New entries of UPDATE in its index wait until all
entries of the former rows are gone, so `i = i + 1` meets no conflict. Other constraints are checked row by
row.

In a READ COMMITTED transaction, unique keys that must be absent are locked and guarded (`table.new_keys`).

Walk: SQL's INSERT, UPDATE and DELETE -> `TableWriter` -> `Layout.entry` per index -> the transaction; at the
end of the statement `finish` -> `table.foreign_keys`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from tenure.base.errors import CheckViolation, NotNullViolation, UniqueViolation, UserError
from tenure.base.interruptible import Check, interruptible, unchecked
from tenure.catalog.changes.offline_tables import refuse_unwritable
from tenure.expr.functions.function import Context
from tenure.expr.types.datatype import Datum
from tenure.kv.transaction import Transaction
from tenure.table.columns import CompiledColumn, Values, key_text, row_text
from tenure.table.compiled_index import CompiledIndex
from tenure.table.foreign_keys import Deferring, ForeignKeys, Tables, WriterLocks
from tenure.table.new_keys import NewKeys
from tenure.table.read import row_of
from tenure.table.rows import IndexEntry, Layout, Row, check_length, fits

_NONE: frozenset[int] = frozenset()

ROWS_AT_ONCE = 500
"""Rows that are made before the entries that may conflict with them are read."""

Resolve = Callable[[Row, Row], Values | None]
"""Given the existing row and the proposed one: the changes to make; None leaves it."""


class IndexStep(NamedTuple):
    """The change of one index by a write."""

    removed: bytes | None
    added: IndexEntry | None


class PostponedEntry(NamedTuple):
    """An entry of a deferrable index that is added when the statement ends."""

    keyed: CompiledIndex
    row: Row
    entry: IndexEntry


class TableWriter:
    """Writes the rows of one table for one statement. Values are passed and returned by column id."""

    def __init__(
        self,
        layout: Layout,
        tables: Tables,
        context: Context,
        *,
        foreign_keys: ForeignKeys | None = None,
        read: Callable[[int], None] | None = None,
        cascades: bool = True,
        locks: WriterLocks | None = None,
        deferral: Deferring | None = None,
    ) -> None:
        """`tables` returns the layouts of the tables at the other ends of foreign keys. Without `cascades`
        no row of another table is changed: its foreign keys are checked alone. `locks` is given in a READ
        COMMITTED transaction. `deferral` takes checks that are left to the end of the transaction.

        `read` receives the size of a row that conflicts with an upsert, before it is decoded.
        """
        refuse_unwritable(layout.table)
        self.layout = layout
        self._table = layout.table
        self._columns = layout.columns
        self._context = context
        self._following = layout.following
        self._read = read
        self._locks = locks
        self._new_keys = None if locks is None else NewKeys(self._violation)
        self._postponed: list[PostponedEntry] = []
        self._postpones = foreign_keys is None
        """Changes by foreign keys are checked at once: they may reach a row a second time."""
        self._foreign_keys = foreign_keys or ForeignKeys(
            tables,
            lambda layout, keys: TableWriter(layout, tables, context, foreign_keys=keys, locks=locks),
            acts=cascades,
            locks=locks,
            deferral=deferral,
        )

    def insert(self, txn: Transaction, values: Values) -> Row:
        row = self._proposed(values)
        self._add(txn, [row])
        return row

    def insert_all(self, txn: Transaction, source: Iterable[Values], *, late: bool = False) -> Iterator[Row]:
        """Inserts rows one after the other; entries that may conflict are read many at a time.

        `late`: conflicts may be found at the commit, which then raises what this would have.
        """
        left = iter(source)
        while True:
            rows = self.insert_together(txn, islice(left, ROWS_AT_ONCE), late=late)
            yield from rows
            if len(rows) < ROWS_AT_ONCE:
                return

    def insert_together(self, txn: Transaction, source: Iterable[Values], *, late: bool = False) -> list[Row]:
        """As `insert_all`, for few rows: entries that may conflict are read together."""
        rows: list[Row] = []
        try:
            for values in source:
                rows.append(self._proposed(values))
        finally:
            self._add(txn, rows, late=late)  # the error of an earlier row comes first
        return rows

    def upsert(
        self, txn: Transaction, values: Values, resolve: Resolve, *, arbiters: Collection[int] = ()
    ) -> Row | None:
        """ON CONFLICT: inserts, or changes the row that conflicts on one of these indexes (or on any)."""
        row = self._proposed(values)
        if self._locks is not None:
            self._locks.lock_new(txn, self._unique_keys([row], [self._entries(row)]))
        while True:
            there = self._in_the_way(txn, row, arbiters)
            if there is None:
                self._add(txn, [row])
                return row
            changes = resolve(there, row)
            if changes is None:
                return None
            if self._locks is None or self._locks.lock_read(txn, [there.key]):
                return self.update(txn, there, changes)

    def update(self, txn: Transaction, old: Row, changes: Values) -> Row:
        """Changes a row that was read in this transaction."""
        row = self._changed(old, changes)
        self._write(txn, old, row)
        return row

    def delete(self, txn: Transaction, row: Row) -> None:
        self._write(txn, row, None)

    def fill(self, txn: Transaction, old: Row, column: int) -> Row:
        """Gives a row the value that a write_only column should have had when the row was written."""
        kept = self._columns[column]
        if kept.computed is not None or kept.generated is not None:
            return self.update(txn, old, {})
        if column in old.absent and kept.filled is None:
            return self.update(txn, old, {column: self.default(column)})
        return old

    def finish(self, txn: Transaction, check: Check = unchecked) -> None:
        """Ends the statement: foreign keys act on other rows, and all are checked."""
        self._add_postponed(txn, check)
        self._foreign_keys.finish(txn, check)

    def default(self, column: int) -> Datum:
        kept = self._columns[column]
        return None if kept.default is None else kept.type.accept(kept.default({}, self._context))

    def defaults(self, column: int, rows: int) -> Sequence[Datum]:
        """The values that `default` would give one after the other."""
        kept, make_ids = self._columns[column], self._context.rowids
        if kept.default is None:
            return (None,) * rows
        if kept.is_row_id and make_ids is not None:
            return make_ids(rows)
        return [self.default(column) for _ in range(rows)]

    def breaks_check(self, columns: Mapping[int, Sequence[Datum]]) -> bool:
        """Whether a check fails for one of several new rows, which are given column by column.

        An error counts as well: inserted one by one, the row that it is of raises it in its turn.
        """
        checks = [check for check in self.layout.checks if check.is_enforced]
        rows = zip(*columns.values(), strict=True) if checks else ()
        values = (dict(zip(columns, row, strict=True)) for row in rows)
        try:
            return any(check.is_broken_by(row, self._context) for row in values for check in checks)
        except UserError:
            return True

    # ── the new row ────────────────────────────────────────────────────────────────────────────

    def _proposed(self, inserted: Values) -> Row:
        values: dict[int, Datum] = {}
        absent: list[int] = []
        for id, kept in self._columns.items():
            if not kept.is_written:
                values[id] = kept.filled
                absent.append(id)
            elif id in inserted:
                assert kept.is_public, f'column "{kept.name}" cannot be given a value'
                value = inserted[id]
                values[id] = None if value is None else kept.type._accept(value)
            else:
                values[id] = self.default(id)
        if self._following:
            self._compute(values)
        return self._checked(Row(self.layout.key(values), values, frozenset(absent) if absent else _NONE))

    def _changed(self, old: Row, changes: Values) -> Row:
        values = dict(old.values)
        absent = set(old.absent)
        for id, value in changes.items():
            kept = self._columns[id]
            assert kept.is_written, f'column "{kept.name}" cannot be given a value'
            values[id] = kept.type.accept(value)
            absent.discard(id)
        for id, kept in self._columns.items():
            if not kept.is_written and id not in absent:
                values[id] = kept.filled
                absent.add(id)
        absent.difference_update(self._compute(values, absent))
        return self._checked(Row(self.layout.key(values), values, frozenset(absent), old.unknown))

    def _compute(self, values: dict[int, Datum], absent: Collection[int] | None = None) -> Iterable[int]:
        """Computes the generated columns; returns which they are.

        For an existing row, a value that depends on no column is kept: a sequence gives it one number only.
        """
        for group in self._following:
            values.update(
                {
                    kept.id: kept.type.accept(follow(values, self._context))
                    for kept, follow in group
                    if absent is None or kept.id in absent or not kept.is_filled_once
                }
            )
        return [kept.id for group in self._following for kept, _ in group]

    def _checked(self, row: Row) -> Row:
        values = row.values
        for kept in self.layout.enforced:
            if values[kept.id] is None:
                raise self._null(kept, row)
        for check in self.layout.checks:
            if check.is_enforced and check.is_broken_by(row.values, self._context):
                if check.not_null:
                    raise self._null(self._columns[check.not_null], row)
                raise CheckViolation(
                    f'new row for relation "{self._table.name}" violates check constraint "{check.name}"',
                    detail=self._failing(row),
                    table=self._table,
                    constraint=check.name,
                )
        return row

    def _null(self, kept: CompiledColumn, row: Row) -> NotNullViolation:
        return NotNullViolation(
            f'null value in column "{kept.name}" of relation "{self._table.name}" '
            "violates not-null constraint",
            detail=self._failing(row),
            table=self._table,
            column=kept.name,
        )

    def _failing(self, row: Row) -> str:
        return f"Failing row contains {row_text(self._table, self._columns, row.values)}."

    # ── its entries ────────────────────────────────────────────────────────────────────────────

    def _add(self, txn: Transaction, rows: Sequence[Row], *, late: bool = False) -> None:
        """Adds the entries of new rows; `_step` does the same for one that replaces another."""
        entries = list(map(self._entries, rows))
        if not late:
            unique = self._unique_keys(rows, entries)
            if self._locks is not None:
                self._locks.lock_new(txn, unique)
            txn.read_ahead(unique)
        new_keys, before = self._new_keys, txn.proof.mark()
        has_keys = bool(self._table.foreign_keys)
        for row, of_row in zip(rows, entries, strict=True):
            for index, entry in of_row:
                if entry is not None:
                    self._check_addable(txn, index, None, None, row, entry, late=late)
            value = None
            for index, entry in of_row:
                if entry is not None:
                    txn.put(*entry)
                    value = entry.value if index is self.layout.primary else value
            if has_keys:
                self._foreign_keys.written(self.layout, None, row, value)
        if new_keys is not None:
            new_keys.guard(txn, before)

    def _entries(self, row: Row) -> list[tuple[CompiledIndex, IndexEntry | None]]:
        entry_of, context = self.layout.entry, self._context
        return [
            (index, entry_of(index, row, context))
            for index in self.layout.indexes.values()
            if index.is_written
        ]

    def _unique_keys(
        self, rows: Sequence[Row], entries: Sequence[list[tuple[CompiledIndex, IndexEntry | None]]]
    ) -> list[bytes]:
        """The keys that no other row may have."""
        return [
            entry.key
            for row, of_row in zip(rows, entries, strict=True)
            for index, entry in of_row
            if entry is not None and index.collides(row.values) and fits(entry)
        ]

    def _write(self, txn: Transaction, old: Row, new: Row | None) -> None:
        self._apply(txn, [self._step(txn, index, old, new) for index in self.layout.indexes.values()])
        self._foreign_keys.written(self.layout, old, new)

    def _apply(self, txn: Transaction, steps: Iterable[IndexStep]) -> None:
        steps = list(steps)
        for step in steps:
            if step.removed is not None:
                txn.delete(step.removed)
        for step in steps:
            if step.added is not None:
                txn.put(*step.added)

    def _step(self, txn: Transaction, index: CompiledIndex, old: Row | None, new: Row | None) -> IndexStep:
        """Decides the change of an index's entry; only reads."""
        if old is None and not index.is_written:
            return IndexStep(None, None)
        before = None if old is None else self.layout.entry(index, old, self._context)
        after = None if new is None else self.layout.entry(index, new, self._context)
        if before == after and (
            index.is_public or (old is not None and new is not None and old.key == new.key)
        ):
            return IndexStep(None, None)
        if not index.is_written:
            after = None
        if new is not None and after is not None:
            if self._is_postponed(index, before, new, after):
                self._postponed.append(PostponedEntry(index, new, after))
                after = None
            elif self._new_keys is None:
                self._check_addable(txn, index, old, before, new, after)
            else:
                read_before = txn.proof.mark()
                self._check_addable(txn, index, old, before, new, after)
                self._new_keys.guard(txn, read_before)
        if old is None or before is None or (after is not None and after.key == before.key):
            return IndexStep(None, after)
        return IndexStep(before.key if self._is_removable(txn, index, old, before) else None, after)

    def _is_postponed(
        self, index: CompiledIndex, before: IndexEntry | None, new: Row, after: IndexEntry
    ) -> bool:
        """Whether an entry is to be added when all entries that may conflict are gone."""
        if not (self._postpones and index.index.is_deferrable and index.collides(new.values)):
            return False
        self._check_fitting(index, new, after)
        return before is None or before.key != after.key

    def _add_postponed(self, txn: Transaction, check: Check) -> None:
        postponed, self._postponed = self._postponed, []
        txn.read_ahead(entry.key for _, _, entry in postponed)
        before = txn.proof.mark()
        for index, row, entry in interruptible(postponed, check):
            if txn.get(entry.key) is not None:
                raise self._violation(index, row)
            if self._new_keys is not None:
                self._new_keys.note(txn, index, row, entry.key)
            txn.put(*entry)
        if self._new_keys is not None:
            self._new_keys.guard(txn, before)

    def _is_removable(self, txn: Transaction, index: CompiledIndex, row: Row, entry: IndexEntry) -> bool:
        if not fits(entry):
            return False
        if index.is_public:
            return True
        if index.collides(row.values):
            stored = txn.get(entry.key)
            if stored is not None and not self.layout.is_of(index, stored, entry, row):
                return False
        return not self._is_shared(txn, index, row, entry)

    def _is_shared(self, txn: Transaction, index: CompiledIndex, row: Row, entry: IndexEntry) -> bool:
        """Whether another row, equal in a primary key that is not proved yet, has the same entry."""
        primary = self.layout.indexes[index.primary]
        if index.is_primary or primary.is_public:
            return False
        key = primary.head + primary.suffix(row.values)
        stored = txn.get(key)
        if stored is None:
            return False
        holder = self.layout.row(primary, key, stored)
        its_own = self.layout.entry(index, holder, self._context)
        return holder.key != row.key and its_own is not None and its_own.key == entry.key

    def _check_addable(
        self,
        txn: Transaction,
        index: CompiledIndex,
        old: Row | None,
        before: IndexEntry | None,
        new: Row,
        after: IndexEntry,
        *,
        late: bool = False,
    ) -> None:
        self._check_fitting(index, new, after)
        if not index.collides(new.values):
            return
        mine = before if before is not None and before.key == after.key else None
        if mine is not None and index.is_public:
            return
        if late and index.is_public:
            return txn.expect_absent(after.key, partial(self._violation, index, new))
        stored = txn.get(after.key)
        if stored is None:
            if self._new_keys is not None:
                self._new_keys.note(txn, index, new, after.key)
            return
        if old is not None and mine is not None and self.layout.is_of(index, stored, mine, old):
            return
        raise self._violation(index, new)

    def _check_fitting(self, index: CompiledIndex, new: Row, after: IndexEntry) -> None:
        check_length(index, after)
        if index.is_primary and index.has_null(new.values):
            raise self._null(next(kept for kept, _ in index.parts if new.values[kept.id] is None), new)

    def _violation(self, index: CompiledIndex, new: Row) -> UniqueViolation:
        return UniqueViolation(
            f'duplicate key value violates unique constraint "{index.name}"',
            detail=f"Key {key_text(self._columns, index.columns, new.values)} already exists.",
            table=self._table,
            constraint=index.name,
        )

    def _in_the_way(self, txn: Transaction, row: Row, arbiters: Collection[int]) -> Row | None:
        if not txn.proof.is_by_statement:
            return self._conflicting(txn, row, arbiters)
        txn.start_finding()  # what is then added, or changed, is proved by itself
        try:
            return self._conflicting(txn, row, arbiters)
        finally:
            txn.start_writing()

    def _conflicting(self, txn: Transaction, row: Row, arbiters: Collection[int]) -> Row | None:
        for index in self.layout.indexes.values():
            if (
                not index.is_written
                or not index.collides(row.values)
                or (arbiters and index.id not in arbiters)
            ):
                continue
            entry = self.layout.entry(index, row, self._context)
            stored = None if entry is None or not fits(entry) else txn.get(entry.key)
            if entry is not None and stored is not None:
                return row_of(txn, self.layout, index, IndexEntry(entry.key, stored), self._read)
        return None
