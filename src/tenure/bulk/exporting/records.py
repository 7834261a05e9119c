"""What is stored of an export: what to write where, how far it is, and what came of it.

Walk: `sql.statements.jobs.exporting` -> `start`; `exporting.job` runs it, and `files_of` tells what it made.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from tenure.base.errors import TenureError
from tenure.base.settings import SPARK_MIN_ROWS
from tenure.base.timestamp import Timestamp
from tenure.bulk.lakes import Lake
from tenure.bulk.sealing import sealed, unsealed
from tenure.cluster.jobs.attempts import BLOCKED_ATTEMPTS_MAX
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.expr.types.datatype import Datum
from tenure.kv.records import Record, pack, replace, unpack
from tenure.kv.transaction import Transaction
from tenure.pipeline.tasks import SPARK
from tenure.pipeline.writing.formats import MadeFile, Writing
from tenure.storage.locations import Locations

KIND = "export"

SQL = "sql"
"""What a job needs that runs a query: a process that has a door for SQL has it."""


class ExportPayload(Record, frozen=True):
    location: str
    """As it was written, and resolved anew by every run; in the job's record it is sealed if it has keys."""
    writing: Writing
    at: Timestamp
    name: str
    """What the names of files begin with."""
    table: int = 0
    columns: tuple[int, ...] = ()
    query: str = ""
    user: str = ""
    database: str = ""
    path: str = ""
    """The session's search_path."""


class ExportProgress(Record, frozen=True):
    bounds: tuple[bytes, ...] = ()
    """Of the ranges of a table."""
    files: tuple[MadeFile, ...] = ()


Rows: TypeAlias = Sequence[Sequence[Datum]]
RunQuery: TypeAlias = Callable[[ExportPayload, Callable[[], None], bool], Iterator[Rows]]
"""Gives a query's rows a batch at a time; asks now and then whether to go on. Raises `StartOver` if they
turn out not to count: then it is called once more, with True."""


class StartOver(TenureError):
    """What a query has given so far is not to count."""


def export_kind(lake: Lake, locations: Locations, run_query: RunQuery) -> JobKind:
    # When there is one to run: a node that never exports need not have Arrow in memory.
    def run(run: Run) -> None:
        from tenure.bulk.exporting.job import Export

        Export(lake, locations, run).run(run_query)

    def revert(run: Run) -> None:
        from tenure.bulk.exporting.job import Export

        Export(lake, locations, run).revert()

    return JobKind(run, revert, blocked_attempts_max=BLOCKED_ATTEMPTS_MAX)


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


def payload_of(lake: Lake, run: Run) -> ExportPayload:
    kept = unpack(run.job.payload, ExportPayload)
    store = lake.store
    return replace(kept, location=unsealed(store.snapshot(), store.keyspace, run.job.id, kept.location))


def files_of(data: bytes) -> tuple[MadeFile, ...]:
    """The files that a job which has succeeded made, by its progress."""
    return unpack(data, ExportProgress).files if data else ()
