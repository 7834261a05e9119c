"""Text in other encodings: convert_to('ß', 'LATIN1') and back.

Encodings of one byte are Python's, but for the bytes that PostgreSQL's tables leave out. Of those of
several bytes only ASCII is converted; the rest is refused, as the tables of the two are not the same.

Walk: `expr.function_table` lists these.
"""

import re
from collections.abc import Iterator

from tenure.base.errors import InvalidParameter, NotSupported, UnknownCharacter, UntranslatableCharacter
from tenure.expr.functions.function import Function, function
from tenure.expr.types.strings import check_characters

_UTF8 = "utf-8"
_ASCII = "ascii"
"""Marks encodings with several bytes a character."""
_LATIN = {1: 1, 2: 2, 3: 3, 4: 4, 5: 9, 6: 10, 7: 13, 8: 14, 9: 15, 10: 16}
"""By the number behind LATIN, the part of ISO 8859."""
_ISO_8859 = (*_LATIN.values(), 5, 6, 7, 8)
_WINDOWS = (866, 874, *range(1250, 1259))
_WIDE = (
    *("big5", "euccn", "eucjis2004", "eucjp", "euckr", "euctw", "gb18030", "gbk", "johab", "mskanji"),
    *("shiftjis", "shiftjis2004", "sjis", "uhc"),
    *(f"{word}{number}" for word in ("win", "windows") for number in (932, 936, 949, 950)),
)
_MULE = "muleinternal"
"""PostgreSQL knows the name, but has no conversion for it."""
_CODECS = {
    **{"utf8": _UTF8, "unicode": _UTF8, "sqlascii": _UTF8},
    **{f"latin{number}": f"iso8859-{part}" for number, part in _LATIN.items()},
    **{f"iso8859{part}": f"iso8859-{part}" for part in _ISO_8859},
    **{f"{word}{page}": f"cp{page}" for word in ("win", "windows") for page in _WINDOWS},
    **{"win": "cp1251", "alt": "cp866", "koi8": "koi8-r", "koi8r": "koi8-r", "koi8u": "koi8-u"},
    **dict.fromkeys(("abc", "tcvn", "tcvn5712", "vscii"), "cp1258"),
    **dict.fromkeys(_WIDE, _ASCII),
}


def functions() -> Iterator[Function]:
    yield function("convert_from", "bytea, text -> text", _convert_from)
    yield function("convert_to", "text, text -> bytea", _convert_to)


def _convert_from(data: bytes, name: str) -> str:
    codec = _codec(name)
    try:
        return check_characters(data.decode(codec))
    except UnicodeDecodeError:
        if codec == _ASCII:
            raise _refused(name) from None
        if codec == _UTF8 or 0 in data:
            raise UnknownCharacter(f'invalid byte sequence for encoding "{name.upper()}"') from None
        raise UntranslatableCharacter(
            f'a character of encoding "{name.upper()}" has no equivalent in encoding "UTF8"'
        ) from None


def _convert_to(text: str, name: str) -> bytes:
    codec = _codec(name)
    try:
        return text.encode(codec)
    except UnicodeEncodeError:
        if codec == _ASCII:
            raise _refused(name) from None
        raise UntranslatableCharacter(
            f'a character of encoding "UTF8" has no equivalent in encoding "{name.upper()}"'
        ) from None


def _codec(name: str) -> str:
    plain = re.sub("[^a-z0-9]", "", name.lower())
    if plain == _MULE:
        raise _refused(name)
    if plain not in _CODECS:
        raise InvalidParameter(f'invalid encoding name "{name}"')
    return _CODECS[plain]


def _refused(name: str) -> NotSupported:
    return NotSupported(f'converting from or to encoding "{name.upper()}" is not supported')
