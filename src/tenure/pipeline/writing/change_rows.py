"""Changes of rows as Parquet: a struct for the key, one for the row, one for the row before, and texts.

Columns have the types of exported files (`writing.parquet_rows`). A value that its column cannot represent is
an error here too.

Walk: `changefeed.sinks.file_bodies` -> `parquet_changes`; `writing.avro_changes` -> `changes_table`.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tenure.pipeline.writing.cells import cells_of_rows
from tenure.pipeline.writing.changes import ChangeStruct, ChangeTexts
from tenure.pipeline.writing.parquet_rows import parquet_schema, parquet_table

NO_COLUMNS = ("_", pa.bool_())
"""The field of a struct that would have none: Parquet has no empty ones."""


def parquet_changes(structs: Sequence[ChangeStruct], texts: Sequence[ChangeTexts]) -> bytes:
    """A file; all of them have the same number of rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(changes_table(structs, texts), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def changes_table(structs: Sequence[ChangeStruct], texts: Sequence[ChangeTexts]) -> pa.Table:
    arrays = {each.name: _struct(each) for each in structs}
    arrays |= {each.name: pa.array(each.values, pa.string()) for each in texts}
    return pa.table(arrays)


def _struct(struct: ChangeStruct) -> pa.StructArray:
    absent = pa.array([row is None for row in struct.rows], pa.bool_())
    if not struct.columns:
        nothing = pa.nulls(len(struct.rows), NO_COLUMNS[1])
        return pa.StructArray.from_arrays([nothing], fields=[pa.field(*NO_COLUMNS)], mask=absent)
    empty = (None,) * len(struct.columns)
    cells = cells_of_rows([empty if row is None else row for row in struct.rows], struct.kinds)
    schema = parquet_schema(struct.columns, struct.kinds)
    columns = [each.combine_chunks() for each in parquet_table(schema, cells).columns]
    return pa.StructArray.from_arrays(columns, fields=list(schema), mask=absent)
