"""Batches become complete rows: every column has its value, and every row satisfies its table.

    given columns ──► defaults ──► generated columns ──► NOT NULL, CHECK ──► rows, and those refused

As `table.write` does it for one row, in the same order and with the same messages; here a column at a time
where possible. A refused row is left out, with the reason.

Walk: `ingest.run_chunks` makes a `RowCompleter`; `importing.sorting` calls `complete` for each batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.errors import UserError
from tenure.bulk.ingest.defaults import Defaults, as_column
from tenure.bulk.ingest.vectors import truths
from tenure.catalog.descriptors.definitions import Expression
from tenure.expr.functions.function import Context
from tenure.expr.tree.compiled import Evaluate
from tenure.expr.tree.expressions import decode
from tenure.expr.types.datatype import Datum
from tenure.pipeline.reading.tasks import ReadBatch, Reject
from tenure.table.arrays import Bools, Column, Rows
from tenure.table.arrow import packed
from tenure.table.columns import CompiledColumn, row_text
from tenure.table.lake.format import REST, name_of
from tenure.table.packing import Packed, pack, unpack_columns
from tenure.table.rows import Layout


class RowBatch(NamedTuple):
    """Rows by column id, in the types of `table.arrow`."""

    columns: dict[int, Any]
    rest: dict[int, dict[int, Any]]
    """By row and column id, packed: values that the columns cannot represent."""
    lines: Any

    def rest_array(self) -> Column:
        """Of Arrow's null type, which takes no space, if there is none."""
        rows = len(self.lines)
        if not self.rest:
            return pa.nulls(rows)
        packed = [pack(self.rest[row]) if self.rest.get(row) else None for row in range(rows)]
        return pa.array(packed, pa.binary())

    def without(self, is_bad: Bools) -> "RowBatch":
        kept = pa.array(~is_bad)
        columns = {id: column.filter(kept) for id, column in self.columns.items()}
        places = np.cumsum(~is_bad) - 1
        rest = {int(places[row]): values for row, values in self.rest.items() if not is_bad[row]}
        return RowBatch(columns, rest, self.lines[~is_bad])

    def is_null(self, id: int) -> Bools:
        """A mask: rows that have no value of a column, in its array or beside it."""
        mask = np.array(self.columns[id].is_null())
        for row, values in self.rest.items():
            if id in values:
                mask[row] = False
        return mask

    def values(self, kepts: Sequence[CompiledColumn], rows: Sequence[int]) -> list[dict[int, Datum]]:
        """Some columns of some rows, for evaluating expressions."""
        dicts: list[dict[int, Datum]] = [{} for _ in rows]
        places = pa.array(rows, pa.int64())
        for kept in kepts:
            found = packed(kept.type.ref, self.columns[kept.id].take(places))
            for value, row, number in zip(found, dicts, rows, strict=True):
                beside = self.rest.get(number, {})
                value = beside.get(kept.id, value)
                row[kept.id] = None if value is None else kept.type.unpack(value)
        return dicts


class RowCompleter:
    def __init__(self, layout: Layout, defaults: Defaults, context: Context) -> None:
        self._layout = layout
        self._columns = {id: layout.columns[id] for id in layout.public}
        self._defaults = defaults
        self.context = context
        self._generated = [kept for kept in self._columns.values() if kept.generated is not None]

    def complete(self, read: ReadBatch, file: str) -> tuple[RowBatch, list[Reject]]:
        """The accepted rows of a batch, and the refused ones."""
        batch = self._filled(read)
        rejects = list(read.rejects)
        for find in (self._generate, self._nulls, self._checks):
            is_bad, found = find(batch, file)
            if found:
                rejects += found
                batch = batch.without(is_bad)
        return batch, rejects

    # ── every column has a value ───────────────────────────────────────────────────────────────

    def _filled(self, read: ReadBatch) -> RowBatch:
        rows = len(read.lines)
        rest = rest_of(read.table)
        columns: dict[int, Any] = {}
        for id, kept in self._columns.items():
            if name_of(id) in read.table.column_names:
                columns[id] = read.table.column(name_of(id)).combine_chunks()
            elif kept.generated is None:
                columns[id], beside = self._defaults.array(kept, rows)
                for row, value in beside.items():
                    rest.setdefault(row, {})[id] = value
        return RowBatch(columns, rest, read.lines)

    def _generate(self, batch: RowBatch, file: str) -> tuple[Bools, list[Reject]]:
        is_bad = np.zeros(len(batch.lines), bool)
        rejects: list[Reject] = []
        if not self._generated:
            return is_bad, rejects
        kepts = [kept for kept in self._columns.values() if kept.generated is None]
        rows = batch.values(kepts, range(len(batch.lines)))
        for kept in self._generated:
            cells = []
            for row, values in enumerate(rows):
                cells.append(self._generated_value(kept, values, row, batch, file, is_bad, rejects))
            batch.columns[kept.id], beside = as_column(kept, cells)
            for row, value in beside.items():
                batch.rest.setdefault(row, {})[kept.id] = value
        return is_bad, rejects

    def _generated_value(
        self,
        kept: CompiledColumn,
        values: Mapping[int, Datum],
        row: int,
        batch: RowBatch,
        file: str,
        is_bad: Bools,
        rejects: list[Reject],
    ) -> Packed:
        assert kept.generated is not None
        try:
            return kept.type.pack(kept.type.accept(kept.generated(values, self.context)))
        except UserError as error:
            if not is_bad[row]:
                is_bad[row] = True
                line = int(batch.lines[row])
                rejects.append(Reject(file, line, kept.name, str(error), error.sqlstate, ""))
            return None

    # ── every row satisfies its table ───────────────────────────────────────────────────────

    def _nulls(self, batch: RowBatch, file: str) -> tuple[Bools, list[Reject]]:
        is_bad = np.zeros(len(batch.lines), bool)
        rejects: list[Reject] = []
        for kept in self._columns.values():
            if not kept.is_enforced or not batch.columns[kept.id].null_count:
                continue
            found = batch.is_null(kept.id) & ~is_bad
            reason = (
                f'null value in column "{kept.name}" of relation "{self._layout.table.name}" '
                "violates not-null constraint"
            )
            rejects += self._refused(batch, file, found, kept.name, reason, "23502")
            is_bad |= found
        return is_bad, rejects

    def _checks(self, batch: RowBatch, file: str) -> tuple[Bools, list[Reject]]:
        is_bad = np.zeros(len(batch.lines), bool)
        rejects: list[Reject] = []
        for check in self._layout.checks:
            if not check.is_enforced or check.holds is None:
                continue
            try:
                outcome = holds(batch, check.check.expression, check.holds, self._columns, self.context)
            except UserError:
                outcome = self._one_by_one(batch, file, check.holds, is_bad, rejects)
            found = ~np.asarray(pc.fill_null(outcome, True)) & ~is_bad
            table = self._layout.table.name
            reason = f'new row for relation "{table}" violates check constraint "{check.name}"'
            rejects += self._refused(batch, file, found, "", reason, "23514")
            is_bad |= found
        return is_bad, rejects

    def _one_by_one(
        self, batch: RowBatch, file: str, evaluate: Evaluate, is_bad: Bools, rejects: list[Reject]
    ) -> Column:
        """A condition that raises for some rows, such as by a division by zero: those are refused for it."""
        answers: list[Any] = []
        rows = batch.values(list(self._columns.values()), range(len(batch.lines)))
        for row, values in enumerate(rows):
            try:
                answers.append(evaluate(values, self.context))
            except UserError as error:
                answers.append(None)
                if not is_bad[row]:
                    is_bad[row] = True
                    line = int(batch.lines[row])
                    rejects.append(Reject(file, line, "", str(error), error.sqlstate, ""))
        return pa.array(answers, pa.bool_())

    def _refused(
        self, batch: RowBatch, file: str, found: Bools, column: str, reason: str, sqlstate: str
    ) -> list[Reject]:
        rows = np.flatnonzero(found).tolist()
        if not rows:
            return []
        columns = list(self._columns.values())
        values = batch.values(columns, rows)
        return [
            Reject(file, int(batch.lines[row]), column, reason, sqlstate, self._text(each))
            for row, each in zip(rows, values, strict=True)
        ]

    def _text(self, values: Mapping[int, Datum]) -> str:
        return row_text(self._layout.table, self._layout.columns, values)


def holds(
    batch: RowBatch,
    condition: Expression,
    evaluate: Evaluate,
    columns: Mapping[int, CompiledColumn],
    context: Context,
) -> Column:
    """Whether a condition holds for each row: a boolean array, NULL where it is neither."""
    rows = len(batch.lines)
    if not batch.rest:
        answers = truths(decode(condition.tree), batch.columns, rows)
        if answers is not None:
            return answers
    kepts = [columns[id] for id in condition.columns if id in columns]
    values = batch.values(kepts, range(rows))
    return pa.array([evaluate(row, context) for row in values], pa.bool_())


def rest_of(table: Rows, name: str = REST) -> dict[int, dict[int, Packed]]:
    """The values that the columns of rows could not represent, by row and column id."""
    if name not in table.schema.names or table.column(name).null_count == len(table):
        return {}
    found = table.column(name).to_pylist()
    return {row: unpack_columns(each) for row, each in enumerate(found) if each is not None}
