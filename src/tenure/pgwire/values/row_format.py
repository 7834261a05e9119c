"""How the rows of a result are encoded: made once for its columns and formats, used for every row.

    RowDescription    names, types, formats
    DataRow           for each column its length and its bytes; -1 and nothing for NULL

Walk: `pgwire.bound_statements` makes a `RowFormat` for a statement's columns; `pgwire.conversation` writes
rows with it.
"""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from struct import Struct
from typing import Final

from tenure.expr.types.datatype import Datum
from tenure.expr.types.encodings import UTF8, Encoding
from tenure.pgwire.messages import UINT2, message, string
from tenure.pgwire.values.codecs import encoder, oid_of
from tenure.sql.session.answers import ResultColumn

_ROW_HEAD: Final = Struct(">cIH").pack
_FIELD: Final = Struct(">IhIhih").pack
_LENGTH: Final = Struct(">I").pack
_LENGTHS_KNOWN = 256
_LENGTHS = [_LENGTH(length) for length in range(_LENGTHS_KNOWN)]
"""Looking one up takes a third of the time of making it."""

_NULL = b"\xff\xff\xff\xff"


class RowFormat:
    """A result's columns in given formats."""

    __slots__ = ("_encoders", "columns", "description")

    def __init__(
        self,
        columns: Sequence[ResultColumn],
        formats: Sequence[int],
        zone: tzinfo,
        encoding: Encoding = UTF8,
    ) -> None:
        self.columns = columns
        self.description = row_description(columns, formats, encoding)
        self._encoders: tuple[Callable[[Datum], bytes], ...] = tuple(
            encoder(column.type, code, zone, encoding) for column, code in zip(columns, formats, strict=True)
        )

    def encode(self, rows: Sequence[Sequence[Datum]]) -> bytes:
        """All rows as DataRow messages."""
        encoders = self._encoders
        count = len(encoders)
        fixed = 6 + 4 * count
        pieces: list[bytes] = []
        for row in rows:
            fields = [b""]
            size = fixed
            for encode, value in zip(encoders, row, strict=True):
                if value is None:
                    fields.append(_NULL)
                else:
                    raw = encode(value)
                    length = len(raw)
                    size += length
                    fields += (_LENGTHS[length] if length < _LENGTHS_KNOWN else _LENGTH(length), raw)
            fields[0] = _ROW_HEAD(b"D", size, count)
            pieces += fields
        return b"".join(pieces)


def row_description(
    columns: Sequence[ResultColumn], formats: Sequence[int], encoding: Encoding = UTF8
) -> bytes:
    if not encoding.is_utf8:
        for column in columns:
            encoding.encode(column.name)  # raises 22P05
    fields = [
        string(column.name, encoding) + _field(column, code)
        for column, code in zip(columns, formats, strict=True)
    ]
    return message(b"T", UINT2.pack(len(columns)) + b"".join(fields))


def _field(column: ResultColumn, code: int) -> bytes:
    oid, size, modifier = oid_of(column.type)
    return _FIELD(column.table, column.number, oid, size, modifier, code)
