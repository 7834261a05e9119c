"""The values of one column for a file: as an Arrow array, or as Python values.

    from a scan      an array; values that it cannot represent are in `odd`, by row
    from a query     an array where whole arrays can be written at once, else the values themselves

Walk: `writing.texts`, `writing.ndjson_rows` and `writing.parquet_rows` write them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tenure.expr.types.datatype import Datum, Type
from tenure.table.arrow import Unrepresentable, array, is_opaque, packed
from tenure.table.packing import unpack_columns

_NOTHING: Mapping[int, Datum] = {}


class Cells(NamedTuple):
    kind: Type
    array: Any
    """In the type of `table.arrow`; None if there are `values`."""
    odd: Mapping[int, Datum] = _NOTHING
    """By row: values that are NULL in the array and should not be."""
    values: Sequence[Datum] | None = None

    def __len__(self) -> int:
        return len(self.array if self.values is None else self.values)

    def slice(self, start: int, count: int) -> "Cells":
        if self.values is not None:
            return Cells(self.kind, None, values=self.values[start : start + count])
        odd = {row - start: value for row, value in self.odd.items() if start <= row < start + count}
        return Cells(self.kind, self.array.slice(start, count), odd)

    def listed(self) -> Sequence[Datum]:
        """As Python values."""
        if self.values is not None:
            return self.values
        found = [self.kind.unpack(each) for each in packed(self.kind.ref, self.array)]
        for row, value in self.odd.items():
            found[row] = value
        return found


def cells_of_batch(batch: pa.RecordBatch, columns: Sequence[int], kinds: Sequence[Type]) -> list[Cells]:
    """Of a scan's batch, which has its columns in this order."""
    odd: dict[int, dict[int, Datum]] = {id: {} for id in columns}
    by_id = dict(zip(columns, kinds, strict=True))
    strange = batch.column(len(columns))
    if strange.null_count < len(strange):
        for row, rest in enumerate(strange.to_pylist()):
            for id, value in unpack_columns(rest).items() if rest is not None else ():
                odd[id][row] = by_id[id].unpack(value)
    return [Cells(by_id[id], batch.column(place), odd[id]) for place, id in enumerate(columns)]


def cells_of_rows(rows: Sequence[Sequence[Datum]], kinds: Sequence[Type]) -> list[Cells]:
    return [_cells(kind, [row[place] for row in rows]) for place, kind in enumerate(kinds)]


def _cells(kind: Type, values: list[Datum]) -> Cells:
    if not is_opaque(kind):
        try:
            return Cells(kind, array(kind, [kind.pack(value) for value in values]))
        except Unrepresentable:
            pass
    return Cells(kind, None, values=values)
