"""Imports on Spark under blows: all of their rows are there or none, once each, and nothing is left over.

The table has rows, some in its base and some not, between which those of the files come. It has another
index, a unique one and a foreign key; after each blow all of them must agree, now and at past times.

Walk: `__main__` calls `import_kill` with a `Run`; `bulk_blows` are the blows, `bulk_fleet` has the processes.
"""

import random
import time
from contextlib import closing
from pathlib import Path

import psycopg

from tenure.cluster.job_states import State
from tests.faults.bulk_blows import BLOWS, Blow, on_clusters, start_by_node, strike
from tests.faults.bulk_fleet import BulkFleet
from tests.faults.bulk_load import Moment, Rows, wrong
from tests.faults.harness import Result, Run

QUICK_ROWS, ROWS = 4_000, 20_000
"""Of each import, and of the table before the first."""

TASKS = 6
"""Of the first pass, and of the second for each index."""

STEP = 100
"""Between the ids that are there: one of each import comes there."""

INSERT_ROWS = 5_000
FILES = 12
PARENTS = 5
SAMPLE = 20

QUICK_BLOWS = {"sqlite": ("driver at 90 %",), "postgres": ("cancel at 50 %",)}


def import_kill(run: Run) -> Result:
    """An import per blow."""
    result = Result()
    rows = QUICK_ROWS if run.is_quick else ROWS
    until = time.monotonic() + run.seconds
    with BulkFleet(run, "import", range_rows=rows // TASKS) as fleet:
        worker = fleet.launch_worker()
        items = Items(fleet, rows, run.seed)
        fleet.await_worker(worker)
        while not items.imports or time.monotonic() < until:
            for name in QUICK_BLOWS[run.engine] if run.is_quick else BLOWS:
                items.import_under(name, BLOWS[name], result)
            if not run.is_quick:
                items.import_by_a_node_that_dies(result)
        fleet.judge_publishers(result)
        fleet.judge_logs(result)
        result.counts |= {"rows": rows, "imports": items.imports}
    if not run.is_quick:
        on_clusters(
            run, "import", rows // TASKS, lambda fleet: Items(fleet, rows, run.seed).import_under, result
        )
    return result


class Items:
    """The table, and what must be in it."""

    def __init__(self, fleet: BulkFleet, rows: int, seed: int) -> None:
        self._fleet = fleet
        self._count = rows
        self._rng = random.Random(seed)
        self.imports = 0
        self._rows: Rows = {id: (id % PARENTS, f"v{id}") for id in range(STEP, STEP * rows + 1, STEP)}
        self._moments: list[Moment] = []
        fleet.execute(
            "CREATE TABLE parents (id int PRIMARY KEY)",
            f"INSERT INTO parents SELECT * FROM generate_series(0, {PARENTS - 1})",
            "CREATE TABLE items (id int PRIMARY KEY, n int NOT NULL REFERENCES parents, "
            "note text NOT NULL UNIQUE)",
            "CREATE INDEX by_n ON items (n)",
        )
        for first in range(STEP, STEP * rows + 1, STEP * INSERT_ROWS):
            last = min(STEP * rows, first + STEP * (INSERT_ROWS - 1))
            fleet.execute(
                f"INSERT INTO items SELECT g, g % {PARENTS}, 'v' || g "
                f"FROM generate_series({first}, {last}, {STEP}) g"
            )
        self._remember()

    def import_under(self, name: str, blow: Blow, result: Result) -> None:
        with result.naming(name):
            files, new = self._write_files()
            ((job,),) = self._fleet.execute(f"{_statement(files)} WITH detached")
            state = strike(self._fleet, job, blow, result)
            self._judge(new if state is State.SUCCEEDED else {}, result)

    def import_by_a_node_that_dies(self, result: Result) -> None:
        with result.naming("node"):
            files, new = self._write_files()
            job = start_by_node(self._fleet, _statement(files), "import", 0.5)
            state = self._fleet.await_end(job)
            result.require(state is State.SUCCEEDED, f"job {job} ended as {state}: {self._fleet.error(job)}")
            self._judge(new, result)

    def _write_files(self) -> tuple[str, Rows]:
        """Rows that are not there yet, in any order."""
        self.imports += 1
        ids = [STEP * number + self.imports for number in range(self._count)]
        self._rng.shuffle(ids)
        rows = {id: (id % PARENTS, f"file {self.imports}, {id}") for id in ids}
        directory = self._fleet.files / f"in{self.imports}"
        directory.mkdir()
        for number in range(FILES):
            _write(directory / f"{number}.csv", {id: rows[id] for id in ids[number::FILES]})
        return f"{directory.name}/*.csv", rows

    def _judge(self, new: Rows, result: Result) -> None:
        self._rows = self._rows | new
        self._remember()
        with closing(self._fleet.connect()) as client:
            for moment in self._moments:
                result.violations += wrong(client, moment)
            result.violations += self._wrong_notes(client)
            for statement in ("INSERT INTO items VALUES (-1, 0, 'mine')", "DELETE FROM items WHERE id = -1"):
                done = client.execute(statement.encode()).rowcount
                result.require(done == 1, f"offline: {statement} changes {done} rows")
        result.violations += self._wrong_counts()
        self._fleet.judge(result)

    def _remember(self) -> None:
        """The time before all imports, before the last one, and now."""
        ((at,),) = self._fleet.execute("SELECT cluster_logical_timestamp()")
        self._moments = [*self._moments[:1], *self._moments[1:][-1:], Moment(str(at), self._rows)]

    def _wrong_notes(self, client: "psycopg.Connection[tuple[object, ...]]") -> list[str]:
        """By the unique index, one at a time."""
        found = []
        for id in self._rng.sample(sorted(self._rows), SAMPLE):
            shown = client.execute("SELECT id FROM items WHERE note = %s", (self._rows[id][1],)).fetchall()
            found += [] if shown == [(id,)] else [f"unique: the note of {id} is that of {shown}"]
        return found

    def _wrong_counts(self) -> list[str]:
        """Every index has one entry for each row."""
        store, table = self._fleet.node.store, self._fleet.table()
        snapshot = store.snapshot()
        version = self._fleet.lake.version(snapshot, table)
        assert version is not None
        spans = {index.id: store.keyspace.index_span(table, index.id) for index in version.table.indexes}
        counts = {index: sum(1 for _ in snapshot.scan(span)) for index, span in spans.items()}
        rows = len(self._rows)
        return [
            f"index: {index} has {count} entries, not {rows}"
            for index, count in counts.items()
            if count != rows
        ]


def _statement(files: str) -> str:
    return f"IMPORT INTO items CSV DATA ('{files}')"


def _write(path: Path, rows: Rows) -> None:
    path.write_text("".join(f'{id},{n},"{note}"\n' for id, (n, note) in rows.items()))
