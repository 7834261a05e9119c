"""What is stored of an import: what to read into which table, and what came of it.

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
    """A part of a dump that has rows: from which byte to below which, of what it decompresses to."""

    start: int
    end: int
    line: int
    """On which it starts."""


class TableInput(Record, frozen=True):
    table: int
    columns: tuple[int, ...]
    """Which are read, by id; of a CSV file in the order of its fields."""
    locations: tuple[str, ...]
    """As they were written, and resolved anew by every run; in a job's record those with keys are sealed."""
    format: str
    csv: CsvOptions = CsvOptions()
    ranges: tuple[DumpRange, ...] = ()
    """Of a dump: where its rows are."""
    generated: tuple[int, ...] = ()
    """Of INSERT statements: the places in a row that are not read."""
    bytes: int = 0
    """Of a dump: how long the file was when it was looked through."""
    is_compressed: bool = False
    """Of a dump: whether ranges are of what it decompresses to."""


class SequenceValue(Record, frozen=True):
    """What setval() says of a sequence."""

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
    """When the statement began: what now() is in a default."""
    zone: str = "UTC"
    made: tuple[AnyDescriptor, ...] = ()
    """Of a dump: all that it makes, its tables among it; published with the rows."""
    values: tuple[SequenceValue, ...] = ()

    def with_locations(self, change: Callable[[str], str]) -> "ImportPayload":
        """For sealing them, and for what undoes it."""
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
