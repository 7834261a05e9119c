"""Long texts in slices: work that Python does in one call, done so that it can be interrupted.

A built-in call (str.split, re.sub, json) holds the GIL until it is done: on 64 Mi characters it takes
seconds, in which no other client is served and no cancel is heard. Here such work goes slice by slice, with a
`check_now` after each. A text of one slice is passed to Python as a whole.

Walk: functions of texts, bytes, arrays and JSON call these.
"""

from collections.abc import Callable, Iterator
from heapq import merge
from re import Match, Pattern
from typing import Any, AnyStr, TypeVar

from tenure.base.interruptible import STEPS_PER_CHECK, check_now, paced_all

T = TypeVar("T")

SLICE = 1 << 16
"""Characters: some 6 ms where each of them costs a turn of a Python loop."""

SORTED_AT_ONCE = 1 << 12
"""Elements: sorting so many takes some 3 ms, and ten times that where their keys are long."""


def slices(text: AnyStr) -> Iterator[AnyStr]:
    for at in range(0, len(text), SLICE):
        if at:
            check_now()
        yield text[at : at + SLICE]


def mapped(text: AnyStr, run: Callable[[AnyStr], AnyStr]) -> AnyStr:
    """`run` of the text, where that is the same as `run` of its slices, joined."""
    if len(text) <= SLICE:
        return run(text)
    parts = [run(each) for each in slices(text)]
    check_now()
    return text[:0].join(parts)


def found_in(pattern: Pattern[str], text: str) -> Match[str] | None:
    """The first match of a pattern of one character."""
    return next((found for each in slices(text) if (found := pattern.search(each))), None)


def split(text: str, separator: str) -> list[str]:
    """text.split(separator)"""
    if len(text) <= SLICE:
        return text.split(separator)
    pieces = [""]
    for first, *others in _cut(text, separator):
        pieces[-1] += first
        pieces += others
    return pieces


def replaced(text: str, sought: str, replacement: str) -> str:
    """text.replace(sought, replacement)"""
    if len(text) <= SLICE:
        return text.replace(sought, replacement)
    parts = [replacement.join(each) for each in _cut(text, sought)]
    check_now()
    return "".join(parts)


def count(text: str, sought: str) -> int:
    """text.count(sought)"""
    return text.count(sought) if len(text) <= SLICE else sum(len(each) - 1 for each in _cut(text, sought))


def _cut(text: str, separator: str) -> Iterator[list[str]]:
    """The parts of slice after slice: the last of one and the first of the next are one part.

    If a slice ends with what may be the beginning of a separator, that is left to the next slice.
    """
    size = max(SLICE, 4 * len(separator))
    at = 0
    while at + size < len(text):
        pieces = text[at : at + size].split(separator)
        kept = min(len(pieces[-1]), len(separator) - 1)
        pieces[-1] = pieces[-1][: len(pieces[-1]) - kept]
        at += size - kept
        yield pieces
        check_now()
    yield text[at:].split(separator)


def substituted(pattern: Pattern[AnyStr], run: Callable[[Match[AnyStr]], AnyStr], text: AnyStr) -> AnyStr:
    """pattern.sub(run, text)"""
    if len(text) <= SLICE:
        return pattern.sub(run, text)
    joined: list[AnyStr] = []
    pieces: list[AnyStr] = []
    nothing = text[:0]
    done = 0
    for found in paced_all(pattern.finditer(text)):
        pieces += (text[done : found.start()], run(found))
        done = found.end()
        if len(pieces) > STEPS_PER_CHECK:
            joined.append(nothing.join(pieces))
            pieces.clear()
    return nothing.join(joined) + nothing.join(pieces) + text[done:]


def ordered(values: list[T], key: Callable[[T], Any], *, is_descending: bool = False) -> list[T]:
    """sorted(values, key=key, reverse=is_descending)"""
    if len(values) <= SORTED_AT_ONCE:
        return sorted(values, key=key, reverse=is_descending)
    runs = []
    for at in range(0, len(values), SORTED_AT_ONCE):
        check_now()
        runs.append(sorted(values[at : at + SORTED_AT_ONCE], key=key, reverse=is_descending))
    return list(paced_all(merge(*runs, key=key, reverse=is_descending)))
