"""Functions of text and bytes.

Letters change their case one by one, by Unicode's simple mapping, wherever the server runs: as in
PostgreSQL under the collation pg_c_utf8. Positions count characters, from one.

Walk: `expr.functions` lists these.
"""

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from hashlib import md5
from typing import Any

from tenure.base.errors import InvalidParameter
from tenure.expr.casts import ASSIGNMENT, cast_function
from tenure.expr.datatype import Type
from tenure.expr.errors import InvalidEscape, LimitExceeded, SubstringError
from tenure.expr.function import Function, Volatility, function
from tenure.expr.strings import TEXT

LENGTH_MAX = 2**28
"""Characters that a function makes of little input: PostgreSQL's gigabyte, at four bytes each."""


def functions() -> Iterator[Function]:
    yield from _plain()
    yield from _likes()
    yield from _joins()


def _plain() -> Iterator[Function]:
    for name in ("length", "char_length", "character_length"):
        yield function(name, "text -> int4", len)
    yield function("length", "bytea -> int4", len)
    yield function("octet_length", "bytea -> int4", len)
    for family in ("text", "char"):
        yield function("octet_length", f"{family} -> int4", lambda text: len(text.encode()))
    yield function("lower", "text -> text", lower)
    yield function("upper", "text -> text", upper)
    for name in ("substr", "substring"):
        yield function(name, "text, int4 -> text", lambda text, start: text[max(start - 1, 0) :])
        yield function(name, "text, int4, int4 -> text", _substring)
        yield function(name, "bytea, int4 -> bytea", lambda data, start: data[max(start - 1, 0) :])
        yield function(name, "bytea, int4, int4 -> bytea", _substring)
    for name, strip in (("btrim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        yield function(name, "text -> text", partial(_strip_spaces, strip))
        yield function(name, "text, text -> text", partial(_strip, strip))
    yield function("replace", "text, text, text -> text", _replace)
    for name in ("position", "strpos"):
        yield function(name, "text, text -> int4", lambda text, sought: text.find(sought) + 1)
    yield function("left", "text, int4 -> text", lambda text, count: text[:count])
    yield function("right", "text, int4 -> text", _right)
    yield function("lpad", "text, int4 -> text", lambda text, size: _pad_left(text, size, " "))
    yield function("lpad", "text, int4, text -> text", _pad_left)
    yield function("rpad", "text, int4 -> text", lambda text, size: _pad_right(text, size, " "))
    yield function("rpad", "text, int4, text -> text", _pad_right)
    yield function("repeat", "text, int4 -> text", _repeat)
    yield function("reverse", "text -> text", lambda text: text[::-1])
    yield function("split_part", "text, text, int4 -> text", _split_part)
    yield function("starts_with", "text, text -> bool", str.startswith)
    yield function("^@", "text, text -> bool", str.startswith)
    yield function("md5", "text -> text", lambda text: _md5(text.encode()))
    yield function("md5", "bytea -> text", _md5)


def lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join([_lower_one(each) for each in text])


def upper(text: str) -> str:
    return text.upper() if text.isascii() else "".join([_upper_one(each) for each in text])


def _lower_one(letter: str) -> str:
    lowered = letter.lower()
    return lowered if len(lowered) == 1 else lowered[0]


def _upper_one(letter: str) -> str:
    """Where the whole mapping gives several letters, the simple one is the title case or none."""
    for mapped in (letter.upper(), letter.title()):
        if len(mapped) == 1:
            return mapped
    return letter


def _substring(text: Any, start: int, length: int) -> Any:
    if length < 0:
        raise SubstringError("negative substring length not allowed")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _strip_spaces(strip: Any, text: str) -> str:
    stripped: str = strip(text, " ")
    return stripped


def _strip(strip: Any, text: str, letters: str) -> str:
    return strip(text, letters) if letters else text


def _replace(text: str, sought: str, replacement: str) -> str:
    return text.replace(sought, replacement) if sought else text


def _right(text: str, count: int) -> str:
    return text[-count:] if count else ""


def _pad_left(text: str, size: int, fill: str) -> str:
    missing = size - len(text)
    return text[: max(size, 0)] if missing <= 0 or not fill else _filling(missing, fill) + text


def _pad_right(text: str, size: int, fill: str) -> str:
    missing = size - len(text)
    return text[: max(size, 0)] if missing <= 0 or not fill else text + _filling(missing, fill)


def _repeat(text: str, count: int) -> str:
    _check_length(len(text) * count)
    return text * max(count, 0)


def _check_length(size: int) -> None:
    if size > LENGTH_MAX:
        raise LimitExceeded("requested length too large")


def _filling(size: int, fill: str) -> str:
    _check_length(size)
    return (fill * (size // len(fill) + 1))[:size]


def _split_part(text: str, separator: str, field: int) -> str:
    if field == 0:
        raise InvalidParameter("field position must not be zero")
    parts = text.split(separator) if separator else [text]
    at = field - 1 if field > 0 else len(parts) + field
    return parts[at] if 0 <= at < len(parts) else ""


def _md5(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()


# LIKE


def _likes() -> Iterator[Function]:
    for family in ("text", "char"):
        pair = (family, "text")
        yield Function("~~", pair, "bool", like)
        yield Function("!~~", pair, "bool", lambda text, pattern: not like(text, pattern))
        yield Function("~~*", pair, "bool", ilike)
        yield Function("!~~*", pair, "bool", lambda text, pattern: not ilike(text, pattern))
    yield Function("like_escape", ("text", "text"), "text", like_escape)


def like(text: str, pattern: str) -> bool:
    whole, unfinished = _like_pattern(pattern)
    if unfinished is None:
        return whole.fullmatch(text) is not None
    # Like PostgreSQL, complain about the escape at the end only if matching gets there with text left.
    if any(unfinished.fullmatch(text, 0, end) for end in range(len(text))):
        raise InvalidEscape("LIKE pattern must not end with escape character")
    return False


def ilike(text: str, pattern: str) -> bool:
    return like(lower(text), lower(pattern))


def like_escape(pattern: str, escape: str) -> str:
    """Rewrites a pattern with its own escape character, or none, to one with a backslash."""
    if len(escape) > 1:
        raise InvalidEscape("invalid escape string: it must be empty or one character")
    if escape == "\\":
        return pattern
    if not escape:
        return pattern.replace("\\", "\\\\")
    rewritten, is_after_escape = [], False
    for each in pattern:
        if each == escape and not is_after_escape:
            rewritten.append("\\")
            is_after_escape = True
        else:
            rewritten.append("\\\\" if each == "\\" and not is_after_escape else each)
            is_after_escape = False
    return "".join(rewritten)


@lru_cache(maxsize=1024)
def _like_pattern(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """The pattern as a regular expression; the second one of it without an escape at its end."""
    segments, is_unfinished = [""], False
    letters = iter(pattern)
    for each in letters:
        if each == "%":
            segments.append("")
        elif each == "_":
            segments[-1] += "."
        elif each == "\\":
            escaped = next(letters, None)
            is_unfinished = escaped is None
            segments[-1] += re.escape(escaped or "")
        else:
            segments[-1] += re.escape(each)
    compiled = re.compile(_leftmost(segments), re.DOTALL)
    return compiled, compiled if is_unfinished else None


def _leftmost(segments: list[str]) -> str:
    """Each segment between two % is matched where it first fits and never again: no blow-up."""
    if len(segments) == 1:
        return segments[0]
    first, *middle, last = segments
    return first + "".join([f"(?>.*?{each})" for each in middle if each]) + ".*" + last


# Joining


def _joins() -> Iterator[Function]:
    yield Function("||", ("text", "text"), "text", lambda left, right: left + right)
    yield Function("||", ("bytea", "bytea"), "bytea", lambda left, right: left + right)
    for pair in (("text", "anynonarray"), ("anynonarray", "text")):
        yield Function("||", pair, "text", _join_as_text, Volatility.STABLE, wants_types=True)
    for name, arguments, make in (("concat", ("any",), _concat), ("concat_ws", ("text", "any"), _concat_ws)):
        yield Function(
            name,
            arguments,
            "text",
            make,
            Volatility.STABLE,
            is_strict=False,
            is_variadic=True,
            wants_types=True,
        )


def _as_text(kind: Type) -> Any:
    convert = cast_function(kind, TEXT, ASSIGNMENT)
    return convert if convert is not None else lambda value: value


def _output(kind: Type) -> Any:
    return kind.render


def _join_as_text(left: Type, right: Type) -> Any:
    to_left, to_right = _as_text(left), _as_text(right)
    return lambda a, b: to_left(a) + to_right(b)


def _concat(*types: Type) -> Any:
    outputs = [_output(each) for each in types]
    return lambda *values: "".join(
        [output(value) for output, value in zip(outputs, values, strict=True) if value is not None]
    )


def _concat_ws(separator: Type, *types: Type) -> Any:
    outputs = [_output(each) for each in types]

    def joined(between: str | None, *values: Any) -> str | None:
        if between is None:
            return None
        pairs = zip(outputs, values, strict=True)
        return between.join([output(value) for output, value in pairs if value is not None])

    return joined
