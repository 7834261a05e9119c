"""Hot rows that are updated 100 times each: the foreground's p99 with sweeps beside that without them.

Two nodes, each a process with a store and a lake of its own, get the same updates by pgbench at a fixed rate,
in turns. Both keep history for 5 s by their zone and flush to the lake; one sweeps every second, the other
never. Latencies count from when an update was due, so one that waits behind another counts with its wait.

The sizes of store and lake are sampled while each node is measured, and printed as a curve: that of the node
that sweeps must stay flat. In the end the sum of the rows is the number of updates, and after a last sweep no
older revision is left in the store.

Walk: `bench.__main__` -> `run`; pgbench -> a node, whose schedule starts sweeps.
"""

import statistics
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.bulk.places import BulkPlace, node
from bench.gc.places import wait_for
from bench.ratio import Bar, Ratio, compare
from bench.sql.driver import Measured, measure
from bench.store.rounds import note
from tenure.base.env import SystemEnv
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tenure.storage.engine import Revisions

TTL_SECONDS, TTL_SECONDS_QUICK = 5, 1
SWEPT_INTERVAL, NEVER = "1s", "7d"
WARM_ROUNDS = 1
"""Not counted: the first updates of a node compile their plans and fill its caches."""
SYSTEM_TTL = "5s"
"""Each sweep writes records and a job of its own: so that their history is bounded within the load, too."""
FLUSH_BYTES = 1024
"""Less than the rows have: what counts for a flush is the newest revision of each row. So the index is
flushed with every step of the lake's upkeep, and its older revisions get past files, which sweeps rewrite.
"""
P99_LIMIT = 1.3
GROWTH_LIMIT = 1.25
"""Of the size at the end beside that halfway: a store that only grows has about twice as much."""
LAST_SWEEPS = 2
"""The first may only end what a sweep of the schedule has begun."""
KEYS_MAX = 1_000_000
SAMPLE_SECONDS = 0.5
CURVE_POINTS = 12

TABLE = "CREATE TABLE hot (id int PRIMARY KEY, updates bigint NOT NULL, note text NOT NULL)"
FILL = "INSERT INTO hot SELECT g, 0, repeat('n', 80) FROM generate_series(1, {}) g"
SCRIPT = "\\set id random(1, :scale)\nUPDATE hot SET updates = updates + 1 WHERE id = :id;\n"


class Load(NamedTuple):
    rows: int
    rate: int
    """Updates a second."""
    rounds: int
    updates_per_row: int

    @property
    def round_seconds(self) -> float:
        return self.rows * self.updates_per_row / self.rate / self.rounds


FULL = Load(rows=600, rate=600, rounds=5, updates_per_row=100)
QUICK = Load(rows=20, rate=200, rounds=2, updates_per_row=40)


class Size(NamedTuple):
    store: int
    lake: int

    def __str__(self) -> str:
        return f"{self.store / 1e3:.0f}+{self.lake / 1e3:.0f}"


class Side:
    """One of the two nodes, with what was measured of it."""

    def __init__(self, place: BulkPlace, load: Load, interval: str, ttl_seconds: int) -> None:
        self.place, self._load = place, load
        self.measured: list[Measured] = []
        self.curve: list[Size] = []
        settings = {
            "gc.interval": f"'{interval}'",
            "gc.system_ttl": f"'{SYSTEM_TTL}'",
            "lake.flush_bytes": str(FLUSH_BYTES),
            "lake.clean_after": f"'{ttl_seconds}s'",
            "lake.file_grace": f"'{ttl_seconds}s'",
        }
        with place.sql.connect() as connection:
            for name, value in settings.items():
                connection.execute(f"SET CLUSTER SETTING {name} = {value}".encode())
            connection.execute(TABLE.encode())
            connection.execute(FILL.format(load.rows).encode())
            zone = f"ALTER TABLE hot CONFIGURE ZONE USING gc.ttlseconds = {ttl_seconds}"
            connection.execute(zone.encode())

    def run(self) -> None:
        load = self._load
        with _sampled(self.place.directory, self.curve):
            self.measured.append(
                measure(self.place.sql, SCRIPT, seconds=load.round_seconds, rate=load.rate, scale=load.rows)
            )

    @property
    def p99(self) -> float:
        return statistics.median(each.millis.p99 for each in self.measured[WARM_ROUNDS:])

    @property
    def cpu_micros(self) -> float:
        return statistics.median(each.cpu_micros for each in self.measured[WARM_ROUNDS:])

    def size(self, share: float) -> int:
        """Of store and lake: the median of the samples about so far into the load."""
        middle, around = int(share * len(self.curve)), max(1, len(self.curve) // 10)
        near = self.curve[max(0, middle - around) : middle + around]
        return int(statistics.median(sum(each) for each in near))

    def points(self) -> str:
        step = max(1, len(self.curve) // CURVE_POINTS)
        return "  ".join(map(str, self.curve[::step]))

    def verify(self) -> None:
        expected = sum(each.transactions for each in self.measured)
        with self.place.sql.connect() as connection:
            assert connection.execute("SELECT sum(updates) FROM hot").fetchone() == (expected,)


def run(quick: bool) -> list[Ratio]:
    load, ttl_seconds = (QUICK, TTL_SECONDS_QUICK) if quick else (FULL, TTL_SECONDS)
    with ExitStack() as stack:
        swept, unswept = (
            Side(stack.enter_context(node()), load, interval, ttl_seconds)
            for interval in (SWEPT_INTERVAL, NEVER)
        )
        for _ in range(WARM_ROUNDS + load.rounds):
            for side in (swept, unswept):
                side.run()
        for side in (swept, unswept):
            side.verify()
        _verify_collected(swept, ttl_seconds)
    for name, side in (("with sweeps", swept), ("without", unswept)):
        note(f"gc.foreground, {name}: {side.measured[-1].millis}; {side.cpu_micros:.0f} us of CPU an update")
        note(f"gc.foreground, {name}: kB of store+lake over time: {side.points()}")
    return [
        compare(
            "gc.foreground.p99",
            ours=swept.p99,
            peer=unswept.p99,
            unit="ms",
            bar=Bar.AT_MOST,
            limit=P99_LIMIT,
        ),
        compare(
            "gc.foreground.growth",
            ours=swept.size(0.95) / 1e6,
            peer=swept.size(0.5) / 1e6,
            unit="MB",
            bar=Bar.AT_MOST,
            limit=GROWTH_LIMIT,
        ),
        compare(
            "gc.foreground.size",
            ours=swept.size(0.95) / 1e6,
            peer=unswept.size(0.95) / 1e6,
            unit="MB",
            bar=Bar.NONE,
        ),
    ]


def _verify_collected(side: Side, ttl_seconds: int) -> None:
    """The schedule has swept by itself, and further sweeps leave one revision of each row at most."""
    with side.place.sql.connect() as connection:
        status = connection.execute("SHOW GC STATUS FOR TABLE hot").fetchall()
        assert status and status[0][-1] is not None, f"no sweep has ended: {status}"
        wait_for(ttl_seconds)
        for _ in range(LAST_SWEEPS):
            connection.execute("RUN GC NOW FOR TABLE hot")
        ((id,),) = connection.execute("SELECT 'hot'::regclass::oid::int8").fetchall()
    keys = _stored_keys(side.place, id)
    assert len(keys) == len(set(keys)), f"{len(keys)} revisions of {len(set(keys))} rows are left"


def _stored_keys(place: BulkPlace, table: int) -> list[bytes]:
    """The key of every revision that the store has of a table's first index."""
    env = SystemEnv()
    engine = open_engine(f"sqlite:{place.directory}/store.db", env)
    store = Store(engine, env)
    try:
        span = store.keyspace.index_span(table, 1)
        guard = store.keyspace.guard(span)
        found = engine.revisions(Revisions(*span, guard, 0, engine.clock_at(), KEYS_MAX))
        return [each.key for each in found.revisions]
    finally:
        store.close()
        engine.close()


@contextmanager
def _sampled(directory: Path, curve: list[Size]) -> Iterator[None]:
    """Adds the sizes of store and lake to the curve meanwhile."""
    stopping = threading.Event()

    def sample() -> None:
        while not stopping.wait(SAMPLE_SECONDS):
            curve.append(Size(_bytes(directory.glob("store.db*")), _bytes((directory / "lake").rglob("*"))))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield
    finally:
        stopping.set()
        sampler.join()


def _bytes(paths: Iterator[Path]) -> int:
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # a file of the lake that was deleted meanwhile
            continue
    return total
