"""Texts by column become a batch: typed columns, without the faulty rows.

Walk: `reading.csv_rows` and `reading.ndjson_rows` call `Batches.from_texts`; `reading.convert` converts a
column.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tenure.base.errors import BadInput
from tenure.pipeline.reading.convert import ConvertedColumn, Fault, convert
from tenure.pipeline.reading.tasks import RAW_LENGTH_MAX, ReadBatch, ReadTask, Reject, refused
from tenure.table.arrays import Column, Int64s, Rows
from tenure.table.packing import pack


class Refusal(NamedTuple):
    """A record that is no row: found before its fields were parsed, or in one of them."""

    line: int
    column: str
    fault: Fault
    raw: bytes


class Batches:
    """Counts the rows and rejects of a task, and enforces its limits."""

    def __init__(self, task: ReadTask) -> None:
        self._task = task
        self._rows = 0
        self._rejects = 0

    def from_texts(
        self,
        texts: Sequence[Column],
        lines: Int64s,
        raw: Callable[[int], bytes],
        found: Sequence[Refusal] = (),
    ) -> ReadBatch:
        """Makes a batch of text columns in the order of the targets; `raw` returns a row's record, for a
        reject.
        """
        zone = self._task.zone
        columns = [
            convert(target.type, column, zone)
            for target, column in zip(self._task.targets, texts, strict=True)
        ]
        return self.of(columns, lines, raw, found)

    def of(
        self,
        columns: Sequence[ConvertedColumn],
        lines: Int64s,
        raw: Callable[[int], bytes],
        found: Sequence[Refusal] = (),
    ) -> ReadBatch:
        task = self._task
        rejects = list(found)
        faults: dict[int, tuple[str, Fault]] = {}
        for target, column in zip(task.targets, columns, strict=True):
            for row, fault in column.faults.items():
                faults.setdefault(row, (target.name, fault))
        room = task.rejects_max - self._rejects
        for row in sorted(faults)[: room + 1]:
            name, fault = faults[row]
            rejects.append(Refusal(int(lines[row]), name, fault, raw(row)))
        table = _table(task, columns)
        if faults:
            kept = np.ones(len(lines), bool)
            kept[list(faults)] = False
            table, lines = table.filter(pa.array(kept)), lines[kept]
        self._count(len(lines))
        return ReadBatch(table, lines, self._rejects_of(rejects))

    def _count(self, rows: int) -> None:
        self._rows += rows
        if self._rows > self._task.limits.rows_max:
            reason = f"there are more than {self._task.limits.rows_max} rows"
            raise BadInput(reason, file=self._task.input.name, sqlstate="54000")

    def _rejects_of(self, refusals: list[Refusal]) -> list[Reject]:
        """In the order of their lines. Raises BadInput for the first one beyond the limit."""
        task = self._task
        rejects = [
            Reject(
                task.input.name,
                each.line,
                each.column,
                each.fault.reason,
                each.fault.sqlstate,
                each.raw[:RAW_LENGTH_MAX].decode(errors="replace"),
            )
            for each in sorted(refusals, key=lambda each: each.line)
        ]
        room = task.rejects_max - self._rejects
        if len(rejects) > room:
            raise refused(rejects[room], task.rejects_max)
        self._rejects += len(rejects)
        return rejects


def _table(task: ReadTask, columns: Sequence[ConvertedColumn]) -> Rows:
    arrays = {f"c{each.column}": column.array for each, column in zip(task.targets, columns, strict=True)}
    rest: dict[int, dict[int, Any]] = {}
    for target, column in zip(task.targets, columns, strict=True):
        for row, packed in column.rest.items():
            rest.setdefault(row, {})[target.column] = packed
    table = pa.table(arrays)
    if rest:
        packed_rows = [pack(rest[row]) if row in rest else None for row in range(table.num_rows)]
        table = table.append_column("rest", pa.array(packed_rows, pa.binary()))
    return table
