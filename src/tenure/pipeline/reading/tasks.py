"""Read tasks and their results: plain values that go to executors and back.

    Input ──▶ splits ──▶ ReadTask ──▶ read ──▶ ReadBatch (rows, their lines, rejects) ...

A task is a whole file, a range of a large one that begins and ends with whole records, or some row groups of
a Parquet file. A faulty row becomes a `Reject` and is left out; if there are more than the task tolerates, it
fails with the first one beyond.

Walk: `reading.splits` makes tasks; `reading.rows` reads them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import IO, Any, NamedTuple, TypeAlias

from tenure.base.errors import BadInput
from tenure.expr.types.datatype import Type
from tenure.storage.decompression import DecompressionLimits as Decompression

MiB = 1 << 20

OpenInput: TypeAlias = Callable[[str], IO[bytes]]
"""Opens a file by its name, as stored; a file that can be split can be sought in."""

RAW_LENGTH_MAX = 1024
"""Bytes of a refused row that are kept."""


@dataclass(frozen=True)
class Csv:
    """As COPY's options. Each sign is one ASCII character."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""
    is_quoted_null: bool = False
    """Whether the null text means NULL in quotes too."""
    skip: int = 0
    """Records at the start of each file that are skipped, such as a header."""


@dataclass(frozen=True)
class NdJson:
    """One object per line; a missing member is NULL."""

    ignores_unknown: bool = False
    """Members that are no columns are ignored; otherwise the row is refused."""


@dataclass(frozen=True)
class Parquet:
    """Columns by name; others are ignored."""


@dataclass(frozen=True)
class CopyText:
    """COPY's text format, as it stands in a dump."""


@dataclass(frozen=True)
class Inserts:
    """INSERT statements with constants alone, as they stand in a dump."""

    generated: tuple[int, ...] = ()
    """Positions in each row that are no targets: those of generated columns."""


Format: TypeAlias = Csv | NdJson | Parquet | CopyText | Inserts


@dataclass(frozen=True)
class FileLimits:
    """The resources that a file may use in this process (S26, S27)."""

    field_bytes_max: int = 16 * MiB
    row_bytes_max: int = 32 * MiB
    """A longer record probably has a quote that was never closed."""
    columns_max: int = 1600
    """As many as a table has in PostgreSQL."""
    json_depth_max: int = 200
    rows_max: int = 1 << 40
    """Of one task."""
    decompression: Decompression = field(default_factory=Decompression)


class TargetColumn(NamedTuple):
    """A column that is read."""

    name: str
    column: int
    type: Type


class TaskInput(NamedTuple):
    name: str
    bytes: int
    """As it is stored."""


@dataclass(frozen=True)
class ReadTask:
    input: TaskInput
    format: Format
    targets: tuple[TargetColumn, ...]
    """In a CSV file the fields have this order."""
    start: int = 0
    """Bytes; of Parquet, row groups."""
    end: int | None = None
    line: int = 1
    """The line of the first record, counted from 1; for Parquet, its row."""
    is_start: bool = True
    """Whether the file starts here, with the records to skip."""
    ending: bytes = b""
    """The line ending, if that is known from the start of the file."""
    zone: tzinfo = UTC
    rejects_max: int = 0
    limits: FileLimits = field(default_factory=FileLimits)

    def but(self, **changed: Any) -> "ReadTask":
        return replace(self, **changed)


class Reject(NamedTuple):
    file: str
    line: int
    """Where the record starts."""
    column: str
    """Empty if the whole record is faulty."""
    reason: str
    sqlstate: str
    raw: str
    """The record, or its start."""


class ReadBatch(NamedTuple):
    table: Any
    """Columns c<id>; `rest` too, if there are values that their Arrow type cannot represent."""
    lines: Any
    """Where each row's record starts, as a numpy array."""
    rejects: list[Reject]


def refused(reject: Reject, tolerated: int) -> BadInput:
    """The error for the first reject beyond the tolerated ones."""
    error = BadInput(
        reject.reason,
        file=reject.file,
        line=reject.line,
        column=reject.column,
        sqlstate=reject.sqlstate,
    )
    if tolerated:
        error.detail = f"More than {tolerated} rows of the file were refused."
    return error


def encoding_fault(data: bytes) -> tuple[str, str] | None:
    """The SQLSTATE and the reason, if these bytes are no text."""
    at = data.find(0)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        at = error.start if at < 0 else min(at, error.start)
    if at < 0:
        return None
    return "22021", f'invalid byte sequence for encoding "UTF8": 0x{data[at]:02x}'
