"""LIKE: what a pattern with % and _ matches.

    'a%b_c%'     three segments: "a" at the start, "b_c" where it first fits, "" at the end

A segment between two % is searched from the end of the segment before it. Its first match is final: a later
one would leave less text for the remaining segments. So a segment of letters costs one linear search of
Python's. A segment with _ is searched by its longest run of letters, and tried at each place where that run
occurs.

Walk: `expr.functions.text_functions` lists the functions; `like` matches.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tenure.base.errors import InvalidEscape, LimitExceeded
from tenure.base.interruptible import STEPS_PER_CHECK, check_now, paced
from tenure.expr.functions.function import Function, function
from tenure.expr.functions.letters import lower

PATTERN_CHARS_MAX = 1 << 20
"""For patterns with %, _ or escapes: compiling one needs about a hundred times its length in memory."""

SHORT_CHARS_MAX = 4096
"""Texts up to this length are matched by a regular expression: it cannot be interrupted, but takes only a few
milliseconds."""

CACHED_CHARS_MAX = 1000
"""Longer patterns are not cached: they are read at each use."""


def functions() -> Iterator[Function]:
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


def ilike(text: str, pattern: str) -> bool:
    return like(lower(text), lower(pattern))


def like(text: str, pattern: str) -> bool:
    if len(text) <= SHORT_CHARS_MAX and len(pattern) <= CACHED_CHARS_MAX:
        expression, is_unfinished = _expression(pattern)
        is_match = expression.fullmatch(text) is not None
    else:
        segments, is_unfinished = _read_pattern(pattern)
        is_match = _matches(text, segments)
    # Like PostgreSQL, complain about the escape at the end only if matching gets there with text left.
    if is_match and is_unfinished:
        raise InvalidEscape("LIKE pattern must not end with escape character")
    return is_match


class Segment(NamedTuple):
    """The pattern between two %: runs of letters at their positions, any character elsewhere."""

    length: int
    runs: tuple[tuple[int, str], ...]


_SIGN = re.compile(r"[%_\\]")
_EMPTY = Segment(0, ())
_Pattern = tuple[tuple[Segment, ...], bool]


def _read_pattern(pattern: str) -> _Pattern:
    """The segments, and whether the pattern ends with an escape; then the segments are those before it."""
    if not _SIGN.search(pattern):
        return (Segment(len(pattern), ((0, pattern),)),), False
    if len(pattern) > PATTERN_CHARS_MAX:
        raise LimitExceeded(f"the LIKE pattern has more than {PATTERN_CHARS_MAX} characters")
    segments: list[Segment] = []
    runs: list[tuple[int, str]] = []
    letters: list[str] = []
    length, is_unfinished = 0, False

    def end_run() -> None:
        if letters:
            runs.append((length - len(letters), "".join(letters)))
            letters.clear()

    characters = iter(paced(pattern))
    for each in characters:
        if each == "%":
            end_run()
            segments.append(Segment(length, tuple(runs)))
            runs.clear()
            length = 0
            continue
        if each == "_":
            end_run()
        else:
            letter = next(characters, None) if each == "\\" else each
            is_unfinished = letter is None
            if letter is None:
                break
            letters.append(letter)
        length += 1
    end_run()
    if is_unfinished:
        return (*segments, Segment(length + 1, tuple(runs)), _EMPTY), True
    return (*segments, Segment(length, tuple(runs))), False


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> tuple[re.Pattern[str], bool]:
    """The same as a regular expression, which is faster on short texts. It takes each segment where it
    first fits."""
    segments, is_unfinished = _read_pattern(pattern)
    first, *others = map(_expressed, segments)
    if not others:
        return re.compile(first, re.DOTALL), is_unfinished
    *middle, last = others
    tried = "".join([f"(?>.*?{each})" for each in middle if each])
    return re.compile(f"{first}{tried}.*{last}", re.DOTALL), is_unfinished


def _expressed(segment: Segment) -> str:
    expression, at = "", 0
    for place, letters in segment.runs:
        expression += "." * (place - at) + re.escape(letters)
        at = place + len(letters)
    return expression + "." * (segment.length - at)


def _matches(text: str, segments: tuple[Segment, ...]) -> bool:
    first, *others = segments
    if not others:
        return len(text) == first.length and _fits(text, first, 0)
    *middle, last = others
    end = len(text) - last.length
    if first.length > end or not _fits(text, first, 0) or not _fits(text, last, end):
        return False
    at = first.length
    for segment in paced(middle):
        found = _find(text, segment, at, end)
        if found < 0:
            return False
        at = found + segment.length
    return True


def _fits(text: str, segment: Segment, at: int) -> bool:
    if len(segment.runs) <= 1:
        return not segment.runs or text.startswith(segment.runs[0][1], at + segment.runs[0][0])
    return all(text.startswith(letters, at + place) for place, letters in paced(segment.runs))


def _find(text: str, segment: Segment, at: int, end: int) -> int:
    """The first place from `at` on where the segment fits before `end`; -1 if there is none."""
    if not segment.runs:
        return at if at + segment.length <= end else -1
    place, letters = max(segment.runs, key=lambda run: len(run[1]))
    if len(segment.runs) == 1 and segment.length == len(letters):
        return text.find(letters, at, end)
    last = end - segment.length + place + len(letters)
    tries, per_check = 0, max(1, STEPS_PER_CHECK // len(segment.runs))
    while (found := text.find(letters, at + place, last)) >= 0:
        if _fits(text, segment, found - place):
            return found - place
        at = found - place + 1
        tries += 1
        if tries % per_check == 0:
            check_now()
    return -1


def like_escape(pattern: str, escape: str) -> str:
    """Rewrites a pattern with its own escape character, or none, to one with a backslash."""
    if len(escape) > 1:
        raise InvalidEscape("invalid escape string: it must be empty or one character")
    if escape == "\\":
        return pattern
    if not escape:
        return pattern.replace("\\", "\\\\")
    rewritten, is_after_escape = [], False
    for each in paced(pattern):
        if each == escape and not is_after_escape:
            rewritten.append("\\")
            is_after_escape = True
        else:
            rewritten.append("\\\\" if each == "\\" and not is_after_escape else each)
            is_after_escape = False
    return "".join(rewritten)
