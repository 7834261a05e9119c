"""CREATE INDEX on Spark under blows, while clients change the rows: the index is whole, or there is none.

A change's job begins in the node and is handed over to a worker: so it has one run more than others, and the
blows that count runs to the last one are left out.

Walk: `__main__` calls `fill_kill` with a `Run`; `bulk_blows` are the blows, `bulk_fleet` has the processes,
`bulk_load` the clients.
"""

import time

from tenure.catalog.descriptors import Table
from tenure.cluster.job_states import State
from tenure.schema_change.job import KIND
from tenure.table.consistency import check_indexes
from tests.faults.bulk_blows import BLOWS, start_by_client, strike
from tests.faults.bulk_fleet import BulkFleet
from tests.faults.bulk_load import Load
from tests.faults.harness import Result, Run

QUICK_ROWS, ROWS = 4_000, 20_000
TASKS = 6

QUICK_BLOWS = {
    "sqlite": ("driver at 90 %", "canceled unheard"),
    "postgres": ("two drivers", "cancel at 90 %"),
}
COUNTED = ("python",)
INDEXES = ("INDEX filled ON items (note, n)", "UNIQUE INDEX filled ON items (note, id)")


def fill_kill(run: Run) -> Result:
    """An index per blow."""
    result = Result()
    rows = QUICK_ROWS if run.is_quick else ROWS
    blows = QUICK_BLOWS[run.engine] if run.is_quick else [name for name in BLOWS if name not in COUNTED]
    until = time.monotonic() + run.seconds
    made = 0
    with BulkFleet(run, "fill", range_rows=rows // TASKS) as fleet:
        worker = fleet.launch_worker()
        load = Load(fleet.connect, rows, run.seed)
        load.start()
        fleet.await_worker(worker)
        while not made or time.monotonic() < until:
            for name in blows:
                with result.naming(name):
                    _fill_under(fleet, name, INDEXES[made % len(INDEXES)], result)
                made += 1
        result.violations += load.stop()
        result.violations += load.wrong()
        fleet.judge(result)
        fleet.judge_publishers(result)
        fleet.judge_logs(result)
    result.counts |= {"rows": rows, "indexes": made, "changes": load.changes}
    return result


def _fill_under(fleet: BulkFleet, name: str, index: str, result: Result) -> None:
    job = start_by_client(fleet, f"CREATE {index}", KIND)
    state = strike(fleet, job, BLOWS[name], result)
    table = _table(fleet)
    is_there = any(each.name == "filled" for each in table.indexes)
    result.require(is_there == (state is State.SUCCEEDED), f"index: the job is {state}, the index {is_there}")
    result.require(not table.job, f"job: {table.job} is still at work on the table")
    layout = fleet.node.layouts.of(table)
    snapshot, lake = fleet.node.store.snapshot(), fleet.node.lake
    assert lake is not None
    in_lake = [each.index for each in lake.manifests.all(snapshot, table.id) if each.files]
    wrong = check_indexes(snapshot, layout, fleet.node.context(), in_lake=in_lake)
    result.violations += [f"index: {text}" for text in wrong[:3]]
    if is_there:
        fleet.node.leases.renew()
        fleet.execute("DROP INDEX filled")


def _table(fleet: BulkFleet) -> Table:
    found = fleet.node.catalog.get(fleet.node.store.snapshot(), fleet.table())
    assert isinstance(found, Table)
    return found
