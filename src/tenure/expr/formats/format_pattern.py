"""The patterns of to_char and its inverses, cut into keywords and text.

    'FMMonth DD"th day"'    FMMonth, " ", DD, "th day"

At each place the longest keyword that fits is taken. Text in quotes or after a backslash is never a keyword.

Walk: `expr.formats.number_format` and `expr.formats.time_format` call `pieces` with their keywords.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from tenure.base.errors import LimitExceeded
from tenure.base.interruptible import STEPS_PER_CHECK, check_now

PATTERN_CHARS_MAX = 1 << 17
"""Working through a pattern needs about a hundred times its length in memory."""

CACHED_CHARS_MAX = 1000
"""Longer patterns are not cached: they are read at each use."""

T = TypeVar("T")


class PatternPiece(NamedTuple):
    text: str
    keyword: str = ""
    """"" for plain text."""
    is_quoted: bool = False
    prefix: str = ""
    suffix: str = ""


def pieces(
    pattern: str, keywords: Sequence[str], prefixes: Sequence[str] = (), suffixes: Sequence[str] = ()
) -> list[PatternPiece]:
    """A prefix counts only if a keyword follows it, a suffix only if one precedes it; else it is dropped."""
    if len(pattern) > PATTERN_CHARS_MAX:
        raise LimitExceeded(f"the format has more than {PATTERN_CHARS_MAX} characters")
    longest_first = sorted(keywords, key=len, reverse=True)
    found: list[PatternPiece] = []
    at = 0
    while at < len(pattern):
        if len(found) % STEPS_PER_CHECK == 0:
            check_now()
        prefix = _first(pattern, at, prefixes)
        at += len(prefix)
        keyword = _first(pattern, at, longest_first)
        if keyword:
            at += len(keyword)
            suffix = _first(pattern, at, suffixes)
            at += len(suffix)
            found.append(PatternPiece(keyword, keyword, prefix=prefix, suffix=suffix))
        elif at == len(pattern):
            break
        elif pattern[at] == '"':
            text, at = _quoted(pattern, at + 1)
            found += [PatternPiece(each, is_quoted=True) for each in text]
        elif pattern[at] == "\\" and pattern[at + 1 : at + 2] == '"':
            found.append(PatternPiece('"', is_quoted=True))
            at += 2
        else:
            found.append(PatternPiece(pattern[at]))
            at += 1
    return found


def _first(pattern: str, at: int, words: Sequence[str]) -> str:
    return next((each for each in words if pattern.startswith(each, at)), "")


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """The text up to the closing quote, and where the pattern goes on."""
    text = ""
    while at < len(pattern) and pattern[at] != '"':
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
        text += pattern[at]
        at += 1
    return text, at + 1


def kept(read: Callable[[str], T]) -> Callable[[str], T]:
    """The same, but short patterns are read once."""
    cached = lru_cache(maxsize=512)(read)
    return lambda pattern: (cached if len(pattern) <= CACHED_CHARS_MAX else read)(pattern)


def ordinal(number: str, *, is_upper: bool) -> str:
    """st, nd, rd or th."""
    last = number[-1:]
    is_teen = number[-2:-1] == "1"
    suffix = {"1": "st", "2": "nd", "3": "rd"}.get(last, "th") if not is_teen else "th"
    return suffix.upper() if is_upper else suffix
