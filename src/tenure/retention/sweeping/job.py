"""gc: the job that sweeps.

    the schedule of each node ──► one round at a time, all heads, for one interval at most
    RUN GC NOW [FOR TABLE t]  ──► a round of its own, as long as it takes; it waits for its merges, too

The record of the round names the job of the schedule: a node starts the next only if that job has ended and
the interval has passed, so of all nodes one sweeps. The job of the round before is forgotten then if it has
succeeded: otherwise there would be a thousand of them a day.

Walk: `retention.sweeping.schedule` -> `start_round`; `sql.statements.jobs.gc_statements` -> `start`;
`composition.job_layer` -> `gc_kind` -> `rounds.Round`.
"""

from tenure.base.errors import RetryError, SnapshotTooOld
from tenure.base.settings import GC_INTERVAL
from tenure.base.timestamp import add_seconds
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.records import Record, pack, unpack
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping.pace import SweepPace
from tenure.retention.sweeping.rounds import Round, RoundResult
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRound, sweep_round

KIND = "gc"

ROUND_SECONDS_MIN = 10.0
"""How long a round of the schedule may take at least, however short the interval is."""

MERGES_POLL_SECONDS = 0.1


class GcPayload(Record, frozen=True):
    table: int = 0
    """0: all."""
    is_now: bool = False
    """Asked for by a user: it takes as long as it needs."""


def start(
    txn: Transaction, services: SweepServices, *, table: int = 0, owner: str = "", name: str = ""
) -> Job:
    """Makes the job of RUN GC NOW."""
    what = f'table "{name}"' if table else "everything"
    return services.jobs.create(
        txn,
        kind=KIND,
        payload=pack(GcPayload(table, is_now=True)),
        owner=owner,
        description=f"garbage collection of {what}",
    )


def start_round(txn: Transaction, services: SweepServices) -> Job | None:
    """Makes the next job of the schedule; None if it is not due, or the last one has not ended."""
    records = sweep_round(services.keyspace)
    last = records.get(txn)
    now_at = services.store.clock.now()
    if last is not None:
        due_at = add_seconds(last.started_at, services.settings()[GC_INTERVAL])
        if services.jobs.is_open(txn, last.job) or now_at < due_at:
            return None
        services.jobs.forget_succeeded(txn, last.job)
    job = services.jobs.create(txn, kind=KIND, payload=pack(GcPayload()), description="garbage collection")
    records.put(txn, SweepRound(job.id, now_at))
    return job


def gc_kind(services: SweepServices) -> JobKind:
    return JobKind(lambda run: sweep(services, run))


def sweep(services: SweepServices, run: Run) -> None:
    payload = unpack(run.job.payload, GcPayload)
    interval = services.settings()[GC_INTERVAL]
    seconds_max = None if payload.is_now else max(interval, ROUND_SECONDS_MIN)
    pace = SweepPace(services.store, run, seconds_max)
    try:
        result = Round(services, run, pace, payload.table).run()
    except SnapshotTooOld as error:
        # It reads the present alone, and the versions of tables that protections need: another round has
        # gone on since, after a protection was released.
        raise RetryError("another sweep has removed what this one has read") from error
    if payload.is_now:
        _await_merges(services, run, result)
    status = (
        f"{result.heads} indexes swept, {result.removed} revisions removed, {result.objects} objects gone"
    )
    run.checkpoint(fraction=1.0, status=status, data=pack(result))


def _await_merges(services: SweepServices, run: Run, result: RoundResult) -> None:
    for job in result.merges:
        while services.jobs.is_open(services.store.snapshot(), job):
            run.sleep(MERGES_POLL_SECONDS)
