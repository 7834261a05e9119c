"""IMPORT INTO: files become rows of a table, by a job.

    IMPORT INTO t [(column, ...)] CSV | NDJSON | PARQUET DATA ('location', ...)
        [WITH delimiter = ',', quote = '"', escape = '"', nullif = '', skip = 1, header,
              max_bad_rows = 100, rejects = 'location', detached]

Locations are resolved and files found before there is a job. The statement waits for its job, unless it is
detached; if it is canceled, or its client goes away, the job is canceled.

It is not part of any transaction: the table has to be free of the statement's own, too. It needs IMPORT on
the table and INSERT on the columns; files are read by members of `pg_read_server_files`, and rejects written
by members of `pg_write_server_files`.

Walk: `statements.statement_table` -> `plan_import` -> `Import.control` -> `bulk.importing.job.start`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tenure.base.errors import (
    DuplicateColumn,
    InvalidObject,
    InvalidParameter,
    NotSupported,
    SyntaxFault,
    UndefinedColumn,
    WrongObjectType,
)
from tenure.bulk.importing.records import CSV, NDJSON, PARQUET, CsvOptions, ImportPayload, TableInput
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.predefined_roles import READ_FILES, WRITE_FILES
from tenure.catalog.accounts.privileges import IMPORT, INSERT
from tenure.catalog.accounts.rights import require_files
from tenure.catalog.descriptors.definitions import Column as TableColumn
from tenure.catalog.descriptors.definitions import Table, TypeRef, visible
from tenure.cluster.jobs.job_waits import failure_of, outcome_of
from tenure.expr.tree.sequence_needs import default_needs
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.services import BulkServices
from tenure.sql.statements.dml.writes import refuse_system
from tenure.sql.statements.jobs.waiting_statements import await_end, create_job
from tenure.sql.text.tenure_statements import TokenReader

if TYPE_CHECKING:
    from tenure.bulk.importing.inputs import InputFile
    from tenure.storage.locations import Locations

FORMATS = (CSV, NDJSON, PARQUET)
_INT8 = type_of(TypeRef("int8"))
RESULT = tuple(ResultColumn(name, _INT8) for name in ("job_id", "rows", "index_entries", "bytes", "rejected"))

NO_CSV_OPTIONS = CsvOptions()


@dataclass(frozen=True, slots=True)
class ImportOptions:
    csv: CsvOptions = NO_CSV_OPTIONS
    bad_rows_max: int = 0
    rejects: str = ""
    is_detached: bool = False


@dataclass(frozen=True, slots=True)
class ByJob(Control):
    """An import of any kind: starts its job, and waits for it."""

    bulk: BulkServices
    options: ImportOptions
    is_short = False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:  # type: ignore[override]
        return RESULT[:1] if self.options.is_detached else RESULT

    def control(self, execution: Execution) -> Answer:
        execution.session.require_no_block("IMPORT")
        execution.block.require_writable("IMPORT")
        id = self._start(execution)
        if self.options.is_detached:
            return Answer([(id,)], "IMPORT")
        jobs = self.bulk.jobs
        # It is saved by the very commit that publishes the rows, if there is one.
        snapshot = await_end(
            self.bulk, execution, id, lambda snapshot: bool(jobs.progress(snapshot, id).data)
        )
        with outcome_of(id):
            data, control = jobs.progress(snapshot, id).data, jobs.control(snapshot, id)
            self.bulk.renew_lease()  # so that the next statement finds the table public
        if not data:
            raise failure_of(id, control)
        return Answer([_result(id, data)], "IMPORT")

    def _start(self, execution: Execution) -> int:
        """Makes the job."""
        raise NotImplementedError


def _result(id: int, data: bytes) -> tuple[int, ...]:
    from tenure.bulk.importing.job import summary_of

    summary = summary_of(data)
    return id, summary.rows, summary.entries, summary.bytes, summary.rejected


@dataclass(frozen=True, slots=True)
class Import(ByJob):
    table: Table
    input: TableInput

    def _start(self, execution: Execution) -> int:
        from tenure.bulk.importing.inputs import sources_of
        from tenure.bulk.importing.job import guessed_rows, start

        session = execution.session
        lake, locations = places(self.bulk, execution)
        sources = sources_of(locations, self.input)
        if self.options.rejects:
            require_files(session.rights(), WRITE_FILES, "write rejects to files")
            locations.resolve(self.options.rejects)
        payload = ImportPayload(
            (self.input,),
            self.options.bad_rows_max,
            self.options.rejects,
            session.user,
            session.database_name,
            self.bulk.env.wall_micros(),
            session.variables["TimeZone"],
        )
        rows, text = guessed_rows(sources), self._described(sources)
        return create_job(execution, lambda txn: start(txn, lake, payload, rows=rows, description=text))

    def _described(self, sources: "Sequence[InputFile]") -> str:
        shown = ", ".join(f"'{each}'" for each in dict.fromkeys(source.location.shown for source in sources))
        return f'IMPORT INTO "{self.table.name}" {self.input.format.upper()} DATA ({shown})'


def places(bulk: BulkServices, execution: Execution) -> "tuple[Lake, Locations]":
    require_files(execution.session.rights(), READ_FILES, "IMPORT from files")
    if bulk.lake is None or bulk.locations is None:
        raise NotSupported("this node has no lake to import into", hint="Start it with --lake and --files.")
    return bulk.lake, bulk.locations


# Reading it


def plan_import(bulk: BulkServices, planner: Planner, reader: TokenReader) -> Import:
    if not reader.take("into"):
        raise NotSupported("IMPORT is supported only as IMPORT INTO")
    table = planner.names.target(reader.names(), 0, INSERT)
    refuse_system(table)
    planner.names.require_permanent("IMPORT INTO")
    if not isinstance(table, Table):
        raise WrongObjectType("IMPORT INTO takes the name of a table")
    columns = _columns(table, _listed(reader))
    planner.names.require(table.id, IMPORT)
    for each in columns:
        planner.names.require(table.id, INSERT, each.id)
    left = [each for each in visible(table.columns) if each not in columns]
    planner.names.require_sequences(default_needs(left))
    format = reader.name()
    if format not in FORMATS:
        raise SyntaxFault(f'"{format}" is not a format of files', hint="There are CSV, NDJSON and PARQUET.")
    reader.expect("data", "(")
    locations = [text_of(reader)]
    while reader.take(","):
        locations.append(text_of(reader))
    reader.expect(")")
    options = _options(reader, format)
    reader.end()
    ids = tuple(each.id for each in columns)
    return Import(bulk, options, table, TableInput(table.id, ids, tuple(locations), format, options.csv))


def _listed(reader: TokenReader) -> list[str]:
    if not reader.take("("):
        return []
    found = [reader.name()]
    while reader.take(","):
        found.append(reader.name())
    reader.expect(")")
    return found


def _columns(table: Table, wanted: Sequence[str]) -> list[TableColumn]:
    shown = [each for each in visible(table.columns) if not each.is_hidden]
    if not wanted:
        return [each for each in shown if each.generated is None]
    found = []
    for name in wanted:
        column = next((each for each in shown if each.name == name), None)
        if column is None:
            raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist')
        if column.generated is not None:
            raise InvalidObject(
                f'column "{name}" is a generated column', detail="Generated columns cannot be imported."
            )
        if column in found:
            raise DuplicateColumn(f'column "{name}" specified more than once')
        found.append(column)
    return found


def _options(reader: TokenReader, format: str) -> ImportOptions:
    return _import_options(read_options(reader), format)


def read_options(reader: TokenReader) -> dict[str, str | None]:
    if not reader.take("with"):
        return {}
    is_bracketed = reader.take("(")
    options = dict([_option(reader)])
    while reader.take(","):
        name, value = _option(reader)
        if name in options:
            raise SyntaxFault(f'option "{name}" is given twice')
        options[name] = value
    if is_bracketed:
        reader.expect(")")
    return options


def _option(reader: TokenReader) -> tuple[str, str | None]:
    name = reader.name()
    return name, text_of(reader) if reader.take("=") else None


def _import_options(options: dict[str, str | None], format: str) -> ImportOptions:
    unknown = set(options) - {*_CSV_OPTIONS, *_OPTIONS}
    if unknown:
        raise SyntaxFault(f'option "{min(unknown)}" not recognized')
    of_csv = set(options) & set(_CSV_OPTIONS)
    if of_csv and format != CSV:
        raise InvalidParameter(f'option "{min(of_csv)}" is for CSV alone')
    csv = CsvOptions()
    quote = _sign(options, "quote", csv.quote)
    csv = CsvOptions(
        _sign(options, "delimiter", csv.delimiter),
        quote,
        _sign(options, "escape", quote),
        options.get("nullif") or csv.null,
        number_of(options, "skip") + ("header" in options and options["header"] not in ("false", "off")),
    )
    if csv.delimiter in (csv.quote, csv.escape):
        raise InvalidParameter("delimiter and quote must be different")
    rejects = options.get("rejects") or options.get("reject_file") or ""
    return ImportOptions(csv, number_of(options, "max_bad_rows"), rejects, "detached" in options)


_CSV_OPTIONS = ("delimiter", "quote", "escape", "nullif", "skip", "header")
_OPTIONS = ("max_bad_rows", "rejects", "reject_file", "detached")


def _sign(options: dict[str, str | None], name: str, otherwise: str) -> str:
    value = options.get(name, otherwise)
    if value is None or len(value) != 1 or not value.isascii() or value in "\r\n\0":
        raise InvalidParameter(f'option "{name}" must be a single one-byte character')
    return value


def number_of(options: dict[str, str | None], name: str) -> int:
    value = options.get(name, "0")
    if value is None or not value.isascii() or not value.isdigit() or len(value) > 18:
        raise InvalidParameter(f'option "{name}" must be a whole number')
    return int(value)


def text_of(reader: TokenReader) -> str:
    """A string or a word; in E'...' a tab may be written as such."""
    text = reader.string()
    if text[:2].lower() == "e'":
        return text[2:-1].replace("\\t", "\t").replace("\\\\", "\\").replace("''", "'")
    return text


def statements(bulk: BulkServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {("import",): partial(plan_import, bulk)}
