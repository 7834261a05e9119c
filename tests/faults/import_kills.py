"""Imports on Spark under blows: all of their rows are there or none, once each, and nothing is left over.

The table has rows, some in its base and some not, between which those of the files come. It has another
index, a unique one and a foreign key; after each blow all of them must agree, now and at past times.

Walk: `__main__` calls `import_kill` with a `Run`; `bulk_kills` strikes.
"""

import random
from contextlib import closing
from pathlib import Path

import psycopg

from tenure.bulk.importing.records import KIND
from tenure.cluster.jobs.job_states import JobState
from tests.faults.bulk_fleet import BulkFleet
from tests.faults.bulk_kills import Statements, kills
from tests.faults.bulk_load import Moment, Rows, wrong
from tests.faults.harness import Result, Run

ROWS = 4_000
"""Of each import, and of the table before the first."""

TASKS = 3
"""Of the second pass for each index, if there were no rows yet: each import adds as many."""

STEP = 100
"""Between the ids that are there: one of each import comes there."""

FILES = 12
PARENTS = 5
SAMPLE = 20

QUICK_BLOWS = {"sqlite": ("driver at 90 %",), "postgres": ("cancel at 50 %",)}


def import_kill(run: Run) -> Result:
    """An import per blow."""
    make = lambda fleet: Imports(fleet, run.seed)  # noqa: E731
    return kills(run, "import", ROWS // TASKS, make, quick=QUICK_BLOWS[run.engine])


class Imports(Statements):
    """Into one table: what must be in it."""

    kind = KIND

    def __init__(self, fleet: BulkFleet, seed: int) -> None:
        super().__init__(fleet)
        self._rng = random.Random(seed)
        self._imports = 0
        self._new: Rows = {}
        """Of the last one."""
        self._rows: Rows = {id: (id % PARENTS, f"v{id}") for id in range(STEP, STEP * ROWS + 1, STEP)}
        self._moments: list[Moment] = []
        fleet.execute(
            "CREATE TABLE parents (id int PRIMARY KEY)",
            f"INSERT INTO parents SELECT * FROM generate_series(0, {PARENTS - 1})",
            "CREATE TABLE items (id int PRIMARY KEY, n int NOT NULL REFERENCES parents, "
            "note text NOT NULL UNIQUE)",
            "CREATE INDEX by_n ON items (n)",
            f"INSERT INTO items SELECT g, g % {PARENTS}, 'v' || g "
            f"FROM generate_series({STEP}, {STEP * ROWS}, {STEP}) g",
        )
        self._remember()

    def statement(self) -> str:
        """An import of rows that are not there yet, in any order."""
        self._imports += 1
        ids = [STEP * number + self._imports for number in range(ROWS)]
        self._rng.shuffle(ids)
        self._new = {id: (id % PARENTS, f"file {self._imports}, {id}") for id in ids}
        directory = self.fleet.files / f"in{self._imports}"
        directory.mkdir()
        for number in range(FILES):
            _write(directory / f"{number}.csv", {id: self._new[id] for id in ids[number::FILES]})
        return f"IMPORT INTO items CSV DATA ('{directory.name}/*.csv')"

    def judge(self, job: int, state: JobState | None, result: Result) -> None:
        self._rows = self._rows | (self._new if state is JobState.SUCCEEDED else {})
        self._remember()
        with closing(self.fleet.connect()) as client:
            for moment in self._moments:
                result.violations += wrong(client, moment)
            result.violations += self._wrong_notes(client)
            for statement in ("INSERT INTO items VALUES (-1, 0, 'mine')", "DELETE FROM items WHERE id = -1"):
                done = client.execute(statement.encode()).rowcount
                result.require(done == 1, f"offline: {statement} changes {done} rows")
        result.violations += self._wrong_counts()
        self.fleet.judge(result)

    def end(self, result: Result) -> None:
        result.counts |= {"rows": ROWS, "imports": self._imports}

    def _remember(self) -> None:
        """The time before all imports, before the last one, and now."""
        ((at,),) = self.fleet.execute("SELECT cluster_logical_timestamp()")
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
        store, table = self.fleet.node.store, self.fleet.table()
        snapshot = store.snapshot()
        version = self.fleet.lake.version(snapshot, table)
        assert version is not None
        spans = {index.id: store.keyspace.index_span(table, index.id) for index in version.table.indexes}
        counts = {index: sum(1 for _ in snapshot.scan(span)) for index, span in spans.items()}
        rows = len(self._rows)
        return [
            f"index: {index} has {count} entries, not {rows}"
            for index, count in counts.items()
            if count != rows
        ]


def _write(path: Path, rows: Rows) -> None:
    path.write_text("".join(f'{id},{n},"{note}"\n' for id, (n, note) in rows.items()))
