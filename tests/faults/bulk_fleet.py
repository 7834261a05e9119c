"""A node that serves SQL over a lake, and workers with Spark, as processes, that do its bulk work.

The node lives in this process and starts no workers of its own: which there are, and what becomes of them,
is the scenario's to say.

Walk: `flush_kills`, `import_kills`, `export_kills` and `fill_kills` use this; the workers are `bulk_worker`.
"""

import re
import signal
import threading
from contextlib import closing
from typing import Any

import psycopg

from tenure.base.env import SystemEnv
from tenure.bulk.upkeep import Upkeep
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tenure.table.lake.verifying import verify
from tests.faults.bulk_worker import FAILURES_VARIABLE, PACE_VARIABLE, RANGE_ROWS_VARIABLE
from tests.faults.harness import Place, Result, Run, wait_for
from tests.faults.job_fleet import own_place, remove
from tests.faults.processes import Processes
from tests.faults.sql_nodes import TTL_SECONDS, set_up
from tests.pipeline.waiting import children_of

WAIT_SECONDS = 300.0
QUIET_SECONDS = 30.0
"""Within which a run that has lost its job has written its last file."""

LONG_TTL_SECONDS = 6.0
"""In a long run much is computed in this process, beside which a heartbeat may be late."""

WRITE_SECONDS = 1.0
EXIT_SECONDS = 20.0
FAILURES = 0.15
PACE_SECONDS = 0.15
SETTINGS = (
    "SET CLUSTER SETTING lake.clean_after = '1s'",
    "SET CLUSTER SETTING lake.file_grace = '3s'",
    "SET CLUSTER SETTING pipeline.spark_min_rows = 1000",
)
_RUN = re.compile(r"/(j\d+-r\d+)-")


class Missed(Exception):
    """A job ended before its blow fell: nothing is shown by it."""


class BulkFleet(Processes):
    def __init__(self, run: Run, name: str, *, range_rows: int, master: str = "local[2]") -> None:
        self.place: Place = own_place(run, name)
        super().__init__(self.place.directory)
        set_up(self.place.address, ttl_seconds=TTL_SECONDS if run.is_quick else LONG_TTL_SECONDS)
        self._range_rows = range_rows
        self.master = master
        self.files = self.place.directory / "files"
        lake = str(self.place.directory / "lake")
        self._at = ("--store", self.place.address, "--lake", lake, "--files", str(self.files))
        self._instances: dict[int, str] = {}
        self.node = Node(
            NodeOptions(self.place.address, listen=Listen(port=0), lake=lake, files=str(self.files)),
            SystemEnv(),
        )
        assert self.node.lake is not None
        self.lake = self.node.lake
        self.execute(*SETTINGS)

    def close(self, *, grace_seconds: float = 0.0) -> None:
        super().close(grace_seconds=grace_seconds or EXIT_SECONDS)
        self.node.stop()
        remove(self.place)

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        door = self.node.front
        assert door is not None
        return psycopg.connect(
            host=door.host, port=door.port, user="root", dbname="defaultdb", autocommit=True
        )

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last one."""
        with closing(self.connect()) as client:
            for statement in statements:
                cursor = client.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    # ── processes ──────────────────────────────────────────────────────────────────────────────

    def launch_worker(self) -> str:
        """One more; its name."""
        name = f"w{len(self.names())}"
        variables = {
            RANGE_ROWS_VARIABLE: str(self._range_rows),
            PACE_VARIABLE: str(PACE_SECONDS),
            FAILURES_VARIABLE: str(FAILURES),
        }
        options = (*self._at, "--spark-master", self.master)
        self.spawn(name, "tests.faults.bulk_worker", "worker", *options, variables=variables)
        return name

    def await_worker(self, name: str) -> None:
        line = self.await_ready(name)
        self._instances[int(line.split("instance=")[1].split()[0])] = name  # the dead one's, maybe

    def start_worker(self) -> None:
        self.await_worker(self.launch_worker())

    def start_node(self, name: str) -> str:
        """A node as a process of its own; how clients reach it."""
        self.spawn(name, "tenure.cli", "start", "--insecure", *self._at, "--sql", "127.0.0.1:0")
        port = self.await_ready(name).split("sql=")[1].split()[0].rpartition(":")[2]
        return f"host=127.0.0.1 port={port} user=root dbname=defaultdb sslmode=disable gssencmode=disable"

    def freeze(self, name: str) -> None:
        """Stops a driver, but not inside a commit: with SQLite nobody could write until it goes on."""
        while True:
            self.signal(name, signal.SIGSTOP)
            writing = threading.Thread(target=self.execute, args=SETTINGS[:1], daemon=True)
            writing.start()
            writing.join(WRITE_SECONDS)
            if not writing.is_alive():
                return
            self.signal(name, signal.SIGCONT)
            writing.join()

    def java_of(self, name: str) -> list[int]:
        return children_of(self.process(name).pid)

    def pythons_of(self, name: str) -> list[int]:
        """The processes that run tasks: forked by a daemon, which Java started."""
        daemons = [pid for java in self.java_of(name) for pid in children_of(java)]
        return [pid for daemon in daemons for pid in children_of(daemon)]

    # ── jobs ───────────────────────────────────────────────────────────────────────────────────

    def table(self) -> int:
        ((id,),) = self.execute("SELECT 'items'::regclass::oid::int8")
        return int(id)

    def jobs_of(self, kind: str) -> list[int]:
        return [job.id for job, _, _ in self.node.jobs.list(self.node.store.snapshot()) if job.kind == kind]

    def is_open(self, job: int) -> bool:
        return self.node.jobs.is_open(self.node.store.snapshot(), job)

    def state(self, job: int) -> JobState | None:
        control = self.node.jobs.control(self.node.store.snapshot(), job)
        return None if control is None else control.state

    def error(self, job: int) -> str:
        control = self.node.jobs.control(self.node.store.snapshot(), job)
        return "" if control is None else control.error_text

    def runs(self, job: int) -> int:
        control = self.node.jobs.control(self.node.store.snapshot(), job)
        return 0 if control is None else control.run

    def driver(self, job: int) -> str:
        """The worker that runs a job; empty if none does."""
        control = self.node.jobs.control(self.node.store.snapshot(), job)
        instance = 0 if control is None else control.claim.instance
        if instance and instance not in self._instances:
            # One that was stopped for long has another id since: its own is somebody else's.
            identified = set(self._instances.values())
            for name in self.names():
                if name not in identified and self.process(name).poll() is None:
                    self._instances[instance] = name
        return self._instances.get(instance, "")

    def await_share(self, job: int, share: float) -> str:
        """Waits until a job is so far and has a driver; says which."""

        def is_so_far() -> bool:
            if not self.is_open(job):
                return True
            progress = self.node.jobs.progress(self.node.store.snapshot(), job)
            return progress.fraction >= 0.94 * share and bool(self.driver(job))  # at 0.95 all is merged

        assert wait_for(is_so_far, WAIT_SECONDS), f"job {job} does not come to {share:.0%}"
        driver = self.driver(job)
        if not driver:
            raise Missed(f"job {job} has ended before it was seen at {share:.0%}: {self.state(job)}")
        return driver

    def await_end(self, job: int) -> JobState | None:
        wait_for(lambda: self.state(job) in TERMINAL, WAIT_SECONDS)
        return self.state(job)

    # ── what must hold ─────────────────────────────────────────────────────────────────────────

    def judge(self, result: Result) -> None:
        """What the lake must be like once no job is under way."""
        are_gone = wait_for(lambda: not self._strays(result), QUIET_SECONDS)
        result.require(are_gone, f"strays: nobody names {self._strays(result)[:3]}, and they are not deleted")
        for manifest in self.lake.manifests.all(self.node.store.snapshot()):
            result.violations += [f"I40: {wrong}" for wrong in verify(self.lake.files, manifest)]

    def judge_logs(self, result: Result) -> None:
        for name in self.names():
            text = self.log(name).read_text()
            result.require("AssertionError" not in text, f"{name}'s log: {text[-2000:]}")

    def _strays(self, result: Result) -> list[str]:
        """Deletes files that nobody can name; says which there are still: a run that has lost its job may
        be writing more."""
        deleted = Upkeep(self.lake).delete_strays()
        result.counts["strays"] = int(str(result.counts.get("strays", 0))) + len(deleted)
        listed = {entry.name for page in self.lake.files.list(str(self.lake.place.tenant)) for entry in page}
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
