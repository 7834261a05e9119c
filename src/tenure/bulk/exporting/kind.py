"""Export jobs: how one is started, and their kind for a node's runner.

Walk: `sql.statements.jobs.exporting` -> `start`; `node.py` -> `export_kind`; `cluster.jobs.runner` ->
`exporting.job.Export.run`, or `.revert`.
"""

from tenure.base.settings import SPARK_MIN_ROWS
from tenure.bulk.creator_rights import relation, rights_of_creator
from tenure.bulk.exporting.records import ExportPayload, RunQuery
from tenure.bulk.lakes import Lake
from tenure.catalog.accounts.predefined_roles import WRITE_FILES
from tenure.catalog.accounts.privileges import EXPORT, SELECT
from tenure.catalog.accounts.rights import require_files
from tenure.catalog.accounts.sealing import sealed
from tenure.cluster.jobs.attempts import BLOCKED_ATTEMPTS_MAX
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import SQL, JobKind, Run
from tenure.kv.records import pack, replace, unpack
from tenure.kv.transaction import Transaction
from tenure.pipeline.tasks import SPARK
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.storage.locations import Locations

KIND = "export"


def start(
    txn: Transaction,
    lake: Lake,
    payload: ExportPayload,
    *,
    owner: str,
    description: str,
    rows: int,
    following: bytes | None = None,
) -> Job:
    """Creates the job, and protects what it reads until it has ended; `following` is the protection of a
    snapshot that is exported.
    """
    needs = (SPARK,) if rows > lake.settings()[SPARK_MIN_ROWS] else ()
    id = lake.jobs.fresh_id(txn)
    kept = replace(payload, location=sealed(txn, lake.store.keyspace, id, payload.location))
    if payload.tables:
        targets = Targets(payload.tables)
        lake.protections.protect(txn, id, payload.at, Mode.AT, targets, following=following, role=owner)
    return lake.jobs.create(
        txn,
        kind=KIND,
        id=id,
        payload=pack(kept),
        owner=owner,
        description=description,
        needs=needs if payload.table else (SQL,),
    )


def _check_creator(lake: Lake, run: Run) -> None:
    """The query of an export asks for the rest itself, as its creator."""
    payload = unpack(run.job.payload, ExportPayload)
    rights = rights_of_creator(lake, run)
    require_files(rights, WRITE_FILES, "EXPORT to files")
    for id in payload.named:
        if (found := relation(lake, id)) is not None:
            rights.require(found, EXPORT)
    table = relation(lake, payload.table) if payload.table else None
    if table is not None:
        rights.require_on_columns(table, SELECT, payload.columns)


def export_kind(lake: Lake, locations: Locations, run_query: RunQuery) -> JobKind:
    # Imported when an export runs: a node that never exports need not have Arrow in memory.
    def run(run: Run) -> None:
        from tenure.bulk.exporting.job import Export

        _check_creator(lake, run)
        Export(lake, locations, run).run(run_query)

    def revert(run: Run) -> None:
        from tenure.bulk.exporting.job import Export

        Export(lake, locations, run).revert()

    return JobKind(run, revert, blocked_attempts_max=BLOCKED_ATTEMPTS_MAX)
