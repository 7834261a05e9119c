"""Regular expressions that no pattern can make slow: RE2 behind PostgreSQL's syntax.

RE2 matches in time linear in the text, whatever the pattern, and within bounded memory. It prefers
the longest match, as PostgreSQL does; where all quantifiers are of the short kind, the shortest.

Invariant (regex-linear): no pattern makes matching take more than time linear in the text.

Walk: `expr.regex_functions` calls these; `re2` is known to this file alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from tenure.expr.errors import NotSupported
from tenure.expr.regex_syntax import InvalidRegex, Options, translate

COMPILED_MAX = 64
"""Expressions that stay compiled: each may keep as much memory as it may take."""

MEMORY_MAX = 8 << 20
"""Bytes for one compiled pattern."""


@dataclass(frozen=True)
class Regex:
    compiled: Any
    is_mixed: bool
    has_boundaries: bool

    @property
    def groups(self) -> int:
        return int(self.compiled.groups)

    def is_in(self, text: str) -> bool:
        self._check_text(text)
        return self.compiled.search(text) is not None

    def search(self, text: str, start: int = 0) -> Any:
        """The leftmost match from there on: has start(), end(), group(n), as those of `re`."""
        self._check_mixed()
        self._check_text(text)
        return self.compiled.search(text, start)

    def matches(self, text: str, start: int = 0) -> Iterator[Any]:
        """All matches from left to right; after an empty one the search goes on one character later.

        The text is encoded once for all of them: one search after the other would take quadratic time.
        """
        self._check_mixed()
        self._check_text(text)
        if start > len(text):  # RE2 would look at the end
            return
        last = None
        for found in self.compiled.finditer(text, start):
            if found.span() != last:  # RE2 tells an empty match twice that it had to look for
                yield found
            last = found.span()

    def _check_mixed(self) -> None:
        if self.is_mixed:
            raise NotSupported("quantifiers of both kinds in one regular expression are not supported")

    def _check_text(self, text: str) -> None:
        if self.has_boundaries and not text.isascii():
            raise NotSupported("word boundaries in text that is not ASCII are not supported")


@lru_cache(maxsize=COMPILED_MAX)
def compile_regex(pattern: str, options: Options) -> Regex:
    """Raises InvalidRegex (2201B), or NotSupported for what cannot be matched in linear time."""
    made = translate(pattern, options._replace(is_global=False))
    settings = re2.Options()
    settings.longest_match = not made.is_shortest
    settings.log_errors = False
    settings.max_mem = MEMORY_MAX
    try:
        compiled = re2.compile(made.pattern, settings)
    except re2.error as error:
        raise InvalidRegex(f"regular expression is too complex: {error}") from None
    return Regex(compiled, made.is_mixed, made.has_boundaries)
