"""Values to bytes and back, in PostgreSQL's text and binary formats.

    encode = encoder(type, TEXT)     once per column of a portal
    encode(value)                    once per value; NULL never gets here

Text is what the types of `expr` parse and render; the most frequent types take a shorter path to the same
bytes (`quick_text`). The text of timestamptz follows the session's time zone: code that caches encoders makes
new ones when that changes. A type with modifiers, such as varchar(10), is checked against them when it is
read, as COPY needs it; parameters have none.

Invariant (codec-exact): in either format, decoding what was encoded gives the value to the last digit,
and PostgreSQL reads and writes the same bytes.

Walk: `pgwire` asks for encoders when a portal is bound and for decoders when Bind comes in.
"""

from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import partial

from tenure.base.errors import InvalidParameter
from tenure.expr.types.arrays import ArrayOf
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.encodings import UTF8, Encoding
from tenure.expr.types.enums import EnumOf
from tenure.expr.types.json_values import JsonbType
from tenure.pgwire.values.binary import (
    DECODERS,
    ENCODERS,
    Decode,
    Encode,
    decode_as_text,
    decode_jsonb,
    encode_jsonb,
    text_of,
)
from tenure.pgwire.values.binary_arrays import array_decoder, array_encoder
from tenure.pgwire.values.oids import TypeInfo, oid_of, type_with_oid
from tenure.pgwire.values.quick_text import QUICK_DECODERS, QUICK_ENCODERS, type_name

__all__ = ["BINARY", "TEXT", "TypeInfo", "decoder", "encoder", "oid_of", "type_with_oid"]

TEXT, BINARY = 0, 1


def encoder(
    type: Type, format: int, zone: tzinfo = UTC, encoding: Encoding = UTF8
) -> Callable[[Datum], bytes]:
    """`zone` is the session's, for text alone; `encoding` is the client's."""
    if not encoding.is_utf8 and _is_text(type, format):
        encode = encoder(type, format, zone)
        return lambda value: encoding.encode(encode(value).decode())
    if format == TEXT:
        return _text_encoder(type, zone)
    _require_binary(format)
    if isinstance(type, ArrayOf):
        return array_encoder(type.element, encoder(type.element, BINARY, encoding=encoding))
    if isinstance(type, JsonbType):
        return encode_jsonb(type)
    return str.encode if isinstance(type, EnumOf) else ENCODERS[type.ref.name]


def decoder(
    type: Type, format: int, zone: tzinfo = UTC, encoding: Encoding = UTF8
) -> Callable[[bytes], Datum]:
    """Raises PostgreSQL's errors: 22P02, 22P03, 22P05, 22021, 08P01, or the type's own."""
    if not encoding.is_utf8 and _is_text(type, format):
        decode_utf8 = decoder(type, format, zone)
        return lambda data: decode_utf8(encoding.decode(data).encode())
    if format == TEXT:
        return _text_decoder(type, zone)
    _require_binary(format)
    if isinstance(type, ArrayOf):
        return array_decoder(type.element, decoder(type.element, BINARY, encoding=encoding))
    if isinstance(type, JsonbType):
        return decode_jsonb(type)
    if isinstance(type, EnumOf) or type.ref.name not in DECODERS:
        return decode_as_text(type)
    decode = DECODERS[type.ref.name]
    return _held_to_modifiers(type, decode) if type.ref.modifiers else decode


_TEXTS = frozenset(("text", "varchar", "char", "name", "unknown", "json", "jsonb", "aclitem", "pg_node_tree"))
"""The types whose binary format is their text: jsonb's begins with a byte that all encodings share."""


def _is_text(type: Type, format: int) -> bool:
    """Whether its bytes depend on the client's encoding."""
    if format == TEXT:
        return True
    return not isinstance(type, ArrayOf) and (isinstance(type, EnumOf) or type.ref.name in _TEXTS)


def _require_binary(format: int) -> None:
    if format != BINARY:
        raise InvalidParameter(f"unsupported format code: {format}")


def _held_to_modifiers(type: Type, decode: Decode) -> Decode:
    return lambda data: type.accept(decode(data))


def _text_encoder(type: Type, zone: tzinfo) -> Encode:
    if zone is not UTC and type.follows_zone:
        return lambda value: type.render_in(value, zone).encode()
    render = type.render
    return QUICK_ENCODERS.get(type_name(type)) or (lambda value: render(value).encode())


def _text_decoder(type: Type, zone: tzinfo) -> Decode:
    parse = partial(type.parse_in, zone=zone) if zone is not UTC and type.follows_zone else type.parse
    if quick := QUICK_DECODERS.get(type_name(type)):
        return quick(type, parse)
    return lambda data: parse(text_of(data))
