"""flush: moves an index's rows from the store to its base.

A merge without input changes no answer and conflicts with no transaction, so a flush only needs to be the
index's only merge: it claims the index when it is made, and if another merge has it, there is no flush. If it
is interrupted it starts over; no manifest names its earlier files. Publishing releases the claim in the same
write, so a run that finds it gone comes after the one that did the work.

A flush leaves out what the pair of its index's last sweep does not need. A sweep of files is a flush, too:
its job carries the pair of the sweep that started it, and the past files to write again.

Walk: `bulk.upkeep` calls `start` when a delta is large enough; a sweep calls it by `composition.job_layer`,
which hands `flush_kind` to the job runner, which runs `flush`.
"""

from collections.abc import Iterable

from tenure.base.settings import SPARK_MIN_ROWS
from tenure.bulk.lakes import Lake
from tenure.bulk.phases import Phases
from tenure.cluster.jobs.attempts import BLOCKED_ATTEMPTS_MAX
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.kv.records import Record, pack, unpack
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.pipeline.tasks import SPARK
from tenure.retention.sweeping.file_sweeps import note_merge
from tenure.retention.sweeping.sweep_records import sweep_records
from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.manifests import no_base
from tenure.table.lake.publishing import publish

KIND = "flush"
MERGING = (0.0, 0.95)
"""The job's fraction when the tasks are done."""


class FlushPayload(Record, frozen=True):
    table: int
    index: int
    keep: Keep | None = None
    """The pair of the sweep that started it; None: that of the index's last sweep."""
    rewrites: tuple[str, ...] = ()
    """Past files that are written again."""


def start(
    txn: Transaction,
    lake: Lake,
    table: int,
    index: int,
    *,
    rows: int,
    name: str,
    keep: Keep | None = None,
    rewrites: Iterable[str] = (),
) -> Job | None:
    """Makes the job that flushes an index, with about so many rows; None if a merge of it is under way."""
    if lake.jobs.is_open(txn, lake.merges.holder(txn, table, index)):
        return None
    job = lake.jobs.create(
        txn,
        kind=KIND,
        payload=pack(FlushPayload(table, index, keep, tuple(sorted(rewrites)))),
        description=f'flush of index {index} of table "{name}"',
        needs=(SPARK,) if rows > lake.settings()[SPARK_MIN_ROWS] else (),
    )
    lake.merges.claim(txn, table, index, job.id)
    return job


def flush_kind(lake: Lake) -> JobKind:
    """A flush that finds no space fails; `bulk.flush_pauses` says when the next one is due."""
    return JobKind(
        lambda run: flush(lake, run),
        lambda run: _release(lake, run),
        blocked_attempts_max=BLOCKED_ATTEMPTS_MAX,
    )


def flush(lake: Lake, run: Run) -> None:
    # Arrow is imported when the first merge needs it: a node that never does one is smaller.
    from tenure.pipeline.merge import MergeRequest, merge

    payload = unpack(run.job.payload, FlushPayload)
    snapshot = lake.store.snapshot()
    version = lake.version(snapshot, payload.table)
    if lake.merges.holder(snapshot, payload.table, payload.index) != run.job.id:
        return  # an earlier run has published, and ended before it could report it
    if version is None or payload.index not in {index.id for index in version.table.indexes}:
        _release(lake, run)
        return  # the table was dropped meanwhile
    began_with = lake.manifests.get(snapshot, payload.table, payload.index)
    began_with = began_with or no_base(payload.table, payload.index)
    keep = payload.keep or _last_pair(lake, snapshot, payload)
    phases = Phases(lake, run)
    (merged,) = merge(
        lake.store,
        lake.place,
        [MergeRequest(version, began_with, snapshot.at, keep=keep, rewrites=frozenset(payload.rewrites))],
        lambda kernel, tasks: phases.do(kernel, tasks, MERGING),
        task_bytes=phases.task_bytes,
    )

    def work(txn: Transaction) -> None:
        publish(txn, lake.store.keyspace, lake.manifests, began_with, merged.edit, snapshot.at)
        lake.merges.release(txn, payload.table, payload.index, run.job.id)
        if payload.keep is not None:
            note_merge(txn, lake.store.keyspace, payload.table, payload.index, payload.keep)
        rows = sum(written.file.rows for written in merged.edit.live)
        run.save(txn, fraction=1.0, status=f"{phases.engine}: {len(merged.edit.live)} files, {rows} rows")

    run.transact(work)


def start_by_sweep(lake: Lake, table: int, index: int, keep: Keep, rewrites: frozenset[str]) -> int:
    """Starts a merge that writes past files again, without what a pair does not need; 0 if there is one."""
    snapshot = lake.store.snapshot()
    found, manifest = lake.catalog.get(snapshot, table), lake.manifests.get(snapshot, table, index)
    if found is None or manifest is None:
        return 0
    rows = sum(file.rows for file in manifest.past if file.name in rewrites)
    job = lake.store.transact(
        lambda txn: start(txn, lake, table, index, rows=rows, name=found.name, keep=keep, rewrites=rewrites)
    )
    return 0 if job is None else job.id


def _last_pair(lake: Lake, snapshot: Snapshot, payload: FlushPayload) -> Keep:
    """The pair of the index's last sweep: one value of one publication, older ones keep more."""
    keyspace = lake.store.keyspace
    record = sweep_records(keyspace).get(snapshot, keyspace.head(payload.table, payload.index))
    return KEEP_ALL if record is None else record.keep


def _release(lake: Lake, run: Run) -> None:
    payload = unpack(run.job.payload, FlushPayload)
    run.transact(lambda txn: lake.merges.release(txn, payload.table, payload.index, run.job.id))
