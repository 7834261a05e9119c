"""INSERT, UPDATE and DELETE as they run: rows found, locked and written by `table.write`.

    INSERT   values of each row ─► Writer.insert, or upsert where ON CONFLICT says so
    UPDATE   found rows, all of them, locked ─► what changes of each ─► Writer.update
    DELETE   found rows, all of them, locked ─► Writer.delete

Everything is found before anything is written: a statement does not see its own effects. Foreign keys act,
and are checked, when all rows are written. RETURNING is computed per row from what was written.

Walk: `statements.dml.writes` plans these; a portal runs them; they call `table.write.TableWriter`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenure.base.errors import CardinalityViolation, RetryError, UserError
from tenure.base.interruptible import interruptible
from tenure.catalog.descriptors.definitions import Table
from tenure.expr.functions.function import Context
from tenure.expr.tree.closures import Evaluate
from tenure.expr.tree.folding import Fold
from tenure.expr.types.datatype import Type
from tenure.kv.transaction import Transaction
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.row_locking import Passing, acquire, await_hold, freshen, settled
from tenure.sql.execution.statement import Result
from tenure.sql.execution.write_locks import WriteLocks
from tenure.sql.names.session_names import SessionNames
from tenure.sql.rows.run import Tuple
from tenure.sql.rows.runner import CompiledQuery
from tenure.sql.session.answers import ResultColumn
from tenure.sql.session.block import Block
from tenure.sql.session.closed_tables import await_open
from tenure.sql.session.inline import RowsBudget
from tenure.sql.statements.dml.forgotten_keys import check_key_stays, explain_violation
from tenure.sql.statements.dml.queries import run_of
from tenure.table import read
from tenure.table.columns import Values
from tenure.table.rows import Layout, Row
from tenure.table.write import TableWriter

QUEUED_ROWS_MAX = 100
"""So many rows of ON CONFLICT DO NOTHING are locked: each lock is a record that other nodes read."""


CHECKED_ROWS = 1_000
"""After so many rows that are found, it is seen whether there are more than may be written."""


@dataclass(frozen=True, slots=True)
class Returning:
    """The RETURNING list: over the table's columns, then those of FROM, then those of the old and the new
    row."""

    columns: tuple[ResultColumn, ...]
    evaluates: tuple[Evaluate, ...]
    constants: tuple[Fold, ...] = ()
    """Constants that are evaluated before the first row, here and below."""
    sides_at: tuple[int | None, int | None] = (None, None)
    """Where the columns of `old` and `new` begin, if they have a name."""
    steps: int = 0
    """What it costs for a row: see `expr.tree.cheap_expressions`."""

    def of(self, row: Tuple, old: Tuple | None, new: Tuple | None, context: Context) -> Tuple:
        nothing = (None,) * len(old or new or ())
        for start, side in zip(self.sides_at, (old, new), strict=True):
            if start is not None:
                row += (None,) * (start - len(row)) + (nothing if side is None else side)
        return tuple([evaluate(row, context) for evaluate in self.evaluates])


@dataclass(frozen=True, slots=True)
class Conflict:
    """ON CONFLICT: on which indexes (none: on any), and what becomes of the row that is there."""

    arbiters: tuple[int, ...]
    changes: tuple[tuple[int, Evaluate], ...] | None = None
    """Over the row that is there followed by the one proposed; None: DO NOTHING."""
    condition: Evaluate | None = None
    overwrites: bool = False
    """UPSERT: the proposed row's given columns replace those that are there."""
    constants: tuple[Fold, ...] = ()
    steps: int = 0
    """What it costs for a row: see `expr.tree.cheap_expressions`."""


class InsertedValues(NamedTuple):
    """The rows of INSERT ... VALUES: an expression for each column, None for DEFAULT."""

    rows: tuple[tuple[Evaluate | None, ...], ...]
    constants: tuple[Fold, ...] = ()
    steps: int = 0
    """Their cost in all: see `expr.tree.cheap_expressions`."""


class PastRows(NamedTuple):
    """The rows of a query of the past: read in a block of their own."""

    runner: CompiledQuery
    block: Block
    values: tuple[Evaluate, ...]
    """The values of the columns, over such a row."""

    def read(self, execution: Execution) -> Iterator[Tuple]:
        reading = Execution(execution.session, self.block, execution.values, account=execution.account)
        context = execution.context
        for row in self.runner.rows(run_of(reading, self.runner.query)):
            yield tuple([evaluate(row, context) for evaluate in self.values])


def _fold(
    context: Context, *plans: InsertedValues | Conflict | Returning | CompiledQuery | PastRows | None
) -> None:
    for part in plans:
        if isinstance(part, _WITH_CONSTANTS):
            for fold in part.constants:
                fold(context)


_WITH_CONSTANTS = (InsertedValues, Conflict, Returning)


@dataclass(frozen=True, slots=True)
class Insert:
    table: Table
    targets: tuple[int, ...]
    """The columns that are given, by id."""
    source: InsertedValues | CompiledQuery | PastRows
    is_bounded: bool
    parameters: tuple[Type, ...]
    visible: tuple[int, ...]
    """The table's columns as its rows show them: what RETURNING is over."""
    conflict: Conflict | None = None
    returning: Returning | None = None
    is_small: bool = False
    """It inserts few rows of VALUES: conflicting rows may be found at the commit."""
    is_short: bool = False
    is_kept: bool = True

    @property
    def columns(self) -> tuple[ResultColumn, ...] | None:
        return None if self.returning is None else self.returning.columns

    def run(self, execution: Execution) -> Result:
        txn = execution.block.txn("INSERT")
        _fold(execution.context, self.source, self.conflict, self.returning)
        # Only ON CONFLICT reads rows that others wrote.
        budget = RowsBudget() if execution.inline and self.conflict is not None else None
        writer = writer_of(execution, self.table, budget)
        try:
            if self.is_small and self.conflict is None and isinstance(self.source, InsertedValues):
                written = self._inserted(execution, txn, writer, self.source)
            else:
                rows = interruptible(self._written(execution, txn, writer), execution.check)
                written = [(old, new) for old, new in rows if new is not None]
            writer.finish(txn, execution.check)
            return self._result(written, execution)
        except UserError as error:
            txn.proof.check_absent()  # errors of earlier rows come first
            explain_violation(execution, error)
            raise

    def _result(self, written: list[tuple[Row | None, Row]], execution: Execution) -> Result:
        returning, visible, context = self.returning, self.visible, execution.context
        if returning is None:
            return Result(f"INSERT 0 {len(written)}")
        rows = []
        for old, new in written:
            now = _shown(new, visible)
            rows.append(returning.of(now, None if old is None else _shown(old, visible), now, context))
        return Result("INSERT 0", iter(rows), counts=True)

    def _inserted(
        self, execution: Execution, txn: Transaction, writer: TableWriter, source: InsertedValues
    ) -> list[tuple[Row | None, Row]]:
        """Few rows, all of which are new."""
        proposed = self._rows_of_values(execution, source)
        rows = writer.insert_together(txn, proposed, late=execution.block.proves_late)
        return [(None, row) for row in rows]

    def _written(
        self, execution: Execution, txn: Transaction, writer: TableWriter
    ) -> Iterator[tuple[Row | None, Row | None]]:
        """For each row, the former one, if any, and the new one; None if nothing was done."""
        if self.conflict is None:
            for added in writer.insert_all(txn, self._values(execution)):
                yield None, added
            return
        check_key_stays(execution, self.table.id)
        proposals = list(self._values(execution))
        self._lock(execution, writer, proposals)
        resolving = _Resolving(self.conflict, self.targets, self.visible, execution.context)
        for values in proposals:
            resolving.there = None
            row = writer.upsert(txn, values, resolving, arbiters=self.conflict.arbiters)
            if row is not None:
                resolving.touched.add(row.key)
            yield resolving.there, row

    def _values(self, execution: Execution) -> Iterator[Values]:
        if isinstance(self.source, InsertedValues):
            yield from self._rows_of_values(execution, self.source)
            return
        found = self._found(execution, self.source)
        if self.conflict is None:
            execution.block.use.txn.buffer.check_rows(len(found))
        for row in found:
            yield dict(zip(self.targets, row, strict=True))

    def _rows_of_values(self, execution: Execution, source: InsertedValues) -> list[Values]:
        """All rows at once: constants are worked out before the first row is written."""
        context, targets = execution.context, self.targets
        return [
            {
                id: evaluate((), context)
                for id, evaluate in zip(targets, row, strict=True)
                if evaluate is not None
            }
            for row in source.rows
        ]

    def _found(self, execution: Execution, source: CompiledQuery | PastRows) -> list[Tuple]:
        if isinstance(source, PastRows):
            return list(source.read(execution))
        query = None if self.is_bounded else source.query
        find = lambda passing: list(source.rows(run_of(execution, query, passing)))  # noqa: E731
        return settled(execution, source.query, find)

    def _lock(self, execution: Execution, writer: TableWriter, proposals: Sequence[Values]) -> None:
        """Transactions that upsert the same row queue by its primary key, if that is given.

        DO NOTHING does not touch a row that is there. It queues in a block, where it could not be run again
        if another's row comes first; with many rows that would cost more than it helps.
        """
        assert self.conflict is not None
        if execution.block.is_read_committed:
            return  # the writer locks all unique keys
        primary = writer.layout.primary
        is_nothing = self.conflict.changes is None and not self.conflict.overwrites
        if is_nothing and (not execution.block.is_explicit or len(proposals) > QUEUED_ROWS_MAX):
            return
        keys = [
            primary.prefix([values[id] for id in primary.columns])
            for values in proposals
            if all(values.get(id) is not None for id in primary.columns)
        ]
        if keys:
            acquire(execution, keys, relation=self.table.name)
            freshen(execution)


class _Resolving:
    """Decides what happens to a conflicting row; a row may be changed only once."""

    def __init__(
        self, conflict: Conflict, targets: tuple[int, ...], visible: tuple[int, ...], context: Context
    ) -> None:
        self._conflict = conflict
        self._targets = targets
        self._visible = visible
        self._context = context
        self.touched: set[bytes] = set()
        self.there: Row | None = None
        """The row that conflicted with the last one."""

    def __call__(self, there: Row, proposed: Row) -> Values | None:
        conflict, self.there = self._conflict, there
        if conflict.changes is None and not conflict.overwrites:
            return None
        if there.key in self.touched:
            raise CardinalityViolation(
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
                hint="Ensure that no rows proposed for insertion within the same command have duplicate "
                "constrained values.",
            )
        if conflict.overwrites:
            return {id: proposed.values[id] for id in self._targets}
        both = (*_shown(there, self._visible), *_shown(proposed, self._visible))
        if conflict.condition is not None and conflict.condition(both, self._context) is not True:
            return None
        assert conflict.changes is not None
        return {id: evaluate(both, self._context) for id, evaluate in conflict.changes}


class _Found(NamedTuple):
    row: Row
    values: Tuple
    """The new values, in the order of the changes."""
    joined: Tuple
    """The row for RETURNING: the table's columns and those of FROM; empty if nothing is returned."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """UPDATE (with `targets`) or DELETE (without): the rows that a plan finds, by their primary keys.

    The plan gives the primary key's columns, then the new values, then what RETURNING is over.
    """

    table: Table
    source: CompiledQuery
    is_bounded: bool
    key_width: int
    parameters: tuple[Type, ...]
    visible: tuple[int, ...]
    targets: tuple[int, ...] | None = None
    """The columns that get the plan's values."""
    defaults: tuple[int, ...] = ()
    """The columns that are set to their default."""
    point: tuple[Evaluate, ...] | None = None
    """The primary key, where the statement names it: locked before anything is read."""
    returning: Returning | None = None
    is_short: bool = False
    is_kept: bool = True

    @property
    def columns(self) -> tuple[ResultColumn, ...] | None:
        return None if self.returning is None else self.returning.columns

    @property
    def verb(self) -> str:
        return "DELETE" if self.targets is None else "UPDATE"

    def run(self, execution: Execution) -> Result:
        txn = execution.block.txn(self.verb)
        _fold(execution.context, self.returning)
        writer = writer_of(execution, self.table)
        found = settled(
            execution,
            self.source.query,
            lambda passing: self._found(execution, txn, writer.layout, passing),
            lambda each: each.row.key,
            target=self.table,
            sure_keys=self._sure_keys(execution, writer.layout),
        )
        if len(found) > 1 and self._moves_keys(writer.layout):
            # Each row is checked against the rows written so far, so their order must be deterministic.
            found.sort(key=lambda each: each.row.key)
        checked = interruptible(found, execution.check)
        try:
            changed = [(self._written(txn, writer, each), each) for each in checked]
            writer.finish(txn, execution.check)
        except UserError as error:
            explain_violation(execution, error)
            raise
        if self.returning is None:
            return Result(f"{self.verb} {len(changed)}")
        rows = [self._returned(self.returning, row, each, execution.context) for row, each in changed]
        return Result(self.verb, iter(rows), counts=True)

    def _moves_keys(self, layout: Layout) -> bool:
        """Whether it sets columns of which no two rows may have the same values."""
        assigned_columns = {*(self.targets or ()), *self.defaults}
        return any(
            index.is_unique and not assigned_columns.isdisjoint(index.columns)
            for index in layout.indexes.values()
        )

    def _returned(self, returning: Returning, row: Row, found: "_Found", context: Context) -> Tuple:
        now = _shown(row, self.visible)
        new = None if self.targets is None else now
        joined = (*now, *found.joined[len(self.visible) :])
        return returning.of(joined, _shown(found.row, self.visible), new, context)

    def _sure_keys(self, execution: Execution, layout: Layout) -> list[bytes]:
        if self.point is None:
            return []
        values = [evaluate((), execution.context) for evaluate in self.point]
        return [] if None in values else [layout.primary.prefix(values)]

    def _found(
        self, execution: Execution, txn: Transaction, layout: Layout, passing: Passing
    ) -> list[_Found]:
        """Each row once, as it is now, with the first that it was joined with."""
        run = run_of(execution, None if self.is_bounded else self.source.query, passing)
        width = self.key_width
        end = width + len(self.targets or ())
        rests: dict[Tuple, Tuple] = {}
        for each in self.source.rows(run):
            rests.setdefault(each[:width], each)
            if not len(rests) % CHECKED_ROWS:
                txn.buffer.check_rows(len(rests))
        txn.buffer.check_rows(len(rests))
        keys = [layout.primary.prefix(key) for key in rests]
        txn.read_ahead(keys)
        found = []
        for key, rest in interruptible(zip(keys, rests.values(), strict=True), execution.check):
            row = read.at(txn, layout, key)
            assert row is not None, "what the transaction has just found is there"
            found.append(_Found(row, rest[width:end], rest[end:]))
        return found

    def _written(self, txn: Transaction, writer: TableWriter, found: _Found) -> Row:
        if self.targets is None:
            writer.delete(txn, found.row)
            return found.row
        changes = dict(zip(self.targets, found.values, strict=True))
        changes |= {id: writer.default(id) for id in self.defaults}
        return writer.update(txn, found.row, changes)


def writer_of(
    execution: Execution, table: Table, budget: RowsBudget | None = None, *, cascades: bool = True
) -> TableWriter:
    block = execution.block
    await_hold(execution, table)
    SessionNames(execution.session, block).check_writable(table)

    def layout_of(id: int) -> Layout:
        found = block.descriptor(id)
        if not isinstance(found, Table):
            # A concurrent transaction creates that table, and has published it to writers of this one
            # already.
            raise RetryError(f'a table at the other end of a foreign key of "{table.name}" is being made')
        await_open(execution.session, block, found)
        return block.layout(found)

    return TableWriter(
        block.layout(table),
        layout_of,
        execution.context,
        read=None if budget is None else budget.spend,
        cascades=cascades,
        locks=WriteLocks(execution, table) if block.is_read_committed else None,
        deferral=None if block.is_single else block.deferred,
    )


def _shown(row: Row, visible: tuple[int, ...]) -> Tuple:
    return tuple([row.values[id] for id in visible])
