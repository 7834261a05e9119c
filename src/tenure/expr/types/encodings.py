"""Encodings of text as PostgreSQL names them, and the bytes of a text in each.

Encodings of one byte are Python's, but for the bytes that PostgreSQL's tables leave out. Of those of
several bytes only ASCII is converted; the rest is refused, as the tables of the two are not the same.
SQL_ASCII converts nothing: its bytes are those of the store, UTF-8.

Walk: `expr.functions.character_sets` converts values; `sql.session.variables` reads client_encoding, and
`pgwire.values.codecs` writes for clients that have set it.
"""

import re
from dataclasses import dataclass

from tenure.base.errors import (
    InvalidParameter,
    NotSupported,
    UnknownCharacter,
    UntranslatableCharacter,
    UserError,
)

_UTF8 = "utf-8"
_ASCII = "ascii"
"""Marks encodings with several bytes a character."""
_LATIN = {1: 1, 2: 2, 3: 3, 4: 4, 5: 9, 6: 10, 7: 13, 8: 14, 9: 15, 10: 16}
"""By the number behind LATIN, the part of ISO 8859."""
_WINDOWS = (866, 874, *range(1250, 1259))
_NAMES = (
    *("SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL"),
    *(f"LATIN{number}" for number in _LATIN),
    *("WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251", "WIN1252"),
    *(f"ISO_8859_{part}" for part in (5, 6, 7, 8)),
    *("WIN1250", "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U"),
    *("SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004"),
)
"""PostgreSQL's encodings, by number."""
_NOT_CONVERTED = "MULE_INTERNAL"
"""PostgreSQL knows the name, but has no conversion for it."""
_CODECS = {
    **{"UTF8": _UTF8, "SQL_ASCII": _UTF8, "KOI8R": "koi8-r", "KOI8U": "koi8-u"},
    **{f"LATIN{number}": f"iso8859-{part}" for number, part in _LATIN.items()},
    **{f"ISO_8859_{part}": f"iso8859-{part}" for part in (5, 6, 7, 8)},
    **{f"WIN{page}": f"cp{page}" for page in _WINDOWS},
}
_ALIASES = {
    **{"unicode": "utf8", "win": "win1251", "alt": "win866", "koi8": "koi8r"},
    **{"mskanji": "sjis", "shiftjis": "sjis"},
    **dict.fromkeys(("abc", "tcvn", "tcvn5712", "vscii"), "win1258"),
    **{f"iso8859{part}": f"latin{number}" for number, part in _LATIN.items()},
    **{f"windows{page}": f"win{page}" for page in _WINDOWS},
    **{"win932": "sjis", "win936": "gbk", "win949": "uhc", "win950": "big5"},
    **{"windows932": "sjis", "windows936": "gbk", "windows949": "uhc", "windows950": "big5"},
}


def _plain(name: str) -> str:
    """Only letters and digits count."""
    return re.sub("[^a-z0-9]", "", name.lower())


_NUMBERS = {_plain(name): number for number, name in enumerate(_NAMES)}


def encoding_number(name: str) -> int:
    """PostgreSQL's number of an encoding; -1: it has none of the name."""
    plain = _plain(name)
    return _NUMBERS.get(_ALIASES.get(plain, plain), -1)


def encoding_name(number: int) -> str:
    return _NAMES[number] if 0 <= number < len(_NAMES) else ""


NAME_CHARACTERS_MAX = 63
"""PostgreSQL's encodings are of type name, which has no more characters."""


def encoding_named(name: str) -> "Encoding":
    """Raises InvalidParameter if there is none, NotSupported if nothing is converted from and to it."""
    name = name[:NAME_CHARACTERS_MAX]
    number = encoding_number(name)
    if number < 0:
        raise InvalidParameter(f'invalid encoding name "{name}"')
    own_name = _NAMES[number]
    found = Encoding(own_name, _CODECS.get(own_name, _ASCII))
    if own_name == _NOT_CONVERTED:
        raise found.refusal()
    return found


@dataclass(frozen=True, slots=True)
class Encoding:
    name: str
    codec: str
    """Python's name of it."""

    @property
    def is_utf8(self) -> bool:
        return self.codec == _UTF8

    @property
    def is_converted(self) -> bool:
        """Whether all of its characters are."""
        return self.codec != _ASCII

    def decode(self, data: bytes) -> str:
        """Raises 22021 for bytes that are no text, 22P05 for characters that Unicode does not have."""
        try:
            text = data.decode(self.codec)
        except UnicodeDecodeError as error:
            raise self._unreadable(data, error.start) from None
        if "\0" in text:
            raise UnknownCharacter(f'invalid byte sequence for encoding "{self._checked_as}": 0x00')
        return text

    def encode(self, text: str) -> bytes:
        """Raises 22P05 for characters that it does not have."""
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            if not self.is_converted:
                raise self.refusal() from None
            raise _no_equivalent(text[error.start].encode(), "UTF8", self.name) from None

    def to_utf8(self, data: bytes) -> bytes:
        """The same text; UTF-8 is left to its reader, which may have to wait for the rest of a character."""
        return data if self.is_utf8 else self.decode(data).encode()

    def from_utf8(self, data: bytes) -> bytes:
        return data if self.is_utf8 else self.encode(data.decode())

    @property
    def _checked_as(self) -> str:
        return "UTF8" if self.is_utf8 else self.name

    def _unreadable(self, data: bytes, start: int) -> UserError:
        if not self.is_converted:
            return self.refusal()
        if self.is_utf8:
            return no_utf8(data, start)
        if 0 in data[:start]:
            return UnknownCharacter(f'invalid byte sequence for encoding "{self.name}": 0x00')
        return _no_equivalent(data[start : start + 1], self.name, "UTF8")

    def refusal(self) -> NotSupported:
        return NotSupported(f'converting from or to encoding "{self.name}" is not supported')


_SHORTEST_OF_FIRST_BYTE = ((0xC0, 1), (0xE0, 2), (0xF0, 3), (0xF8, 4))
"""UTF-8: first bytes below this begin a character of so many bytes."""


def no_utf8(data: bytes, start: int) -> UnknownCharacter:
    first = data[start]
    length = next((size for below, size in _SHORTEST_OF_FIRST_BYTE if first < below), 1)
    shown = _shown(data[start : start + length])
    return UnknownCharacter(f'invalid byte sequence for encoding "UTF8": {shown}')


def _no_equivalent(character: bytes, source: str, target: str) -> UntranslatableCharacter:
    return UntranslatableCharacter(
        f'character with byte sequence {_shown(character)} in encoding "{source}" '
        f'has no equivalent in encoding "{target}"'
    )


def _shown(data: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in data)


UTF8 = encoding_named("UTF8")
