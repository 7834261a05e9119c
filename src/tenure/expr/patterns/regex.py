"""Regular expressions in linear time: RE2 behind PostgreSQL's syntax.

RE2 matches every pattern in time linear in the text and within bounded memory. It prefers the longest match,
as PostgreSQL does; if all quantifiers are non-greedy, the shortest.

The factor depends on the pattern. It is small for patterns of a few atoms; for others it is the size of the
compiled program. Its product with the length of the text is bounded (54000), since a search cannot be
interrupted.

Invariant (regex-linear): no pattern makes matching take more than time linear in the text.

Walk: `expr.patterns.regex_functions` calls these; `re2` is known to this file alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from tenure.base.errors import InvalidRegex, LimitExceeded, NotSupported
from tenure.base.interruptible import check_now
from tenure.expr.patterns.regex_syntax import RegexOptions, Translated, translate

COMPILED_MAX = 64
"""Compiled expressions that are cached: each may hold `MEMORY_MAX` bytes."""

MEMORY_MAX = 8 << 20
"""Bytes for one compiled pattern."""

PATTERN_CHARS_MAX = 1 << 16
"""The longest pattern passed to RE2, which takes 0.3 s to refuse one of this length; longer ones never
fit."""

CACHED_CHARS_MAX = 1000
"""Longer patterns are not cached: they are compiled at each use."""

SURE_POSITIONS_MAX = 8
"""A pattern of so few atoms has a small automaton, with which each character costs about a nanosecond."""

STEPS_MAX = 200_000_000
"""The bound for other patterns, in instructions times characters: if the automaton becomes too large, RE2
takes some 6 ns for each of them."""

MATCHES_PER_CHECK = 256


@dataclass(frozen=True)
class Regex:
    compiled: Any
    quick: Any
    """The same without groups: finds where a match is, but not its groups."""
    is_mixed: bool
    has_boundaries: bool
    is_sure: bool
    """Whether searching is fast for texts of any length."""

    @property
    def groups(self) -> int:
        return int(self.compiled.groups)

    def is_in(self, text: str) -> bool:
        self._check_text(text)
        self._check_work(self.quick, len(text))
        return self.quick.search(text) is not None

    def search(self, text: str, start: int = 0) -> Any:
        """The leftmost match from there on: has start(), end(), group(n), as those of `re`."""
        return next(self.matches(text, start), None)

    def matches(self, text: str, start: int = 0, *, wants_groups: bool = True) -> Iterator[Any]:
        """All matches from left to right; after an empty one the search goes on one character later.

        The text is encoded once for all of them: one search after the other would take quadratic time.
        """
        self._check_mixed()
        self._check_text(text)
        self._check_work(self.quick, len(text))
        if start > len(text):  # RE2 would search at the end of the text
            return
        last = None
        for number, found in enumerate(self._found(text, start, wants_groups=wants_groups), 1):
            if number % MATCHES_PER_CHECK == 0:
                check_now()
            if found.span() != last:  # RE2 reports some empty matches twice
                yield found
            last = found.span()

    def _found(self, text: str, start: int, *, wants_groups: bool) -> Iterator[Any]:
        """To fill groups RE2 walks through a match without the automaton, which is too slow for a long
        match."""
        if not wants_groups or not self.groups:
            yield from self.quick.finditer(text, start)
        elif len(text) * self.compiled.programsize <= STEPS_MAX:
            yield from self.compiled.finditer(text, start)
        else:
            filled = self.compiled.finditer(text, start)
            for found in self.quick.finditer(text, start):
                self._check_steps(self.compiled, found.end() - found.start())
                yield next(filled)

    def _check_mixed(self) -> None:
        if self.is_mixed:
            raise NotSupported("quantifiers of both kinds in one regular expression are not supported")

    def _check_text(self, text: str) -> None:
        if self.has_boundaries and not text.isascii():
            raise NotSupported("word boundaries in text that is not ASCII are not supported")

    def _check_work(self, compiled: Any, length: int) -> None:
        if not self.is_sure:
            self._check_steps(compiled, length)

    def _check_steps(self, compiled: Any, length: int) -> None:
        if length * compiled.programsize > STEPS_MAX:
            raise LimitExceeded(
                f"regular expression is too complex for a text of {length} characters",
                hint="Use a shorter expression, or one on parts of the text.",
            )


def compile_regex(pattern: str, options: RegexOptions) -> Regex:
    """Raises InvalidRegex (2201B), or NotSupported for what cannot be matched in linear time."""
    return (_kept_regex if len(pattern) <= CACHED_CHARS_MAX else _compile_regex)(pattern, options)


def _compile_regex(pattern: str, options: RegexOptions) -> Regex:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise InvalidRegex("regular expression is too complex: it is too long")
    translation = translate(pattern, options._replace(is_global=False))
    if len(translation.pattern) > PATTERN_CHARS_MAX:
        raise InvalidRegex("regular expression is too complex: it is too long")
    compiled = _compiled(translation, captures=True)
    quick = _compiled(translation, captures=False) if compiled.groups else compiled
    is_sure = translation.positions <= SURE_POSITIONS_MAX
    return Regex(compiled, quick, translation.is_mixed, translation.has_boundaries, is_sure)


_kept_regex = lru_cache(maxsize=COMPILED_MAX)(_compile_regex)


def _compiled(translation: Translated, *, captures: bool) -> Any:
    settings = re2.Options()
    settings.longest_match = not translation.is_shortest
    settings.never_capture = not captures
    settings.log_errors = False
    settings.max_mem = MEMORY_MAX
    try:
        return re2.compile(translation.pattern, settings)
    except re2.error as error:
        raise InvalidRegex(f"regular expression is too complex: {error}") from None
