"""Entries of a primary index as batches of columns.

Many rows are decoded by one call: a row's value is a format number and a map, two values in a row of
MessagePack, so a page of them is one long array.

Walk: `table.columnar` and `table.parts` -> `batch` -> `table.arrow` makes each column.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from tenure.kv.encoding import decode
from tenure.kv.keys import Span
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.table.arrow import array, arrow_type
from tenure.table.columns import Kept
from tenure.table.packing import unpack_pairs
from tenure.table.readers import FORMAT, check_format
from tenure.table.rows import Layout

Identity: TypeAlias = tuple[Any, ...]
"""What a column's values depend on, besides the rows."""

_KEYS_AS_PACKED = frozenset(("bool", "int2", "int4", "int8", "text", "varchar", "bytea"))
"""Families whose key elements are what is packed, too."""


class Wanted(NamedTuple):
    """Some columns of a table, by a version of it."""

    layout: Layout
    columns: dict[int, Identity]

    @classmethod
    def of(cls, layout: Layout, columns: Sequence[int]) -> "Wanted":
        return cls(layout, {id: identity(layout.columns[id]) for id in sorted(set(columns))})

    def with_columns_of(self, held: "Wanted | None") -> "Wanted":
        """With what another has besides, as far as this version knows the same."""
        known = {} if held is None else held.columns
        same = {id: each for id, each in known.items() if id in self.layout.columns}
        kept = {id: each for id, each in same.items() if identity(self.layout.columns[id]) == each}
        return self._replace(columns=dict(sorted({**kept, **self.columns}.items())))

    @property
    def span(self) -> Span:
        return self.layout.primary.span()

    @property
    def names(self) -> list[str]:
        return [f"c{id}" for id in self.columns]

    @property
    def schema(self) -> Any:
        kinds = [(f"c{id}", arrow_type(self.layout.columns[id].type)) for id in self.columns]
        return pa.schema(kinds if kinds else [*kinds, ("alive", pa.bool_())])


def identity(kept: Kept) -> Identity:
    return kept.id, kept.type.ref, kept.column.filled


def batch(wanted: Wanted, revisions: Sequence[Revision]) -> Any:
    """The wanted columns of rows that are not gone."""
    if not wanted.columns:
        return pa.record_batch({"alive": pa.array([True] * len(revisions), pa.bool_())})
    layout = wanted.layout
    index = layout.primary
    in_key = [id for id in wanted.columns if id in index.in_key]
    keys = [decode(each.key[HEAD_BYTES:]) for each in revisions] if in_key else []
    rows: list[dict[int, Any]] = []
    if len(in_key) < len(wanted.columns):
        rows = _maps([each.value or b"" for each in revisions])
    arrays = []
    for id in wanted.columns:
        kept = layout.columns[id]
        if id in index.in_key:
            place = index.columns.index(id)
            packed = _from_keys(kept, [key[place] for key in keys], index.parts[place][1])
        else:
            filled = kept.type.pack(kept.filled)
            packed = [row.get(id, filled) for row in rows]
        arrays.append(array(kept.type, packed))
    return pa.record_batch(arrays, schema=wanted.schema)


def _maps(values: list[bytes]) -> list[dict[int, Any]]:
    """The columns of each row by id."""
    formats_and_maps = unpack_pairs(values)
    if set(formats_and_maps[::2]) - {FORMAT[0]}:
        for value in values:
            check_format(value)
    return formats_and_maps[1::2]


def _from_keys(kept: Kept, elements: list[Any], is_descending: bool) -> list[Any]:
    if not is_descending and kept.type.family in _KEYS_AS_PACKED and not kept.type.ref.is_array:
        return elements
    pack: Callable[[Any], Any] = kept.type.pack
    return [pack(kept.from_key(each)) for each in elements]
