"""The refusals that docs/reference/differences.md lists, as patterns.

Walk: `test_differential` holds each refusal against them.
"""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"
_QUOTED = re.compile(r"`([^`]+)`")
_LISTED = re.compile(r"^\* `")
_END = "## Defining"
"""What follows is about DDL, and not in the words of refusals."""


def listed() -> list[re.Pattern[str]]:
    """What the page quotes at the head of its items; "..." stands for anything."""
    heads = [item.partition(": ")[0] for item in _items()]
    quotes = [quote for head in heads for quote in _QUOTED.findall(head)]
    return [_pattern(each) for each in quotes]


def is_listed(refusal: str) -> bool:
    return any(each.search(refusal) for each in listed())


def _items() -> list[str]:
    items: list[str] = []
    for line in PAGE.read_text().partition(_END)[0].splitlines():
        if line.startswith("* "):
            items.append(line)
        elif line.startswith("  ") and items:
            items[-1] += " " + line.strip()
    return [each for each in items if _LISTED.match(each)]


def _pattern(quote: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, quote.split("..."))))
