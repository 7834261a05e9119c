"""`--processes 2`: point SELECT and single-row INSERT over two processes behind one port, beside one.

Connections are spread by the kernel. Reads gain a core if there is one: pgbench takes one of two itself.
Writes of two processes meet at the store's one lane.

Walk: `bench.__main__` -> `run`.
"""

from bench.ratio import Bar, Ratio, compare
from bench.sql import insert, point
from bench.sql.driver import alternate
from bench.sql.places import ours


def run(quick: bool) -> list[Ratio]:
    rows, rounds, seconds = (point.QUICK_ACCOUNTS, 1, 1) if quick else (point.ACCOUNTS, 3, 4)
    ratios = []
    with ours() as one, ours(processes=2) as two:
        for place in (one, two):
            point.load(place, rows)
            with place.connect() as connection:
                connection.execute(insert.TABLE)
        select = point.SCRIPT.replace(":scale", str(rows))
        for name, script in (("select", select), ("insert", insert.SCRIPT)):
            single, double = alternate((one, two), script, rounds=rounds, seconds=seconds)
            ratios.append(
                compare(
                    f"sql.processes.{name}",
                    ours=double.per_second,
                    peer=single.per_second,
                    unit="1/s",
                    bar=Bar.NONE,
                )
            )
        assert insert.count(two) > 0
    return ratios
