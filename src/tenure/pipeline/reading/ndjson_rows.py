"""NDJSON files as batches: an object on each line, its members by the names of the columns.

A member becomes text, which is parsed as from CSV: a string is itself, a number and a boolean as written, an
object or array as JSON. A list for a column of an array type becomes an array literal. For a json or jsonb
column every member is JSON. A missing member is NULL, as null is.

Simplifications: JSON inside a member is rendered anew, without its spaces; of members with the same name the
last one counts.

Walk: `reading.rows` calls `read_ndjson`; this calls `reading.blocks` for lines and `reading.batches` for
values.
"""

import json
import re
from collections.abc import Iterator
from typing import NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from tenure.base.errors import UnknownCharacter
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Type
from tenure.expr.types.strings import check_characters
from tenure.pipeline.reading.batches import Batches, Refusal
from tenure.pipeline.reading.blocks import RecordBlock, Signs, blocks
from tenure.pipeline.reading.convert import Fault
from tenure.pipeline.reading.csv_fields import BYTE_ORDER_MARK
from tenure.pipeline.reading.ndjson_quick import QuickReader
from tenure.pipeline.reading.streams import opened
from tenure.pipeline.reading.tasks import (
    RAW_LENGTH_MAX,
    NdJson,
    OpenInput,
    ReadBatch,
    ReadTask,
    encoding_fault,
)
from tenure.table.arrays import Column

_BLANK = b" \t\r"

JsonValue: TypeAlias = "str | bool | list[JsonValue] | dict[str, JsonValue] | None"
"""A value as the reader decodes it: numbers are texts (`_Number`), which keep their digits."""


def read_ndjson(task: ReadTask, format: NdJson, open_input: OpenInput) -> Iterator[ReadBatch]:
    batches, reader = Batches(task), _Reader(task, format)
    with opened(task.input, open_input, task.limits, task.start, task.end) as stream:
        for block in blocks(
            stream, Signs(), file=task.input.name, line=task.line, row_bytes_max=task.limits.row_bytes_max
        ):
            yield _batch(batches, reader, block)


def _batch(batches: Batches, reader: "_Reader", block: RecordBlock) -> ReadBatch:
    columns = reader.quick_columns(block)
    if columns is None:
        return _line_by_line(batches, reader, block)
    return batches.from_texts(columns, np.arange(block.line, block.line + block.records), block.record)


def _line_by_line(batches: Batches, reader: "_Reader", block: RecordBlock) -> ReadBatch:
    rows: list[int] = []
    records: list[list[str | None]] = []
    refusals: list[Refusal] = []
    for row, record in enumerate(block.data.split(b"\n")[: block.records]):
        if not record.strip(_BLANK):
            continue
        texts = reader.texts(record)
        if isinstance(texts, list):
            rows.append(row)
            records.append(texts)
        else:
            refusals.append(Refusal(block.line + row, texts[0], texts[1], record[:RAW_LENGTH_MAX]))
            if len(refusals) > reader.rejects_max:  # the task ends here
                break
    columns = list(zip(*records, strict=True)) if records else [()] * reader.width
    arrays = [pa.array(each, pa.string()) for each in columns]
    places = np.array(rows, np.int64)
    return batches.from_texts(arrays, places + block.line, lambda row: block.record(rows[row]), refusals)


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_refuse)
_UNFIT = re.compile("[\0\ud800-\udfff]")
_Found = list[str | None] | tuple[str, Fault]


class _Reader:
    def __init__(self, task: ReadTask, format: NdJson) -> None:
        self._limits = task.limits
        self._ignores = format.ignores_unknown
        self._kinds = {target.name: target.type for target in task.targets}
        self.width = len(self._kinds)
        self.rejects_max = task.rejects_max
        self._quick = QuickReader(task.targets, self._odd, ignores_unknown=format.ignores_unknown)

    def quick_columns(self, block: RecordBlock) -> list[Column] | None:
        is_short = len(block.data) <= min(self._limits.field_bytes_max, self._limits.row_bytes_max)
        return self._quick.columns(block) if is_short else None

    def _odd(self, kind: Type, raw: bytes) -> str | None:
        if _depth(raw, self._limits.json_depth_max) >= self._limits.json_depth_max:
            raise ValueError("it may be nested too deeply")
        text = _text(kind, _DECODER.decode(raw.decode()))
        if text is not None and _UNFIT.search(text):
            raise ValueError("it has characters that no text has")
        return text

    def texts(self, record: bytes) -> _Found:
        """A line's members in the order of the columns; or its fault, and the column."""
        if len(record) > self._limits.row_bytes_max:
            return "", Fault("54000", f"the row is longer than {self._limits.row_bytes_max} bytes")
        if fault := encoding_fault(record):
            return "", Fault(*fault)
        if _depth(record, self._limits.json_depth_max) > self._limits.json_depth_max:
            return "", Fault("54001", f"JSON is nested more than {self._limits.json_depth_max} deep")
        try:
            members = _DECODER.decode(record.removeprefix(BYTE_ORDER_MARK).decode())
        except ValueError as error:
            return "", Fault("22P02", f"invalid input syntax for type json: {error}")
        if not isinstance(members, dict):
            return "", Fault("22P02", "a line must be a JSON object")
        return self._columns(members)

    def _columns(self, members: dict[str, JsonValue]) -> _Found:
        if not self._ignores and (unknown := members.keys() - self._kinds.keys()):
            return "", Fault("42703", f'column "{min(unknown)}" is not among the columns to be read')
        texts: list[str | None] = []
        longest = self._limits.field_bytes_max
        for name, kind in self._kinds.items():
            text = _text(kind, members.get(name))
            try:
                texts.append(text if text is None else check_characters(text))
            except UnknownCharacter as error:
                return name, Fault(error.sqlstate, str(error))
            if text is not None and len(text) * 4 > longest and len(text.encode()) > longest:
                return name, Fault("54000", f"the field is longer than {longest} bytes")
        return texts


def _depth(record: bytes, enough: int) -> int:
    """The greatest nesting depth of brackets; those in strings count too, if there are that many."""
    if record.count(b"[") + record.count(b"{") <= enough:
        return 0
    deepest = depth = 0
    is_string = is_escaped = False
    for byte in record:
        if is_string:
            if is_escaped:
                is_escaped = False
            elif byte == 0x5C:
                is_escaped = True
            elif byte == 0x22:
                is_string = False
        elif byte == 0x22:
            is_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _text(kind: Type, value: JsonValue) -> str | None:
    if value is None:
        return None
    if kind.family in ("json", "jsonb") and not kind.ref.is_array:
        return _json(value)
    if isinstance(value, str):
        return value
    if isinstance(kind, ArrayOf) and isinstance(value, list):
        return _literal(kind.element, value)
    return _json(value)


def _literal(kind: Type, values: list[JsonValue]) -> str:
    """As PostgreSQL writes arrays, with quotes around everything."""
    members = []
    for each in values:
        if isinstance(each, list) and kind.family not in ("json", "jsonb"):
            members.append(_literal(kind, each))
        else:
            text = _text(kind, each)
            escaped = "" if text is None else text.replace("\\", "\\\\").replace('"', '\\"')
            members.append("NULL" if text is None else f'"{escaped}"')
    return "{" + ",".join(members) + "}"


def _json(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _Number():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return "[" + ", ".join([_json(each) for each in value]) + "]"
    members = [f"{json.dumps(name, ensure_ascii=False)}: {_json(each)}" for name, each in value.items()]
    return "{" + ", ".join(members) + "}"
