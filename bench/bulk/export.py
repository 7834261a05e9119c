"""EXPORT of a table to CSV, beside PostgreSQL's COPY TO a file on the same disk.

The table lies in the lake. The first export also starts a worker and its Spark session; its time is printed
and not counted. What both sides wrote must be the same to the last byte.

Walk: `bench.__main__` -> `run`.
"""

import hashlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from bench.bulk.places import BulkPlace, lay, node
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, peer
from bench.store.rounds import note
from tenure.table.arrow import decimals_of

ROWS, LARGE_ROWS, QUICK_ROWS = 1_000_000, 10_000_000, 5_000
LARGE_VARIABLE = "BENCH_LARGE"
"""Set, ten million rows are measured too: they take some minutes to load into PostgreSQL."""

TABLE = (
    "CREATE TABLE sales (id bigint PRIMARY KEY, customer int NOT NULL, region int NOT NULL, "
    "status text NOT NULL, note text, cents bigint NOT NULL, price numeric(12, 2) NOT NULL, "
    "is_open bool NOT NULL, sold_at timestamp NOT NULL, day date NOT NULL)"
)
STATES = ("open", "paid", "sent, late", "back")


def run(quick: bool) -> list[Ratio]:
    sizes = [QUICK_ROWS] if quick else [ROWS, *([LARGE_ROWS] if LARGE_VARIABLE in os.environ else [])]
    return [_measured(rows, 1 if quick else 3) for rows in sizes]


def _measured(rows: int, rounds: int) -> Ratio:
    columns = _columns(rows)
    with node() as place, peer() as postgres, tempfile.TemporaryDirectory(prefix="tenure-bench-") as name:
        os.chmod(name, 0o777)
        with place.sql.connect() as connection:
            connection.execute(TABLE)
        lay(place, "sales", columns)
        _export(place, "first", rows)
        mine, theirs = [], []
        target = Path(name) / "copied.csv"
        for number in range(rounds):
            mine.append(_export(place, f"round{number}", rows))
            if not number:
                _load(postgres, place.files / f"round{number}")
            theirs.append(_copy(postgres, target))
            made = sorted((place.files / f"round{number}").iterdir(), key=_place)
            assert _digest(made) == _digest([target])
    size = f"{rows // 1_000_000}m" if rows >= 1_000_000 else str(rows)
    return compare(
        f"bulk.export.csv_{size}",
        ours=rows / statistics.median(mine),
        peer=rows / statistics.median(theirs),
        unit="rows/s",
        bar=Bar.AT_LEAST,
        limit=1.0,
    )


def _columns(rows: int) -> dict[str, Any]:
    """Rows that follow from their numbers, as Arrow has them."""
    number = np.arange(rows, dtype=np.int64)
    mixed = number * 2_654_435_761 % 4_294_967_296
    cents = mixed % 1_000_003
    notes = pc.binary_join_element_wise("note ", pa.array(mixed % 10_007).cast(pa.string()), "")
    return {
        "id": pa.array(number),
        "customer": pa.array((mixed % 100_000).astype(np.int32)),
        "region": pa.array((mixed // 11 % 20).astype(np.int32)),
        "status": pa.array(STATES, pa.string()).take(pa.array(mixed // 13 % 4)),
        "note": pc.if_else(pa.array(mixed % 10 == 0), pa.scalar(None, pa.string()), notes),
        "cents": pa.array(cents),
        "price": decimals_of(pa.array(cents), pa.decimal128(12, 2)),
        "is_open": pa.array(mixed % 3 == 0),
        "sold_at": pa.array(1_700_000_000_000_000 + mixed * 1000).cast(pa.timestamp("us")),
        "day": pa.array((19_000 + mixed % 1000).astype(np.int32)).view(pa.date32()),
    }


def _export(place: BulkPlace, name: str, rows: int) -> float:
    with place.sql.connect() as connection:
        began = time.perf_counter()
        made = connection.execute(f"EXPORT INTO CSV '{name}' FROM TABLE sales").fetchall()
        seconds = time.perf_counter() - began
    assert sum(count for _, count, _ in made) == rows, made
    size = sum(size for _, _, size in made)
    note(f"bulk.export, {name}: {len(made)} files, {size / 1e6:.0f} MB in {seconds:.2f} s")
    return seconds


def _load(postgres: Place, directory: Path) -> None:
    """PostgreSQL gets the rows that we wrote, which COPY must be able to read."""
    with postgres.connect() as connection:
        connection.execute(TABLE)
        with connection.cursor() as cursor, cursor.copy("COPY sales FROM STDIN (FORMAT csv)") as copy:
            for path in sorted(directory.iterdir(), key=_place):
                with path.open("rb") as file:
                    while data := file.read(1 << 20):
                        copy.write(data)
        connection.execute("VACUUM ANALYZE")


def _place(path: Path) -> tuple[int, ...]:
    """Which task's file it is, and which of its own: sales-<job>-<task>.<number>.csv."""
    task, number, _ = path.name.rpartition("-")[2].split(".")
    return int(task), int(number)


def _copy(postgres: Place, target: Path) -> float:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        began = time.perf_counter()
        connection.execute(f"COPY sales TO '{target}' (FORMAT csv)")
        seconds = time.perf_counter() - began
    note(f"bulk.export, PostgreSQL: {seconds:.2f} s")
    return seconds


def _digest(paths: list[Path]) -> str:
    made = hashlib.blake2b()
    for path in paths:
        made.update(path.read_bytes())
    return made.hexdigest()
