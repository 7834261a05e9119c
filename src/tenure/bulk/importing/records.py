"""What is stored of an import: what to read into which table, and what came of it.

Walk: `sql.statements.importing` makes a `Payload`; `importing.job` reads it, and saves a `Saved`.
"""

from tenure.kv.records import Record

KIND = "import"

CSV, NDJSON, PARQUET = "csv", "ndjson", "parquet"


class CsvOptions(Record, frozen=True):
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    null: str = ""
    skip: int = 0


class TableInput(Record, frozen=True):
    table: int
    columns: tuple[int, ...]
    """Which are read, by id; of a CSV file in the order of its fields."""
    locations: tuple[str, ...]
    """As they were written, with their secrets: resolved anew by every run."""
    format: str
    csv: CsvOptions = CsvOptions()


class Payload(Record, frozen=True):
    tables: tuple[TableInput, ...]
    bad_rows_max: int = 0
    rejects: str = ""
    """The location to which refused rows are written."""
    user: str = ""
    database: str = ""
    now_micros: int = 0
    """When the statement began: what now() is in a default."""
    zone: str = "UTC"


class Summary(Record, frozen=True):
    rows: int = 0
    entries: int = 0
    """Of secondary indexes."""
    bytes: int = 0
    rejected: int = 0


class Saved(Record, frozen=True):
    """A run's progress; there is none until the import has been published, in the same commit."""

    summary: Summary
