"""The rows of a result that were delivered already, in case it has to be computed again.

    marked      the same query, with a mark of each row beside it
    new         a batch, without the rows that were given before; these are given now

The same query at the same time has the same rows, but maybe in another order: rows may have moved between
files meanwhile. So delivered rows are recognized by their marks, each as often as it was delivered. With
ORDER BY the order stays right: delivered rows sort before, or equal to, all rows that are left.

Where a query may be answered in several ways (LIMIT without an order, sums of floats), the second answer may
lack rows of the first: that is an error in the end, never a mixture of both.

Simplifications: a mark is a hash of 64 bits, and no more than so many are kept. Two rows of four million
share one in one case of two million, and it matters only if a file has gone meanwhile; a client that takes
so many rows, and so slowly that files go under it, is told to ask again.

Walk: `duck.engine` -> `DeliveredRows.marked`, `DeliveredRows.new`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tenure.base.errors import StoreError
from tenure.sql.duck.rendering import Rendered

MARK = "mark"
MARKS_MAX = 4_000_000
"""A mark takes eight bytes, as long as the client takes rows."""


class DeliveredRows:
    def __init__(self) -> None:
        self._marks: list[Any] = []
        self._count = 0
        self._unique_marks = np.empty(0, np.uint64)
        """Marks of earlier passes, in order, each once."""
        self._left = np.empty(0, np.int64)
        """How often each of them is still to be skipped."""

    def marked(self, rendered: Rendered) -> Rendered:
        return replace(rendered, select=f"SELECT *, hash(given) AS {MARK} FROM ({rendered.select}) AS given")

    def new(self, batch: Any) -> Any:
        marks = batch.column(batch.num_columns - 1).to_numpy()
        rows = batch.select(range(batch.num_columns - 1))
        if len(self._unique_marks) and len(marks):
            is_new = self._are_new(marks)
            marks, rows = marks[is_new], rows.filter(pa.array(is_new))
        self._count += len(marks)
        if self._count <= MARKS_MAX:
            self._marks.append(marks)
        else:
            self._marks = []  # no later pass needs them
        return rows

    def _are_new(self, marks: Any) -> Any:
        """Which rows are new: of each mark, the first ones were delivered, as many as are still to be
        skipped."""
        order = np.argsort(marks, kind="stable")
        ordered = marks[order]
        turn = np.empty(len(marks), np.int64)
        turn[order] = np.arange(len(marks)) - np.searchsorted(ordered, ordered)
        place = np.minimum(np.searchsorted(self._unique_marks, marks), len(self._unique_marks) - 1)
        is_given = (self._unique_marks[place] == marks) & (turn < self._left[place])
        np.subtract.at(self._left, place[is_given], 1)
        return ~is_given

    def start_over(self) -> None:
        """A new pass begins: all rows delivered so far will come again."""
        if self._count > MARKS_MAX:
            raise StoreError(
                "files of the lake went while a query read them, when too many rows had been given",
                hint="Run it again; EXPORT is made for results of this size.",
            )
        marks = np.concatenate(self._marks) if self._marks else np.empty(0, np.uint64)
        self._marks = [marks]
        self._unique_marks, self._left = np.unique(marks, return_counts=True)

    def require_all(self) -> None:
        if self._left.any():
            raise StoreError("files of the lake went while a query read them, and it is not the same now")
