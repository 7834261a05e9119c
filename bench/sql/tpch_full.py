"""TPC-H at scale 1: by name only, `make bench ONLY=sql.tpch_full`.

Walk: `bench.__main__` -> `run` -> `bench.sql.tpch.benchmark.measure`.
"""

from bench.ratio import Ratio
from bench.sql.tpch.benchmark import QUICK_SCALE, measure

SCALE = 1.0


def run(quick: bool) -> list[Ratio]:
    return measure(QUICK_SCALE, rounds=1) if quick else measure(SCALE, rounds=2)
