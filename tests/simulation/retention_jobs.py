"""The jobs of the world of retention, and who runs them.

    gc        the product's own sweep
    flush     a merge without input, by the pair of a sweep; started by clients, and by sweeps
    import    a merge with input into a table that is closed for writing
    hold      protects a time in the transaction that makes it, reads in that name, and ends

A runner claims any open job that nobody holds. If the holder's process was cut off, it first deletes that
process's session. A run that fails releases its claim, and the next begins from the start.

Walk: `retention_world` runs `Runner.run` on each node; `retention_client` makes the jobs.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from tenure.base.errors import FenceLost, ProtectionNotFound, SnapshotTooOld, TenureError
from tenure.base.timestamp import Timestamp
from tenure.bulk.flush import FlushPayload, _last_pair
from tenure.catalog.descriptors.definitions import DescriptorState, Table, is_dropped
from tenure.cluster.jobs.job_records import NOBODY, JobControl
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Fence, Job
from tenure.cluster.jobs.runs import Run
from tenure.kv.records import Record, unpack
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode, Protection
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping.file_sweeps import note_merge
from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.manifests import AS_PUBLISHED
from tenure.table.lake.publishing import publish
from tests.simulation.lake_files import SimFiles
from tests.simulation.lake_merges import Merge
from tests.simulation.retention_process import GATES, RetentionProcess
from tests.simulation.retention_trace import RefusedRead
from tests.simulation.trace import Put
from tests.simulation.tracing import TracingTransaction
from tests.simulation.wire import SimEngine

if TYPE_CHECKING:
    from tests.simulation.retention_world import RetentionCluster

REST_SECONDS = 0.7

INDEX = 1
"""The index that imports are of."""


class ImportPayload(Record, frozen=True):
    table: int
    rows: tuple[tuple[bytes, bytes | None], ...]


class Runner:
    """Runs jobs of some kinds, one after the other."""

    def __init__(self, process: RetentionProcess, name: str, kinds: tuple[str, ...]) -> None:
        self.process = process
        self.cluster: RetentionCluster = process.cluster
        self._hub, self._tape = self.cluster.hub, self.cluster.tape
        self._name = f"{process.name}.{name}"
        self._kinds = kinds
        self._functions: dict[str, Callable[[Run], None]] = {
            gc.KIND: lambda run: gc.sweep(process.services, run),
            "flush": self._flush,
            "import": self._import,
            "hold": self._hold,
        }

    def run(self) -> None:
        while True:
            try:
                self._step()
            except TenureError:
                self.cluster.trace.seen["runner: an error"] += 1
            calm = 1.0 if self.cluster.wire.is_faulty() else 0.2
            self._hub.sleep(0.05 + calm * REST_SECONDS * self._tape.draw(f"{self._name}.rest"), "runner")

    def _step(self) -> None:
        process = self.process
        waiting = [
            each
            for each in process.jobs.open(process.store.snapshot())
            if each.kind in self._kinds and self._may_claim(each)
        ]
        if not waiting:
            return
        control = waiting[self._tape.pick(f"{self._name}.job", len(waiting))]
        if control.claim in self.cluster.dead:
            process.store.transact(lambda txn: process.sessions.release(txn, control.claim))
        fence = process.store.transact(lambda txn: process.jobs.claim(txn, control.id, process.session))
        job = process.jobs.get(process.store.snapshot(), control.id)
        if fence is not None and job is not None:
            self._run(job, fence)

    def _may_claim(self, control: JobControl) -> bool:
        return control.claim in (NOBODY, self.process.session) or control.claim in self.cluster.dead

    def _run(self, job: Job, fence: Fence) -> None:
        process = self.process
        progress = process.jobs.progress(process.store.snapshot(), job.id)
        run = Run(process.store, process.jobs, job, progress, fence)
        try:
            if fence.state in (JobState.CANCEL_REQUESTED, JobState.REVERTING):
                self._revert(run)
                return
            self._functions[job.kind](run)
            process.store.transact(lambda txn: process.jobs.step(txn, fence, JobState.SUCCEEDED))
        except FenceLost:
            self.cluster.trace.seen["run lost its fence"] += 1
        except TenureError as error:
            self.cluster.trace.seen[f"{job.kind}: {type(error).__name__}"] += 1
            process.store.transact(lambda txn: process.jobs.release(txn, fence))

    def _revert(self, run: Run) -> None:
        process, fence = self.process, run.fence

        def give_up(txn: Transaction) -> None:
            reverting = fence
            if fence.state is JobState.CANCEL_REQUESTED:
                stepped = process.jobs.step(txn, fence, JobState.REVERTING)
                assert stepped is not None
                reverting = stepped
            if run.job.kind == "import":
                table = unpack(run.job.payload, ImportPayload).table
                process.merges.release(txn, table, INDEX, run.job.id)
                txn.delete(process.keyspace.key(GATES, (table,)))
            elif run.job.kind == "flush":
                payload = unpack(run.job.payload, FlushPayload)
                process.merges.release(txn, payload.table, payload.index, run.job.id)
            process.jobs.step(txn, reverting, JobState.CANCELED)

        process.store.transact(give_up)

    # ── merges ─────────────────────────────────────────────────────────────────────────────────

    def pick(self, count: int) -> int:
        return self._tape.pick(f"{self._name}.pick", count)

    def pause(self) -> None:
        """A moment inside a merge; some merges take longer than a ttl."""
        if self.cluster.wire.is_faulty() and self._tape.chance(f"{self._name}.pause", 0.5):
            self._hub.sleep(self.cluster.knobs.merge_seconds * self._tape.draw(f"{self._name}.slow"), "merge")

    def _flush(self, run: Run) -> None:
        process, payload = self.process, unpack(run.job.payload, FlushPayload)
        snapshot, index = process.store.snapshot(), (payload.table, payload.index)
        if process.merges.holder(snapshot, *index) != run.job.id:
            return  # an earlier run has published
        if self._is_dropped(process.catalog.get(snapshot, payload.table)):
            run.transact(lambda txn: process.merges.release(txn, *index, run.job.id))
            return
        keep = payload.keep or _last_pair(process.lake, snapshot, payload)
        merge = self._merge(index, keep)
        replaced = merge.replaced(rewrites=frozenset(payload.rewrites))
        self.pause()

        def work(txn: Transaction) -> None:
            publish(txn, process.keyspace, process.manifests, merge.began_with, replaced, merge.at)
            process.merges.release(txn, *index, run.job.id)
            if payload.keep is not None:
                note_merge(txn, process.keyspace, *index, payload.keep)

        run.transact(work)
        self.cluster.trace.seen["flushed" if payload.keep is None else "files swept by a merge"] += 1

    def _merge(self, index: tuple[int, int], keep: Keep) -> Merge:
        process = self.process
        files = cast(SimFiles, process.lake.files)
        try:
            return Merge(process.store, process.manifests, files, index, keep, self, self.cluster.trace.seen)
        except SnapshotTooOld as error:
            self.cluster.trace.wrong("merge-outlasts-ttl", f"a merge was refused: {error}")
            raise

    def _import(self, run: Run) -> None:
        """Rows of its own replace some of those that are there, and delete others."""
        process, payload = self.process, unpack(run.job.payload, ImportPayload)
        index = payload.table, INDEX
        if process.merges.holder(process.store.snapshot(), *index) != run.job.id:
            return
        merge = self._merge(index, KEEP_ALL)
        for key, value in payload.rows:
            merge.add(key, AS_PUBLISHED, value)
        replaced = merge.replaced()
        self.pause()

        def work(txn: Transaction) -> None:
            assert isinstance(txn, TracingTransaction)
            process.merges.release(txn, *index, run.job.id)
            txn.delete(process.keyspace.key(GATES, (payload.table,)))
            if self._is_dropped(process.catalog.get(txn, payload.table)):
                return
            publish(txn, process.keyspace, process.manifests, merge.began_with, replaced, None)
            for key, value in payload.rows:
                put = Put(txn.trace.tick(), key, value, None, None, is_stored=False)
                txn.record.puts.append(put)

        run.transact(work)
        self.cluster.trace.seen["imported"] += 1

    def _is_dropped(self, table: object) -> bool:
        return not isinstance(table, Table) or table.state is not DescriptorState.PUBLIC

    # ── reads of the past ──────────────────────────────────────────────────────────────────────

    def _hold(self, run: Run) -> None:
        process = self.process
        ids = process.job_protections.ids(process.store.snapshot(), run.job.id)
        if self.cluster.wire.is_faulty():
            run.sleep(6.0 * self._tape.draw(f"{self._name}.hold"))
        for id in ids:
            try:
                protection = process.protections.read(process.store.snapshot(), id)
            except ProtectionNotFound:
                continue
            for head in self.cluster.user_heads():
                read_protected(process, protection, head, protection.at)
        self.cluster.trace.seen["held and read"] += 1


def read_protected(
    process: RetentionProcess,
    protection: Protection,
    head: bytes,
    at: Timestamp,
    engine: SimEngine | None = None,
) -> None:
    """Reads a head at a time that a protection keeps: in its name, if it keeps only that time.

    On an engine of its own, if there is one.
    """
    trace, store = process.cluster.trace, process.store
    began = trace.tick()
    try:
        if not is_there(process, head, at):
            return
        read = process.protections.protected_read(protection) if protection.mode is Mode.AT else None
        snapshot = store.snapshot_at(at, read, engine)
        if read is not None:
            trace.names[snapshot.id] = protection
        snapshot.scan(process.keyspace.head_span(head))
        trace.seen["read in the name of a protection"] += read is not None
    except SnapshotTooOld:
        trace.refused.append(RefusedRead(began, trace.tick(), head, at, protection.id))


def is_there(process: RetentionProcess, head: bytes, at: Timestamp) -> bool:
    """Whether the table of a head was there at a time: nobody reads the rows of one that was not."""
    table, _ = process.keyspace.table_and_index(head)
    found = process.catalog.get(process.store.snapshot(at), table)
    return isinstance(found, Table) and not (is_dropped(found) and not found.draining)
