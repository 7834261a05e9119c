"""Functions of text and bytes.

Letters change their case one by one, by Unicode's simple mapping, wherever the server runs: as in
PostgreSQL under the collation pg_c_utf8. Positions count characters, from one.

Walk: `expr.function_table` lists these.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tenure.base.errors import InvalidParameter, OutOfRange, SubstringError
from tenure.base.interruptible import paced, paced_all
from tenure.base.memory import LARGE_BYTES
from tenure.expr.functions import like
from tenure.expr.functions.function import Function, function
from tenure.expr.functions.letters import initcap, lower, upper
from tenure.expr.types.numbers import fits
from tenure.expr.types.text_slices import SLICE, count, mapped, replaced, slices
from tenure.expr.types.value_lengths import check_length


def functions() -> Iterator[Function]:
    yield from _plain()
    yield from like.functions()


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
    for name, left, right in (("btrim", True, True), ("ltrim", True, False), ("rtrim", False, True)):
        strip = partial(_strip, left=left, right=right)
        yield function(name, "text -> text", lambda text, strip=strip: strip(text, " "))
        yield function(name, "text, text -> text", strip)
        yield function(name, "bytea, bytea -> bytea", strip)
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
    yield function("position", "bytea, bytea -> int4", lambda data, sought: data.find(sought) + 1)
    yield function("reverse", "bytea -> bytea", lambda data: data[::-1])


def _substring(text: Any, start: int, length: int) -> Any:
    if length < 0:
        raise SubstringError("negative substring length not allowed")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _strip(text: Any, letters: Any, *, left: bool, right: bool) -> Any:
    if len(letters) > LETTERS_MAX:
        return _strip_many(text, letters, left=left, right=right)
    if not letters:
        return text
    if len(text) <= SLICE:
        stripped = text.lstrip(letters) if left else text
        return stripped.rstrip(letters) if right else stripped
    first, last = 0, len(text)
    if left:
        first = _stripped_before(slices(text), letters)
    if right and first < last:
        # The reversed text is stripped from its start.
        last -= _stripped_before(slices(text[::-1]), letters)
    return text[first:last]


LETTERS_MAX = 256
"""The most letters that are stripped in one call: Python compares each character of the text with all of
them."""


def _stripped_before(letters_in_order: Iterator[Any], letters: Any) -> int:
    """How many characters at the start are all among the letters."""
    stripped = 0
    for each in letters_in_order:
        rest = len(each.lstrip(letters))
        stripped += len(each) - rest
        if rest:
            break
    return stripped


def _strip_many(text: Any, letters: Any, *, left: bool, right: bool) -> Any:
    unwanted: set[Any] = set()
    for each in slices(letters):
        unwanted.update(each)
    first, last = 0, len(text)
    if left:
        first = next((at for at, each in enumerate(paced(text)) if each not in unwanted), last)
    if right and first < last:
        last -= next((at for at, each in enumerate(paced(text[::-1])) if each not in unwanted), last)
    return text[first:last]


def _replace(text: str, sought: str, replacement: str) -> str:
    if not sought:
        return text
    if len(replacement) > len(sought) and len(text) * len(replacement) > LARGE_BYTES:
        check_length(len(text) + count(text, sought) * (len(replacement) - len(sought)))
    return replaced(text, sought, replacement)


def _right(text: str, count: int) -> str:
    if not fits(-count, 4):
        # The least int4 has no negative: as in PostgreSQL, nothing is cut off.
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
    if not separator:
        return text if field in (1, -1) else ""
    before = field - 1 if field > 0 else count(text, separator) + 1 + field
    start = 0
    for _ in paced_all(range(before)):
        found = text.find(separator, start)
        if found < 0:
            return ""
        start = found + len(separator)
    if before < 0:
        return ""
    end = text.find(separator, start)
    return text[start:] if end < 0 else text[start:end]


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


def _translate(text: str, sought: str, replacements: str) -> str:
    """Letters without a counterpart are removed; of a letter named twice, the first counts."""
    table: dict[int, str | None] = {}
    for at, each in enumerate(paced(sought)):
        table.setdefault(ord(each), replacements[at : at + 1] or None)
    return mapped(text, lambda part: part.translate(table))
