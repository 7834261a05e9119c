"""EXPORT INTO: a table or a query becomes files at a location, by a job.

    EXPORT INTO CSV | NDJSON | PARQUET 'location'
        [WITH delimiter = ',', nullas = '', header, formula_guard, chunk_rows = 1000000,
              compression = none | gzip | zstd, detached]
        FROM TABLE t | FROM SELECT ... [AS OF SYSTEM TIME ...]

The location is resolved before there is a job. The statement waits for its job and tells which files it made;
if it is canceled, or its client goes away, the job is canceled and its files go. Detached it only
makes the job.

It is not part of any transaction. It needs SELECT on what it reads and EXPORT on the tables and views that it
names. Files are the operator's: they are written by members of `pg_write_server_files`, and by superusers.

Walk: `statements.statement_table` -> `plan_export` -> `ExportStatement.control` ->
`bulk.exporting.kind.start`; the job of
a query reads its rows by a session of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tenure.base.errors import (
    InvalidParameter,
    NotSupported,
    SyntaxFault,
)
from tenure.base.timestamp import Timestamp
from tenure.bulk.exporting.kind import start
from tenure.bulk.exporting.records import ExportPayload, files_of
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.predefined_roles import WRITE_FILES
from tenure.catalog.accounts.privileges import EXPORT
from tenure.catalog.accounts.rights import require_files
from tenure.catalog.descriptors.definitions import EnumType, Table, TypeRef, View, visible
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
from tenure.sql.session.past_moments import PastMoment, moment_of, read_past
from tenure.sql.session.services import BulkServices
from tenure.sql.session.session_state import SessionState
from tenure.sql.statements.ddl import ddl_statements
from tenure.sql.statements.dml import queries
from tenure.sql.statements.jobs.waiting_statements import await_job, create_job
from tenure.sql.text import parse
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
    tables: tuple[int, ...]
    """All tables that the query reads."""
    named: tuple[int, ...]
    """The tables and views that it names itself."""
    table: int = 0
    """The table, if one is scanned; then the query is used only without a lake."""
    is_short = False

    @property
    def columns(self) -> tuple[ResultColumn, ...]:  # type: ignore[override]
        return DETACHED_RESULT if self.options.is_detached else RESULT

    def control(self, execution: Execution) -> Answer:
        session = execution.session
        session.require_no_block("EXPORT")
        id = self._start(execution)
        if self.options.is_detached:
            return Answer([(id,)], "EXPORT")
        data = await_job(self.bulk, execution, id)
        return Answer([tuple(file) for file in files_of(data)], "EXPORT")

    def _start(self, execution: Execution) -> int:
        session, lake, locations = execution.session, self.bulk.lake, self.bulk.locations
        require_files(session.rights(), WRITE_FILES, "EXPORT to files")
        if lake is None or locations is None:
            raise NotSupported("this node has no lake", hint="Start it with --lake and --files.")
        location = locations.resolve(self.location)
        if location.has_wildcards:
            raise InvalidParameter(f'location "{location.shown}" has wildcards', hint="Name a directory.")
        now = PastMoment(self.bulk.store.snapshot().at)
        moment = moment_of(session, self.as_of) if self.as_of else now
        payload = self._payload(session, lake, moment.at)
        rows = rows_about(lake, self.table) if self.table else 0
        described = f"EXPORT INTO {self.format.upper()} '{location.shown}' FROM {self.name}"
        return create_job(
            execution,
            lambda txn: start(
                *(txn, lake, payload),
                owner=session.user,
                description=described,
                rows=rows,
                following=moment.protection,
            ),
        )

    def _payload(self, session: SessionState, lake: Lake, at: Timestamp) -> ExportPayload:
        version = lake.version(lake.store.snapshot(at), self.table) if self.table else None
        if version is not None:
            shown = [each for each in visible(version.table.columns) if not each.is_hidden]
            columns = tuple(OutColumn(each.name, each.type) for each in shown)
            writing = self._writing(session, columns, version.enums)
            return ExportPayload(
                *(self.location, writing, at, self.name, self.table),
                columns=tuple(each.id for each in shown),
                tables=(self.table,),
                named=self.named,
            )
        columns = tuple(OutColumn(each.name, each.type.ref) for each in self.outputs)
        writing = self._writing(session, columns, _enums(lake, at, self.outputs))
        return ExportPayload(
            self.location,
            writing,
            at,
            self.name,
            query=self.query,
            database=session.database_name,
            path=session.variables["search_path"],
            tables=self.tables,
            named=self.named,
        )

    def _writing(
        self, session: SessionState, columns: tuple[OutColumn, ...], enums: tuple[EnumType, ...]
    ) -> Writing:
        options = self.options
        return Writing(
            self.format,
            columns,
            enums,
            CsvOut(options.delimiter, options.null, options.has_header, options.guards_formulas),
            options.compression,
            options.chunk_rows,
            session.variables["TimeZone"],
        )


def rows_about(lake: Lake, table: int) -> int:
    """The size of a table, as exact as needed to choose the process that works on it."""
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
            read_past(planner.session, block, planner.as_of)
        inner = planner.inside(block)
        select = queries.plan_query(inner, parsed.tree)
        inner.names.require_permanent("EXPORT")
        tables = tuple(sorted(each.id for each in block.catalog.used() if isinstance(each, Table)))
        named = tuple(each.id for each in inner.names.named() if isinstance(each, Table | View))
        for id in named:
            inner.names.require(id, EXPORT)
    finally:
        block.close()
    if select.parameters:
        raise NotSupported("EXPORT takes no parameters")
    if select.locks:
        raise NotSupported("EXPORT cannot lock rows")
    return ExportStatement(
        bulk, format, location, options, planner.as_of, name, text, select.columns, tables, named
    )


def _options(reader: TokenReader, format: str) -> ExportOptions:
    if not reader.take("with"):
        return ExportOptions()
    options: dict[str, str | None] = {}
    while True:
        name = reader.name()
        if name in options:
            raise SyntaxFault(f'option "{name}" is given twice')
        if name not in (*_CSV_OPTIONS, "chunk_rows", "compression", "detached"):
            raise SyntaxFault(f'option "{name}" not recognized')
        if name in _CSV_OPTIONS and format != CSV:
            raise InvalidParameter(f'option "{name}" is for CSV alone')
        options[name] = reader.string() if reader.take("=") else None
        if not reader.take(","):
            return _options_of(options)


_CSV_OPTIONS = ("delimiter", "nullas", "header", "formula_guard")


def _options_of(options: dict[str, str | None]) -> ExportOptions:
    compression = (options.get("compression", "none") or "").lower()
    if compression not in COMPRESSIONS:
        raise InvalidParameter(f'"{compression}" is no compression', hint="There are none, gzip and zstd.")
    null = options.get("nullas", "")
    delimiter = _unescaped(options.get("delimiter", ","))
    if delimiter is None or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n\0"':
        raise InvalidParameter('option "delimiter" must be a single one-byte character, and not a quote')
    if null is None or any(each in null for each in (delimiter, '"', "\r", "\n", "\0")):
        raise InvalidParameter('option "nullas" must be a text without delimiters, quotes and ends of lines')
    return ExportOptions(
        delimiter,
        null,
        _is_on(options, "header"),
        _is_on(options, "formula_guard"),
        _chunk_rows(options),
        compression,
        _is_on(options, "detached"),
    )


def _unescaped(text: str | None) -> str | None:
    """A tab may be written as E'\\t'."""
    return "\t" if text is not None and text.lower() == "e'\\t'" else text


def _is_on(options: dict[str, str | None], name: str) -> bool:
    if name not in options:
        return False
    value = (options[name] or "true").lower()
    if value not in ("true", "on", "1", "false", "off", "0"):
        raise InvalidParameter(f'option "{name}" is true or false')
    return value in ("true", "on", "1")


def _chunk_rows(options: dict[str, str | None]) -> int:
    if "chunk_rows" not in options:
        return CHUNK_ROWS
    value = options["chunk_rows"] or ""
    if not value.isascii() or not value.isdigit() or not 0 < int(value[:12]) <= CHUNK_ROWS_MAX:
        raise InvalidParameter(f'option "chunk_rows" must be a number from 1 to {CHUNK_ROWS_MAX}')
    return int(value)


def statements(bulk: BulkServices) -> dict[tuple[str, ...], WordsPlanner]:
    return {("export",): partial(plan_export, bulk)}
