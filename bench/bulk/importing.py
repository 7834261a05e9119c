"""IMPORT of unsorted CSV into a table with a primary key: beside PostgreSQL's COPY and DuckDB's bare sort.

    import            rows per second                    PostgreSQL: COPY into a table with its key
    import.then_key   the same                           COPY, then ADD PRIMARY KEY
    import.bare       seconds                            DuckDB: CSV to sorted Parquet, unchecked: the limit
    import.executors  seconds with two executors         with one
    import.text, .composite, .skewed     seconds         the same with an int8 for the key
    import.growth     seconds per row                    with a tenth of the rows

Everybody reads the same file of the same disk; PostgreSQL by itself, with COPY FROM 'file', and with its own
defaults, so that what it says it has is on the disk. So is ours. The session of Spark is warm: the first
import of each node is not counted. Its start is `bulk.worker`.

The bars are those of ten million rows (`bulk.importing_full`); with one million they are printed.

Walk: `bench.__main__` -> `run`; `bench.bulk.importing_full` -> `measure`.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.bulk.inputs import SHAPES, Shape, sort_bare, write
from bench.bulk.workers import Crew, crew
from bench.ratio import Bar, Ratio, compare
from bench.sql.places import Place, peer
from bench.store.rounds import note

ROWS, QUICK_ROWS = 1_000_000, 5_000
WARM_ROWS, WARM_SHARE = 20_000, 5
"""Of the first import, which is not counted, or so much less than the others have: a worker that has not yet
had the memory that it keeps for its tasks is given it by the system page by page."""


def run(quick: bool) -> list[Ratio]:
    return measure(QUICK_ROWS, rounds=1) if quick else measure(ROWS, rounds=3)


def measure(rows: int, *, rounds: int, has_bars: bool = False) -> list[Ratio]:
    with (
        _files(rows) as files,
        peer() as postgres,
        crew(files, executors=2) as two,
        crew(files, executors=1) as one,
    ):
        for place in (two, one):
            _warm(place)
        _check_answers(two.sql, postgres, files, rows)
        imports = _Imports(files, rows)
        imports.bare("id_tenth")
        sides: dict[str, Callable[[], float]] = {
            "two": lambda: imports.ours(two, "id"),
            "one": lambda: imports.ours(one, "id"),
            "copy": lambda: imports.copied(postgres, "id", has_key=True),
            "then_key": lambda: imports.copied(postgres, "id", has_key=False),
            "bare": lambda: imports.bare("id"),
            "tenth": lambda: imports.ours(two, "id_tenth"),
        }
        sides |= {name: _ours(imports, two, name) for name in SHAPES if name != "id"}
        found = _medians(sides, rounds)
        note(f"bulk.import: a task held at most {two.task_megabytes():.0f} MB")
    return list(_ratios(found, rows, has_bars=has_bars))


def _ratios(found: dict[str, float], rows: int, *, has_bars: bool) -> Iterator[Ratio]:
    def rate(name: str, peer: str, limit: float) -> Ratio:
        bar = Bar.AT_LEAST if has_bars else Bar.NONE
        ours, theirs = rows / found["two"], rows / found[peer]
        return compare(name, ours=ours, peer=theirs, unit="rows/s", bar=bar, limit=limit)

    def cost(name: str, ours: float, theirs: float, limit: float, unit: str = "s") -> Ratio:
        bar = Bar.AT_MOST if has_bars else Bar.NONE
        return compare(name, ours=ours, peer=theirs, unit=unit, bar=bar, limit=limit)

    yield rate("bulk.import", "copy", 5.0)
    yield rate("bulk.import.then_key", "then_key", 2.0)
    yield cost("bulk.import.bare", found["two"], found["bare"], 2.0)
    yield cost("bulk.import.executors", found["two"], found["one"], 0.65)
    for name in SHAPES:
        if name != "id":
            yield cost(f"bulk.import.{name}", found[name], found["two"], 2.0)
    micros = found["two"] / rows * 1e6, found["tenth"] / (rows // 10) * 1e6
    yield cost("bulk.import.growth", *micros, 1.0, "us/row")


def _medians(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """All take turns, round by round, each with nothing of the others left to be written to the disk."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            os.sync()
            found[name].append(run())
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def _ours(imports: "_Imports", place: Crew, shape: str) -> Callable[[], float]:
    return lambda: imports.ours(place, shape)


@contextmanager
def _files(rows: int) -> Iterator[Path]:
    """A directory with the input, that PostgreSQL's own user may read too."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        for name, shape in SHAPES.items():
            write(path / f"{name}.csv", shape, rows)
        write(path / "id_tenth.csv", SHAPES["id"], rows // 10)
        write(path / "warm.csv", SHAPES["id"], max(WARM_ROWS, rows // WARM_SHARE))
        yield path


def _warm(place: Crew) -> None:
    """The first tasks start the Python workers, which import what kernels need."""
    with place.sql.connect() as connection:
        connection.execute("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
        connection.execute(f"CREATE TABLE warm ({SHAPES['id'].definitions}, PRIMARY KEY (id))")
        began = time.perf_counter()
        connection.execute("IMPORT INTO warm CSV DATA ('warm.csv')")
        first = time.perf_counter() - began
    note(f"bulk.import: worker ready in {place.worker_seconds:.1f} s, its first import took {first:.1f} s")


def _check_answers(node: Place, postgres: Place, files: Path, rows: int) -> None:
    query = "SELECT count(*), sum(id), sum(price), min(sold_at), max(name) FROM checked"
    for place, load in (
        (node, "IMPORT INTO checked CSV DATA ('id_tenth.csv')"),
        (postgres, f"COPY checked FROM '{files}/id_tenth.csv' CSV"),
    ):
        with place.connect() as connection:
            connection.execute(f"CREATE TABLE checked ({SHAPES['id'].definitions}, PRIMARY KEY (id))")
            connection.execute(load)
    with node.connect() as mine, postgres.connect() as theirs:
        found, wanted = mine.execute(query).fetchone(), theirs.execute(query).fetchone()
    assert found == wanted and wanted is not None and wanted[0] == rows // 10, (found, wanted)


class _Imports(NamedTuple):
    files: Path
    rows: int

    def ours(self, place: Crew, name: str) -> float:
        shape = _shape(name)
        with place.sql.connect() as connection:
            connection.execute(f"CREATE TABLE t ({shape.definitions}, {shape.primary_key})")
            began, cpu_began = time.perf_counter(), place.cpu_seconds()
            answer = connection.execute(f"IMPORT INTO t CSV DATA ('{name}.csv')").fetchone()
            seconds, cpu = time.perf_counter() - began, place.cpu_seconds() - cpu_began
            assert answer is not None and answer[1] == self._rows(name), answer
            connection.execute("DROP TABLE t")
        note(f"bulk.import {name}: {seconds:.2f} s, {cpu:.2f} s of CPU")
        return seconds

    def copied(self, postgres: Place, name: str, *, has_key: bool) -> float:
        shape = _shape(name)
        key = f", {shape.primary_key}" if has_key else ""
        with postgres.connect() as connection:
            connection.execute(f"CREATE TABLE t ({shape.definitions}{key})")
            connection.execute("CHECKPOINT")
            began = time.perf_counter()
            copied = connection.execute(f"COPY t FROM '{self.files}/{name}.csv' CSV")
            assert copied.rowcount == self._rows(name)
            if not has_key:
                connection.execute(f"ALTER TABLE t ADD {shape.primary_key}")
            seconds = time.perf_counter() - began
            connection.execute("DROP TABLE t")
        note(f"PostgreSQL {'with its key' if has_key else 'then its key'}: {seconds:.2f} s")
        return seconds

    def bare(self, name: str) -> float:
        began, cpu_began = time.perf_counter(), time.process_time()
        rows = sort_bare(self.files / f"{name}.csv", _shape(name), self.files / "sorted.parquet")
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        assert rows == self._rows(name)
        note(f"DuckDB: {seconds:.2f} s, {cpu:.2f} s of CPU")
        return seconds

    def _rows(self, name: str) -> int:
        return self.rows // 10 if name == "id_tenth" else self.rows


def _shape(name: str) -> Shape:
    return SHAPES[name.removesuffix("_tenth")]
