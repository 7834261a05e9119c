"""COPY's text format, many lines at a time: fields as columns, each parsed by one call of its type.

Rows that are not plain, or cannot be inserted, are left to `statements.dml.copy`, which takes them one by
one and says what is wrong in which line.

Walk: `statements.dml.copy` -> `BlockCopy.insert` -> `Type.parse_all`, `table.block_insert`.
"""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import cast

from tenure.base.errors import UserError
from tenure.base.interruptible import Check
from tenure.expr.types.datatype import Datum, Type
from tenure.kv.transaction import Transaction
from tenure.sql.text.copy_text import CopyReader, Field
from tenure.table.block_insert import insert_block, takes_blocks
from tenure.table.write import TableWriter

LINES_AT_ONCE = 2_000
"""Of a block: they take 10 ms, and then it is seen whether the statement was cancelled."""

ParseAll = Callable[[Sequence[str]], Sequence[Datum]]


class BlockCopy:
    def __init__(
        self,
        reader: CopyReader,
        writer: TableWriter,
        columns: Sequence[int],
        types: Sequence[Type],
        zone: tzinfo,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._columns = columns
        self._parsers = [_parser(each, zone) for each in types]
        self.is_possible = bool(columns) and takes_blocks(writer.layout)

    def insert(self, txn: Transaction, data: bytes, check: Check) -> int:
        """Inserts the rows of a piece up to the first that is not for a block; returns how many it did.

        The reader has the rest.
        """
        lines = self._reader.plain_lines(data)
        inserted = 0
        while inserted < len(lines):
            check()
            block = lines[inserted : inserted + LINES_AT_ONCE]
            columns = self._parsed(block)
            if columns is None or not insert_block(txn, self._writer, columns, len(block)):
                break
            inserted += len(block)
        self._reader.passed(lines[:inserted])
        return inserted

    def _parsed(self, lines: Sequence[str]) -> dict[int, Sequence[Datum]] | None:
        """Values by column, if each row has as many fields as it should and each is right."""
        fields = self._reader.columns(lines, len(self._columns))
        if fields is None:
            return None
        try:
            parsed = [_with_nulls(parse, each) for parse, each in zip(self._parsers, fields, strict=True)]
        except UserError:
            return None  # the caller parses them one by one, and says in which line and column it is
        return dict(zip(self._columns, parsed, strict=True))


def _with_nulls(parse: ParseAll, fields: Sequence[Field]) -> Sequence[Datum]:
    if None not in fields:
        return parse(cast(Sequence[str], fields))
    texts = [each for each in fields if each is not None]
    values = iter(parse(texts))
    return [None if each is None else next(values) for each in fields]


def _parser(kind: Type, zone: tzinfo) -> ParseAll:
    if kind.follows_zone:
        return lambda texts: [kind.accept(kind.parse_in(text, zone)) for text in texts]
    return kind.parse_all
