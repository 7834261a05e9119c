"""export: a table's rows, or a query's, as files at a location.

    a table    tasks by ranges of keys, in this process or on Spark: scan ──► files of the task
    a query    in this process: SQL runs it as of the job's time, a batch at a time

Everything is read at one time, which is fixed when the job is made, and protected until the job has ended.
The ranges of a table are saved before the first file is written, so every run of the job would write the same
rows into a file of the same name: the number of runs does not matter, nor does a run that was thought dead
and goes on. A query may return its rows in another order the next time; its files are named after the run.
Each run deletes the files of earlier runs only, since a run that was thought dead may get there when a later
one has done the work.

A job that fails or is canceled deletes its files, which have the job's id in their names. A run that was
thought dead, or did not hear of it, does the same when it ends: its tasks may have gone on.

Walk: `exporting.kind.export_kind` -> `Export.run` -> `Tasks.run` with
`export_range`.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tenure.base.errors import RowsIncomplete, TenureError
from tenure.bulk.exporting.records import ExportProgress, Rows, RunQuery, payload_of
from tenure.bulk.lakes import Lake
from tenure.bulk.phases import Phases
from tenure.cluster.jobs.runs import Run
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.records import pack, unpack
from tenure.pipeline.remote_handles import opened
from tenure.pipeline.scan import ScanTask, batches, bounds, tasks
from tenure.pipeline.tasks import Attempt
from tenure.pipeline.writing.cells import cells_of_batch, cells_of_rows
from tenure.pipeline.writing.files import OutputFiles
from tenure.pipeline.writing.formats import ExportedFile, Writing
from tenure.storage.location_text import file_stem
from tenure.storage.locations import Location, Locations

TELL_SECONDS = 2.0
"""The time between two progress reports of a query."""


WRITING = (0.0, 0.99)
"""The job's fraction when the tasks are done."""


class Export:
    def __init__(self, lake: Lake, locations: Locations, run: Run) -> None:
        self._lake = lake
        self._locations = locations
        self._run = run
        self._payload = payload_of(lake, run)
        self._stem = f"{file_stem(self._payload.name)}-{run.job.id}"
        self._saved = unpack(run.progress.data, ExportProgress) if run.progress.data else None

    def run(self, run_query: RunQuery) -> None:
        location = self._locations.resolve(self._payload.location)
        try:
            output = self._of_table(location) if self._payload.table else self._of_query(location, run_query)
            self._tell(1.0, f"{sum(file.rows for file in output)} rows in {len(output)} files", tuple(output))
        except BaseException:
            if self._lake.is_given_up(self._run):
                self.revert()
            raise

    def revert(self) -> None:
        if self._saved is not None:  # else nothing was written
            location = self._locations.resolve(self._payload.location)
            location.delete(self._names(location))

    def _tell(self, fraction: float, text: str, files: tuple[ExportedFile, ...] = ()) -> None:
        assert self._saved is not None
        saved = ExportProgress(self._saved.bounds, files)
        self._run.checkpoint(fraction=fraction, status=text, data=pack(saved))

    def _names(self, location: Location, *, below: int | None = None) -> list[str]:
        """The existing files of this job; of tasks or runs below a number, if one is given."""
        pattern = re.compile(re.escape(self._stem) + r"-(\d+)\.\d+\.[a-z.]+")
        found = [pattern.fullmatch(entry.name) for page in location.list() for entry in page]
        return [each[0] for each in found if each and (below is None or int(each[1]) < below)]

    def _protected(self) -> list[ProtectedRead]:
        return self._lake.protections.reads(self._lake.store.snapshot(), self._run.job.id)

    # ── a table ────────────────────────────────────────────────────────────────────────────────

    def _of_table(self, location: Location) -> list[ExportedFile]:
        payload, lake = self._payload, self._lake
        version = lake.version(lake.store.snapshot(payload.at), payload.table)
        if version is None:
            raise TenureError(f"table {payload.table} is not there any more")
        if self._saved is None:
            index = version.table.primary
            cut = bounds(lake.store, lake.bases.checked, payload.table, index, payload.at)
            self._saved = ExportProgress(cut.keys)
            self._tell(0.0, "")
        scans = tasks(
            *(lake.place, version, payload.at, self._saved.bounds),
            columns=payload.columns,
            protected=self._protected(),
        )
        work = [
            ExportTask(scan, location, payload.writing, self._stem, number)
            for number, scan in enumerate(scans)
        ]
        output = Phases(lake, self._run, self._tell).do(export_range, work, WRITING)
        return [file for files in output for file in files]

    # ── a query ────────────────────────────────────────────────────────────────────────────────

    def _of_query(self, location: Location, run_query: RunQuery) -> list[ExportedFile]:
        if self._saved is None:
            self._saved = ExportProgress()
            self._tell(0.0, "")
        else:
            location.delete(self._names(location, below=self._run.fence.run))
        arguments = self._payload, self._protected(), self._run.check
        try:
            return self._queried(location, partial(run_query, *arguments, False))
        except RowsIncomplete:
            location.delete(self._names(location, below=self._run.fence.run + 1))
            return self._queried(location, partial(run_query, *arguments, True))

    def _queried(self, location: Location, rows_of_query: Callable[[], Iterator[Rows]]) -> list[ExportedFile]:
        env, writing = self._lake.store.env, self._payload.writing
        stem = f"{self._stem}-{self._run.fence.run}"
        output = OutputFiles(location, lambda n: f"{stem}.{n}{writing.suffix}", writing, is_same=False)
        kinds, told = writing.kinds, env.monotonic()
        try:
            for rows in rows_of_query():
                self._run.check()
                output.write(cells_of_rows(rows, kinds), len(rows))
                if env.monotonic() - told > TELL_SECONDS:
                    told = env.monotonic()
                    self._tell(0.0, f"process: {output.rows} rows")
            return output.close(at_least_one=True)
        except BaseException:
            output.abort()
            raise


class ExportTask(NamedTuple):
    scan: ScanTask
    location: Location
    writing: Writing
    stem: str
    number: int


def export_range(task: ExportTask, attempt: Attempt) -> list[ExportedFile]:
    """The kernel: the rows of one range as files."""
    writing, stem = task.writing, f"{task.stem}-{task.number}"
    output = OutputFiles(task.location, lambda n: f"{stem}.{n}{writing.suffix}", writing, is_same=True)
    kinds = writing.kinds
    try:
        for batch in batches(opened(task.scan.place), task.scan):
            output.write(cells_of_batch(batch, task.scan.columns, kinds), len(batch))
        return output.close(at_least_one=task.number == 0)
    except BaseException:
        output.abort()
        raise
