"""The fields of CSV records, split exactly as PostgreSQL's COPY does.

    quick   Arrow's parser, for blocks in which it can be seen to do the same
    exact   record by record, for all others, and to report which record is faulty

Arrow's parser recognizes a quote only at the start of a field, treats CR, LF and CR LF alike as line ends,
and refuses a whole block for one bad record. So it parses a block only if its quotes enclose whole fields,
its lines end as the file's do, and all bytes are text.

Invariant (csv-as-copy): a file's rows and rejects are those of PostgreSQL's COPY ... (FORMAT csv).

Simplifications: a byte order mark at the start of a file is skipped, which COPY does not do.

Walk: `reading.csv_rows` calls `fields` per block.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from tenure.pipeline.reading.batches import Refusal
from tenure.pipeline.reading.blocks import RecordBlock, inside, marks
from tenure.pipeline.reading.convert import Fault
from tenure.pipeline.reading.tasks import RAW_LENGTH_MAX, Csv, ReadTask, encoding_fault
from tenure.table.arrays import Column

BAD_COPY = "22P04"
_UNQUOTED_NEWLINE = Fault(BAD_COPY, "unquoted newline found in data")
_UNQUOTED_RETURN = Fault(BAD_COPY, "unquoted carriage return found in data")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Fields(NamedTuple):
    columns: Sequence[Any]
    """Arrays of text, NULL for the null text."""
    rows: Any
    """The number of each row's record in the block; None: all of them."""
    refusals: list[Refusal]


def fields(block: RecordBlock, format: Csv, ending: bytes, task: ReadTask) -> Fields:
    is_short = len(block.data) <= min(task.limits.field_bytes_max, task.limits.row_bytes_max)
    if is_short and _is_for_arrow(block, format, ending):
        columns = _parsed(block.data, format, len(task.targets))
        if columns is not None and not _has_empty(block, format, ending, columns):
            return Fields(columns, None, [])
    return _Exact(format, ending, task).fields(block)


# ── Arrow's parser, and when it can be trusted ─────────────────────────────────────────────────────


def _is_for_arrow(block: RecordBlock, format: Csv, ending: bytes) -> bool:
    data = block.data
    if 0 in data or ending == b"\r" or data.startswith(BYTE_ORDER_MARK) or not _is_text(data):
        return False
    if format.escape != format.quote and format.escape.encode() in data:
        return False
    return _are_quotes_usual(data, format) and _are_endings_usual(block, ending)


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _are_quotes_usual(data: bytes, format: Csv) -> bool:
    """Whether each quote opens or closes a whole field, or is doubled inside one."""
    quote = format.quote.encode()
    places = marks(data, quote) if quote in data else np.empty(0, np.int64)
    if not len(places):
        return True
    if len(places) % 2:
        return False
    edge = np.zeros(256, bool)
    edge[[ord(format.delimiter), ord("\n"), ord("\r")]] = True
    padded = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    opening, closing = places[::2], places[1::2]
    begins, ends = edge[padded[opening]], edge[padded[closing + 2]]
    is_doubled = closing[:-1] + 1 == opening[1:]
    if format.escape != format.quote:
        is_doubled[:] = False
    return bool(begins[0] and ends[-1] and (begins[1:] | is_doubled).all() and (ends[:-1] | is_doubled).all())


def _are_endings_usual(block: RecordBlock, ending: bytes) -> bool:
    data = block.data
    returns = marks(data, b"\r") if b"\r" in data else np.empty(0, np.int64)
    if ending == b"\n" and not len(returns):
        return True
    returns = returns[~inside(data, block.signs, returns)]
    if ending == b"\n":
        return not len(returns)
    return bool(np.array_equal(returns + 1, block.ends[: block.terminated]))


def _parsed(data: bytes, format: Csv, width: int) -> Sequence[Column] | None:
    """None if not all records have as many fields as there are columns."""
    names = [str(place) for place in range(width)]
    try:
        table = csv.read_csv(
            pa.py_buffer(data),
            csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            csv.ParseOptions(
                delimiter=format.delimiter,
                quote_char=format.quote,
                double_quote=format.escape == format.quote,
                newlines_in_values=True,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[format.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=format.is_quoted_null,
            ),
        )
    except pa.ArrowInvalid:
        return None
    return [column.combine_chunks() for column in table.columns]


def _has_empty(block: RecordBlock, format: Csv, ending: bytes, columns: Sequence[Column]) -> bool:
    """Whether a record is empty, which Arrow reads as any number of fields, or as nothing."""
    if len(columns[0]) != block.records:
        return True
    if format.null == "" and not columns[0].null_count:
        return False
    if not block.data.startswith(ending) and b"\n" + ending not in block.data:
        return False
    return bool((np.diff(block.ends, prepend=-1) == len(ending)).any())


# ── record by record ───────────────────────────────────────────────────────────────────────────────


class _Exact:
    def __init__(self, format: Csv, ending: bytes, task: ReadTask) -> None:
        self._format = format
        self._ending = ending
        self._targets = task.targets
        self._limits = task.limits
        self._rejects_max = task.rejects_max
        quote, escape = re.escape(format.quote), re.escape(format.escape)
        signs = re.escape(format.delimiter) + quote
        inner = f"(?:[^{quote}{escape}]|{escape}[{quote}{escape}]|{escape}(?!{quote}))*+"
        if format.quote == format.escape:
            inner = f"(?:[^{quote}]|{quote}{quote})*+"
        self._piece = re.compile(f"([^{signs}]++)|{quote}({inner}){quote}", re.S)
        self._escaped = re.compile(f"{escape}([{quote}{escape}])")

    def fields(self, block: RecordBlock) -> Fields:
        rows: list[int] = []
        records: list[list[str | None]] = []
        refusals: list[Refusal] = []
        for row in range(len(block.ends)):
            cut = self._record(block.record(row), is_terminated=row < block.terminated)
            if isinstance(cut, list):
                rows.append(row)
                records.append(cut)
            else:
                column, fault = cut
                refusals.append(
                    Refusal(int(block.lines[row]), column, fault, block.record(row, RAW_LENGTH_MAX))
                )
                if len(refusals) > self._rejects_max:  # the task ends here
                    break
        columns = list(zip(*records, strict=True)) if records else [()] * len(self._targets)
        return Fields([pa.array(each, pa.string()) for each in columns], np.array(rows, np.int64), refusals)

    def _record(self, record: bytes, *, is_terminated: bool) -> list[str | None] | tuple[str, Fault]:
        if len(record) > self._limits.row_bytes_max:
            return "", Fault("54000", f"the row is longer than {self._limits.row_bytes_max} bytes")
        if fault := encoding_fault(record):
            return "", Fault(*fault)
        if is_terminated and self._ending == b"\r\n":
            if not record.endswith(b"\r"):
                return "", _UNQUOTED_NEWLINE
            record = record[:-1]
        cut, outside = self._cut(record.decode())
        if "\r" in outside:
            return "", _UNQUOTED_RETURN
        if "\n" in outside:
            return "", _UNQUOTED_NEWLINE
        return self._checked(cut)

    def _checked(self, cut: list[str | None]) -> list[str | None] | tuple[str, Fault]:
        targets = self._targets
        if len(cut) > len(targets):
            return "", Fault(BAD_COPY, "extra data after last expected column")
        if len(cut) < len(targets):
            return "", Fault(BAD_COPY, f'missing data for column "{targets[len(cut)].name}"')
        longest = self._limits.field_bytes_max
        for target, each in zip(targets, cut, strict=True):
            if each is not None and len(each) * 4 > longest and len(each.encode()) > longest:
                return target.name, Fault("54000", f"the field is longer than {longest} bytes")
        return cut

    def _cut(self, text: str) -> tuple[list[str | None], str]:
        """The fields, and all text outside quotes."""
        format, width = self._format, len(self._targets)
        if format.quote not in text:
            # Of a record with very many fields only so many are made as show that there are too many.
            if text.count(format.delimiter) > width:
                return [None] * (width + 1), text
            return [None if each == format.null else each for each in text.split(format.delimiter)], text
        cut: list[str | None] = []
        outside: list[str] = []
        pieces: list[str] = []
        at, is_quoted = 0, False
        while True:
            if at == len(text) or text[at] == format.delimiter:
                field = "".join(pieces)
                is_null = field == format.null and (not is_quoted or format.is_quoted_null)
                cut.append(None if is_null else field)
                if at == len(text) or len(cut) > width:
                    return cut, "".join(outside)
                pieces, is_quoted, at = [], False, at + 1
                continue
            found = self._piece.match(text, at)
            assert found is not None, "a record ends outside quotes"
            if found[1] is not None:
                pieces.append(found[1])
                outside.append(found[1])
            else:
                is_quoted = True
                pieces.append(self._escaped.sub(r"\1", found[2]))
            at = found.end()
