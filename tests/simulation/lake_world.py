"""The lake's protocol in the simulated store: bases that are read, flushed, cleaned and imported into.

    product code    kv.bases, LakeBases, Manifests, publishing, the upkeep's cleaning and deleting, Files,
                    the lake's id, which past files are merged and which files a read needs, `Keep`
    stands in       a tree of files: lists of revisions; reading one takes a moment, and it may be gone;
                    for a while, another store's lake may be mounted there

An import closes the table for writing, merges what there is with rows of its own, and publishes. Its rows are
never written to the store: the trace has them as if its publishing had put them. So the predicates ask of
reads, watches and transactions what they always ask, and know nothing of a lake.

A sweep publishes a threshold; from then on merges of its client leave out what only earlier times could see.
A past file that a merge wrote must keep nothing else.

Walk: `cluster.run` makes a `LakeCluster` for the profiles here; clients draw from `SHAPES`;
the files are those of `lake_files`, merges those of `lake_merges`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from tenure.base.errors import RetryError, TenureError
from tenure.base.settings import CLEAN_AFTER, DEFINITIONS, FILE_GRACE, Settings
from tenure.base.timestamp import ZERO_AT, add_seconds
from tenure.bulk import upkeep
from tenure.bulk.lakes import Lake
from tenure.kv.store import DEFAULT_TENANT
from tenure.kv.thresholds import publish_threshold
from tenure.pipeline.remote_handles import StoreHandle
from tenure.retention.tracking.tracker import Tracker
from tenure.table.lake.identity import LakeIdentity, Stage, StoreLake, store_lakes
from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.manifests import AS_PUBLISHED, Manifests, no_base
from tenure.table.lake.publishing import Merges, publish
from tests.simulation import lake_edges
from tests.simulation.lake_files import ID, FileRow, SimBase, SimBases, SimFiles, SimJobs, SimTree
from tests.simulation.lake_merges import Merge
from tests.simulation.nodes import Cluster, Node
from tests.simulation.predicates import Violation
from tests.simulation.shapes import blind_write, read_modify_write
from tests.simulation.trace import Put
from tests.simulation.tracing import TracingStore, TracingTransaction
from tests.simulation.workload import BASED, PLAIN, Client, watch_forever

GATE = 105
"""The table whose one row says who has closed the other for writing."""


# ── what clients do ──────────────────────────────────────────────────────────────────────────────


class LakeClient(Client):
    def __init__(self, lake: Lake, store: TracingStore, cluster: Cluster, name: str) -> None:
        shapes = {shape: partial(run, self) for shape, run in SHAPES.items()}
        super().__init__(
            cluster.hub,
            cluster.knobs,
            store,
            name,
            shapes={shape: lambda _, run=run: run() for shape, run in shapes.items()},  # type: ignore[misc]
            weights=cluster.weights,
        )
        self.lake = lake
        self.upkeep = upkeep.Upkeep(lake)
        self.span = store.keyspace.index_span(BASED)
        self.keys = [store.keyspace.key(BASED, (n,)) for n in range(cluster.knobs.keys)]
        self.gate = store.keyspace.key(GATE, (1,))
        self.keep = KEEP_ALL

    def some_based(self) -> bytes:
        return self.keys[self.pick(len(self.keys))]

    def read_some(self, txn: TracingTransaction) -> None:
        """In one of the ways there are."""
        if self.maybe(0.4):
            keys = sorted({self.some_based() for _ in range(1 + self.pick(3))})
            txn.read_ahead(keys)
            self.pause()
            for key in keys:
                txn.get(key)
        elif self.maybe(0.5):
            txn.get(self.some_based())
        else:
            limit = 1 + self.pick(4) if self.maybe(0.4) else None
            list(txn.scan(self.span, limit=limit, reverse=self.maybe(0.3)))
        self.pause()


def use(client: LakeClient) -> None:
    """Reads rows and writes some, if the table is open."""

    def run(txn: TracingTransaction) -> None:
        if txn.get(client.gate) is not None:
            return
        client.read_some(txn)
        for _ in range(1 + client.pick(2)):
            if client.maybe(0.25):
                txn.delete(client.some_based())
            else:
                txn.put(client.some_based(), txn.record.next_value())

    client.transact(run)


def hold(client: LakeClient) -> None:
    """Reads rows, whether the table is open or not, and writes elsewhere: right only if they stay."""

    def run(txn: TracingTransaction) -> None:
        client.read_some(txn)
        client.think()
        txn.put(client.some_key(PLAIN), txn.record.next_value())

    client.transact(run)


def read_at(client: LakeClient) -> None:
    back = 8.0 * client.tape.draw(f"{client.name}.past") if client.maybe(0.7) else None
    snapshot = client.store.snapshot_at(None if back is None else add_seconds(client.host_at(), -back))
    for _ in range(1 + client.pick(2)):
        snapshot.get(client.some_based())
        client.pause()
    limit = 1 + client.pick(4) if client.maybe(0.4) else None
    snapshot.scan(client.span, limit=limit, reverse=client.maybe(0.3))


def flush(client: LakeClient, *, takes_all: bool = False) -> None:
    merge = _merge(client)
    replaced = merge.replaced(takes_all=takes_all)
    client.think()
    manifests, keyspace = client.lake.manifests, client.store.keyspace
    client.transact(lambda txn: publish(txn, keyspace, manifests, merge.began_with, replaced, merge.at))
    client.trace.seen["flushed"] += 1


def sweep(client: LakeClient) -> None:
    """Publishes a threshold; then a merge takes in all past files, and leaves out what ended by then."""
    head, keyspace = client.store.keyspace.head(BASED), client.store.keyspace
    times = [row.until for row in _past_rows(client)]
    at = ZERO_AT

    def run(txn: TracingTransaction) -> None:
        nonlocal at
        # When a revision ends, or the last time that shows it: there a mistake by one would show.
        edge_at = times[client.pick(len(times))] - client.pick(2) if times else ZERO_AT
        at = min(edge_at, txn.read_at)
        publish_threshold(txn, keyspace, head, at)

    client.transact(run)
    if at > client.keep.threshold:
        client.keep = Keep(at)
        client.trace.seen["threshold published"] += 1
        flush(client, takes_all=True)
        clean(client)  # else the store answers in the place of files
        client.store.snapshot_at(at).scan(client.span)


def _past_rows(client: LakeClient) -> list[FileRow]:
    snapshot = client.store.snapshot()
    manifest = client.lake.manifests.get(snapshot, BASED, 1) or no_base(BASED, 1)
    return SimBase(manifest, _files(client)).rows(manifest.past)


def import_rows(client: LakeClient) -> None:
    """Rows of its own replace some of those that are there, and delete others."""
    closed = b""

    def close(txn: TracingTransaction) -> None:
        nonlocal closed
        txn.get(client.gate)  # whoever closed it before has lost it
        closed = txn.record.next_value()
        txn.put(client.gate, closed)

    client.transact(close)
    client.pause()
    merge = _merge(client)
    rows: dict[bytes, bytes | None] = {}
    for number, key in enumerate(client.keys):
        if client.maybe(0.5):
            rows[key] = b"%s/%d" % (closed, number) if client.maybe(0.7) else None
            merge.add(key, AS_PUBLISHED, rows[key])
    replaced = merge.replaced()
    client.think()

    def open_again(txn: TracingTransaction) -> None:
        if txn.get(client.gate) != closed:
            raise RetryError("somebody else has the table")
        publish(txn, client.store.keyspace, client.lake.manifests, merge.began_with, replaced, None)
        for key, value in rows.items():
            put = Put(client.trace.tick(), key, value, None, None, is_stored=False)
            txn.record.puts.append(put)
        txn.delete(client.gate)

    client.transact(open_again)
    client.trace.seen["imported"] += 1


def reopen(client: LakeClient) -> None:
    """Whoever closed the table may be dead: what it would publish then is refused."""

    def run(txn: TracingTransaction) -> None:
        if txn.get(client.gate) is not None:
            txn.delete(client.gate)

    client.transact(run)


def clean(client: LakeClient) -> None:
    for base in client.lake.bases.bases():
        client.upkeep._clean(base.manifest)


def delete_files(client: LakeClient) -> None:
    client.upkeep._delete_dropped()


def delete_strays(client: LakeClient) -> None:
    client.upkeep.delete_strays()


def mount_another(client: LakeClient) -> None:
    """For a while another store's lake is where this one was; somebody looks for strays meanwhile."""
    tree = _files(client).tree
    tree.has_other_mounted = True
    client.trace.seen["another lake mounted"] += 1
    try:
        client.pause()
        delete_strays(client)
    finally:
        tree.has_other_mounted = False


def _merge(client: LakeClient) -> Merge:
    """A merge of the base and all that the store has up to now, by the client's last threshold."""
    manifests, seen = client.lake.manifests, client.trace.seen
    return Merge(client.store, manifests, _files(client), (BASED, 1), client.keep, client, seen)


def _files(client: LakeClient) -> SimFiles:
    return cast(SimFiles, client.lake.files)


SHAPES: dict[str, Callable[[LakeClient], None]] = {
    "use": use,
    "hold": hold,
    "read at": read_at,
    "flush": flush,
    "sweep": sweep,
    "import": import_rows,
    "reopen": reopen,
    "clean": clean,
    "delete files": delete_files,
    "delete strays": delete_strays,
    "mount another": mount_another,
    "blind write": blind_write,
    "read-modify-write": read_modify_write,
    **lake_edges.SHAPES,
}

PROFILES: dict[str, dict[str, float]] = {
    "bases": {
        "use": 6,
        "hold": 3,
        "read at": 4,
        "flush": 2,
        "sweep": 0.5,
        "import": 1,
        "reopen": 0.5,
        "clean": 2,
        "delete files": 1,
        "delete strays": 0.5,
        "mount another": 0.5,
        "blind write": 1,
        "read-modify-write": 1,
        **lake_edges.WEIGHTS,
    },
    **lake_edges.PROFILES,
}


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────


class LakeNode(Node):
    cluster: "LakeCluster"

    def serve(self, stores: list[TracingStore]) -> None:
        store, name = stores[0], self.machine.name
        lake = self._open_lake(store)
        for n in range(self.cluster.knobs.clients):
            client = LakeClient(lake, store, self.cluster, f"{name}.c{n}")
            self.clients.append((client, self.env.spawn(f"c{n}", client.run)))
        self.watcher = f"{name}.watch{self.machine.generation}"
        tables = (PLAIN, BASED) if self.number % 2 else (PLAIN,)
        self.env.spawn("watch", partial(watch_forever, self.cluster.hub, store, self.watcher, tables))

    def _open_lake(self, store: TracingStore) -> Lake:
        manifests = Manifests(store.keyspace)
        files = SimFiles(self.cluster.tree)
        files.confirm_by(LakeIdentity(store, files, ID).check)
        bases = SimBases(store, manifests, files, cache_bytes=0)
        store.use_bases(bases)
        self.cluster.trace.based.add(store.keyspace.head(BASED))
        self.env.spawn("bases", lambda: self._follow(bases))
        settings = self.cluster.lake_settings
        return Lake(
            store,
            files,
            StoreHandle("", "", DEFAULT_TENANT, identity=ID),
            manifests,
            Merges(store.keyspace),
            bases,
            cast(Any, None),
            cast(Any, SimJobs()),
            cast(Any, None),
            Tracker(store, lambda: settings),
            lambda: settings,
            cast(Any, None),
        )

    def _follow(self, bases: SimBases) -> None:
        """As a loop would; on some nodes news come late, or never."""
        hub, pace = self.cluster.hub, 6.0 * self.cluster.tape.draw(f"{self.machine.name}.news") ** 2
        is_loaded = False
        while True:
            try:
                if not is_loaded:
                    _settle(bases)
                    bases.load()
                    is_loaded = True
                bases.follow()
            except TenureError:
                pass
            hub.sleep(0.05 + pace, "news")


def _settle(bases: SimBases) -> None:
    """What opening the lake leaves in the store."""
    record = StoreLake(ID, "sim", ("sim",), Stage.SETTLED)
    store = bases._store
    store.transact(lambda txn: store_lakes(store.keyspace).put(txn, record))


class LakeCluster(Cluster):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.tree = SimTree(self.hub)
        clean_after, grace = (2.0 * self.tape.draw(f"knob.{each}") for each in ("clean after", "grace"))
        self.lake_settings = (
            Settings(DEFINITIONS).with_value(CLEAN_AFTER, clean_after).with_value(FILE_GRACE, grace)
        )

    def make_node(self, number: int) -> Node:
        return LakeNode(self, number)

    def judge(self, *, is_whole: bool) -> list[Violation]:
        lost = [f'file "{name}" of another store was deleted' for name in self.tree.others_deleted]
        mixed_up = [Violation("lake-id", message, self.trace.step) for message in lost]
        kept = [f"a merge kept {row}" for row in self.tree.kept_in_vain]
        needless_rows = [Violation("keep-exact", message, self.trace.step) for message in kept]
        return super().judge(is_whole=is_whole) + mixed_up + needless_rows


@contextmanager
def sizes() -> Iterator[None]:
    """Few revisions per commit that cleans: so some stay below the mark for a while."""
    former = upkeep.CLEAN_ROWS, upkeep.CLEAN_COMMITS
    upkeep.CLEAN_ROWS, upkeep.CLEAN_COMMITS = 2, 2
    try:
        yield
    finally:
        upkeep.CLEAN_ROWS, upkeep.CLEAN_COMMITS = former
