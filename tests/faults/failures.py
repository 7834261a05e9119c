"""The last lines of a run: each failed scenario with its violations, shortened so that all of them fit.

Walk: `__main__` calls `failure_lines` when all scenarios have run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

VIOLATIONS_MAX = 5
TEXT_LENGTH_MAX = 1_000
"""A longer violation is mostly a traceback, whose end says what happened."""


@dataclass(frozen=True)
class Failure:
    scenario: str
    engine: str
    violations: Sequence[str]


def failure_lines(failures: Sequence[Failure]) -> Iterator[str]:
    for failure in failures:
        yield f"FAILED {failure.scenario} on {failure.engine}:"
        for text in failure.violations[:VIOLATIONS_MAX]:
            yield f"    {_end_of(text.strip())}"
        if (more := len(failure.violations) - VIOLATIONS_MAX) > 0:
            yield f"    and {more} more"


def _end_of(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH_MAX else f"... {text[-TEXT_LENGTH_MAX:]}"
