"""Entries of a primary index as batches of columns.

Many rows are decoded by one call: a row's value is a format number and a map, two consecutive MessagePack
values, so a page of them is one long array.

Text and enums have a dictionary for each batch: values mostly repeat, and functions of them are then computed
once for each. Grouping a million rows by one of 50 texts took a fifth of the time; with all texts different
it took a tenth more. Texts of the primary key are all different, and have none.

Walk: `table.columnar` and `table.column_parts` -> `batch` -> `table.arrow` makes each column.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from tenure.expr.types.datatype import Datum
from tenure.expr.types.enums import EnumOf
from tenure.kv.encoding import decode
from tenure.kv.keys import Span
from tenure.kv.quick_decoding import decode_one
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.table.arrays import Column
from tenure.table.arrow import array, arrow_type
from tenure.table.columns import CompiledColumn
from tenure.table.packing import Packed, unpack_pairs
from tenure.table.readers import FORMAT, check_format
from tenure.table.rows import Layout

Identity: TypeAlias = tuple[Any, ...]
"""What a column's values depend on, besides the rows."""

PAGE_ROWS = 1_000
"""Rows decoded at once."""

_KEYS_AS_PACKED = frozenset(("bool", "int2", "int4", "int8", "text", "varchar", "bytea"))
"""Families whose key elements equal their packed values."""


class WantedColumns(NamedTuple):
    """Some columns of a table, by a version of it."""

    layout: Layout
    columns: dict[int, Identity]

    @classmethod
    def of(cls, layout: Layout, columns: Sequence[int]) -> "WantedColumns":
        return cls(layout, {id: identity(layout.columns[id]) for id in sorted(set(columns))})

    def with_columns_of(self, other: "WantedColumns | None") -> "WantedColumns":
        """With the columns of another, as far as this version defines them alike."""
        columns = {} if other is None else other.columns
        same = {id: each for id, each in columns.items() if id in self.layout.columns}
        kept = {id: each for id, each in same.items() if identity(self.layout.columns[id]) == each}
        return self._replace(columns=dict(sorted({**kept, **self.columns}.items())))

    @property
    def span(self) -> Span:
        return self.layout.primary.span()

    @property
    def names(self) -> list[str]:
        return [f"c{id}" for id in self.columns]

    @property
    def schema(self) -> pa.Schema:
        kinds = [(f"c{id}", self._type(self.layout.columns[id])) for id in self.columns]
        return pa.schema(kinds if kinds else [*kinds, ("alive", pa.bool_())])

    def _type(self, kept: CompiledColumn) -> pa.DataType:
        plain = arrow_type(kept.type)
        comes_again = pa.types.is_string(plain) or isinstance(kept.type, EnumOf)
        is_encoded = comes_again and kept.id not in self.layout.primary.in_key
        return pa.dictionary(pa.int32(), plain) if is_encoded else plain


def identity(kept: CompiledColumn) -> Identity:
    return kept.id, kept.type.ref, kept.column.filled


def batch(wanted: WantedColumns, revisions: Sequence[Revision]) -> pa.RecordBatch:
    """The wanted columns of rows that are not deleted."""
    builder = Builder(wanted)
    for start in range(0, len(revisions), PAGE_ROWS):
        builder.add(revisions[start : start + PAGE_ROWS])
    return builder.batch()


class Builder:
    """Gathers the columns of rows, a page at a time.

    A page becomes arrays at once: the garbage collector would walk long-lived Python objects again and again.
    """

    def __init__(self, wanted: WantedColumns) -> None:
        self._wanted = wanted
        self._index = wanted.layout.primary
        self._kepts = [wanted.layout.columns[id] for id in wanted.columns]
        self._filled = {kept.id: kept.type.pack(kept.filled) for kept in self._kepts}
        self._arrays: list[list[Any]] = [[] for _ in self._kepts]
        self.rows = 0

    def add(self, revisions: Sequence[Revision]) -> None:
        self.rows += len(revisions)
        in_key, index = self._index.in_key, self._index
        keys = self._keys(revisions) if any(kept.id in in_key for kept in self._kepts) else []
        rows: list[dict[int, Any]] = []
        if any(kept.id not in in_key for kept in self._kepts):
            rows = _maps([value or b"" for _, _, value in revisions])
        for kept, arrays in zip(self._kepts, self._arrays, strict=True):
            if kept.id in in_key:
                place = index.columns.index(kept.id)
                packed = _from_keys(kept, [key[place] for key in keys], index.parts[place][1])
            else:
                filled = self._filled[kept.id]
                packed = [row.get(kept.id, filled) for row in rows]
            arrays.append(array(kept.type, packed))

    def _keys(self, revisions: Sequence[Revision]) -> Sequence[Sequence[Datum]]:
        if len(self._index.parts) == 1:
            return [(decode_one(key, HEAD_BYTES),) for key, _, _ in revisions]
        return [decode(key[HEAD_BYTES:]) for key, _, _ in revisions]

    def batch(self) -> pa.RecordBatch:
        """Returns all rows, and empties the builder."""
        rows, self.rows = self.rows, 0
        if not self._kepts:
            return pa.record_batch({"alive": pa.array([True] * rows, pa.bool_())})
        schema = self._wanted.schema
        columns = [
            encoded(pa.concat_arrays(arrays), type) if arrays else pa.array([], type)
            for type, arrays in zip(schema.types, self._arrays, strict=True)
        ]
        self._arrays = [[] for _ in self._kepts]
        return pa.record_batch(columns, schema=schema)


def encoded(values: Column, type: pa.DataType) -> Column:
    """An array, or several in sequence, with a new dictionary if its type is one."""
    return values.dictionary_encode() if pa.types.is_dictionary(type) else values


def _maps(values: list[bytes]) -> list[dict[int, Packed]]:
    """The columns of each row by id."""
    formats_and_maps = unpack_pairs(values)
    if set(formats_and_maps[::2]) - {FORMAT[0]}:
        for value in values:
            check_format(value)
    return formats_and_maps[1::2]


def _from_keys(kept: CompiledColumn, elements: list[Datum], is_descending: bool) -> list[Packed]:
    if not is_descending and kept.type.family in _KEYS_AS_PACKED and not kept.type.ref.is_array:
        return elements
    pack: Callable[[Any], Any] = kept.type.pack
    return [pack(kept.from_key(each)) for each in elements]
