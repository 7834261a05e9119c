"""The stored records of an import: what to read into which table, and the result.

Walk: `sql.statements.jobs.importing` makes an `ImportPayload`; `importing.job` reads it, and saves an
`ImportProgress`.
"""

from collections.abc import Callable

from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.kv.records import Record, replace

KIND = "import"

CSV, NDJSON, PARQUET = "csv", "ndjson", "parquet"
COPY, INSERTS = "copy", "inserts"
"""Of dumps."""


class CsvOptions(Record, frozen=True):
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""
    skip: int = 0


class DumpRange(Record, frozen=True):
    """A part of a dump that has rows: a range of bytes of the decompressed file."""

    start: int
    end: int
    line: int
    """The line on which it starts."""


class TableInput(Record, frozen=True):
    table: int
    columns: tuple[int, ...]
    """The columns that are read, by id; for a CSV file in the order of its fields."""
    locations: tuple[str, ...]
    """As written, and resolved anew by every run; in a job's record those with keys are sealed."""
    format: str
    csv: CsvOptions = CsvOptions()
    ranges: tuple[DumpRange, ...] = ()
    """For a dump: the ranges of its rows."""
    generated: tuple[int, ...] = ()
    """For INSERT statements: the positions in a row that are not read."""
    bytes: int = 0
    """For a dump: the size of the file when it was scanned."""
    is_compressed: bool = False
    """For a dump: whether ranges are of the decompressed file."""


class SequenceValue(Record, frozen=True):
    """The arguments of setval() for a sequence."""

    sequence: int
    value: int
    is_called: bool


class ImportPayload(Record, frozen=True):
    tables: tuple[TableInput, ...]
    bad_rows_max: int = 0
    rejects: str = ""
    """The location to which refused rows are written."""
    user: str = ""
    database: str = ""
    now_micros: int = 0
    """When the statement began: the value of now() in a default."""
    zone: str = "UTC"
    made: tuple[AnyDescriptor, ...] = ()
    """For a dump: all descriptors that it creates; published with the rows."""
    values: tuple[SequenceValue, ...] = ()

    def with_locations(self, change: Callable[[str], str]) -> "ImportPayload":
        """For sealing and unsealing them."""
        tables = tuple(replace(each, locations=tuple(map(change, each.locations))) for each in self.tables)
        return replace(self, tables=tables, rejects=change(self.rejects))


class Summary(Record, frozen=True):
    rows: int = 0
    entries: int = 0
    """Of secondary indexes."""
    bytes: int = 0
    rejected: int = 0


class ImportProgress(Record, frozen=True):
    """A run's progress; there is none until the import has been published, in the same commit."""

    summary: Summary
