"""Values to bytes and back, in PostgreSQL's text and binary formats.

    encode = encoder(type, TEXT)     once per column of a portal
    encode(value)                    once per value; NULL never gets here

Text is what the types of `expr` parse and render; what is sent most (numbers, strings, booleans)
goes a shorter way to the same bytes. A type with modifiers, such as varchar(10), is held to
them when it is read, as COPY needs it; parameters have none.

Invariant (codec-exact): in either format, decoding what was encoded gives the value to the last digit,
and PostgreSQL reads and writes the same bytes.

Walk: `pgwire` asks for encoders when a portal is bound and for decoders when Bind comes in.
"""

from collections.abc import Callable

from tenure.base.errors import InvalidParameter
from tenure.expr.arrays import ArrayOf
from tenure.expr.datatype import Datum, Type
from tenure.expr.enums import EnumOf
from tenure.expr.json_values import JsonbType
from tenure.expr.numbers import IntType, fits
from tenure.pgwire.binary import (
    DECODERS,
    ENCODERS,
    Decode,
    Encode,
    decode_as_text,
    decode_jsonb,
    encode_jsonb,
    text_of,
)
from tenure.pgwire.binary_arrays import array_decoder, array_encoder
from tenure.pgwire.oids import TypeInfo, oid_of, type_with_oid

__all__ = ["BINARY", "TEXT", "TypeInfo", "decoder", "encoder", "oid_of", "type_with_oid"]

TEXT, BINARY = 0, 1


def encoder(type: Type, format: int) -> Callable[[Datum], bytes]:
    if format == TEXT:
        return _text_encoder(type)
    _require_binary(format)
    if isinstance(type, ArrayOf):
        return array_encoder(type.element, encoder(type.element, BINARY))
    if isinstance(type, JsonbType):
        return encode_jsonb(type)
    return str.encode if isinstance(type, EnumOf) else ENCODERS[type.ref.name]


def decoder(type: Type, format: int) -> Callable[[bytes], Datum]:
    """What it returns raises what PostgreSQL does: 22P02, 22P03, 22021, 08P01, or the type's own."""
    if format == TEXT:
        return _text_decoder(type)
    _require_binary(format)
    if isinstance(type, ArrayOf):
        return array_decoder(type.element, decoder(type.element, BINARY))
    if isinstance(type, JsonbType):
        return decode_jsonb(type)
    if isinstance(type, EnumOf) or type.ref.name not in DECODERS:
        return decode_as_text(type)
    decode = DECODERS[type.ref.name]
    return _held_to_modifiers(type, decode) if type.ref.modifiers else decode


def _require_binary(format: int) -> None:
    if format != BINARY:
        raise InvalidParameter(f"unsupported format code: {format}")


def _held_to_modifiers(type: Type, decode: Decode) -> Decode:
    return lambda data: type.accept(decode(data))


_AS_STRING = ("text", "varchar", "char", "name", "unknown")


def _text_encoder(type: Type) -> Encode:
    if isinstance(type, IntType):
        return b"%d".__mod__
    if isinstance(type, EnumOf) or (type.ref.name in _AS_STRING and not type.ref.is_array):
        return str.encode
    if type.ref.name == "bool" and not type.ref.is_array:
        return _bool_text
    render = type.render
    return lambda value: render(value).encode()


def _bool_text(value: bool) -> bytes:
    return b"t" if value else b"f"


def _text_decoder(type: Type) -> Decode:
    if isinstance(type, IntType):
        return _int_decoder(type)
    if type.ref.name in ("text", "unknown") and not type.ref.is_array:
        return text_of
    parse = type.parse
    return lambda data: parse(text_of(data))


def _int_decoder(type: IntType) -> Decode:
    def decode(data: bytes) -> int:
        try:
            value = int(data)
        except ValueError:  # 0x1F, thousands of digits, or no number: the type knows
            return type.parse(text_of(data))
        return value if fits(value, type.size) else type.parse(text_of(data))

    return decode
