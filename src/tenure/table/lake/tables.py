"""Rows as tables in the format of files: from the store, and from older files.

    revisions of the store ──► key, at, c<id>..., rest
    rows of a file         ──► the same, in the shape that files get now

A value goes into its column if the shape has that and Arrow can represent it; else it stays packed in `rest`.
A row without a value of a public column reads as the column's `filled` value, so it gets that.

Invariant (file-exact): see `lake.format`.

Walk: `lake.merging` makes both sides of a merge with these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.kv.encoding import decode
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.table.arrays import Column, Rows
from tenure.table.arrow import Unrepresentable, array, packed
from tenure.table.compiled_index import CompiledIndex
from tenure.table.lake.format import AT, KEY, REST, UNTIL, column_type, name_of, schema_of, shape_of
from tenure.table.lake.manifests import File, FileColumn, FileShape
from tenure.table.packing import Packed, pack, unpack_columns
from tenure.table.readers import body
from tenure.table.rows import Layout


@dataclass(frozen=True, slots=True)
class IndexFormat:
    """How the rows of an index become tables: the columns of its files, by a version of its table."""

    layout: Layout
    index: CompiledIndex
    shape: FileShape

    @classmethod
    def of(cls, layout: Layout, index: int, older: Sequence[FileShape] = ()) -> "IndexFormat":
        """Columns of older files that the version does not have are kept: reads of the past may need them."""
        shape = shape_of(layout, index)
        if shape.is_entries:
            return cls(layout, layout.indexes[index], shape)
        columns = {column.id: column for each in older for column in each.columns}
        columns |= {column.id: column for column in shape.columns}
        ordered = tuple(column for _, column in sorted(columns.items()))
        return cls(layout, layout.indexes[index], FileShape(ordered))

    def filled(self, id: int) -> Packed:
        kept = self.layout.columns.get(id)
        return None if kept is None else kept.type.pack(kept.filled)


def of_revisions(format: IndexFormat, revisions: Sequence[Revision]) -> Rows:
    """Rows of the store, without deletions, as a table in the same order."""
    keys = pa.array([revision.key[HEAD_BYTES:] for revision in revisions], pa.binary())
    at = pa.array([revision.at for revision in revisions], pa.int64())
    values = [revision.value or b"" for revision in revisions]
    schema = schema_of(format.shape)
    if format.shape.is_entries:
        return pa.table([keys, at, pa.array(values, pa.binary())], schema=schema)
    rows = [body(value) for value in values]
    _put_in_keys(format, revisions, rows)
    columns = []
    for column in format.shape.columns:
        columns.append(_column(format, column, rows))
    rests = pa.array([pack(row) if row else None for row in rows], pa.binary())
    return pa.table([keys, at, *columns, rests], schema=schema)


def _put_in_keys(format: IndexFormat, revisions: Sequence[Revision], rows: list[dict[int, Packed]]) -> None:
    """Adds the columns that only the keys have."""
    parts = [
        (place, kept) for place, (kept, _) in enumerate(format.index.parts) if kept.id in format.index.in_key
    ]
    if not parts:
        return
    for revision, row in zip(revisions, rows, strict=True):
        elements = decode(revision.key[HEAD_BYTES:])
        for place, kept in parts:
            row[kept.id] = kept.type.pack(kept.from_key(elements[place]))


def _column(format: IndexFormat, column: FileColumn, rows: list[dict[int, Packed]]) -> Column:
    """A column, moved out of the rows; values that it cannot represent stay there."""
    id, filled = column.id, format.filled(column.id)
    kind = _kind(format, column)
    if kind is None:
        return pa.nulls(len(rows), column_type(column.type))  # dropped: rows keep their values
    values = [row.get(id, filled) for row in rows]
    try:
        cells = array(kind, values)
        for row in rows:
            row.pop(id, None)
        return cells
    except Unrepresentable:
        return _with_odd_ones(kind, column, values, rows)


def _with_odd_ones(
    kind: Type, column: FileColumn, values: list[Packed], rows: list[dict[int, Packed]]
) -> Column:
    cells = []
    for value, row in zip(values, rows, strict=True):
        try:
            cells.append(array(kind, [value]))
            row.pop(column.id, None)
        except Unrepresentable:
            cells.append(pa.nulls(1, column_type(column.type)))
            row[column.id] = value
    return pa.concat_arrays(cells)


def _kind(format: IndexFormat, column: FileColumn) -> Type | None:
    """None for a column that this version does not have, or has with another type."""
    kept = format.layout.columns.get(column.id)
    return kept.type if kept is not None and kept.type.ref == column.type else None


# ── rows of older files ────────────────────────────────────────────────────────────────────────


def of_file(format: IndexFormat, file: File, shape: FileShape, rows: Rows) -> Rows:
    """Rows of a file in the current shape; rows without a time get the file's."""
    rows = _dated(rows, file)
    schema = schema_of(format.shape, is_past=UNTIL in rows.column_names)
    if shape == format.shape:
        return rows.select(schema.names).cast(schema)
    rests = [None if rest is None else unpack_columns(rest) for rest in rows.column(REST).to_pylist()]
    columns = {name: rows.column(name) for name in (KEY, AT, UNTIL) if name in rows.column_names}
    file_columns = {column.id: column for column in shape.columns}
    for column in format.shape.columns:
        columns[name_of(column.id)] = _reshaped(format, column, file_columns.get(column.id), rows, rests)
    packed_rests = [pack(rest) if rest else None for rest in rests]
    columns[REST] = pa.array(packed_rests, pa.binary())
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _dated(rows: Rows, file: File) -> Rows:
    for name in (AT, UNTIL):
        if name in rows.column_names and rows.column(name).null_count:
            place = rows.column_names.index(name)
            rows = rows.set_column(place, name, rows.column(name).fill_null(file.published_at))
    return rows


def _reshaped(
    format: IndexFormat,
    column: FileColumn,
    former: FileColumn | None,
    rows: Rows,
    rests: list[dict[int, Packed] | None],
) -> Column:
    to = column_type(column.type)
    if former is not None and former.type == column.type:
        return rows.column(name_of(column.id))
    if former is not None:
        values = packed(former.type, rows.column(name_of(column.id)))
    else:
        values = [format.filled(column.id)] * len(rows)
    for place, rest in enumerate(rests):
        if rest is not None and column.id in rest:
            values[place] = rest.pop(column.id)
    kind = _kind(format, column) or type_of(_plain(column.type))
    empty = pa.array([], to)
    try:
        empty = array(kind, values)
    except Unrepresentable:
        kept: list[dict[int, Any]] = [{column.id: value} for value in values]
        empty = _with_odd_ones(kind, column, values, kept)
        for place, odd in enumerate(kept):
            if odd:
                rests[place] = {**(rests[place] or {}), **odd}
    return empty


def _plain(ref: TypeRef) -> TypeRef:
    return TypeRef("bytea") if ref.enum and not ref.is_array else ref
