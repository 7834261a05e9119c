"""Rows as Parquet: each column in its natural type there.

    bool, ints, floats, text, bytea, date     themselves
    numeric(p <= 38, s)                       decimal(p, s)
    timestamp; timestamptz                    timestamps in microseconds; those with a zone in UTC
    time                                      time of day in microseconds
    all else                                  text, as PostgreSQL writes it: numeric without a precision,
                                              uuid, enums, arrays, json, intervals

A value that its column cannot represent (NaN as numeric(10, 2)) is an error, since no value may be changed.

Walk: `writing.files` -> `parquet_schema`, `parquet_table`.
"""

from collections.abc import Sequence
from datetime import UTC

import pyarrow as pa

from tenure.base.errors import OutOfRange
from tenure.expr.types.datatype import Type
from tenure.pipeline.writing.cells import Cells
from tenure.pipeline.writing.formats import OutColumn
from tenure.pipeline.writing.texts import texts
from tenure.table.arrays import Column, Rows
from tenure.table.arrow import arrow_type, is_opaque

_THEMSELVES = frozenset(
    [
        "bool",
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "numeric",
        "text",
        "varchar",
        "bytea",
        "date",
        "timestamp",
        "timestamptz",
        "time",
    ]
)


def parquet_schema(columns: Sequence[OutColumn], kinds: Sequence[Type]) -> pa.Schema:
    return pa.schema([(column.name, _type(kind)) for column, kind in zip(columns, kinds, strict=True)])


def _type(kind: Type) -> pa.DataType:
    if not _is_itself(kind):
        return pa.string()
    if kind.family == "timestamptz":
        return pa.timestamp("us", tz="UTC")
    return pa.time64("us") if kind.family == "time" else arrow_type(kind)


def _is_itself(kind: Type) -> bool:
    return kind.family in _THEMSELVES and not kind.ref.is_array and not is_opaque(kind)


def parquet_table(schema: pa.Schema, columns: Sequence[Cells]) -> Rows:
    arrays = [_array(cells, field) for cells, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _array(cells: Cells, field: pa.Field) -> Column:
    if not _is_itself(cells.kind):
        return texts(cells, UTC)
    if cells.odd or cells.array is None:
        raise OutOfRange(
            f'column "{field.name}" has a value that the file\'s type for {cells.kind.sql_name} cannot hold',
            hint="Export as CSV or NDJSON, or cast the column to text.",
        )
    if cells.array.type == field.type:
        return cells.array
    return cells.array.view(field.type)
