"""What clients do in the world of retention: rows, zones, protections, sweeps and merges.

Walk: `retention_world` runs a `RetentionClient` for each; it draws from `SHAPES` by the weights of a profile.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tenure.base.errors import ProtectionNotFound, SnapshotTooOld, TenureError, TooManyProtections
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.bulk import flush as product_flush
from tenure.catalog.changes.zone_changes import configure, discard
from tenure.catalog.descriptors.definitions import Table, is_dropped
from tenure.kv.keys import Span
from tenure.kv.records import pack
from tenure.retention.protections.protection_records import Mode, Protection, Targets
from tenure.retention.sweeping import job as gc
from tests.simulation import retention_places
from tests.simulation.edge_shapes import edge_of_commit
from tests.simulation.retention_jobs import INDEX, ImportPayload, is_there, read_protected
from tests.simulation.retention_process import CONTAINERS, GATES, INDEXES, RetentionProcess, SlowEngine
from tests.simulation.tracing import TracingTransaction
from tests.simulation.workload import Client

if TYPE_CHECKING:
    from tests.simulation.retention_trace import RetentionTrace

OWNER = "client"
"""The kind of owner of what clients protect: nobody but they, or the end of the run, releases it."""

ZONE_SECONDS = (2, 1, 1, 3, 5, 8, 30)


class RetentionClient(Client):
    trace: "RetentionTrace"
    operations_per_burst = 10

    def __init__(self, process: RetentionProcess, name: str) -> None:
        cluster = process.cluster
        super().__init__(cluster.hub, cluster.knobs, process.store, name, shapes={}, weights=cluster.weights)
        self.process = process
        self.cluster = cluster
        self.keyspace = process.keyspace
        self.arrange({shape: _bound(run, self) for shape, run in SHAPES.items()})

    def some_table(self) -> int:
        return self.cluster.tables[self.pick(len(self.cluster.tables))]

    def some_head(self) -> bytes:
        return self.keyspace.head(self.some_table(), INDEXES[self.pick(len(INDEXES))])

    def some_row(self, table: int, index: int) -> bytes:
        return self.keyspace.key(table, (self.pick(self.knobs.keys),), index)

    def some_at(self) -> Timestamp:
        """A time of the last seconds, or one at which something was committed."""
        edge_at = edge_of_commit(self) if self.maybe(0.5) else None
        if edge_at is not None:
            return edge_at
        return add_seconds(self.host_at(), -7.0 * self.tape.draw(f"{self.name}.past"))

    def some_targets(self) -> Targets:
        if self.maybe(0.25):
            row = self.some_row(self.some_table(), INDEXES[self.pick(len(INDEXES))])
            return Targets((), (Span(row, row + b"\0"),))
        if self.maybe(0.5):
            return Targets((self.some_table(),))
        return Targets((CONTAINERS[self.pick(len(CONTAINERS))],))

    def some_protection(self, mode: Mode | None = None, owner: str | None = None) -> Protection | None:
        found = [
            each
            for each in self.process.listing.list_all(self.store.snapshot()).records
            if mode in (None, each.mode) and owner in (None, each.meta_type)
        ]
        return found[self.pick(len(found))] if found else None


def _bound(run: Callable[[RetentionClient], None], client: RetentionClient) -> Callable[[Client], None]:
    return lambda _: run(client)


# ── rows ────────────────────────────────────────────────────────────────────────────────────────


def use(client: RetentionClient) -> None:
    """Reads rows and writes some, as long as the table is there and no import has closed it."""
    table = client.some_table()

    def run(txn: TracingTransaction) -> None:
        found = client.process.catalog.get(txn, table)
        is_over = found is None or (is_dropped(found) and not found.draining)
        if is_over or txn.get(client.keyspace.key(GATES, (table,))) is not None:
            return
        if client.maybe(0.5):
            txn.get(client.some_row(table, INDEX))
            client.pause()
        for _ in range(1 + client.pick(3)):
            row = client.some_row(table, INDEXES[client.pick(len(INDEXES))])
            if client.maybe(0.35):
                txn.delete(row)
            else:
                txn.put(row, txn.record.next_value())

    client.transact(run)


def read_past(client: RetentionClient) -> None:
    at, head = client.some_at(), client.some_head()
    if not is_there(client.process, head, at):
        return
    snapshot = client.store.snapshot_at(at)
    snapshot.scan(client.keyspace.head_span(head))
    client.pause()
    snapshot.get(client.some_row(*client.keyspace.table_and_index(head)))


def read_kept(client: RetentionClient) -> None:
    """Reads what a protection keeps, at its time or, if it keeps more, at a later one."""
    protection = client.some_protection()
    if protection is None:
        return
    at = protection.at
    if protection.mode is Mode.AFTER and client.maybe(0.5):
        at = max(at, min(client.some_at(), client.store.engine.clock_at()))
    read_protected(client.process, protection, client.some_head(), at)


def compare_times(client: RetentionClient) -> None:
    """A diff or a history since a time: its start counts."""
    since_at, head = client.some_at(), client.some_head()
    span = client.keyspace.head_span(head)
    if not is_there(client.process, head, since_at):
        return
    if client.maybe(0.5):
        client.store.interval(span, since_at=since_at)
    else:
        client.store.snapshot_at().diff(span, since_at=since_at)


# ── zones and protections ───────────────────────────────────────────────────────────────────────


def change_zone(client: RetentionClient) -> None:
    keys = [(0, 0), *((each, 0) for each in CONTAINERS), (client.some_table(), client.pick(2))]
    key, seconds = keys[client.pick(len(keys))], ZONE_SECONDS[client.pick(len(ZONE_SECONDS))]
    is_discarded = key != (0, 0) and client.maybe(0.4)

    def run(txn: TracingTransaction) -> None:
        if is_discarded:
            discard(txn, client.keyspace, key)
        else:
            configure(txn, client.keyspace, key, gc_ttl_seconds=seconds)
        client.pause()

    client.transact(run)
    client.trace.seen["zone changed"] += 1


def protect(client: RetentionClient) -> None:
    """Protects, slowly or quickly; if it is refused, the transaction goes on without."""
    at, targets = client.some_at(), client.some_targets()
    mode = Mode.AT if client.maybe(0.5) else Mode.AFTER

    def run(txn: TracingTransaction) -> None:
        try:
            client.process.protections.protect(txn, at, mode, OWNER, b"", targets)
        except SnapshotTooOld as error:
            is_ttl = "its ttl ended" in str(error)
            client.trace.seen[f"protect refused for {'the ttl' if is_ttl else 'a threshold'}"] += 1
        except TooManyProtections:
            client.trace.seen["protect refused at the limit"] += 1
        client.think()
        txn.put(client.keyspace.key(GATES, (0,)), txn.record.next_value())

    client.transact(run)


def release(client: RetentionClient) -> None:
    protection = client.some_protection(owner=OWNER)
    if protection is None:
        return

    def run(txn: TracingTransaction) -> None:
        try:
            client.process.protections.release(txn, protection.id)
        except ProtectionNotFound:
            client.trace.seen["released by somebody else"] += 1

    client.transact(run)


def move_forward(client: RetentionClient) -> None:
    protection = client.some_protection(Mode.AFTER, OWNER)
    if protection is not None:
        at = max(protection.at, min(client.some_at(), client.store.engine.clock_at()))
        client.transact(lambda txn: client.process.protections.move_forward(txn, protection.id, at))


def release_and_sweep(client: RetentionClient) -> None:
    """Somebody reads slowly what a protection keeps; meanwhile it is released, and the history is swept."""
    protection = client.some_protection(Mode.AT, OWNER)
    if protection is None:
        return
    covers = client.process.protections.protected_read(protection).covers
    heads = [each for each in client.cluster.user_heads() if covers(each)]
    if not heads:
        return
    head = heads[client.pick(len(heads))]
    reader = client.process.env.spawn("reader", lambda: _read_slowly(client, protection, head))
    client.pause()
    client.transact(lambda txn: client.process.protections.release(txn, protection.id))
    table, _ = client.keyspace.table_and_index(head)
    _sweep(client, table)
    reader.join()


def _read_slowly(client: RetentionClient, protection: Protection, head: bytes) -> None:
    process = client.process
    for _ in range(2):
        try:
            slow = SlowEngine(client.cluster.wire, process.machine)
            read_protected(process, protection, head, protection.at, slow)
        except TenureError as error:
            client.trace.seen[f"reader: {type(error).__name__}"] += 1


def hold(client: RetentionClient) -> None:
    """A job that protects what it reads, in the transaction that makes it."""
    targets, mode = client.some_targets(), Mode.AT if client.maybe(0.7) else Mode.AFTER
    process = client.process

    def run(txn: TracingTransaction) -> None:
        job = process.jobs.create(txn, kind="hold")
        process.job_protections.protect(txn, job.id, txn.read_at, mode, targets)

    client.transact(run)


def cancel(client: RetentionClient) -> None:
    process = client.process
    open_jobs = [each for each in process.jobs.open(client.store.snapshot()) if each.kind != gc.KIND]
    if open_jobs:
        job = open_jobs[client.pick(len(open_jobs))].id
        client.transact(lambda txn: process.jobs.request_cancel(txn, job))


# ── sweeps and merges ───────────────────────────────────────────────────────────────────────────


def sweep(client: RetentionClient) -> None:
    table = 0 if client.maybe(0.25) else client.some_table()
    _sweep(client, table)


def _sweep(client: RetentionClient, table: int) -> None:
    """RUN GC NOW: a runner does it."""

    def run(txn: TracingTransaction) -> None:
        gc.start(txn, client.process.services, table=table)

    client.transact(run)


def flush(client: RetentionClient) -> None:
    lake = client.process.lake
    table, index = client.keyspace.table_and_index(client.some_head())

    def run(txn: TracingTransaction) -> None:
        found = client.process.catalog.get(txn, table)
        if isinstance(found, Table) and not is_dropped(found):
            product_flush.start(txn, lake, table, index, rows=1, name="t")

    client.transact(run)


def import_rows(client: RetentionClient) -> None:
    """Closes the table and claims its index: the job does the rest."""
    table, process = client.some_table(), client.process
    draws = [(n, client.maybe(0.6), client.maybe(0.75)) for n in range(client.knobs.keys)]

    def run(txn: TracingTransaction) -> None:
        found = process.catalog.get(txn, table)
        holder = process.merges.holder(txn, table, INDEX)
        if found is None or is_dropped(found) or process.jobs.is_open(txn, holder):
            return
        token = txn.record.next_value()
        rows = tuple(
            (client.keyspace.key(table, (n,), INDEX), b"%s/%d" % (token, n) if is_put else None)
            for n, is_chosen, is_put in draws
            if is_chosen
        )
        job = process.jobs.create(txn, kind="import", payload=pack(ImportPayload(table, rows)))
        process.merges.claim(txn, table, INDEX, job.id)
        txn.put(client.keyspace.key(GATES, (table,)), token)

    client.transact(run)


def clean(client: RetentionClient) -> None:
    for base in client.process.lake.bases.bases():
        client.process.upkeep._clean(base.manifest)


def delete_files(client: RetentionClient) -> None:
    client.process.upkeep._delete_dropped()


SHAPES: dict[str, Callable[[RetentionClient], None]] = {
    "use": use,
    "read past": read_past,
    "read kept": read_kept,
    "compare times": compare_times,
    "zone": change_zone,
    "protect": protect,
    "release": release,
    "move forward": move_forward,
    "release and sweep": release_and_sweep,
    "hold": hold,
    "cancel": cancel,
    "sweep": sweep,
    "flush": flush,
    "import": import_rows,
    "clean": clean,
    "delete files": delete_files,
    **retention_places.SHAPES,
}

PROFILES: dict[str, dict[str, float]] = {
    "retention": {
        "use": 14,
        "read past": 2,
        "read kept": 3,
        "compare times": 1,
        "zone": 2,
        "protect": 5,
        "release": 1.5,
        "move forward": 1,
        "release and sweep": 0.5,
        "hold": 1.5,
        "cancel": 0.5,
        "sweep": 5,
        "flush": 2,
        "import": 1,
        "clean": 2,
        "delete files": 1,
        **retention_places.WEIGHTS,
    },
    # Fewer things at once, so that what a mistake needs comes together more often.
    "retention reads": {"use": 8, "protect": 5, "read kept": 4, "release and sweep": 4, "sweep": 2},
    "retention merges": {
        "use": 10,
        "flush": 3,
        "sweep": 5,
        "clean": 3,
        "import": 2,
        "protect": 1,
        "release": 1,
        "read past": 1,
    },
    "retention moves": {
        "use": 8,
        "protect": 5,
        "move table": 4,
        "make table": 1,
        "sweep": 6,
        "zone": 1,
        "release": 0.5,
    },
    "retention drops": {
        "use": 8,
        "drop table": 3,
        "end drop": 1,
        "bring back": 3,
        "make table": 2,
        "sweep": 6,
        "zone": 0.5,
        "protect": 0.5,
        "read past": 1,
    },
    # Few protections, so that a tracker's old state often is still of the present version.
    "retention lags": {"use": 8, "sweep": 8, "move table": 5, "zone": 3, "protect": 0.6, "release": 0.6},
    "retention races": {"use": 8, "sweep": 8, "protect": 4, "release": 2, "read kept": 1, "zone": 1},
}
