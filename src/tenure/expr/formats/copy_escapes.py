"""The backslash escapes of COPY's text format: decoding them, and splitting rows at unescaped delimiters.

Walk: `sql.text.copy_text` and `pipeline.reading.copy_rows` call these.
"""

import re
from functools import lru_cache

from tenure.base.errors import UnknownCharacter

_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.S)


def unescaped(field: str) -> str:
    """Numeric escapes stand for bytes; several bytes may form one character."""
    data = _ESCAPE.sub(_escaped, field.encode())
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnknownCharacter(
            f'invalid byte sequence for encoding "UTF8": 0x{data[error.start]:02x}'
        ) from error


def _escaped(found: re.Match[bytes]) -> bytes:
    word = found[1]
    if word[:1] == b"x" and len(word) > 1:
        return bytes([int(word[1:], 16)])
    if word[:1] in b"01234567":
        return bytes([int(word, 8) & 0xFF])
    return _ESCAPES.get(word, word)


def split_escaped(line: str, delimiter: str) -> list[str]:
    """Splits at delimiters that are not escaped by a backslash."""
    pattern = _field(delimiter)
    fields = []
    at = 0
    while True:
        found = pattern.match(line, at)
        if found is None:
            fields.append(line[at:])
            return fields
        fields.append(found[1])
        if not found[2]:
            return fields
        at = found.end()


@lru_cache
def _field(delimiter: str) -> re.Pattern[str]:
    sign = re.escape(delimiter)
    return re.compile(rf"((?:[^\\{sign}]|\\.)*+)({sign}|\Z)", re.S)
