"""A node whose history is short, for reads and jobs that last longer."""

from pathlib import Path
from typing import Any

from tenure.cluster.jobs.runs import Run
from tests.unit.lake_nodes import LakeClient, lake_options

TTL = 2


class LongReads(LakeClient):
    """A node that keeps history for `TTL` seconds, and what its reads and jobs protect."""

    def __init__(self, directory: Path) -> None:
        super().__init__(lake_options(directory))
        self.directory = directory
        self.run(f"ALTER RANGE DEFAULT CONFIGURE ZONE USING gc.ttlseconds = {TTL}")

    def table(self, name: str, rows: int) -> None:
        self.root.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)")
        self.root.execute(f"INSERT INTO {name} SELECT i, 0 FROM generate_series(1, {rows}) i")

    def overwrite(self, name: str) -> None:
        """Changes every row, lets the ttl pass and collects what was there before."""
        self.root.execute(f"UPDATE {name} SET v = v + 1")
        self.env.sleep(TTL + 0.6)
        self.root.execute(f"RUN GC NOW FOR TABLE {name}")

    def protections(self) -> list[Any]:
        return self.root.execute("SELECT meta_type, mode FROM system.protected_ts_timestamps").fetchall()

    def awaited(self, count: int) -> list[Any]:
        """The protections, as soon as there are so many."""
        for _ in range(100):
            found = self.protections()
            if len(found) == count:
                return found
            self.env.sleep(0.05)
        raise AssertionError(f"there are {found}")

    def status(self, job: int, wanted: str) -> None:
        """Waits until a job has a status."""
        for _ in range(200):
            ((found,),) = self.root.execute(
                "SELECT status FROM tenure_internal.jobs WHERE job_id = %s", [job]
            ).fetchall()
            if found == wanted:
                return
            self.env.sleep(0.05)
        raise AssertionError(f"the job is {found}")


def run_until_stopped(run: Run) -> None:
    while True:
        run.sleep(0.02)
