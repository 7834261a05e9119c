"""Changes of rows as Avro files, which contain their schema.

    record <table>: key: record, after: [null, record], before: [null, record], updated: string ...

Fields are those of the Parquet files (`writing.change_rows`), in Avro's types: decimals, dates, times and
timestamps are logical types. Every column may be null. Names in Avro have letters, digits and underscores:
other characters are written as `_uXXXX_`, and the property `column` has the name as it is.

Walk: `changefeed.sinks.file_bodies` -> `avro_changes` -> `writing.change_rows.changes_table`.
"""

import io
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tenure.base.errors import TenureError, Unavailable
from tenure.pipeline.writing.change_rows import changes_table
from tenure.pipeline.writing.changes import ChangeStruct, ChangeTexts

CODEC = "deflate"
"""Every reader of Avro has it."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")

Schema = dict[str, Any]


def avro_changes(name: str, structs: Sequence[ChangeStruct], texts: Sequence[ChangeTexts]) -> bytes:
    """A file whose record has the name of a table."""
    table = changes_table(structs, texts)
    columns = {each.name: table.column(each.name) for each in texts}
    fields: list[Schema] = []
    for struct in structs:
        array = table.column(struct.name).combine_chunks()
        members = _members(array.type)
        columns[struct.name] = _renamed(array, [each["name"] for each in members])
        record = {"type": "record", "name": f"{struct.name}_row", "fields": members}
        fields.append({"name": struct.name, "type": record if struct.name == "key" else ["null", record]})
    fields += [{"name": each.name, "type": "string"} for each in texts]
    schema = {"type": "record", "name": avro_name(name), "fields": fields}
    output = io.BytesIO()
    # Another node may have it.
    load_avro(Unavailable).writer(output, schema, pa.table(columns).to_pylist(), codec=CODEC)
    return output.getvalue()


def load_avro(refusal: type[TenureError]) -> Any:
    """The module; `refusal` is raised where it is not installed."""
    try:
        import fastavro
    except ImportError:
        raise refusal(
            "changefeeds into Avro files need the library fastavro",
            hint="Install it on every node: pip install 'tenure[avro]'.",
        ) from None
    return fastavro


def avro_name(name: str) -> str:
    found = _NOT_IN_NAMES.sub(lambda each: f"_u{ord(each[0]):04x}_", name)
    return f"_{found}" if found[:1].isdigit() or not found else found


def _members(struct: pa.StructType) -> list[Schema]:
    found: list[Schema] = []
    taken: set[str] = set()
    for field in struct:
        name = avro_name(field.name)
        while name in taken:
            name += "_"
        taken.add(name)
        found.append({"name": name, "type": ["null", _type(field.type)], "column": field.name})
    return found


def _type(kind: pa.DataType) -> str | Schema:
    if pa.types.is_decimal(kind):
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_time64(kind):
        return {"type": "long", "logicalType": "time-micros"}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-micros"}
    return _PLAIN[kind]


_PLAIN: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}


def _renamed(array: pa.StructArray, names: list[str]) -> pa.StructArray:
    children = [array.field(place) for place in range(len(names))]
    return pa.StructArray.from_arrays(children, names=names, mask=array.is_null())
