"""A door's statements and portals: how their parameters are read, their rows written.

The session decides which statements and portals exist; SQL makes and ends them as well (PREPARE, DEALLOCATE,
DECLARE). So each use asks the session, and an entry here is valid only as long as it belongs to the very
object that the session returns.

Walk: `pgwire.conversation` asks `BoundStatements` at Parse, Bind, Describe and Execute.
"""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

from tenure.base.errors import BytesLeft, ProtocolViolation
from tenure.expr.types.datatype import Datum
from tenure.expr.types.encodings import Encoding
from tenure.pgwire.messages import UINT2, format_codes
from tenure.pgwire.values.codecs import decoder
from tenure.pgwire.values.row_format import RowFormat
from tenure.sql.session.answers import Client, Portal, Prepared, ResultColumn

REMEMBERED_STATEMENTS_MAX = 1000
"""The door is not told of DEALLOCATE. Past this number it drops all entries and begins anew."""

REMEMBERED_FORMATS_MAX = 16
"""A client uses one or two combinations of formats for a statement; a hostile one any number."""

ALL_TEXT = UINT2.pack(0)

Decoders = tuple[Callable[[bytes], Datum], ...]


class BoundStatement:
    """A prepared statement with its formats."""

    __slots__ = ("_decoders", "_encoding", "_shapes", "_zone", "prepared")

    def __init__(self, prepared: Prepared, zone: tzinfo, encoding: Encoding) -> None:
        self.prepared = prepared
        self._zone = zone
        self._encoding = encoding
        self._decoders: dict[bytes, Decoders] = {}
        self._shapes: dict[bytes, RowFormat] = {}

    def decode(self, name: str, formats: bytes, values: Sequence[bytes | None]) -> list[Datum]:
        decoders = self._decoders.get(formats)
        if decoders is None:
            decoders = self._make_decoders(formats)
        if len(values) != len(decoders):
            raise ProtocolViolation(
                f"bind message supplies {len(values)} parameters, "
                f'but prepared statement "{name}" requires {len(decoders)}'
            )
        read: list[Datum] = []
        try:
            for decode, raw in zip(decoders, values, strict=True):
                read.append(None if raw is None else decode(raw))
        except BytesLeft as error:
            raise BytesLeft(f"{error} in bind parameter {len(read) + 1}") from None
        return read

    def _make_decoders(self, formats: bytes) -> Decoders:
        types = self.prepared.parameters
        codes = format_codes(formats, len(types), f"parameter formats but {len(types)} parameters")
        decoders = tuple(
            decoder(type, code, self._zone, self._encoding) for type, code in zip(types, codes, strict=True)
        )
        _remember(self._decoders, formats, decoders)
        return decoders

    def shape(self, columns: Sequence[ResultColumn] | None, formats: bytes) -> RowFormat | None:
        if columns is None:
            return None
        shape = self._shapes.get(formats)
        if shape is None or shape.columns is not columns:
            shape = make_shape(columns, formats, self._zone, self._encoding)
            _remember(self._shapes, formats, shape)
        return shape


class BoundPortal:
    """A portal with its formats."""

    __slots__ = ("portal", "shape")

    def __init__(self, portal: Portal, shape: RowFormat | None) -> None:
        self.portal = portal
        self.shape = shape


class BoundStatements:
    """The statements and portals of one session."""

    __slots__ = ("_client", "_portals", "_statements", "encoding", "zone")

    def __init__(self, client: Client) -> None:
        self._client = client
        self.zone = client.zone
        self.encoding = client.encoding
        self._statements: dict[str, BoundStatement] = {}
        self._portals: dict[str, BoundPortal] = {}

    def follow_session(self) -> None:
        """Called when the session's time zone or encoding may have changed: other encoders are dropped."""
        if self._client.zone != self.zone or self._client.encoding != self.encoding:
            self.zone, self.encoding = self._client.zone, self._client.encoding
            self._statements.clear()

    def statement(self, name: str) -> BoundStatement:
        """Raises 26000 if there is none."""
        prepared = self._client.prepared(name)
        statement = self._statements.get(name)
        if statement is None or statement.prepared is not prepared:
            if len(self._statements) >= REMEMBERED_STATEMENTS_MAX:
                self._statements.clear()
            statement = self._statements[name] = BoundStatement(prepared, self.zone, self.encoding)
        return statement

    def bind(self, name: str, portal: Portal, shape: RowFormat | None) -> None:
        self._portals[name] = BoundPortal(portal, shape)

    def portal(self, name: str) -> BoundPortal:
        """Raises 34000 if there is none. One that SQL has made sends text."""
        bound = self._portals.get(name)
        portal = self._client.portal(name)
        if bound is None or bound.portal is not portal:
            columns = portal.columns
            shape = None if columns is None else self.text_shape(columns)
            bound = self._portals[name] = BoundPortal(portal, shape)
        return bound

    def text_shape(self, columns: Sequence[ResultColumn]) -> RowFormat:
        return make_shape(columns, ALL_TEXT, self.zone, self.encoding)

    def close_statement(self, name: str) -> None:
        self._statements.pop(name, None)
        self._client.close_prepared(name)

    def close_portal(self, name: str) -> None:
        self._portals.pop(name, None)
        self._client.close_portal(name)

    def forget_portals(self) -> None:
        """Called when the transaction is over, and its portals with it."""
        self._portals.clear()


def make_shape(
    columns: Sequence[ResultColumn], formats: bytes, zone: tzinfo, encoding: Encoding
) -> RowFormat:
    count = len(columns)
    codes = format_codes(formats, count, f"result formats but query has {count} columns")
    return RowFormat(columns, codes, zone, encoding)


def _remember(kept: dict[bytes, Any], formats: bytes, value: object) -> None:
    if len(kept) >= REMEMBERED_FORMATS_MAX:
        kept.clear()
    kept[formats] = value
