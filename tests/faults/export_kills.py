"""Exports on Spark under blows, while clients change the rows: the files hold each row once, as of one time.

What counts is what a statement, or its job, names as its files; and at the location there is nothing else
that looks like one of them. A canceled export leaves none.

Walk: `__main__` calls `export_kill` with a `Run`; `bulk_blows` are the blows, `bulk_fleet` has the processes,
`bulk_load` the clients and what they remember.
"""

import csv
import time
from pathlib import Path

from tenure.bulk.exporting.records import files_of
from tenure.cluster.job_states import State
from tenure.storage.directory import UNFINISHED
from tests.faults.bulk_blows import BLOWS, Blow, on_clusters, start_by_client, start_by_node, strike
from tests.faults.bulk_fleet import QUIET_SECONDS, BulkFleet
from tests.faults.bulk_load import Load, Moment
from tests.faults.harness import Result, Run, wait_for

QUICK_ROWS, ROWS = 4_000, 20_000
TASKS = 6
FILES_PER_TASK = 2

QUICK_BLOWS = {"sqlite": ("driver at 90 %",), "postgres": ("canceled unheard",)}


def export_kill(run: Run) -> Result:
    """An export per blow."""
    result = Result()
    rows = QUICK_ROWS if run.is_quick else ROWS
    until = time.monotonic() + run.seconds
    with BulkFleet(run, "export", range_rows=rows // TASKS) as fleet:
        worker = fleet.launch_worker()
        exports = Exports(fleet, rows, run.seed)
        fleet.await_worker(worker)
        while not exports.made or time.monotonic() < until:
            for name in QUICK_BLOWS[run.engine] if run.is_quick else BLOWS:
                exports.export_under(name, BLOWS[name], result)
            if not run.is_quick:
                exports.export_by_a_node_that_dies(result)
        result.violations += exports.load.stop()
        fleet.judge_logs(result)
        result.counts |= {"rows": rows, "exports": exports.made, "changes": exports.load.changes}
    if not run.is_quick:
        on_clusters(
            run, "export", rows // TASKS, lambda fleet: Exports(fleet, rows, run.seed).export_under, result
        )
    return result


class Exports:
    def __init__(self, fleet: BulkFleet, rows: int, seed: int) -> None:
        self._fleet = fleet
        self._chunk_rows = rows // TASKS // FILES_PER_TASK
        self.load = Load(fleet.connect, rows, seed)
        self.load.start()
        self.made = 0

    def export_under(self, name: str, blow: Blow, result: Result) -> None:
        with result.naming(name):
            moment, directory = self.load.remember(), self._directory()
            job = start_by_client(self._fleet, self._statement(moment, directory), "export")
            state = strike(self._fleet, job, blow, result)
            self._judge(job, moment if state is State.SUCCEEDED else None, directory, result)

    def export_by_a_node_that_dies(self, result: Result) -> None:
        with result.naming("node"):
            moment, directory = self.load.remember(), self._directory()
            job = start_by_node(self._fleet, self._statement(moment, directory), "export", 0.5)
            state = self._fleet.await_end(job)
            result.require(state is State.SUCCEEDED, f"job {job} ended as {state}: {self._fleet.error(job)}")
            self._judge(job, moment, directory, result)

    def _directory(self) -> Path:
        self.made += 1
        return self._fleet.files / f"out{self.made}"

    def _statement(self, moment: Moment, directory: Path) -> str:
        return (
            f"EXPORT INTO CSV '{directory.name}' WITH chunk_rows = '{self._chunk_rows}' "
            f"FROM TABLE items AS OF SYSTEM TIME {moment.at}"
        )

    def _judge(self, job: int, moment: Moment | None, directory: Path, result: Result) -> None:
        """Compares with what was there at a time; None if nothing may be left."""
        jobs, snapshot = self._fleet.node.jobs, self._fleet.node.store.snapshot()
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
