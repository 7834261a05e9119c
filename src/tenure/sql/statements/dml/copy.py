"""COPY ... FROM STDIN and TO STDOUT, in text, CSV and binary.

All rows of a COPY belong to one transaction, which is bounded; more than that is IMPORT's work. Rows are
written as they come, so memory holds what the transaction does and no more.

Walk: `statements.statement_table` -> `plan` -> `CopyFrom` or `CopyTo`, whose run gives the door an object
that it feeds or drains.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from itertools import islice
from typing import ClassVar

from tenure.base.errors import (
    BadFile,
    DuplicateColumn,
    InsufficientPrivilege,
    InvalidColumnReference,
    NotSupported,
    QueryCanceled,
    ReadOnlyTransaction,
    UndefinedColumn,
    UserError,
    WrongObjectType,
)
from tenure.base.interruptible import interruptible
from tenure.base.memory import Holding
from tenure.catalog.accounts.privileges import INSERT
from tenure.catalog.descriptors.definitions import Column as TableColumn
from tenure.catalog.descriptors.definitions import Table, visible
from tenure.expr.tree.sequence_needs import default_needs
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import Encoding
from tenure.expr.types.type_names import type_of
from tenure.sql.execution.execution import Execution
from tenure.sql.execution.planner import Planner
from tenure.sql.execution.statement import Result
from tenure.sql.session.answers import Answer, CopyFormat, Pending, ResultColumn
from tenure.sql.session.services import Codecs
from tenure.sql.statements.dml import queries
from tenure.sql.statements.dml.copy_blocks import BlockCopy
from tenure.sql.statements.dml.copy_condition import CopyCondition, plan_condition
from tenure.sql.statements.dml.copy_options import copy_format
from tenure.sql.statements.dml.forgotten_keys import explain_violation
from tenure.sql.statements.dml.queries import Select, SelectAsOf
from tenure.sql.statements.dml.writes import refuse_system
from tenure.sql.statements.dml.writing import writer_of
from tenure.sql.text import parse
from tenure.sql.text.copy_binary import SIGNATURE, BinaryReader
from tenure.sql.text.copy_text import CopyReader, Field, Format, writer
from tenure.sql.text.parse import Tree, child, kind, names
from tenure.table.columns import Values
from tenure.table.write import TableWriter

BATCH_ROWS, BATCH_BYTES_MAX = 500, 1 << 20
"""The bytes that are written at once."""


COPIES = 2
"""A row is in memory twice: as received, and split into fields."""


FinishTransaction = Callable[[], None]
"""Commits, where the COPY is a transaction of its own."""


@dataclass(frozen=True, slots=True)
class CopyFrom:
    table: Table
    targets: tuple[TableColumn, ...]
    types: tuple[Type, ...]
    format: Format
    kind: CopyFormat
    codecs: Codecs
    finish_transaction: FinishTransaction
    condition: CopyCondition | None = None
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    parameters: ClassVar[tuple[Type, ...]] = ()
    is_short: ClassVar[bool] = False

    def run(self, execution: Execution) -> Result:
        execution.block.txn("COPY FROM")
        return Result("COPY", copy=_Incoming(self, execution))


class _Incoming:
    """Writes the client's data into the transaction, row by row."""

    def __init__(self, copy: CopyFrom, execution: Execution) -> None:
        self._copy = copy
        self._execution = execution
        self._writer: TableWriter = writer_of(execution, copy.table)
        self._txn = execution.block.txn("COPY FROM")
        self._reader = CopyReader(copy.format)
        zone = execution.session.variables.zone
        self._blocks = BlockCopy(
            self._reader, self._writer, [each.id for each in copy.targets], copy.types, zone
        )
        self._binary = BinaryReader() if copy.kind is CopyFormat.BINARY else None
        self._count = 0
        self._kept = Holding(execution.account, "a row of COPY that is not whole")
        self.format = copy.kind
        self.columns = len(copy.targets)

    def write(self, data: bytes) -> None:
        if self._binary is None:
            data = _encoding(self._copy.format, self._execution).to_utf8(data)
        self._execution.session.memory.charged(self._execution.account, partial(self._write, data))

    def _write(self, data: bytes) -> None:
        self._execution.check()
        reader = self._reader if self._binary is None else self._binary
        if reader.kept_bytes:
            self._kept.replace(COPIES * (reader.kept_bytes + len(data)))
        if self._binary is not None:
            self._insert(self._from_binary(self._binary.rows(data)))
        elif self._blocks.is_possible and self._copy.condition is None:
            self._insert_block(data)
            self._insert(self._from_text(self._reader.rows(b"")))
        else:
            self._insert(self._from_text(self._reader.rows(data)))
        self._kept.replace(reader.kept_bytes)

    def _insert_block(self, data: bytes) -> None:
        try:
            self._count += self._blocks.insert(self._txn, data, self._execution.check)
        except UserError as error:
            explain_violation(self._execution, error)
            raise

    def _insert(self, rows: Iterator[Values]) -> None:
        if self._copy.condition is not None:
            rows = self._copy.condition.kept(rows, self._writer.default, self._execution.context)
        written = interruptible(self._writer.insert_all(self._txn, rows), self._execution.check)
        try:
            self._count += sum(1 for _ in written)
        except UserError as error:
            explain_violation(self._execution, error)
            raise

    def _from_text(self, rows: Iterator[list[Field]]) -> Iterator[Values]:
        copy = self._copy
        zone = self._execution.session.variables.zone
        parsers = [_parser(each, zone) for each in copy.types]
        for fields in rows:
            if copy.format.must_match and self._reader.line == 1:
                _check_header(fields, copy.targets)
                continue
            if len(fields) > len(parsers):
                raise BadFile("extra data after last expected column")
            values = {}
            for column, parse_text, field in zip(copy.targets, parsers, fields, strict=False):
                try:
                    values[column.id] = None if field is None else parse_text(field)
                except UserError as error:
                    where = f"COPY {copy.table.name}, line {self._reader.line}, column {column.name}"
                    error.where = f"{where}: {_shown(field)}"
                    raise
            if len(fields) < len(parsers):
                # Errors of earlier columns come first.
                raise BadFile(f'missing data for column "{copy.targets[len(fields)].name}"')
            yield values

    def _from_binary(self, rows: Iterator[list[bytes | None]]) -> Iterator[Values]:
        decoders = self._copy.codecs.decoders(self._copy.types, self._execution.session.variables.encoding)
        for fields in rows:
            if len(fields) != len(self._copy.targets):
                raise BadFile(f"row field count is {len(fields)}, expected {len(self._copy.targets)}")
            pairs = zip(self._copy.targets, decoders, fields, strict=True)
            yield {each.id: None if raw is None else decode(raw) for each, decode, raw in pairs}

    def finish(self) -> "Answer | Pending":
        if self._binary is not None:
            self._binary.end()
        else:
            self._insert(self._from_text(self._reader.end()))
            if self._copy.format.must_match and not self._reader.line:
                _check_header([""], self._copy.targets)
        self._writer.finish(self._txn, self._execution.check)
        answer = Answer((), f"COPY {self._count}")
        self._copy.finish_transaction()
        return answer

    def fail(self, message: str) -> None:
        raise QueryCanceled(f"COPY from stdin failed: {message}")


def _shown(field: Field) -> str:
    return "null input" if field is None else f'"{field[:100]}"'


def _parser(kind_of: Type, zone: tzinfo) -> Callable[[str], Datum]:
    if kind_of.follows_zone:
        return lambda text: kind_of.parse_in(text, zone)
    return kind_of.parse


def _check_header(fields: Sequence[Field], targets: Sequence[TableColumn]) -> None:
    if len(fields) != len(targets):
        raise BadFile(f"wrong number of fields in header line: got {len(fields)}, expected {len(targets)}")
    for at, (field, column) in enumerate(zip(fields, targets, strict=True), 1):
        if field != column.name:
            raise BadFile(
                f'column name mismatch in header line field {at}: got "{field}", expected "{column.name}"'
            )


@dataclass(frozen=True, slots=True)
class CopyTo:
    select: Select | SelectAsOf
    format: Format
    kind: CopyFormat
    parameters: tuple[Type, ...]
    codecs: Codecs
    finish_transaction: FinishTransaction
    columns: ClassVar[tuple[ResultColumn, ...] | None] = None
    is_short: ClassVar[bool] = False

    def run(self, execution: Execution) -> Result:
        return Result("COPY", copy=_Outgoing(self, execution))


class _Outgoing:
    def __init__(self, copy: CopyTo, execution: Execution) -> None:
        self._copy = copy
        self._execution = execution
        self._count = 0
        self.format = copy.kind
        self.columns = len(copy.select.columns)

    def batches(self) -> Iterator[Sequence[bytes]]:
        """Large values that the rows are made of are charged as they are made, batch by batch."""
        memory = self._execution.session.memory
        following = partial(next, self._batches(), None)
        while (batch := memory.charged(self._execution.account, following)) is not None:
            memory.hold_result(sum(map(len, batch)))
            yield batch

    def _batches(self) -> Iterator[Sequence[bytes]]:
        rows = self._copy.select.run(self._execution).rows or iter(())
        encode = self._encoder()
        is_binary = self._copy.kind is CopyFormat.BINARY
        head = SIGNATURE + bytes(8) if is_binary else b""
        if self._copy.format.has_header:
            yield [self._header()]
        while encoded := self._encoded(rows, encode):
            self._execution.check()
            self._count += len(encoded)
            encoded[0], head = head + encoded[0], b""
            yield encoded
        if is_binary:
            yield [head + b"\xff\xff"]
        self._copy.finish_transaction()

    def _encoded(
        self, rows: Iterator[Sequence[Datum]], encode: Callable[[Sequence[Datum]], bytes]
    ) -> list[bytes]:
        """Some rows, fewer of large ones."""
        encoded: list[bytes] = []
        size_bytes = 0
        for row in islice(rows, BATCH_ROWS):
            encoded.append(encode(row))
            size_bytes += len(encoded[-1])
            if size_bytes > BATCH_BYTES_MAX:
                break
        return encoded

    def _header(self) -> bytes:
        """FORCE_QUOTE applies to values only, not to NULL."""
        format = replace(self._copy.format, force_quote=frozenset())
        header = writer(format)([each.name for each in self._copy.select.columns], format)
        return _encoding(format, self._execution).from_utf8(header)

    def _encoder(self) -> Callable[[Sequence[Datum]], bytes]:
        types = [each.type for each in self._copy.select.columns]
        format = self._copy.format
        if self._copy.kind is CopyFormat.BINARY:
            return _binary_row(self._copy.codecs.encoders(types, self._execution.session.variables.encoding))
        zone = self._execution.session.variables.zone
        render = [_renderer(each, zone) for each in types]
        line = writer(format)
        from_utf8 = _encoding(format, self._execution).from_utf8

        def encode(row: Sequence[Datum]) -> bytes:
            pairs = zip(render, row, strict=True)
            return from_utf8(
                line([None if value is None else shown(value) for shown, value in pairs], format)
            )

        return encode

    def tag(self) -> str:
        return f"COPY {self._count}"


def _encoding(format: Format, execution: Execution) -> Encoding:
    """The encoding that the statement names, else the client's."""
    return execution.session.variables.encoding if format.encoding is None else format.encoding


def _renderer(kind_of: Type, zone: tzinfo) -> Callable[[Datum], str]:
    if kind_of.follows_zone:
        return lambda value: kind_of.render_in(value, zone)
    return kind_of.render


def _binary_row(encoders: Sequence[Callable[[Datum], bytes]]) -> Callable[[Sequence[Datum]], bytes]:
    head = len(encoders).to_bytes(2, "big")

    def encode(row: Sequence[Datum]) -> bytes:
        pieces = [head]
        for write, value in zip(encoders, row, strict=True):
            if value is None:
                pieces.append(b"\xff\xff\xff\xff")
            else:
                data = write(value)
                pieces += (len(data).to_bytes(4, "big"), data)
        return b"".join(pieces)

    return encode


# Planning


def plan(codecs: Codecs, finish: FinishTransaction, planner: Planner, tree: Tree) -> CopyFrom | CopyTo:
    if tree.is_program or tree.filename:
        raise InsufficientPrivilege(
            "COPY reads from and writes to the client only",
            hint="Use COPY ... FROM STDIN or TO STDOUT, or psql's \\copy.",
        )
    if tree.is_from:
        return _plan_from(codecs, finish, planner, tree)
    return _plan_to(codecs, finish, planner, tree)


def _plan_from(codecs: Codecs, finish: FinishTransaction, planner: Planner, tree: Tree) -> CopyFrom:
    path = [
        each for each in (tree.relation.catalogname, tree.relation.schemaname, tree.relation.relname) if each
    ]
    table = planner.names.target(path, tree.relation.location + 1, INSERT)
    refuse_system(table)
    if not isinstance(table, Table):
        raise WrongObjectType(f'cannot copy to "{path[-1]}": it is not a table')
    if planner.block.is_read_only:
        raise ReadOnlyTransaction("cannot execute COPY FROM in a read-only transaction")
    targets = _columns(table, tree)
    for each in targets:
        planner.names.require(table.id, INSERT, each.id)
    left = [each for each in visible(table.columns) if each not in targets]
    planner.names.require_sequences(default_needs(left))
    format, how = copy_format(tree, [each.name for each in targets])
    types = tuple(type_of(each.type, planner.names.enum) for each in targets)
    where = child(tree, "where_clause")
    condition = None if where is None else plan_condition(planner, table, tree, where)
    return CopyFrom(table, targets, types, format, how, codecs, finish, condition)


def _columns(table: Table, tree: Tree) -> tuple[TableColumn, ...]:
    shown = {each.name: each for each in visible(table.columns) if not each.is_hidden}
    wanted = names(tree.attlist)
    if not wanted:
        return tuple(each for each in shown.values() if each.generated is None)
    found: list[TableColumn] = []
    for name in wanted:
        column = shown.get(name)
        if column is None:
            raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist')
        if column.generated is not None:
            raise InvalidColumnReference(
                f'column "{name}" is a generated column', detail="Generated columns cannot be used in COPY."
            )
        if column in found:
            raise DuplicateColumn(f'column "{name}" specified more than once')
        found.append(column)
    return tuple(found)


def _plan_to(codecs: Codecs, finish: FinishTransaction, planner: Planner, tree: Tree) -> CopyTo:
    query = child(tree, "query")
    if query is None:
        query = _select_of(planner, tree)
    if kind(query) != "SelectStmt":
        raise NotSupported("COPY of a statement that writes is not supported")
    select = queries.plan(planner, query)
    format, how = copy_format(tree, [each.name for each in select.columns])
    return CopyTo(select, format, how, select.parameters, codecs, finish)


def _select_of(planner: Planner, tree: Tree) -> Tree:
    """COPY t (a, b) TO is COPY (SELECT a, b FROM t) TO."""
    path = [
        each for each in (tree.relation.catalogname, tree.relation.schemaname, tree.relation.relname) if each
    ]
    table = planner.names.relation(path, tree.relation.location + 1)
    if not isinstance(table, Table):
        raise NotSupported(
            f'cannot copy from "{path[-1]}": it is not a table', hint="Use COPY (SELECT ...) TO."
        )
    columns = ", ".join(_quoted(each.name) for each in _columns(table, tree))
    found = parse.one(f"SELECT {columns} FROM {'.'.join(map(_quoted, path))}")
    assert found is not None
    return found.tree


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
