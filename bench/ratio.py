"""One measured comparison, and the table in which it is shown.

A ratio is ours / peer. A bar says which ratio was promised: `AT_LEAST` for rates, where more is
better, `AT_MOST` for times and costs. Absolute promises have a peer that is the promise itself.

Walk: every module of `bench` returns a list of these; `bench.__main__` prints them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Bar(Enum):
    AT_LEAST = ">="
    AT_MOST = "<="
    NONE = ""
    """Reported only."""


@dataclass(frozen=True)
class Ratio:
    name: str
    ours: float
    peer: float
    ratio: float
    bar: str
    unit: str
    holds: bool


def compare(name: str, *, ours: float, peer: float, unit: str, bar: Bar, limit: float = 0.0) -> Ratio:
    """Sets our measurement beside the peer's and judges the ratio by its bar."""
    ratio = ours / peer if peer else float("inf")
    holds = bar is Bar.NONE or (ratio >= limit if bar is Bar.AT_LEAST else ratio <= limit)
    shown = f"{bar.value} {limit:g}" if bar is not Bar.NONE else "-"
    return Ratio(name, ours, peer, ratio, shown, unit, holds)


HEADER = ("benchmark", "ours", "peer", "unit", "ratio", "bar", "")


def table(ratios: Sequence[Ratio]) -> str:
    rows = [HEADER, *(_row(ratio) for ratio in ratios)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(ratio: Ratio) -> tuple[str, ...]:
    return (
        ratio.name,
        _number(ratio.ours),
        _number(ratio.peer),
        ratio.unit,
        f"{ratio.ratio:.3g}",
        ratio.bar,
        "holds" if ratio.holds else "MISSED",
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
