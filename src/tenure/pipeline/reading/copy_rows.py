r"""COPY's text format as batches: the lines between `COPY ... FROM stdin;` and `\.` in a dump.

    1 <tab> a\nb <tab> \N <newline>       fields between tabs, backslashes before what would be misread

A newline always ends a record, so a block may be cut at any. Arrow's parser splits fields, as nothing is
quoted; backslashes are decoded afterwards, in the fields that have any. Records that it would misread, and
faulty ones, are parsed one by one.

Invariant (copy-text): a block's rows and rejects are those of PostgreSQL's COPY ... FROM stdin.

Simplifications: a line end after a backslash is refused, as pg_dump never writes one.

Walk: `reading.rows` calls `read_copy`; this calls `reading.blocks` for records and `reading.batches` for
their values.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tenure.base.errors import UserError
from tenure.expr.formats.copy_escapes import split_escaped, unescaped
from tenure.pipeline.reading.batches import Batches, Refusal
from tenure.pipeline.reading.blocks import RecordBlock, Signs, blocks
from tenure.pipeline.reading.convert import Fault
from tenure.pipeline.reading.csv_fields import BAD_COPY, Fields
from tenure.pipeline.reading.streams import opened
from tenure.pipeline.reading.tasks import (
    FileLimits,
    OpenInput,
    ReadBatch,
    ReadTask,
    TargetColumn,
    encoding_fault,
)
from tenure.table.arrays import Column

NULL = "\\N"
RAW_BYTES = 2048
_NUL = Fault("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
_USUAL = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\v": "\v"}
_EXTRA = Fault(BAD_COPY, "extra data after last expected column")


def read_copy(task: ReadTask, open_input: OpenInput) -> Iterator[ReadBatch]:
    batches = Batches(task)
    with opened(task.input, open_input, task.limits, task.start, task.end) as stream:
        for block in blocks(
            stream, Signs(), file=task.input.name, line=task.line, row_bytes_max=task.limits.row_bytes_max
        ):
            yield _batch(batches, block, task)


def _batch(batches: Batches, block: RecordBlock, task: ReadTask) -> ReadBatch:
    cut = _fields(block, task.targets, task.limits)
    rows = np.arange(block.records) if cut.rows is None else cut.rows
    return batches.from_texts(
        cut.columns,
        rows + block.line,  # each record is a line
        lambda row: block.record(int(rows[row]), RAW_BYTES),
        cut.refusals,
    )


def _fields(block: RecordBlock, targets: Sequence[TargetColumn], limits: FileLimits) -> Fields:
    if len(block.data) <= min(limits.field_bytes_max, limits.row_bytes_max) and _is_for_arrow(block.data):
        columns = _parsed(block.data, len(targets))
        if columns is not None and len(columns[0]) == block.records:
            try:
                return Fields([_read(each) for each in columns], None, [])
            except UserError:
                pass  # the faulty record is found below
    return _exact(block, targets, limits)


# ── Arrow's parser, and when it can be trusted ─────────────────────────────────────────────────────


def _is_for_arrow(data: bytes) -> bool:
    if 0 in data or b"\r" in data or data.startswith((b"\n", b"\xef\xbb\xbf")) or b"\n\n" in data:
        return False  # to Arrow an empty line is any number of fields
    if b"\\" in data and not _are_escapes_usual(data):
        return False
    return encoding_fault(data) is None


def _are_escapes_usual(data: bytes) -> bool:
    """Whether every tab and newline is a separator."""
    return b"\\\t" not in data.replace(b"\\\\", b"") and b"\\\n" not in data.replace(b"\\\\", b"")


def _parsed(data: bytes, width: int) -> Sequence[Column] | None:
    """None if not all records have as many fields as there are columns."""
    names = [str(place) for place in range(width)]
    try:
        table = csv.read_csv(
            pa.py_buffer(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(delimiter="\t", quote_char=False, escape_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[NULL],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        return None
    return [column.combine_chunks() for column in table.columns]


def _read(texts: Column) -> Column:
    """With backslashes decoded, in texts that have any."""
    escaped = pc.fill_null(pc.match_substring(texts, "\\"), False)
    if not pc.any(escaped).as_py():
        return texts
    return pc.replace_with_mask(texts, escaped, _unescaped(texts.filter(escaped)))


def _unescaped(texts: Column) -> Column:
    """The escapes of pg_dump are decoded as whole arrays; NUL, which no text contains, stands for a backslash
    meanwhile.
    """
    read = pc.replace_substring(texts, "\\\\", "\0")
    for sign, meant in _USUAL.items():
        read = pc.replace_substring(read, sign, meant)
    others = pc.match_substring(read, "\\")
    read = pc.replace_substring(read, "\0", "\\")
    if not pc.any(others).as_py():
        return read
    each_by_itself = [unescaped(each) for each in texts.filter(others).to_pylist()]
    if any("\0" in each for each in each_by_itself):
        raise UserError(_NUL.reason)
    return pc.replace_with_mask(read, others, pa.array(each_by_itself, pa.string()))


# ── record by record ───────────────────────────────────────────────────────────────────────────────


def _exact(block: RecordBlock, targets: Sequence[TargetColumn], limits: FileLimits) -> Fields:
    rows: list[int] = []
    records: list[list[str | None]] = []
    refusals: list[Refusal] = []
    for row in range(len(block.ends)):
        cut = _record(block.record(row), targets, limits)
        if isinstance(cut, list):
            rows.append(row)
            records.append(cut)
        else:
            refusals.append(Refusal(block.line + row, cut[0], cut[1], block.record(row, RAW_BYTES)))
    columns = list(zip(*records, strict=True)) if records else [()] * len(targets)
    return Fields([pa.array(each, pa.string()) for each in columns], np.array(rows, np.int64), refusals)


def _record(
    data: bytes, targets: Sequence[TargetColumn], limits: FileLimits
) -> list[str | None] | tuple[str, Fault]:
    if len(data) > limits.row_bytes_max:
        return "", Fault("54000", f"the row is longer than {limits.row_bytes_max} bytes")
    if fault := encoding_fault(data):
        return "", Fault(*fault)
    if b"\r" in data:
        return "", Fault(BAD_COPY, "literal carriage return found in data")
    text = data.decode()
    if text.count("\t") - text.count("\\") >= len(targets):
        return "", _EXTRA  # with very many fields none is made
    fields = split_escaped(text, "\t")
    if len(fields) > len(targets):
        return "", _EXTRA
    if len(fields) < len(targets):
        return "", Fault(BAD_COPY, f'missing data for column "{targets[len(fields)].name}"')
    values: list[str | None] = []
    for target, field in zip(targets, fields, strict=True):
        value, found = _value(field, limits)
        if found is not None:
            return target.name, found
        values.append(value)
    return values


def _value(field: str, limits: FileLimits) -> tuple[str | None, Fault | None]:
    if field == NULL:
        return None, None
    if "\\" in field:
        if len(field) - len(field.rstrip("\\")) & 1:
            return None, Fault(BAD_COPY, "a backslash stands before the end of the line")
        try:
            field = unescaped(field)
        except UserError as error:
            return None, Fault(error.sqlstate, str(error))
        if "\0" in field:
            return None, _NUL
    if len(field) * 4 > limits.field_bytes_max and len(field.encode()) > limits.field_bytes_max:
        return None, Fault("54000", f"the field is longer than {limits.field_bytes_max} bytes")
    return field, None
