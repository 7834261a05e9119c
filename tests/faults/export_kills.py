"""Exports on Spark under blows, while clients change the rows: the files hold each row once, as of one time.

What counts is what a statement, or its job, names as its files; and at the location there is nothing else
that looks like one of them. A canceled export leaves none.

Walk: `__main__` calls `export_kill` with a `Run`; `bulk_kills` strikes, `bulk_load` has the clients and what
they remember.
"""

import csv
from pathlib import Path

from tenure.bulk.exporting.kind import KIND
from tenure.bulk.exporting.records import files_of
from tenure.cluster.jobs.job_states import JobState
from tenure.storage.directory import UNFINISHED
from tests.faults.bulk_fleet import QUIET_SECONDS, BulkFleet
from tests.faults.bulk_kills import Statements, kills
from tests.faults.bulk_load import Load, Moment
from tests.faults.harness import Result, Run, wait_for

ROWS = 4_000
TASKS = 6
FILES_PER_TASK = 2

QUICK_BLOWS = {"sqlite": ("driver at 90 %",), "postgres": ("canceled unheard",)}


def export_kill(run: Run) -> Result:
    """An export per blow."""
    make = lambda fleet: Exports(fleet, run.seed)  # noqa: E731
    return kills(run, "export", ROWS // TASKS, make, quick=QUICK_BLOWS[run.engine])


class Exports(Statements):
    kind = KIND

    def __init__(self, fleet: BulkFleet, seed: int) -> None:
        super().__init__(fleet)
        self._load = Load(fleet.connect, ROWS, seed)
        self._load.start()
        self._made = 0

    def statement(self) -> str:
        """The next one, as of now."""
        self._made += 1
        self._moment, self._directory = self._load.remember(), self.fleet.files / f"out{self._made}"
        return (
            f"EXPORT INTO CSV '{self._directory.name}' "
            f"WITH chunk_rows = '{ROWS // TASKS // FILES_PER_TASK}' "
            f"FROM TABLE items AS OF SYSTEM TIME {self._moment.at}"
        )

    def judge(self, job: int, state: JobState | None, result: Result) -> None:
        self._judge(job, self._moment if state is JobState.SUCCEEDED else None, self._directory, result)

    def end(self, result: Result) -> None:
        result.violations += self._load.stop()
        result.counts |= {"rows": ROWS, "changes": self._load.changes}

    def _judge(self, job: int, moment: Moment | None, directory: Path, result: Result) -> None:
        """Compares with what was there at a time; None if nothing may be left."""
        jobs, snapshot = self.fleet.node.jobs, self.fleet.node.store.snapshot()
        named = (
            {}
            if moment is None
            else {each.name: each for each in files_of(jobs.progress(snapshot, job).data)}
        )
        is_so = wait_for(lambda: _names(directory) == sorted(named), QUIET_SECONDS)
        result.require(is_so, f"files: there are {_names(directory)}, and the job names {sorted(named)}")
        if moment is None:
            return
        found = {name: _read(directory / name) for name in named}
        for name, rows in found.items():
            counted, size = named[name].rows, named[name].bytes
            result.require(len(rows) == counted, f"files: {name} has {len(rows)} rows, not {counted}")
            shown = (directory / name).stat().st_size
            result.require(shown == size, f"files: {name} has {shown} bytes, not {size}")
        rows = [row for each in found.values() for row in each]
        expected = sorted((id, n, note) for id, (n, note) in moment.rows.items())
        missing, extra = len(set(expected) - set(rows)), len(rows) - len(set(rows) & set(expected))
        result.require(sorted(rows) == expected, f"rows: {missing} are missing, {extra} should not be there")


def _names(directory: Path) -> list[str]:
    if not directory.exists():
        return []
    return sorted(path.name for path in directory.iterdir() if path.name != UNFINISHED)


def _read(path: Path) -> list[tuple[int, int, str]]:
    with path.open(newline="") as file:
        return [(int(id), int(n), note) for id, n, note in csv.reader(file)]
