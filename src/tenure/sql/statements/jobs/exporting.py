"""EXPORT INTO: a table or a query becomes files at a location, by a job.

    EXPORT INTO CSV | NDJSON | PARQUET 'location'
        [WITH delimiter = ',', nullas = '', header, formula_guard, chunk_rows = 1000000,
              compression = none | gzip | zstd, detached]
        FROM TABLE t | FROM SELECT ... [AS OF SYSTEM TIME ...]

The location is resolved before there is a job. The statement waits for its job and tells which files it made;
if it is canceled, or its client goes away, the job is canceled and its files go. Detached it only
makes the job.

It is not part of any transaction. Files are the operator's, so only a superuser may write them.

Walk: `statements.statement_table` -> `plan_export` -> `ExportStatement.control` ->
`bulk.exporting.kind.start`; the job of
a query reads its rows by a session of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tenure.base.errors import (
    ActiveTransaction,
    InFailedTransaction,
    InvalidParameter,
    NotSupported,
    SyntaxFault,
)
from tenure.base.timestamp import Timestamp
from tenure.bulk.exporting.kind import start
from tenure.bulk.exporting.records import ExportPayload, files_of
from tenure.bulk.lakes import Lake
from tenure.catalog.descriptors.definitions import EnumType, Table, TypeRef, visible
from tenure.expr.types.type_names import type_of
from tenure.pipeline.writing.formats import (
    CHUNK_ROWS,
    COMPRESSIONS,
    CSV,
    NDJSON,
    PARQUET,
    CsvOut,
    OutColumn,
    Writing,
)
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner, WordsPlanner
from tenure.sql.execution.statement import Control
from tenure.sql.session.answers import Answer, ResultColumn
from tenure.sql.session.services import BulkServices
from tenure.sql.session.session_state import SessionState
from tenure.sql.statements.ddl import ddl_statements
from tenure.sql.statements.dml import queries
from tenure.sql.statements.jobs.waiting_statements import await_job, create_job, require_superuser
from tenure.sql.text import as_of, parse
from tenure.sql.text.quoting import quoted
from tenure.sql.text.tenure_statements import TokenReader

FORMATS = (CSV, NDJSON, PARQUET)
CHUNK_ROWS_MAX = 10**9
QUERY_NAME = "query"
"""The name in the file names of a query."""

_TEXT, _INT8 = type_of(TypeRef("text")), type_of(TypeRef("int8"))
RESULT = (ResultColumn("filename", _TEXT), ResultColumn("rows", _INT8), ResultColumn("bytes", _INT8))
DETACHED_RESULT = (ResultColumn("job_id", _INT8),)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    delimiter: str = ","
    null: str = ""
    has_header: bool = False
    guards_formulas: bool = False
    chunk_rows: int = CHUNK_ROWS
    compression: str = "none"
    is_detached: bool = False


@dataclass(frozen=True, slots=True)
class ExportStatement(Control):
    bulk: BulkServices
    format: str
    location: str
    options: ExportOptions
    as_of: str
    name: str
    query: str
    outputs: tuple[ResultColumn, ...]
    """Of the query."""
    table: int = 0
    """The table, if one is scanned; then the query is used only without a lake."""
    is_short = False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:  # type: ignore[override]
        return DETACHED_RESULT if self.options.is_detached else RESULT

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        if session.block is not None and session.block.is_failed:
            raise InFailedTransaction
        if session.block is not None:
            raise ActiveTransaction("EXPORT cannot run inside a transaction block")
        id = self._start(execution)
        if self.options.is_detached:
            return Answer([(id,)], "EXPORT")
        data = await_job(self.bulk, execution, id)
        return Answer([tuple(file) for file in files_of(data)], "EXPORT")

    def _start(self, execution: Execution) -> int:
        session, lake, locations = execution.session, self.bulk.lake, self.bulk.locations
        require_superuser(session, "EXPORT to files")
        if lake is None or locations is None:
            raise NotSupported("this node has no lake", hint="Start it with --lake and --files.")
        location = locations.resolve(self.location)
        if location.has_wildcards:
            raise InvalidParameter(f'location "{location.shown}" has wildcards', hint="Name a directory.")
        at = _read_at(self.bulk, self.as_of)
        payload = self._payload(session, lake, at)
        rows = _rows_about(lake, self.table) if self.table else 0
        described = f"EXPORT INTO {self.format.upper()} '{location.shown}' FROM {self.name}"
        return create_job(
            execution,
            lambda txn: start(txn, lake, payload, owner=session.user, description=described, rows=rows),
        )

    def _payload(self, session: SessionState, lake: Lake, at: Timestamp) -> ExportPayload:
        version = lake.version(lake.store.snapshot(at), self.table) if self.table else None
        if version is not None:
            shown = [each for each in visible(version.table.columns) if not each.is_hidden]
            columns = tuple(OutColumn(each.name, each.type) for each in shown)
            writing = self._writing(session, columns, version.enums)
            return ExportPayload(
                self.location, writing, at, self.name, self.table, tuple(each.id for each in shown)
            )
        columns = tuple(OutColumn(each.name, each.type.ref) for each in self.outputs)
        writing = self._writing(session, columns, _enums(lake, at, self.outputs))
        return ExportPayload(
            self.location,
            writing,
            at,
            self.name,
            query=self.query,
            user=session.user,
            database=session.database_name,
            path=session.variables["search_path"],
        )

    def _writing(
        self, session: SessionState, columns: tuple[OutColumn, ...], enums: tuple[EnumType, ...]
    ) -> Writing:
        given = self.options
        return Writing(
            self.format,
            columns,
            enums,
            CsvOut(given.delimiter, given.null, given.has_header, given.guards_formulas),
            given.compression,
            given.chunk_rows,
            session.variables["TimeZone"],
        )


def _read_at(bulk: BulkServices, operand: str) -> Timestamp:
    if operand:
        return as_of.timestamp_of(operand, bulk.env.wall_micros())
    return bulk.store.snapshot().at


def _rows_about(lake: Lake, table: int) -> int:
    """The size of a table, as exact as needed to choose the process that exports it."""
    snapshot = lake.store.snapshot()
    version = lake.version(snapshot, table)
    if version is None:
        return 0
    manifest = lake.manifests.get(snapshot, table, version.table.primary)
    span = lake.store.keyspace.index_span(table, version.table.primary)
    since_at = 0 if manifest is None else manifest.flushed_at
    return (0 if manifest is None else manifest.rows) + lake.store.engine.spread(
        span.lo, span.hi, since_at, 1 << 40
    ).keys


def _enums(lake: Lake, at: Timestamp, outputs: Sequence[ResultColumn]) -> tuple[EnumType, ...]:
    snapshot = lake.store.snapshot(at)
    ids = sorted({each.type.ref.enum for each in outputs if each.type.ref.enum})
    return tuple(each for id in ids if isinstance(each := lake.catalog.get(snapshot, id), EnumType))


# Reading it


def plan_export(bulk: BulkServices, planner: Planner, reader: TokenReader) -> ExportStatement:
    reader.expect("into")
    format = reader.name()
    if format not in FORMATS:
        raise SyntaxFault(f'"{format}" is not a format of files', hint="There are CSV, NDJSON and PARQUET.")
    location = reader.string()
    options = _options(reader, format)
    reader.expect("from")
    operand = planner.as_of
    if operand.startswith("$"):
        raise NotSupported("EXPORT takes no parameters")
    if reader.take("table"):
        return _of_table(bulk, planner, reader, format, location, options)
    return _of_query(bulk, planner, reader.rest(), format, location, options, QUERY_NAME)


def _of_table(
    bulk: BulkServices,
    planner: Planner,
    reader: TokenReader,
    format: str,
    location: str,
    options: ExportOptions,
) -> ExportStatement:
    path = reader.names()
    reader.end()
    relation = planner.names.relation(path)
    text = "SELECT * FROM " + ".".join(map(quoted, path))
    export = _of_query(bulk, planner, text, format, location, options, path[-1])
    return replace(export, table=relation.id) if isinstance(relation, Table) else export


def _of_query(
    bulk: BulkServices,
    planner: Planner,
    text: str,
    format: str,
    location: str,
    options: ExportOptions,
    name: str,
) -> ExportStatement:
    parsed = parse.one(text)
    if (
        parsed is None
        or parse.kind(parsed.tree) != "SelectStmt"
        or ddl_statements.is_select_into(parsed.tree)
    ):
        raise SyntaxFault("EXPORT takes FROM TABLE and a name, or FROM and a query")
    block = planner.session.new_block()
    try:
        if planner.as_of:
            block.read_as_of(_read_at(bulk, planner.as_of))
        select = queries.plan_query(planner.inside(block), parsed.tree)
    finally:
        block.close()
    if select.parameters:
        raise NotSupported("EXPORT takes no parameters")
    if select.locks:
        raise NotSupported("EXPORT cannot lock rows")
    return ExportStatement(bulk, format, location, options, planner.as_of, name, text, select.columns)


def _options(reader: TokenReader, format: str) -> ExportOptions:
    if not reader.take("with"):
        return ExportOptions()
    given: dict[str, str | None] = {}
    while True:
        name = reader.name()
        if name in given:
            raise SyntaxFault(f'option "{name}" is given twice')
        if name not in (*_CSV_OPTIONS, "chunk_rows", "compression", "detached"):
            raise SyntaxFault(f'option "{name}" not recognized')
        if name in _CSV_OPTIONS and format != CSV:
            raise InvalidParameter(f'option "{name}" is for CSV alone')
        given[name] = reader.string() if reader.take("=") else None
        if not reader.take(","):
            return _options_of(given)


_CSV_OPTIONS = ("delimiter", "nullas", "header", "formula_guard")


def _options_of(given: dict[str, str | None]) -> ExportOptions:
    compression = (given.get("compression", "none") or "").lower()
    if compression not in COMPRESSIONS:
        raise InvalidParameter(f'"{compression}" is no compression', hint="There are none, gzip and zstd.")
    null = given.get("nullas", "")
    delimiter = _unescaped(given.get("delimiter", ","))
    if delimiter is None or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n\0"':
        raise InvalidParameter('option "delimiter" must be a single one-byte character, and not a quote')
    if null is None or any(each in null for each in (delimiter, '"', "\r", "\n", "\0")):
        raise InvalidParameter('option "nullas" must be a text without delimiters, quotes and ends of lines')
    return ExportOptions(
        delimiter,
        null,
        _is_on(given, "header"),
        _is_on(given, "formula_guard"),
        _chunk_rows(given),
        compression,
        _is_on(given, "detached"),
    )


def _unescaped(text: str | None) -> str | None:
    """A tab may be written as E'\\t'."""
    return "\t" if text is not None and text.lower() == "e'\\t'" else text


def _is_on(given: dict[str, str | None], name: str) -> bool:
    if name not in given:
        return False
    value = (given[name] or "true").lower()
    if value not in ("true", "on", "1", "false", "off", "0"):
        raise InvalidParameter(f'option "{name}" is true or false')
    return value in ("true", "on", "1")


def _chunk_rows(given: dict[str, str | None]) -> int:
    if "chunk_rows" not in given:
        return CHUNK_ROWS
    value = given["chunk_rows"] or ""
    if not value.isascii() or not value.isdigit() or not 0 < int(value[:12]) <= CHUNK_ROWS_MAX:
        raise InvalidParameter(f'option "chunk_rows" must be a number from 1 to {CHUNK_ROWS_MAX}')
    return int(value)


def statements(bulk: BulkServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {("export",): partial(plan_export, bulk)}
