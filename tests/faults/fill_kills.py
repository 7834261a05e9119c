"""CREATE INDEX on Spark under blows, while clients change the rows: the index is whole, or there is none.

A change's job begins in the node and is handed over to a worker.

Walk: `__main__` calls `fill_kill` with a `Run`; `bulk_kills` strikes, `bulk_load` has the clients.
"""

from tenure.catalog.descriptors.definitions import Table
from tenure.cluster.jobs.job_states import JobState
from tenure.schema_change.job import KIND
from tenure.table.consistency import check_indexes
from tests.faults.bulk_fleet import BulkFleet
from tests.faults.bulk_kills import Statements, kills
from tests.faults.bulk_load import Load
from tests.faults.harness import Result, Run

ROWS = 4_000
TASKS = 6

QUICK_BLOWS = {
    "sqlite": ("driver at 90 %", "canceled unheard"),
    "postgres": ("two drivers", "cancel at 90 %"),
}
INDEXES = ("INDEX filled ON items (note, n)", "UNIQUE INDEX filled ON items (note, id)")


def fill_kill(run: Run) -> Result:
    """An index per blow."""
    make = lambda fleet: Fills(fleet, run.seed)  # noqa: E731
    return kills(run, "fill", ROWS // TASKS, make, quick=QUICK_BLOWS[run.engine])


class Fills(Statements):
    kind = KIND

    def __init__(self, fleet: BulkFleet, seed: int) -> None:
        super().__init__(fleet)
        self._load = Load(fleet.connect, ROWS, seed)
        self._load.start()
        self._made = 0

    def statement(self) -> str:
        self._made += 1
        return f"CREATE {INDEXES[self._made % len(INDEXES)]}"

    def judge(self, job: int, state: JobState | None, result: Result) -> None:
        fleet, table = self.fleet, self._table()
        is_there = any(each.name == "filled" for each in table.indexes)
        is_right = is_there == (state is JobState.SUCCEEDED)
        result.require(is_right, f"index: the job is {state}, the index {is_there}")
        result.require(not table.job, f"job: {table.job} is still at work on the table")
        layout = fleet.node.layouts.of(table)
        snapshot, lake = fleet.node.store.snapshot(), fleet.node.lake
        assert lake is not None
        in_lake = [each.index for each in lake.manifests.all(snapshot, table.id) if each.files]
        wrong = check_indexes(snapshot, layout, fleet.node.context(), left=in_lake)
        result.violations += [f"index: {text}" for text in wrong[:3]]
        if is_there:
            fleet.node.leases.renew()
            fleet.execute("DROP INDEX filled")

    def end(self, result: Result) -> None:
        result.violations += self._load.stop()
        result.violations += self._load.wrong()
        result.counts |= {"rows": ROWS, "changes": self._load.changes}

    def _table(self) -> Table:
        found = self.fleet.node.catalog.get(self.fleet.node.store.snapshot(), self.fleet.table())
        assert isinstance(found, Table)
        return found
