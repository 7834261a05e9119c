"""CREATE INDEX on a table in the lake, beside PostgreSQL's CREATE INDEX of the same rows.

The first index also starts a worker and its Spark session; its time is printed and not counted. What is asked
of the indexes in the end is compared with PostgreSQL's answers.

Walk: `bench.__main__` -> `run`.
"""

import io
import os
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from bench.bulk.places import lay, node
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, peer
from bench.store.rounds import note

ROWS, LARGE_ROWS, QUICK_ROWS = 1_000_000, 10_000_000, 20_000
LARGE_VARIABLE = "BENCH_LARGE"
"""Set, ten million rows are measured too: they take some minutes to load into PostgreSQL."""

SPARK_MIN_ROWS = 10_000
"""So that a quick pass goes the same way."""

TABLE = "CREATE TABLE sales (id bigint PRIMARY KEY, customer int NOT NULL, code bigint NOT NULL, note text)"
INDEXES = {
    "index": "INDEX ON sales (customer)",
    "unique": "UNIQUE INDEX ON sales (code)",
    "text": "INDEX ON sales (note, customer)",
}
QUESTIONS = (
    "SELECT count(*), sum(id) FROM sales WHERE customer = 4711",
    "SELECT count(*), sum(id) FROM sales WHERE code = 2654435761",
    "SELECT count(*), sum(id) FROM sales WHERE note = 'note 17'",
)


def run(quick: bool) -> list[Ratio]:
    sizes = [QUICK_ROWS] if quick else [ROWS, *([LARGE_ROWS] if LARGE_VARIABLE in os.environ else [])]
    return [ratio for rows in sizes for ratio in _measured(rows, 1 if quick else 3)]


def _measured(rows: int, rounds: int) -> list[Ratio]:
    columns = _columns(rows)
    ratios = []
    with node() as place, peer() as postgres:
        with place.sql.connect() as connection:
            connection.execute(TABLE)
            connection.execute(f"SET CLUSTER SETTING pipeline.spark_min_rows = {SPARK_MIN_ROWS}")
        lay(place, "sales", columns)
        _load(postgres, columns)
        _create(place.sql, "first, with its worker", INDEXES["index"])
        for name, index in INDEXES.items():
            mine, theirs = [], []
            for number in range(rounds):
                mine.append(_create(place.sql, f"{name}, round {number}", index))
                theirs.append(_create(postgres, f"{name}, PostgreSQL", index))
            size = f"{rows // 1_000_000}m" if rows >= 1_000_000 else str(rows)
            ratios.append(
                compare(
                    f"bulk.backfill.{name}_{size}",
                    ours=rows / statistics.median(mine),
                    peer=rows / statistics.median(theirs),
                    unit="rows/s",
                    bar=Bar.NONE,
                )
            )
        _compare_answers(place.sql, postgres)
    return ratios


def _columns(rows: int) -> dict[str, Any]:
    """Rows that follow from their numbers, as Arrow has them; no two codes are equal, nor in order."""
    number = np.arange(rows, dtype=np.int64)
    mixed = number * 2_654_435_761 % 4_294_967_296
    return {
        "id": pa.array(number),
        "customer": pa.array((mixed % 100_000).astype(np.int32)),
        "code": pa.array(mixed),
        "note": pa.array([f"note {each}" for each in (mixed % 10_007).tolist()]),
    }


def _load(postgres: Place, columns: dict[str, Any]) -> None:
    made = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False)
    pyarrow.csv.write_csv(pa.table(columns), made, options)
    with postgres.connect() as connection:
        connection.execute(TABLE)
        with connection.cursor() as cursor, cursor.copy("COPY sales FROM STDIN (FORMAT csv)") as copy:
            copy.write(made.getvalue())
        connection.execute("VACUUM ANALYZE")


def _create(place: Place, name: str, index: str) -> float:
    with place.connect() as connection:
        began = time.perf_counter()
        connection.execute(f"CREATE {index}")
        seconds = time.perf_counter() - began
    note(f"bulk.backfill, {name}: {seconds:.2f} s")
    return seconds


def _compare_answers(mine: Place, theirs: Place) -> None:
    with mine.connect() as ours, theirs.connect() as others:
        for question in QUESTIONS:
            assert ours.execute(question).fetchall() == others.execute(question).fetchall(), question
