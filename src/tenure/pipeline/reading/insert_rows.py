r"""INSERT statements with constants only, as batches: the output of `pg_dump --inserts`.

    INSERT INTO app.t [(a, b)] [OVERRIDING SYSTEM VALUE] VALUES (1, 'it''s'), (2, NULL);

The constants are parsed as text by the types of their columns, as PostgreSQL parses a quoted constant. A
statement with anything but constants does not match `STATEMENTS`, so it never gets here.

Simplifications: a range of statements is held in memory as a whole; the scan of the dump keeps ranges short.

Walk: `bulk.dumps.scan` finds statements by `STATEMENTS`; `reading.rows` calls `read_inserts`.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tenure.base.errors import BadInput
from tenure.pipeline.reading.batches import Batches, Refusal
from tenure.pipeline.reading.convert import Fault
from tenure.pipeline.reading.csv_fields import BAD_COPY
from tenure.pipeline.reading.streams import opened
from tenure.pipeline.reading.tasks import Inserts, OpenInput, ReadBatch, ReadTask, encoding_fault

BATCH_ROWS = 10_000
QUOTE = ord("'")

_NAME = rb'(?:"(?:[^"\0]|"")++"|[a-z_\x80-\xff][a-z0-9_$\x80-\xff]*+)'
_COLUMNS = rb"\(%b(?:, ?%b)*+\)" % (_NAME, _NAME)
_CONSTANT = (
    rb"(?:'[^']*+(?:''[^']*+)*+'|NULL|true|false|DEFAULT|-?[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?[0-9]++)?+)"
)
_ROW = rb"\(%b(?:, ?%b)*+\)" % (_CONSTANT, _CONSTANT)
_HEAD = rb"INSERT INTO %b(?:\.%b){0,2}+(?: %b)?+(?: OVERRIDING (?:SYSTEM|USER) VALUE)?+ VALUES" % (
    _NAME,
    _NAME,
    _COLUMNS,
)

_ROWS = rb"\s++%b(?:,\s*+%b)*+;" % (_ROW, _ROW)

STATEMENTS = re.compile(rb"(%b)%b(?:\n\1%b)*+" % (_HEAD, _ROWS, _ROWS))
"""Whole statements as pg_dump writes them; the first group, the same in all, says into which columns of what.
"""

_BLANK = re.compile(rb"\s*+")
_VALUES = re.compile(rb"(?:%b)\s++" % _HEAD)
_ONE_ROW = re.compile(_ROW + rb"(,\s*+|;)")
_ONE_CONSTANT = re.compile(_CONSTANT)


def read_inserts(task: ReadTask, format: Inserts, open_input: OpenInput) -> Iterator[ReadBatch]:
    assert task.end is not None, "statements are found by ranges"
    with opened(task.input, open_input, task.limits, task.start, task.end) as stream:
        data = b"".join(iter(lambda: stream.read(1 << 20), b""))
    batches = Batches(task)
    is_text = encoding_fault(data) is None
    rows = _BatchRows(task, format, is_text)
    for line, row in _rows(data, task):
        rows.add(line, row)
        if rows.count == BATCH_ROWS:
            yield rows.batch(batches)
            rows = _BatchRows(task, format, is_text)
    yield rows.batch(batches)


def _rows(data: bytes, task: ReadTask) -> Iterator[tuple[int, bytes]]:
    """Each row as written, and the line on which it starts."""
    at, counted, line = 0, 0, task.line
    while (at := _end_of(_BLANK.match(data, at))) < len(data):
        head = _VALUES.match(data, at)
        at = at if head is None else head.end()
        found = None if head is None else _ONE_ROW.match(data, at)
        while found is not None:
            line, counted = line + data.count(b"\n", counted, at), at
            yield line, found[0]
            at = found.end()
            found = _ONE_ROW.match(data, at) if found[1] != b";" else None
        if head is None or data[at - 1 : at] != b";":
            raise BadInput("the file has changed since it was looked through", file=task.input.name)


def _end_of(found: re.Match[bytes] | None) -> int:
    assert found is not None, "it matches nothing, too"
    return found.end()


class _BatchRows:
    """Rows of a batch to be."""

    def __init__(self, task: ReadTask, format: Inserts, is_text: bool) -> None:
        self._task = task
        self._is_text = is_text
        self._skipped = frozenset(format.generated)
        self.count = 0
        self._rows: list[bytes] = []
        self._lines: list[int] = []
        self._values_of_rows: list[list[bytes | None]] = []
        self._refusals: list[Refusal] = []

    def add(self, line: int, row: bytes) -> None:
        self.count += 1
        values = self._values(row)
        if isinstance(values, Fault):
            self._refusals.append(Refusal(line, "", values, row))
        else:
            self._rows.append(row)
            self._lines.append(line)
            self._values_of_rows.append(values)

    def _values(self, row: bytes) -> list[bytes | None] | Fault:
        if not self._is_text and (fault := encoding_fault(row)):
            return Fault(*fault)
        targets = self._task.targets
        constants = _ONE_CONSTANT.findall(row)
        if len(constants) > len(targets) + len(self._skipped):
            return Fault("42601", "INSERT has more expressions than target columns")
        values = constants
        if self._skipped:
            values = [each for place, each in enumerate(constants) if place not in self._skipped]
        if len(values) < len(targets):
            return Fault(BAD_COPY, f'missing data for column "{targets[len(values)].name}"')
        if b"DEFAULT" in values or any(
            constants[place] != b"DEFAULT" for place in self._skipped if place < len(constants)
        ):
            return Fault("0A000", "DEFAULT stands for generated columns, and for them alone")
        return [_text(each) for each in values]

    def batch(self, batches: Batches) -> ReadBatch:
        columns: Sequence[Sequence[bytes | None]] = list(zip(*self._values_of_rows, strict=True))
        texts = [pa.array(each, pa.binary()) for each in columns or [()] * len(self._task.targets)]
        arrays = [each.cast(pa.string()) for each in texts]
        return batches.from_texts(
            arrays, np.array(self._lines, np.int64), self._rows.__getitem__, self._refusals
        )


def _text(constant: bytes) -> bytes | None:
    if constant == b"NULL":
        return None
    return constant[1:-1].replace(b"''", b"'") if constant[0] == QUOTE else constant
