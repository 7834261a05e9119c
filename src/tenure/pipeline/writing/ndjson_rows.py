"""Rows as NDJSON: an object per line, its members as PostgreSQL's row_to_json has them.

    numbers               numbers, to the last digit; NaN and the infinities as strings
    bool                  true, false
    text                  strings
    days and times        strings in ISO 8601
    json, jsonb           themselves
    arrays                arrays
    all else              their text, as strings
    NULL                  null

Walk: `writing.files` -> `ndjson_bytes`.
"""

from collections.abc import Sequence
from datetime import UTC, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.expr.functions.json_making import json_text_of
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.json_values import quoted
from tenure.pipeline.reading.quick import laid_out, mask
from tenure.pipeline.writing.cells import Cells
from tenure.pipeline.writing.texts import is_text, texts
from tenure.table.arrays import Buffer, Column

_ESCAPED = r'["\\\x00-\x1f]'


def ndjson_bytes(names: Sequence[str], columns: Sequence[Cells], rows: int, zone: tzinfo) -> Buffer:
    if not columns:
        return b"{}\n" * rows
    parts: list[Any] = []
    for place, (name, cells) in enumerate(zip(names, columns, strict=True)):
        parts += [("," if place else "{") + quoted(name) + ":", _json(cells, zone)]
    lines = pc.binary_join_element_wise(*parts, "}\n", "", null_handling="replace", null_replacement="null")
    return laid_out(lines)[0]


def _json(cells: Cells, zone: tzinfo) -> Column:
    """The column as JSON's texts; NULL stays NULL."""
    kind = cells.kind
    if cells.values is not None or cells.odd or kind.ref.is_array:
        return _written(cells, zone)
    if is_text(kind) or isinstance(kind, EnumOf):
        return _strings(texts(cells, zone))
    match kind.family:
        case "int2" | "int4" | "int8":
            return texts(cells, zone)
        case "numeric" if pa.types.is_decimal(cells.array.type):
            return texts(cells, zone)
        case "float4" | "float8":
            column = texts(cells, zone)
            return pc.if_else(pc.is_finite(cells.array), column, _in_quotes(column))
        case "bool":
            return pc.if_else(cells.array, "true", "false")
        case "date" | "time" | "uuid":
            return _in_quotes(texts(cells, zone))
        case "timestamp":
            return _in_quotes(_iso(texts(cells, zone)))
        case "timestamptz" if zone is UTC:
            return _in_quotes(pc.binary_join_element_wise(_iso(texts(cells, zone)), ":00", ""))
    return _written(cells, zone)


def _written(cells: Cells, zone: tzinfo) -> Column:
    """Value by value. JSON has line ends only where a space would do, so a line stays a line."""
    write = json_text_of(cells.kind)
    values = [None if each is None else write(each, zone) for each in cells.listed()]
    lines = [None if each is None else each.replace("\n", " ").replace("\r", " ") for each in values]
    return pa.array(lines, pa.string())


def _strings(column: Column) -> Column:
    is_special = mask(pc.match_substring_regex(column, _ESCAPED))
    plain = _in_quotes(column)
    if not is_special.any():
        return plain
    written = [quoted(column[row].as_py()) for row in np.flatnonzero(is_special).tolist()]
    return pc.replace_with_mask(plain, pa.array(is_special), pa.array(written, pa.string()))


def _in_quotes(column: Column) -> Column:
    return pc.binary_join_element_wise('"', column, '"', "")


def _iso(column: Column) -> Column:
    return pc.replace_substring(column, " ", "T", max_replacements=1)
