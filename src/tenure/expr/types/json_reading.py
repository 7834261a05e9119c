"""Reading JSON: short texts by Python's decoder at once, long ones piece by piece, so that a cancel is heard.

    [1, 2, {"a": 3}, ... ]      as many members as a piece holds are read at once, if it can be cut behind one
    ["aaaaaa ...", 1]           a member that is longer than a slice is read by itself: an array or an object
                                by its own members, a string slice by slice

A piece that cannot be cut is tried again member by member; what is wrong with a text is said by
`expr.types.json_faults`.

Walk: `expr.types.json_values` calls `read`, and `string_at` and `value_end` are for
`expr.functions.json_functions`.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tenure.base.interruptible import check_now, paced_all
from tenure.expr.types.text_slices import SLICE

DEPTH_MAX = 500
"""Nesting of arrays and objects that are longer than a slice: well below Python's recursion limit."""

FIRST_CHARS = 1000
"""The length that is tried first for a member that is read by itself: most members are no longer."""

PIECE = 1 << 13
"""Characters of members that are decoded at once: some 1.5 ms in which no other thread runs. A few such texts
at a time delay every other client.
"""

_BLANK = re.compile(r"[ \t\n\r]*+")
_SCALAR = re.compile(r"[^ \t\n\r,\]}]*+")
_IN_STRING = re.compile(r'["\\\x00-\x1f]')
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u.{4}|\\.", re.DOTALL)
_STRUCTURE = re.compile(r'["\[\]{}]')
_ENDINGS = (",", "},", "],")
"""A piece is cut behind the last occurrence of one of these, tried in this order."""
_CLOSED = {"[": "]", "{": "}"}

Pairs = list[tuple[str, Any]]


class Reader:
    """Reads as Python's decoder does, with the same hooks: object_pairs_hook and the others."""

    def __init__(self, decoder: json.JSONDecoder) -> None:
        self._decoder = decoder
        hook: Callable[[Pairs], Any] | None = decoder.object_pairs_hook
        self._object = dict if hook is None else hook

    def read(self, text: str) -> Any:
        """Raises ValueError if it is no JSON, RecursionError if it is too deep."""
        if len(text) <= SLICE:
            return self._decoder.decode(text)
        value, end = self._value(text, after_blank(text, 0), 0)
        if after_blank(text, end) != len(text):
            raise ValueError("something follows the value")
        return value

    def _value(self, text: str, at: int, depth: int) -> tuple[Any, int]:
        """The value that begins there, and where it ends."""
        if depth > DEPTH_MAX:
            raise RecursionError
        first = text[at : at + 1]
        if first == '"':
            return string_at(text, at)
        if first not in ("[", "{"):
            found = _SCALAR.match(text, at)
            assert found is not None
            return self._decoder.decode(found[0]), found.end()
        short = self._short(text, at)
        if short is not None:
            return short
        return self._array(text, at, depth) if first == "[" else self._members(text, at, depth)

    def _short(self, text: str, at: int) -> tuple[Any, int] | None:
        """The value if it ends within a slice; None if it does not, or is invalid."""
        check_now()
        for size in (FIRST_CHARS, SLICE):
            try:
                value, length = self._decoder.raw_decode(text[at : at + size])
            except ValueError:
                continue
            return value, at + length
        return None

    def _array(self, text: str, at: int, depth: int) -> tuple[list[Any], int]:
        elements: list[Any] = []
        at = after_blank(text, at + 1)
        if text[at : at + 1] == "]":
            return elements, at + 1
        singly_until = 0
        while True:
            if at >= singly_until:
                singly_until = at + PIECE
                several = self._several(text, at, "[")
                if several is not None:
                    elements += several[0]
                    at = singly_until = several[1]
                    continue
            value, at = self._value(text, at, depth + 1)
            elements.append(value)
            sign, at = _sign(text, at, ",]")
            if sign == "]":
                return elements, at

    def _members(self, text: str, at: int, depth: int) -> tuple[Any, int]:
        pairs: Pairs = []
        at = after_blank(text, at + 1)
        if text[at : at + 1] == "}":
            return self._object(pairs), at + 1
        singly_until = 0
        while True:
            if at >= singly_until:
                singly_until = at + PIECE
                several = self._several(text, at, "{")
                if several is not None:
                    pairs += several[0].items() if isinstance(several[0], dict) else several[0]
                    at = singly_until = several[1]
                    continue
            name, at = self._name(text, at)
            value, at = self._value(text, at, depth + 1)
            pairs.append((name, value))
            sign, at = _sign(text, at, ",}")
            if sign == "}":
                return self._object(pairs), at

    def _name(self, text: str, at: int) -> tuple[str, int]:
        if text[at : at + 1] != '"':
            raise ValueError("a name is expected")
        name, at = string_at(text, at)
        return name, _sign(text, at, ":")[1]

    def _several(self, text: str, at: int, opening: str) -> tuple[Any, int] | None:
        """As many members as the next piece has whole, and where the one after them begins.

        Cut elsewhere than between two members, a piece is no JSON: brackets or quotes are left open.
        """
        check_now()
        piece = text[at : at + PIECE]
        for ending in _ENDINGS:
            cut = piece.rfind(ending)
            if cut < 0:
                continue
            cut += len(ending) - 1
            try:
                values = self._decoder.decode(opening + piece[:cut] + _CLOSED[opening])
            except ValueError:
                continue
            return values, after_blank(text, at + cut + 1)
        return None


def _sign(text: str, at: int, signs: str) -> tuple[str, int]:
    """The next character that is no space, and the position after it."""
    at = after_blank(text, at)
    sign = text[at : at + 1]
    if not sign or sign not in signs:
        raise ValueError(f"one of {signs} is expected")
    return sign, after_blank(text, at + 1)


def after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def string_at(text: str, at: int) -> tuple[str, int]:
    """The string whose first quote stands there, and where it ends. Raises ValueError."""
    end = string_end(text, at)
    if end - at <= SLICE:
        return json.loads(text[at:end]), end
    return "".join(_string_parts(text, at + 1, end - 1)), end


def string_end(text: str, at: int) -> int:
    """Raises ValueError if it does not end."""
    at += 1
    for _ in paced_all(count()):
        found = _IN_STRING.search(text, at)
        if found is None or found[0] < " ":
            break
        if found[0] == '"':
            return found.end()
        at = found.end() + 1
    raise ValueError("the string does not end")


def _string_parts(text: str, at: int, end: int) -> Iterator[str]:
    """Slices that end before an escape are read as strings of their own; pairs of surrogates stay
    together."""
    while at < end:
        check_now()
        cut = min(end, at + SLICE)
        if cut < end:
            cut = _safe_cut(text, at, cut)
        yield json.loads(f'"{text[at:cut]}"')
        at = cut


def _safe_cut(text: str, start: int, at: int) -> int:
    """A position shortly before `at` that is neither inside an escape nor between two surrogates."""
    for cut in range(at, max(start, at - 1000), -1):
        if "\\" not in text[max(0, cut - 12) : cut + 1]:
            return cut
    # There are only escapes: they are counted from the start, one by one.
    cut = start
    while cut < at:
        found = _ESCAPE.match(text, cut)
        cut = cut + 1 if found is None else found.end()
    return cut


def value_end(text: str, at: int) -> int:
    """The end of the value that begins there, in a valid text."""
    if text[at] == '"':
        return string_end(text, at)
    if text[at] not in "[{":
        found = _SCALAR.match(text, at)
        assert found is not None
        return found.end()
    depth = 0
    for _ in paced_all(count()):
        found = _STRUCTURE.search(text, at)
        assert found is not None, "a JSON text ends before its value does"
        if found[0] == '"':
            at = string_end(text, found.start())
            continue
        depth += 1 if found[0] in "[{" else -1
        at = found.end()
        if not depth:
            break
    return at
