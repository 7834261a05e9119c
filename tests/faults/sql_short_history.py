"""Work that lasts longer than history is kept, while sweeps run all the time.

    front    clients: a SELECT and a cursor of two ttls, a writer that sets rows to the next number, and
             one RUN GC NOW after the other, two at once
    worker   an export, a fill of an index and a flush; it is stopped in the middle of each, for longer than
             the ttl, and goes on

The oracle: the writer sets some hundred rows to one number by one statement. So whatever reads the table at
one time, in pages, files or an index, sees one number only, and it is the one that was committed then.

Walk: `__main__` calls `sql_short_history` with a `Run`; `outlasting` stops the worker.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tenure.cluster.jobs.job_records import JobProgress
from tenure.schema_change.stages import WorkKind
from tests.faults.harness import Result, Run, wait_for
from tests.faults.outlasting import NewFiles, Outlasting
from tests.faults.sql_nodes import SqlNodes, set_up

FRONT, WORKER = "front", "worker"

TTL_SECONDS = 5
LIVENESS_SECONDS = 60.0
"""A worker that is stopped is not declared dead."""

STOP_SECONDS = TTL_SECONDS + 0.5
ROWS, WRITTEN = 12_000, 300
"""Of the table, and those of them that are written all the time."""

FLUSHED_ROWS = 15_000
BEGIN_SECONDS = 3.0
"""The time in which a read has its snapshot, on a busy machine too."""

SWEEPERS = 2
SLEEPS = 6
"""Of two seconds each, in the long SELECT and between the pages of the cursor."""

FLUSH_SECONDS_MAX = 60.0


class Numbers:
    """A writer of the oracle's table: it sets rows to 1, 2, 3 ..., each time by one statement."""

    def __init__(self, nodes: SqlNodes) -> None:
        self._client = nodes.connect(FRONT)
        self._sent: list[float] = [time.monotonic()]
        self.committed = 0

    def step(self) -> None:
        self._sent.append(time.monotonic())
        number = len(self._sent) - 1
        self._client.execute(f"UPDATE numbers SET n = {number} WHERE id <= {WRITTEN}".encode())
        self.committed = number
        time.sleep(0.2)

    def seen_from(self, first: int, began: float) -> range:
        """What a read may see that began at a time, when `first` was committed."""
        return range(first, sum(sent < began + BEGIN_SECONDS for sent in self._sent))

    def close(self) -> None:
        self._client.close()


class Sweeps:
    """Sweeps, several at once: the worker that is stopped may have some of them. `done` counts them."""

    def __init__(self, nodes: SqlNodes) -> None:
        self._nodes = nodes
        self.done = 0

    def step(self) -> None:
        self._nodes.execute(FRONT, "RUN GC NOW")
        self.done += 1


def sql_short_history(run: Run) -> Result:
    """Everything that was begun before the ttl ran out ends, with the right answer."""
    result, until = Result(), time.monotonic() + run.seconds
    files = run.files / "short_history_files"
    with SqlNodes(run, "sql_short_history", more=("--files", str(files))) as nodes:
        set_up(nodes.store, ttl_seconds=LIVENESS_SECONDS)
        nodes.start(FRONT, WORKER)
        nodes.execute(FRONT, *_preparation())
        numbers, sweeps = Numbers(nodes), Sweeps(nodes)
        work = Work(nodes, numbers, result, files)
        outlasting = Outlasting(nodes, result, front=FRONT, worker=WORKER, seconds=STOP_SECONDS)
        with closing(outlasting), closing(numbers), _looping(result, numbers.step, *[sweeps.step] * SWEEPERS):
            reads = [_threaded(result, read, nodes, numbers, result) for read in (_select, _cursor)]
            work.outlast_fill(outlasting)
            for thread in reads:  # they need the front, which is stopped now and then from here on
                thread.join()
            work.outlast_others(outlasting)
            while time.monotonic() < until:
                work.outlast_fill(outlasting)
                work.outlast_others(outlasting)
        _check_end(nodes, numbers, work.loads, result)
        result.counts |= {"numbers": numbers.committed, "sweeps": sweeps.done, "stops": outlasting.stops}
        nodes.stop(result)
    return result


def _preparation() -> list[str]:
    return [
        f"ALTER RANGE DEFAULT CONFIGURE ZONE USING gc.ttlseconds = {TTL_SECONDS}",
        f"SET CLUSTER SETTING gc.system_ttl = '{TTL_SECONDS}s'",
        "SET CLUSTER SETTING gc.interval = '1h'",
        "SET CLUSTER SETTING lake.flush_bytes = 262144",
        "SET CLUSTER SETTING lake.clean_after = '2s'",
        "CREATE TABLE numbers (id int PRIMARY KEY, n int)",
        f"INSERT INTO numbers SELECT i, 0 FROM generate_series(1, {ROWS}) i",
        "CREATE TABLE flushed (id int PRIMARY KEY, t text)",
    ]


# ── reads of the front ──────────────────────────────────────────────────────────────────────────


def _select(nodes: SqlNodes, numbers: Numbers, result: Result) -> None:
    """One statement that takes two ttls: it reads the table before it sleeps, and after."""
    sleeps = " UNION ALL ".join(
        f"SELECT count(*), min(n), max(n) FROM numbers, (SELECT pg_sleep(2) AS s{nr}) z WHERE id <= {WRITTEN}"
        for nr in range(SLEEPS)
    )
    with closing(nodes.connect(FRONT)) as client:
        first, began = numbers.committed, time.monotonic()
        rows = client.execute(sleeps.encode()).fetchall()
    took = time.monotonic() - began
    result.require(took > 2 * TTL_SECONDS, f"the SELECT took {took:.1f} s only")
    _check_one_number(result, "the SELECT", rows, numbers.seen_from(first, began))


def _cursor(nodes: SqlNodes, numbers: Numbers, result: Result) -> None:
    with closing(nodes.connect(FRONT)) as client:
        client.execute("BEGIN READ ONLY")
        first, began = numbers.committed, time.monotonic()
        client.execute("DECLARE c CURSOR FOR SELECT id, n FROM numbers ORDER BY id")
        rows = client.execute("FETCH 10 FROM c").fetchall()
        for _ in range(SLEEPS):
            time.sleep(2.0)
            rows += client.execute("FETCH 40 FROM c").fetchall()
        rows += client.execute("FETCH ALL FROM c").fetchall()
        client.execute("COMMIT")
    may_see = numbers.seen_from(first, began)
    ids, seen = [id for id, _ in rows], {n for id, n in rows if id <= WRITTEN}
    result.require(ids == list(range(1, ROWS + 1)), f"the cursor gave {len(ids)} rows")
    result.require(len(seen) == 1 and seen <= set(may_see), f"the cursor saw {seen}, not one of {may_see}")


def _check_one_number(result: Result, who: str, rows: list[tuple[Any, ...]], may_see: range) -> None:
    seen = {(count, low, high) for count, low, high in rows}
    is_right = len(seen) == 1 and all(
        count == WRITTEN and low == high and low in may_see for count, low, high in seen
    )
    result.require(is_right, f"{who} saw {seen}, expected {WRITTEN} rows of one number in {may_see}")


# ── jobs of the worker ──────────────────────────────────────────────────────────────────────────


class Work:
    """What the worker does; its jobs are stopped in their middle."""

    def __init__(self, nodes: SqlNodes, numbers: Numbers, result: Result, files: Path) -> None:
        self._nodes, self._numbers, self._result, self._files = nodes, numbers, result, files
        self.loads: list[int] = []

    def outlast_fill(self, outlasting: Outlasting) -> None:
        """A schema change needs the leases of all nodes, so the front goes on beside it."""
        outlasting.job("schema change", self._begin(self._fill), _has_filled)

    def outlast_others(self, outlasting: Outlasting) -> None:
        """The time of an export is protected from its beginning."""
        outlasting.job("export", self._begin(self._export), lambda _: True, alone=True)
        flush = self._begin(lambda number: self._flush(number, outlasting))
        outlasting.job("flush", flush, NewFiles(self._nodes.lake), alone=True)

    def _begin(self, work: Callable[[int], None]) -> Callable[[int], threading.Thread]:
        return lambda number: _threaded(self._result, work, number)

    def _export(self, number: int) -> None:
        place, result = self._files / str(number), self._result
        first, began = self._numbers.committed, time.monotonic()
        self._nodes.execute(WORKER, f"EXPORT INTO CSV '{place.name}' FROM TABLE numbers")
        may_see = self._numbers.seen_from(first, began)
        rows = [line.split(",") for file in sorted(place.iterdir()) for line in file.read_text().splitlines()]
        seen = {int(n) for id, n in rows if int(id) <= WRITTEN}
        result.require(sorted(int(id) for id, _ in rows) == list(range(1, ROWS + 1)), "rows of the export")
        result.require(
            len(seen) == 1 and seen <= set(may_see), f"the export has {seen}, not one of {may_see}"
        )

    def _fill(self, number: int) -> None:
        self._nodes.execute(WORKER, f"CREATE INDEX by_n_{number} ON numbers (n)")

    def _flush(self, number: int, outlasting: Outlasting) -> None:
        """Writes rows that are worth a flush, some of them changed or deleted; waits for its end."""
        first = number * FLUSHED_ROWS
        self.loads.append(number)
        with closing(self._nodes.connect(WORKER)) as client:
            _persist(lambda: _copy(client, range(first, first + FLUSHED_ROWS)))
            for statement in (
                f"DELETE FROM flushed WHERE id % 7 = 0 AND id >= {first}",
                f"UPDATE flushed SET t = 'other' WHERE id % 11 = 0 AND id >= {first}",
            ):
                _persist(partial(client.execute, statement.encode()))
        wait_for(lambda: outlasting.has_open("flush"), FLUSH_SECONDS_MAX)
        wait_for(lambda: not outlasting.has_open("flush"), FLUSH_SECONDS_MAX)


def _copy(client: "psycopg.Connection[tuple[Any, ...]]", ids: range) -> None:
    with client.cursor().copy("COPY flushed FROM STDIN") as stream:
        for id in ids:
            stream.write_row((id, f"row {id}"))


def _persist(run: Callable[[], object]) -> None:
    """Runs a statement again that its node, which stood still for longer than the ttl, could not finish."""
    while True:
        try:
            run()
            return
        except (psycopg.errors.SnapshotTooOld, psycopg.errors.SerializationFailure):
            pass


def _has_filled(progress: JobProgress) -> bool:
    return progress.status.startswith(WorkKind.FILL_INDEX.value)


def _check_end(nodes: SqlNodes, numbers: Numbers, loads: list[int], result: Result) -> None:
    last = numbers.committed
    for hint in (f"id <= {WRITTEN}", f"n = {last}"):  # by the primary key, and by the index that was filled
        rows = nodes.execute(FRONT, f"SELECT count(*), min(n), max(n) FROM numbers WHERE {hint}")
        _check_one_number(result, f"the end ({hint})", rows, range(last, last + 1))
    others = nodes.execute(FRONT, "SELECT count(*) FROM numbers WHERE n = 0")
    result.require(others == [(ROWS - WRITTEN,)], f"{others} rows by the index have the number that they had")
    rows = nodes.execute(FRONT, "SELECT id, t FROM flushed ORDER BY id")
    ids = [id for nr in loads for id in range(nr * FLUSHED_ROWS, (nr + 1) * FLUSHED_ROWS) if id % 7]
    expected = [(id, "other" if id % 11 == 0 else f"row {id}") for id in ids]
    result.require(rows == expected, f"{len(rows)} rows are flushed, {len(expected)} expected, or others")
    left = nodes.execute(FRONT, "SELECT meta_type FROM system.protected_ts_timestamps")
    result.require(left == [], f"protections are left: {left}")


# ── threads ─────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _looping(result: Result, *steps: Callable[[], None]) -> Iterator[None]:
    """Repeats each of some steps meanwhile; an error ends it, and is a violation."""
    is_over = threading.Event()

    def loop(step: Callable[[], None]) -> None:
        while not is_over.is_set():
            step()

    threads = [_threaded(result, loop, step) for step in steps]
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _threaded(result: Result, work: Callable[..., None], *arguments: object) -> threading.Thread:
    def run() -> None:
        try:
            work(*arguments)
        except (psycopg.Error, OSError) as error:
            result.violations.append(f"{work.__qualname__}: {type(error).__name__}: {error}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
