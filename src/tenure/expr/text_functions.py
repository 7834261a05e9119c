"""Functions of text and bytes.

Letters change their case one by one, by Unicode's simple mapping, wherever the server runs: as in
PostgreSQL under the collation pg_c_utf8. Positions count characters, from one.

Walk: `expr.functions` lists these.
"""

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from tenure.base.errors import InvalidParameter
from tenure.base.memory import LARGE_BYTES
from tenure.expr.errors import InvalidEscape, OutOfRange, SubstringError
from tenure.expr.function import Function, function
from tenure.expr.lengths import check_length
from tenure.expr.numbers import fits


def functions() -> Iterator[Function]:
    yield from _plain()
    yield from _likes()


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
    for family in ("text", "bytea"):
        yield function("overlay", f"{family}, {family}, int4, int4 -> {family}", _overlay)
        yield function("overlay", f"{family}, {family}, int4 -> {family}", _overlay)
    yield function("initcap", "text -> text", initcap)
    yield function("translate", "text, text, text -> text", _translate)
    yield function("bit_length", "text -> int4", lambda text: 8 * len(text.encode()))
    yield function("bit_length", "bytea -> int4", lambda data: 8 * len(data))
    for name, cut in (("btrim", bytes.strip), ("ltrim", bytes.lstrip), ("rtrim", bytes.rstrip)):
        yield function(name, "bytea, bytea -> bytea", partial(_strip, cut))
    yield function("position", "bytea, bytea -> int4", lambda data, sought: data.find(sought) + 1)
    yield function("reverse", "bytea -> bytea", lambda data: data[::-1])


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


def _strip(strip: Any, text: Any, letters: Any) -> Any:
    return strip(text, letters) if letters else text


def _replace(text: str, sought: str, replacement: str) -> str:
    if not sought:
        return text
    if len(replacement) > len(sought) and len(text) * len(replacement) > LARGE_BYTES:
        check_length(len(text) + text.count(sought) * (len(replacement) - len(sought)))
    return text.replace(sought, replacement)


def _right(text: str, count: int) -> str:
    if not fits(-count, 4):
        # What has no opposite in 32 bits cuts nothing off.
        return text
    return text[-count:] if count else ""


def _pad_left(text: str, size: int, fill: str) -> str:
    missing = size - len(text)
    return text[: max(size, 0)] if missing <= 0 or not fill else _filling(missing, fill) + text


def _pad_right(text: str, size: int, fill: str) -> str:
    missing = size - len(text)
    return text[: max(size, 0)] if missing <= 0 or not fill else text + _filling(missing, fill)


def _repeat(text: str, count: int) -> str:
    check_length(len(text) * count)
    return text * max(count, 0)


def _filling(size: int, fill: str) -> str:
    check_length(size)
    return (fill * (size // len(fill) + 1))[:size]


def _split_part(text: str, separator: str, field: int) -> str:
    if field == 0:
        raise InvalidParameter("field position must not be zero")
    parts = text.split(separator) if separator else [text]
    at = field - 1 if field > 0 else len(parts) + field
    return parts[at] if 0 <= at < len(parts) else ""


def _overlay(text: Any, new: Any, start: int, length: int | None = None) -> Any:
    if start <= 0:
        raise SubstringError("negative substring length not allowed")
    end = start + (len(new) if length is None else length)
    _check_int4(end)
    check_length(len(text) + len(new))
    return text[: start - 1] + new + text[max(end - 1, 0) :]


def _check_int4(value: int) -> None:
    if not fits(value, 4):
        raise OutOfRange("integer out of range")


def initcap(text: str) -> str:
    letters, is_inside = [], False
    for each in text:
        letters.append(_lower_one(each) if is_inside else _title_one(each))
        is_inside = each.isalnum()
    return "".join(letters)


def _title_one(letter: str) -> str:
    titled = letter.title()
    return titled if len(titled) == 1 else letter


def _translate(text: str, sought: str, replacements: str) -> str:
    """Letters without a counterpart are removed; of a letter named twice, the first counts."""
    table = {ord(each): replacements[at : at + 1] or None for at, each in reversed(list(enumerate(sought)))}
    return text.translate(table)


# LIKE


def _likes() -> Iterator[Function]:
    for family in ("text", "char"):
        pair = (family, "text")
        yield Function("~~", pair, "bool", like)
        yield Function("!~~", pair, "bool", lambda text, pattern: not like(text, pattern))
        yield Function("~~*", pair, "bool", ilike)
        yield Function("!~~*", pair, "bool", lambda text, pattern: not ilike(text, pattern))
    yield function("~~", "bytea, bytea -> bool", _like_bytes)
    yield function("!~~", "bytea, bytea -> bool", lambda data, pattern: not _like_bytes(data, pattern))
    yield Function("like_escape", ("text", "text"), "text", like_escape)


def _like_bytes(data: bytes, pattern: bytes) -> bool:
    return like(data.decode("latin-1"), pattern.decode("latin-1"))


def like(text: str, pattern: str) -> bool:
    whole, unfinished = _like_pattern(pattern)
    if unfinished is None:
        return whole.fullmatch(text) is not None
    # Like PostgreSQL, complain about the escape at the end only if matching gets there with text left.
    if unfinished.fullmatch(text):
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
    """The pattern as a regular expression; if an escape ends it, also of what comes before and more text."""
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
    if not is_unfinished:
        return compiled, None
    longer = [*segments[:-1], segments[-1] + ".", ""]
    return compiled, re.compile(_leftmost(longer), re.DOTALL)


def _leftmost(segments: list[str]) -> str:
    """Each segment between two % is matched where it first fits and never again: no blow-up."""
    if len(segments) == 1:
        return segments[0]
    first, *middle, last = segments
    return first + "".join([f"(?>.*?{each})" for each in middle if each]) + ".*" + last
