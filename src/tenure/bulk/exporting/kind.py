"""Export jobs: how one is started, and their kind for a node's runner.

Walk: `sql.statements.jobs.exporting` -> `start`; `node.py` -> `export_kind`; `cluster.jobs.runner` ->
`exporting.job.Export.run`, or `.revert`.
"""

from tenure.base.settings import SPARK_MIN_ROWS
from tenure.bulk.exporting.records import ExportPayload, RunQuery
from tenure.bulk.lakes import Lake
from tenure.bulk.sealing import sealed
from tenure.cluster.jobs.attempts import BLOCKED_ATTEMPTS_MAX
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.records import pack, replace
from tenure.kv.transaction import Transaction
from tenure.pipeline.tasks import SPARK
from tenure.storage.locations import Locations

KIND = "export"
SQL = "sql"
"""The resource of a job that runs a query: a process with a door for SQL has it."""


def start(
    txn: Transaction, lake: Lake, payload: ExportPayload, *, owner: str, description: str, rows: int
) -> Job:
    needs = (SPARK,) if rows > lake.settings()[SPARK_MIN_ROWS] else ()
    id = lake.jobs.fresh_id(txn)
    kept = replace(payload, location=sealed(txn, lake.store.keyspace, id, payload.location))
    return lake.jobs.create(
        txn,
        kind=KIND,
        id=id,
        payload=pack(kept),
        owner=owner,
        description=description,
        needs=needs if payload.table else (SQL,),
    )


def export_kind(lake: Lake, locations: Locations, run_query: RunQuery) -> JobKind:
    # Imported when an export runs: a node that never exports need not have Arrow in memory.
    def run(run: Run) -> None:
        from tenure.bulk.exporting.job import Export

        Export(lake, locations, run).run(run_query)

    def revert(run: Run) -> None:
        from tenure.bulk.exporting.job import Export

        Export(lake, locations, run).revert()

    return JobKind(run, revert, blocked_attempts_max=BLOCKED_ATTEMPTS_MAX)
