"""The first fault of a text that is not JSON, from left to right, in PostgreSQL's words.

Python's decoder reads valid texts; it is fast, but its messages differ from PostgreSQL's. Only texts that it,
or a check after it, refuses come here. jsonb decodes escapes; json only checks their form.

Walk: `expr.types.json_values` calls `fault`.
"""

import re
from collections.abc import Iterator
from itertools import count

from tenure.base.errors import InvalidText, UntranslatableCharacter, UserError
from tenure.base.interruptible import check_now, paced_all

_SPACE = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]+|.|", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_LIKE = re.compile(
    r"-?(?:0|[1-9][0-9]*|)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?[A-Za-z0-9_\x80-\U0010ffff]*"
)
_LETTERS = re.compile(r'[^"\\\x00-\x1f]+')
_HEX = re.compile("[0-9a-fA-F]{0,4}")
_STRING, _SCALAR, _END = "string", "scalar", "end"


class _Fault(Exception):
    def __init__(self, detail: str, *, is_zero: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.is_zero = is_zero


def fault(text: str, *, reads_escapes: bool) -> UserError:
    try:
        _check(_tokens(text, reads_escapes))
    except _Fault as found:
        if found.is_zero:
            return UntranslatableCharacter("unsupported Unicode escape sequence", detail=found.detail)
        return InvalidText("invalid input syntax for type json", detail=found.detail)
    return InvalidText("invalid input syntax for type json")


def _check(tokens: Iterator[tuple[str, str]]) -> None:
    """Follows the grammar; `closers` are the brackets that are open."""
    closers: list[str] = []
    wanted, may_close = "JSON value", False
    for kind, token in tokens:
        if wanted == "JSON value":
            if token in ("{", "["):
                closers.append("}" if token == "{" else "]")
                wanted, may_close = ('string or "}"' if token == "{" else wanted), token == "["
                continue
            if token == "]" and may_close:
                closers.pop()
            elif kind not in (_STRING, _SCALAR):
                raise _expected(wanted, kind, token)
            may_close = False
        elif wanted in ('string or "}"', "string"):
            if kind == _STRING:
                wanted = '":"'
                continue
            if token != "}" or wanted == "string":
                raise _expected(wanted, kind, token)
            closers.pop()
        elif wanted == '":"':
            if token != ":":
                raise _expected(wanted, kind, token)
            wanted = "JSON value"
            continue
        elif not closers:
            if kind == _END:
                return
            raise _expected("end of input", kind, token)
        elif token == "," and kind != _STRING:
            wanted = "string" if closers[-1] == "}" else "JSON value"
            continue
        elif token == closers[-1]:
            closers.pop()
        else:
            raise _expected(wanted, kind, token)
        wanted = f'"," or "{closers[-1]}"' if closers else "end of input"


def _expected(wanted: str, kind: str, token: str) -> _Fault:
    if kind == _END:
        return _Fault("The input string ended unexpectedly.")
    return _Fault(f'Expected {wanted}, but found "{token}".')


def _tokens(text: str, reads_escapes: bool) -> Iterator[tuple[str, str]]:
    at = 0
    for _ in paced_all(count()):
        space = _SPACE.match(text, at)
        assert space is not None
        start = at = space.end()
        first = text[at : at + 1]
        if not first:
            yield _END, ""
        elif first in "{}[],:":
            at += 1
            yield first, first
        elif first == '"':
            at = _string_end(text, at, reads_escapes)
            yield _STRING, text[start:at]
        else:
            pattern = _NUMBER_LIKE if first in "-0123456789" else _WORD
            found = pattern.match(text, at)
            assert found is not None
            token = found[0]
            check_now()  # it may be as long as the text, and each look at it takes a while
            if not _NUMBER.fullmatch(token) and token not in ("true", "false", "null"):
                raise _invalid(token)
            at = found.end()
            yield _SCALAR, token


def _string_end(text: str, start: int, reads_escapes: bool) -> int:
    at, high = start + 1, False
    for _ in paced_all(count()):
        if not high and (plain := _LETTERS.match(text, at)):
            at = plain.end()
        each = text[at : at + 1]
        if not each:
            raise _invalid(text[start:])
        if each == "\\":
            at, high = _escape_end(text, start, at + 1, reads_escapes, high)
            continue
        if high:
            raise _low_surrogate()
        if each == '"':
            return at + 1
        if each < " ":
            raise _Fault(f"Character with value 0x{ord(each):02x} must be escaped.")
        at += 1
    raise AssertionError("an endless count has ended")


def _escape_end(text: str, start: int, at: int, reads_escapes: bool, high: bool) -> tuple[int, bool]:
    """The end of the escape, and whether it is a high surrogate; `high`: whether one came just before."""
    letter = text[at : at + 1]
    if not letter:
        raise _invalid(text[start:])
    if letter != "u":
        if high:
            raise _low_surrogate()
        if letter not in '"\\/bfnrt':
            raise _Fault(f'Escape sequence "\\{letter}" is invalid.')
        return at + 1, False
    found = _HEX.match(text, at + 1)
    assert found is not None
    if len(found[0]) < 4:
        if found.end() == len(text):
            raise _invalid(text[start:])
        raise _Fault('"\\u" must be followed by four hexadecimal digits.')
    return found.end(), reads_escapes and _is_high(int(found[0], 16), high)


def _is_high(code: int, high: bool) -> bool:
    if 0xD800 <= code <= 0xDBFF:
        if high:
            raise _Fault("Unicode high surrogate must not follow a high surrogate.")
        return True
    if (0xDC00 <= code <= 0xDFFF) != high:
        raise _low_surrogate()
    if not code:
        raise _Fault("\\u0000 cannot be converted to text.", is_zero=True)
    return False


def _low_surrogate() -> _Fault:
    return _Fault("Unicode low surrogate must follow a high surrogate.")


def _invalid(token: str) -> _Fault:
    return _Fault(f'Token "{token}" is invalid.')
