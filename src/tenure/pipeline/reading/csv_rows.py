"""CSV files as batches.

Walk: `reading.rows` calls `read_csv`; this calls `reading.blocks` for records, `reading.csv_fields` for
their fields, and `reading.batches` for their values.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tenure.base.errors import BadInput
from tenure.pipeline.reading.batches import Batches
from tenure.pipeline.reading.blocks import BLOCK_BYTES, RecordBlock, Signs, blocks, line_ending
from tenure.pipeline.reading.csv_fields import BYTE_ORDER_MARK, fields
from tenure.pipeline.reading.streams import Stream, opened
from tenure.pipeline.reading.tasks import RAW_LENGTH_MAX, Csv, OpenInput, ReadBatch, ReadTask


def read_csv(task: ReadTask, format: Csv, open_input: OpenInput) -> Iterator[ReadBatch]:
    batches = Batches(task)
    with opened(task.input, open_input, task.limits, task.start, task.end) as stream:
        start = start_of(stream, format, task)
        for block in without_head(stream, format, task, start):
            yield _batch(batches, block, format, start.ending, task)


def without_head(stream: Stream, format: Csv, task: ReadTask, start: "Start") -> Iterator[RecordBlock]:
    """The blocks of a task, without the records that are to be skipped."""
    signs, skip = signs_of(format, start.ending), format.skip if task.is_start else 0
    for block in blocks(
        stream,
        signs,
        file=task.input.name,
        line=task.line,
        row_bytes_max=task.limits.row_bytes_max,
        first=start.data,
    ):
        if not skip:
            yield block
        elif skip < block.records:
            yield block.since(skip)
        skip = max(0, skip - block.records)


def _batch(batches: Batches, block: RecordBlock, format: Csv, ending: bytes, task: ReadTask) -> ReadBatch:
    cut = fields(block, format, ending, task)
    rows = cut.rows
    if rows is not None:
        return batches.from_texts(
            cut.columns,
            block.lines[rows],
            lambda row: block.record(int(rows[row]), RAW_LENGTH_MAX),
            cut.refusals,
        )
    is_plain = block.terminated == block.newlines
    lines = np.arange(block.line, block.line + block.records) if is_plain else block.lines
    return batches.from_texts(cut.columns, lines, lambda row: block.record(row, RAW_LENGTH_MAX))


def signs_of(format: Csv, ending: bytes) -> Signs:
    return Signs(ending[-1:], format.quote.encode(), format.escape.encode())


class Start(NamedTuple):
    data: bytes
    """Bytes that were read to find the line ending."""
    ending: bytes
    passed: int
    """Bytes of a byte order mark, which are not in `data`."""


def start_of(stream: Stream, format: Csv, task: ReadTask) -> Start:
    if task.ending:
        return Start(b"", task.ending, 0)
    data = stream.read(BLOCK_BYTES)
    passed = len(BYTE_ORDER_MARK) if task.is_start and data.startswith(BYTE_ORDER_MARK) else 0
    data = data[passed:]
    signs = signs_of(format, b"\n")
    while not (ending := line_ending(data, signs, is_all=False)):
        more = stream.read(BLOCK_BYTES)
        if not more:
            return Start(data, line_ending(data, signs, is_all=True), passed)
        data += more
        if len(data) > task.limits.row_bytes_max + BLOCK_BYTES:
            reason = f"a row is longer than {task.limits.row_bytes_max} bytes: is a quote left open?"
            raise BadInput(reason, file=task.input.name, line=1, sqlstate="54000")
    return Start(data, ending, passed)
