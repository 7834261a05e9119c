"""IMPORT of ten million rows, with its bars: by name only, `make bench ONLY=bulk.importing_full`.

Walk: `bench.__main__` -> `run` -> `bench.bulk.importing.measure`.
"""

from bench.bulk.importing import QUICK_ROWS, measure
from bench.ratio import Ratio

ROWS = 10_000_000


def run(quick: bool) -> list[Ratio]:
    return measure(QUICK_ROWS, rounds=1) if quick else measure(ROWS, rounds=1, has_bars=True)
