"""What is to be read, and what comes of it: plain values that go to executors and back.

    Input ──▶ splits ──▶ ReadTask ──▶ read ──▶ ReadBatch (rows, their lines, rejects) ...

A task is a whole file, a range of a large one that begins and ends with whole records, or some row
groups of a Parquet file. A row that cannot be taken becomes a `Reject` and is left out; more of them than
the task tolerates end it with the first one too many.

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
"""Opens a file by its name, as it is stored; where it can be split, it can seek."""

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
    """Whether the null text stands for NULL in quotes too."""
    skip: int = 0
    """Records at the start of each file that are passed over, such as a header."""


@dataclass(frozen=True)
class NdJson:
    """One object per line; what it does not have is NULL."""

    ignores_unknown: bool = False
    """Members that are no columns are passed over; otherwise the row is refused."""


@dataclass(frozen=True)
class Parquet:
    """Columns by name; others are passed over."""


@dataclass(frozen=True)
class CopyText:
    """COPY's text format, as it stands in a dump."""


@dataclass(frozen=True)
class Inserts:
    """INSERT statements with constants alone, as they stand in a dump."""

    generated: tuple[int, ...] = ()
    """Places in each row that are no targets: those of generated columns."""


Format: TypeAlias = Csv | NdJson | Parquet | CopyText | Inserts


@dataclass(frozen=True)
class FileLimits:
    """What a file may ask of this process (S26, S27)."""

    field_bytes_max: int = 16 * MiB
    row_bytes_max: int = 32 * MiB
    """Beyond it a quote was probably never closed."""
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
    """In a CSV file the fields have their order."""
    start: int = 0
    """Bytes; of Parquet, row groups."""
    end: int | None = None
    line: int = 1
    """Of the first record, counted from 1; of Parquet, its row."""
    is_start: bool = True
    """Whether the file starts here, with what is to be skipped."""
    ending: bytes = b""
    """How lines end, if that is known from the start of the file."""
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
    """Empty if it is the record that is wrong."""
    reason: str
    sqlstate: str
    raw: str
    """The record, or its start."""


class ReadBatch(NamedTuple):
    table: Any
    """Columns c<id>; `rest` too, if there are values that their Arrow type cannot hold."""
    lines: Any
    """Where each row's record starts, as a numpy array."""
    rejects: list[Reject]


def refused(reject: Reject, tolerated: int) -> BadInput:
    """The error of a reject that is one too many."""
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
