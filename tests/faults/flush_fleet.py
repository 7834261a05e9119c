"""A node that serves SQL over a lake, and workers with Spark, as processes, that do its flushes.

The node lives in this process and starts no workers of its own: which there are, and what becomes of them,
is the scenario's to say.

Walk: `flush_kills` uses this; the workers are `flush_worker`.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from tenure.base.env import SystemEnv
from tenure.bulk import flush
from tenure.bulk.upkeep import Upkeep
from tenure.cluster.job_states import TERMINAL, State
from tenure.front import Listen
from tenure.node import Node
from tenure.table.lake.verifying import verify
from tests.faults.flush_worker import FAILURES_VARIABLE, PACE_VARIABLE, RANGE_ROWS_VARIABLE
from tests.faults.harness import ROOT, Place, Result, Run, wait_for
from tests.faults.job_fleet import own_place, remove
from tests.faults.sql_nodes import set_up
from tests.pipeline.waiting import children_of

WAIT_SECONDS = 120.0
QUIET_SECONDS = 30.0
"""Within which a run that has lost its job has written its last file."""

WRITE_SECONDS = 1.0
FAILURES = 0.15
PACE_SECONDS = 0.15
SETTINGS = (
    "SET CLUSTER SETTING lake.clean_after = '1s'",
    "SET CLUSTER SETTING lake.file_grace = '3s'",
    "SET CLUSTER SETTING pipeline.spark_min_rows = 1000",
)
_RUN = re.compile(r"/(j\d+-r\d+)-")


class FlushFleet:
    def __init__(self, run: Run, name: str, *, range_rows: int) -> None:
        self.place: Place = own_place(run, name)
        set_up(self.place.address)
        self._range_rows = range_rows
        self._lake = str(self.place.directory / "lake")
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self._instances: dict[int, str] = {}
        self.node = Node(self.place.address, SystemEnv(), listen=Listen(port=0), lake=self._lake)
        assert self.node.lake is not None
        self.lake = self.node.lake
        with self.connect() as client:
            for statement in SETTINGS:
                client.execute(statement.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers.values():
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.terminate()
        for worker in self._workers.values():
            try:
                worker.wait(20)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()
        self.node.stop()
        remove(self.place)

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        door = self.node.front
        assert door is not None
        return psycopg.connect(
            host=door.host, port=door.port, user="root", dbname="defaultdb", autocommit=True
        )

    # ── workers ────────────────────────────────────────────────────────────────────────────────

    def launch(self, name: str) -> None:
        command = [sys.executable, "-m", "tests.faults.flush_worker", "worker", "--store", self.place.address]
        command += ["--lake", self._lake, "--spark-master", "local[2]"]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            RANGE_ROWS_VARIABLE: str(self._range_rows),
            PACE_VARIABLE: str(PACE_SECONDS),
            FAILURES_VARIABLE: str(FAILURES),
        }
        with self.log(name).open("ab") as errors:
            self._workers[name] = subprocess.Popen(
                command,
                env=environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def await_ready(self, name: str) -> None:
        output = self._workers[name].stdout
        assert output is not None
        line = output.readline()
        assert line.startswith("ready"), f"{name} cannot start: {self.log(name).read_text()[-2000:]}"
        self._instances[int(line.split("instance=")[1].split()[0])] = name  # the dead one's, maybe

    def log(self, name: str) -> Path:
        return self.place.directory / f"{name}.log"

    def names(self) -> list[str]:
        return list(self._workers)

    def signal(self, name: str, number: signal.Signals) -> None:
        self._workers[name].send_signal(number)

    def freeze(self, name: str) -> None:
        """Stops a driver, but not inside a commit: with SQLite nobody could write until it goes on."""
        while True:
            self.signal(name, signal.SIGSTOP)
            writing = threading.Thread(target=self._write, daemon=True)
            writing.start()
            writing.join(WRITE_SECONDS)
            if not writing.is_alive():
                return
            self.signal(name, signal.SIGCONT)
            writing.join()

    def _write(self) -> None:
        with self.connect() as client:
            client.execute(SETTINGS[0].encode())

    def kill(self, name: str) -> None:
        """The driver alone: Java and its Python workers see by themselves that it is gone."""
        self._workers[name].kill()
        self._workers[name].wait()

    def java_of(self, name: str) -> list[int]:
        return children_of(self._workers[name].pid)

    def pythons_of(self, name: str) -> list[int]:
        """The processes that run tasks: forked by a daemon, which Java started."""
        daemons = [pid for java in self.java_of(name) for pid in children_of(java)]
        return [pid for daemon in daemons for pid in children_of(daemon)]

    # ── flushes ────────────────────────────────────────────────────────────────────────────────

    def table(self) -> int:
        with self.connect() as client:
            ((id,),) = client.execute("SELECT 'items'::regclass::oid::int8").fetchall()
        return int(id)

    def start_flush(self, index: int = 1) -> int:
        """The job, once there is no other of that index."""
        jobs: list[int] = []
        assert wait_for(lambda: self._try_to_start(index, jobs), WAIT_SECONDS), "never free"
        is_twice = self._try_to_start(index, []) and self.is_open(jobs[0])
        assert not is_twice, "an index is merged twice at once"
        return jobs[0]

    def _try_to_start(self, index: int, jobs: list[int]) -> bool:
        table = self.table()
        job = self.node.store.transact(
            lambda txn: flush.start(txn, self.lake, table, index, rows=1 << 20, name="items")
        )
        if job is not None:
            jobs.append(job.id)
        return job is not None

    def is_open(self, job: int) -> bool:
        return self.node.jobs.is_open(self.node.store.snapshot(), job)

    def state(self, job: int) -> State | None:
        control = self.node.jobs.control(self.node.store.snapshot(), job)
        return None if control is None else control.state

    def runs(self, job: int) -> int:
        control = self.node.jobs.control(self.node.store.snapshot(), job)
        return 0 if control is None else control.run

    def driver(self, job: int) -> str:
        """The worker that runs a job; empty if none does."""
        control = self.node.jobs.control(self.node.store.snapshot(), job)
        return "" if control is None else self._instances.get(control.claim.instance, "")

    def await_share(self, job: int, share: float) -> str:
        """Waits until a job is so far and has a driver; says which."""

        def is_so_far() -> bool:
            if not self.is_open(job):
                return True
            progress = self.node.jobs.progress(self.node.store.snapshot(), job)
            return progress.fraction >= 0.94 * share and bool(self.driver(job))  # at 0.95 all is merged

        assert wait_for(is_so_far, WAIT_SECONDS), f"job {job} does not come to {share:.0%}"
        driver = self.driver(job)
        assert driver, f"job {job} has ended before it was {share:.0%} done: {self.state(job)}"
        return driver

    def await_end(self, job: int) -> State | None:
        wait_for(lambda: self.state(job) in TERMINAL, WAIT_SECONDS)
        return self.state(job)

    # ── what must hold ─────────────────────────────────────────────────────────────────────────

    def judge(self, result: Result) -> None:
        """What the lake must be like once no job is under way."""
        are_gone = wait_for(lambda: not self._strays(result), QUIET_SECONDS)
        result.require(are_gone, f"strays: nobody names {self._strays(result)[:3]}, and they are not deleted")
        for manifest in self.lake.manifests.all(self.node.store.snapshot()):
            result.violations += [f"I40: {wrong}" for wrong in verify(self.lake.files, manifest)]

    def _strays(self, result: Result) -> list[str]:
        """Deletes files that nobody can name; says which there are still: a run that has lost its job may
        be writing more."""
        deleted = Upkeep(self.lake).delete_strays()
        result.counts["strays"] = int(str(result.counts.get("strays", 0))) + len(deleted)
        listed = {entry.name for page in self.lake.files.list() for entry in page}
        snapshot = self.node.store.snapshot()
        manifests = self.lake.manifests.all(snapshot)
        named = {file.name for manifest in manifests for file in manifest.files}
        named |= {file.name for file in self.lake.manifests.dropped(snapshot)}
        # One that was dropped may have been deleted and forgotten since it was listed.
        return sorted(name for name in listed - named if self.lake.files.exists(name))

    def judge_publishers(self, result: Result) -> None:
        """Each publishing goes on from the one before and names new files of one run."""
        known: dict[tuple[int, int], frozenset[str]] = {}
        flushed_at: dict[tuple[int, int], int] = {}
        store = self.node.store
        until_at = store.engine.clock_at()
        history = store.history(self.lake.manifests.span, since_at=0, until_at=until_at)
        for key, _, value in history.revisions:
            if value is None:
                continue
            manifest, index = self.lake.manifests.decode(value), self.lake.manifests.index_of(key)
            names = frozenset(file.name for file in manifest.files)
            runs = {_RUN.search(name)[1] for name in names - known.get(index, frozenset())}  # type: ignore[index]
            result.require(len(runs) <= 1, f"one-merge: a base has new files of {sorted(runs)}")
            backwards = manifest.flushed_at < flushed_at.get(index, 0)
            result.require(not backwards, f"one-merge: the base of index {index} went back")
            known[index], flushed_at[index] = names, manifest.flushed_at
        result.counts["published"] = len(history.revisions)
