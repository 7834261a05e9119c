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


_NAMES = (
    *("SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL"),
    *(f"LATIN{number}" for number in _LATIN),
    *("WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251", "WIN1252"),
    *(f"ISO_8859_{part}" for part in (5, 6, 7, 8)),
    *("WIN1250", "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U"),
    *("SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004"),
)
"""PostgreSQL's encodings, by number."""
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


def _encoding_number(name: str) -> int:
    plain = _plain(name)
    return _NUMBERS.get(_ALIASES.get(plain, plain), -1)


def _encoding_name(number: int) -> str:
    return _NAMES[number] if 0 <= number < len(_NAMES) else ""


def functions() -> Iterator[Function]:
    yield function("pg_encoding_to_char", "int4 -> name", _encoding_name)
    yield function("pg_char_to_encoding", "name -> int4", _encoding_number)
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


NAME_CHARACTERS_MAX = 63
"""PostgreSQL's encodings are of type name, which has no more characters."""


def _codec(name: str) -> str:
    name = name[:NAME_CHARACTERS_MAX]
    plain = _plain(name)
    if plain == _MULE:
        raise _refused(name)
    if plain not in _CODECS:
        raise InvalidParameter(f'invalid encoding name "{name}"')
    return _CODECS[plain]


def _refused(name: str) -> NotSupported:
    return NotSupported(f'converting from or to encoding "{name.upper()}" is not supported')
