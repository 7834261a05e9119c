"""A store with protections whose sweeps a test runs by hand."""

from collections.abc import Iterator
from typing import Any, cast

from tenure.base.env import ManualEnv
from tenure.base.errors import SnapshotTooOld
from tenure.base.settings import GC_SYSTEM_TTL
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.catalog.changes.publisher import Publisher
from tenure.catalog.descriptors.definitions import DescriptorState, NameKey, Table, next_version, replace
from tenure.catalog.leases.lease_waits import LeaseWaits
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import Run
from tenure.kv.keys import Span
from tenure.kv.records import unpack
from tenure.kv.thresholds import threshold
from tenure.kv.transaction import Transaction
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping.rounds import RoundResult
from tenure.retention.sweeping.services import SweepServices
from tenure.retention.sweeping.sweep_records import SweepRecord, sweep_records
from tenure.retention.tracking.tracker import Tracker
from tenure.storage.engine import Engine, Revisions
from tenure.table.lake.manifests import Manifests
from tenure.table.lake.publishing import Merges
from tenure.table.sequences import Sequences
from tests.unit.cluster.members import Member
from tests.unit.retention.protecting import ProtectedStore

TTL = 3_600
T, U = 200, 201
MINUTE = 60.0


class SweptStore(ProtectedStore):
    def __init__(self, engine: Engine | None = None, env: ManualEnv | None = None) -> None:
        super().__init__(engine, env)
        self.member = Member(self.engine, self.env)
        self.jobs = self.member.jobs
        self.member.start()
        self.tracker = Tracker(self.store, lambda: self.settings)
        self.manifests, self.merges = Manifests(self.keyspace), Merges(self.keyspace)
        # Nobody leases anything here.
        waits = LeaseWaits(self.store, *cast("Any", (None, lambda: (), None, None, None, None, None)))
        self.services = SweepServices(
            self.store,
            self.catalog,
            Publisher(self.store, self.catalog, waits),
            self.jobs,
            self.tracker,
            self.manifests,
            self.merges,
            Sequences(self.store, self.keyspace),
            lambda: self.settings,
        )
        self.records = sweep_records(self.keyspace)
        self.transact(self._start_head_clock)
        self.set_ttl(TTL)
        self.settings = self.settings.with_value(GC_SYSTEM_TTL, 2 * TTL)

    def _start_head_clock(self, txn: Transaction) -> None:
        txn.start_head_clock()
        txn.put(self.key(99, "tick"), b"")

    # ── time and rows ──────────────────────────────────────────────────────────────────────────

    def wait(self, seconds: float) -> None:
        """Lets time pass, in the store too."""
        left = seconds
        while left > 0:
            self.env.advance(min(left, 20.0))
            left -= 20.0
            self.member.liveness.step()

    def key(self, table: int, name: str, index: int = 1) -> bytes:
        return self.keyspace.key(table, [name], index)

    def put(self, table: int, name: str, value: str | None, index: int = 1) -> Timestamp:
        txn = self.store.begin()
        key = self.key(table, name, index)
        if value is None:
            txn.delete(key)
        else:
            txn.put(key, value.encode())
        return txn.commit()

    def get(self, table: int, name: str, at: Timestamp | None = None) -> str | None:
        value = self.store.snapshot(at).get(self.key(table, name))
        return None if value is None else value.decode()

    def revisions(self, head: bytes) -> list[tuple[bytes, Timestamp, bytes | None]]:
        """All revisions of a head that are in the store, tombstones too."""
        span = self.keyspace.head_span(head)
        found, lo = [], span.lo
        while True:
            query = Revisions(lo, span.hi, self.keyspace.guard(span), 0, self.engine.clock_at(), 1_000)
            page = self.engine.revisions(query)
            found += [tuple(each) for each in page.revisions]
            if not page.last:
                return cast("list[tuple[bytes, Timestamp, bytes | None]]", found)
            lo = page.last + b"\0"

    def kept(self, table: int, name: str) -> list[str | None]:
        """The values of a key that are in the store, oldest first."""
        key = self.key(table, name)
        return [
            None if value is None else value.decode()
            for found, _, value in self.revisions(self.head(table))
            if found == key
        ]

    def past_rows(self) -> int:
        """All revisions of the tenant but the newest of each key."""
        everything = self.keyspace.all()
        heads = {key[:10] for key, _, _ in self._all(everything)}
        return sum(
            len(self.revisions(head)) - len({key for key, _, _ in self.revisions(head)}) for head in heads
        )

    def _all(self, span: Span) -> Iterator[tuple[bytes, Timestamp, bytes | None]]:
        query = Revisions(span.lo, span.hi, self.keyspace.guard(span), 0, self.engine.clock_at(), 1 << 30)
        return map(tuple, self.engine.revisions(query).revisions)  # type: ignore[arg-type]

    # ── sweeps ─────────────────────────────────────────────────────────────────────────────────

    def threshold(self, head: bytes) -> Timestamp:
        return threshold(self.store.snapshot(), self.keyspace, head)

    def record(self, head: bytes) -> SweepRecord | None:
        return self.records.get(self.store.snapshot(), head)

    def ago(self, seconds: float) -> Timestamp:
        return add_seconds(self.store.clock.now(), -seconds)

    def claim(self, job: Job) -> Run:
        fence = self.member.claim(job)
        progress = self.jobs.progress(self.store.snapshot(), job.id)
        return Run(self.store, self.jobs, job, progress, fence)

    def sweep(self, table: int = 0) -> RoundResult:
        """RUN GC NOW, from its start to its end."""
        self.transact(lambda txn: txn.put(self.key(99, "tick"), b""))  # the store clock follows the time
        job = self.transact(lambda txn: gc.start(txn, self.services, table=table))
        run = self.claim(job)
        gc.sweep(self.services, run)
        self.transact(lambda txn: self.jobs.step(txn, run.fence, JobState.SUCCEEDED))
        return unpack(self.jobs.progress(self.store.snapshot(), job.id).data, RoundResult)

    # ── drops ──────────────────────────────────────────────────────────────────────────────────

    def drop(self, id: int) -> Timestamp:
        """Drops a table as DDL does; returns its end."""
        table = self.catalog.get(self.store.snapshot(), id)
        assert isinstance(table, Table)
        self.publish(replace(next_version(table), state=DescriptorState.DROPPED, draining=self.draining(id)))
        return self.end_drop(id)

    def draining(self, id: int) -> tuple[NameKey, ...]:
        """The name of a table, as one that drains."""
        table = self.catalog.get(self.store.snapshot(), id)
        assert isinstance(table, Table)
        return (NameKey(table.database, table.schema, table.name),)

    def end_drop(self, id: int) -> Timestamp:
        return self.alter(id, state=DescriptorState.DROPPED, draining=())

    def refused_below(self, table: int, at: Timestamp) -> bool:
        try:
            self.get(table, "k", at)
        except SnapshotTooOld:
            return True
        return False


def two_tables() -> Iterator[SweptStore]:
    """For a fixture: a store with the tables T and U."""
    node = SweptStore()
    node.create(T)
    node.create(U)
    yield node
    node.engine.close()
