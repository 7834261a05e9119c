"""The formats of an export's files, as its tasks receive them.

Walk: `sql.statements.jobs.exporting` makes a `Writing`; tasks carry it to `writing.files`.
"""

from typing import NamedTuple

from tenure.catalog.descriptors.definitions import EnumType, TypeRef
from tenure.expr.types.datatype import Type
from tenure.expr.types.type_names import type_of
from tenure.kv.records import Record

CSV, NDJSON, PARQUET = "csv", "ndjson", "parquet"

COMPRESSIONS = {"none": "", "gzip": ".gz", "zstd": ".zst"}
"""With the suffixes of compressed files; Parquet is compressed inside."""

CHUNK_ROWS = 1_000_000
"""Rows per file, unless told otherwise."""


class ExportedFile(NamedTuple):
    name: str
    rows: int
    bytes: int


class CsvOut(Record, frozen=True):
    delimiter: str = ","
    null: str = ""
    has_header: bool = False
    guards_formulas: bool = False
    """Texts that a spreadsheet would read as a formula get an apostrophe in front."""


class OutColumn(Record, frozen=True):
    name: str
    type: TypeRef


class Writing(Record, frozen=True):
    format: str
    columns: tuple[OutColumn, ...]
    enums: tuple[EnumType, ...] = ()
    csv: CsvOut = CsvOut()
    compression: str = "none"
    chunk_rows: int = CHUNK_ROWS
    zone: str = "UTC"
    """The zone in which timestamps with a time zone are shown, as in the session."""

    @property
    def kinds(self) -> tuple[Type, ...]:
        enums = {enum.id: enum for enum in self.enums}
        return tuple(type_of(column.type, enums.__getitem__) for column in self.columns)

    @property
    def suffix(self) -> str:
        return f".{self.format}" + ("" if self.format == PARQUET else COMPRESSIONS[self.compression])
