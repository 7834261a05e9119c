"""Strings, bytes, booleans and uuids.

    type         value   too long for a column      cast, too long   compared
    text         str     -                          -                by code point (the C collation)
    varchar(n)   str     22001, unless only spaces  cut              by code point
    char(n)      str     22001, unless only spaces  cut              without trailing spaces

A value of char(n) is padded with spaces to n characters. Text holds neither zero bytes nor halves
of surrogate pairs: PostgreSQL's UTF-8 has no way to write them.

Walk: `expr.types.type_names` makes the types; `expr.functions.text_coding` and readers of files call
`check_characters`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tenure.base.errors import InvalidParameter, InvalidText, StringTooLong, UnknownCharacter
from tenure.base.interruptible import check_now
from tenure.base.memory import LARGE_BYTES, charge_value
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Datum, Type
from tenure.expr.types.text_slices import SLICE, found_in, substituted
from tenure.expr.types.value_lengths import check_length

_SPACE = " \t\n\v\f\r"
_BOOLEAN_LENGTH_MAX = len("false")
UNFIT = re.compile("[\0\ud800-\udfff]")


def check_characters(text: str) -> str:
    """Raises UnknownCharacter for what UTF-8 cannot hold or PostgreSQL refuses."""
    if (text.isascii() and "\0" not in text) or not (unfit := found_in(UNFIT, text)):
        return text
    raise UnknownCharacter(f'invalid byte sequence for encoding "UTF8": U+{ord(unfit.group()):04X}')


@dataclass(frozen=True)
class TextType(Type):
    category = "S"
    is_preferred = True

    def parse(self, text: str) -> str:
        return check_characters(text)

    def parse_all(self, texts: Sequence[str]) -> Sequence[str]:
        check_characters("".join(texts))
        return texts

    def render(self, value: str) -> str:
        return value

    def _accept(self, value: Datum) -> str:
        if not isinstance(value, str):
            raise self._refuse(value)
        return check_characters(value)


TEXT = TextType(TypeRef("text"))


@dataclass(frozen=True)
class VarcharType(Type):
    length: int | None = None

    category = "S"

    @property
    def sql_name(self) -> str:
        return "character varying" + (f"({self.length})" if self.length else "")

    def parse(self, text: str) -> str:
        return self._accept(text)

    def parse_all(self, texts: Sequence[str]) -> Sequence[str]:
        if self.length is not None and max(map(len, texts), default=0) > self.length:
            return list(map(self.parse, texts))
        check_characters("".join(texts))
        return texts

    def render(self, value: str) -> str:
        return value

    def truncate(self, value: Datum) -> Datum:
        return None if value is None else check_characters(value)[: self.length]

    def _accept(self, value: Datum) -> str:
        if not isinstance(value, str):
            raise self._refuse(value)
        return check_characters(_cut_spaces(value, self.length, self.sql_name))


@dataclass(frozen=True)
class CharType(Type):
    """char(n); without a length, PostgreSQL's bpchar: any length, trailing spaces still count for nothing."""

    length: int | None = None

    category = "S"
    compares_natively = False

    @property
    def sql_name(self) -> str:
        return f"character({self.length})" if self.length else "bpchar"

    @property
    def key_is_exact(self) -> bool:
        return self.length is not None

    def comparable(self, value: str) -> str:
        if len(value) > SLICE:
            check_now()  # a comparison is one of many
        return value.rstrip(" ")

    def parse(self, text: str) -> str:
        return self._accept(text)

    def parse_all(self, texts: Sequence[str]) -> list[str]:
        if self.length is None or max(map(len, texts), default=0) > self.length:
            return list(map(self.parse, texts))
        check_characters("".join(texts))
        return [text.ljust(self.length) for text in texts]

    def render(self, value: str) -> str:
        return value

    def truncate(self, value: Datum) -> Datum:
        return None if value is None else self._pad(check_characters(value)[: self.length])

    def _accept(self, value: Datum) -> str:
        if not isinstance(value, str):
            raise self._refuse(value)
        return self._pad(check_characters(_cut_spaces(value, self.length, self.sql_name)))

    def _pad(self, value: str) -> str:
        return value.ljust(self.length) if self.length else value

    def _key(self, value: str) -> str:
        return value.rstrip(" ")

    def _from_key(self, key: str) -> str:
        return self._pad(key)

    def _pack(self, value: str) -> str:
        return value.rstrip(" ") if self.length else value

    def _unpack(self, packed: str) -> str:
        return self._pad(packed)


def _cut_spaces(value: str, length: int | None, name: str) -> str:
    if length is None or len(value) <= length:
        return value
    if value[length:].strip(" "):
        raise StringTooLong(f"value too long for type {name}")
    return value[:length]


@dataclass(frozen=True)
class UnknownType(Type):
    """The type of a quoted literal, or NULL, before its context gives it one."""

    category = "X"
    has_order = False

    def parse(self, text: str) -> str:
        return text

    def _accept(self, value: Datum) -> Datum:
        return value


@dataclass(frozen=True)
class BoolType(Type):
    category = "B"
    is_preferred = True

    @property
    def sql_name(self) -> str:
        return "boolean"

    def parse(self, text: str) -> bool:
        word = text.strip(_SPACE)
        if 0 < len(word) <= _BOOLEAN_LENGTH_MAX:
            word = word.lower()
            if "true".startswith(word) or "yes".startswith(word) or word in ("on", "1"):
                return True
            if "false".startswith(word) or "no".startswith(word) or word in ("of", "off", "0"):
                return False
        raise InvalidText(f'invalid input syntax for type boolean: "{text}"')

    def render(self, value: bool) -> str:
        return "t" if value else "f"

    def _accept(self, value: Datum) -> bool:
        if value is True or value is False:
            return value
        raise self._refuse(value)


@dataclass(frozen=True)
class UuidType(Type):
    _pattern = re.compile(r"(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}")

    def parse(self, text: str) -> UUID:
        bare = text[1:-1] if text.startswith("{") and text.endswith("}") else text
        if not self._pattern.fullmatch(bare):
            raise InvalidText(f'invalid input syntax for type uuid: "{text}"')
        return UUID(bare)

    def _accept(self, value: Datum) -> UUID:
        if not isinstance(value, UUID):
            raise self._refuse(value)
        return value

    def _pack(self, value: UUID) -> bytes:
        return value.bytes

    def _unpack(self, packed: bytes) -> UUID:
        return UUID(bytes=packed)


@dataclass(frozen=True)
class BytesType(Type):
    def parse(self, text: str) -> bytes:
        check_characters(text)
        if text.startswith("\\x"):
            return bytes_from_hex(text[2:])
        return bytes_unescaped(text)

    def render(self, value: bytes) -> str:
        if len(value) > LARGE_BYTES:  # its text has twice the size, and an aggregate may render many
            check_now()
            charge_value(2 * len(value))
        return "\\x" + value.hex()

    def _accept(self, value: Datum) -> bytes:
        if not isinstance(value, bytes):
            raise self._refuse(value)
        return value


_ESCAPE = re.compile(rb"\\(?:(\\)|([0-3][0-7][0-7])|)")
_SPECIAL_BYTE = re.compile(rb"[\x00\x80-\xff\\]")


def bytes_unescaped(text: str) -> bytes:
    """The format "escape": a byte as a backslash and three octal digits."""
    return substituted(_ESCAPE, _unescape, text.encode())


def bytes_escaped(data: bytes) -> str:
    check_length(len(data))
    return substituted(_SPECIAL_BYTE, _escape, data).decode()


def _escape(found: re.Match[bytes]) -> bytes:
    byte = found.group()
    return b"\\\\" if byte == b"\\" else b"\\%03o" % byte[0]


def _unescape(found: re.Match[bytes]) -> bytes:
    if found.group(1):
        return b"\\"
    if found.group(2):
        return bytes((int(found.group(2), 8),))
    raise InvalidText("invalid input syntax for type bytea")


def bytes_from_hex(digits: str) -> bytes:
    """Spaces may stand between two bytes, not between the digits of one."""
    pieces: list[bytes] = []
    at = 0
    while True:
        found = _PAIRS.match(digits, at, at + SLICE)
        assert found is not None
        pieces.append(bytes.fromhex(found[0]))
        if found.end() == at and (found := _BLANK.match(digits, at)) and found.end() == at:
            break
        at = found.end()
        check_now()
    if at == len(digits):
        return b"".join(pieces)
    wrong = _NO_DIGIT.search(digits, at, at + 2)
    if wrong:
        raise InvalidParameter(f'invalid hexadecimal digit: "{wrong[0]}"')
    raise InvalidParameter("invalid hexadecimal data: odd number of digits")


_BLANK = re.compile(r"[ \t\n\r]*+")
_PAIRS = re.compile(r"(?:[ \t\n\r]*+[0-9a-fA-F]{2})*+")
_NO_DIGIT = re.compile("[^0-9a-fA-F]", re.DOTALL)
