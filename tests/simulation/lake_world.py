"""The lake's protocol in the simulated store: bases that are read, flushed, cleaned and imported into.

    product code    kv.bases, LakeBases, Manifests, publishing, the upkeep's cleaning and deleting, Files,
                    the lake's id
    stands in       a tree of files: dictionaries of revisions by key; reading one takes a moment, and it
                    may be gone; for a while, another store's lake may be mounted there

An import closes the table for writing, merges what there is with rows of its own, and publishes. Its rows are
never written to the store: the trace has them as if its publishing had put them. So the predicates ask of
reads, watches and transactions what they always ask, and know nothing of a lake.

Walk: `cluster.run` makes a `LakeCluster` for the profiles here; clients draw from `SHAPES`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from tenure.base.errors import BaseMoved, RetryError, TenureError
from tenure.base.settings import CLEAN_AFTER, DEFINITIONS, FILE_GRACE, Settings
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.bulk import upkeep
from tenure.bulk.lakes import Lake
from tenure.kv.bases import Row
from tenure.kv.keys import Span
from tenure.kv.store import DEFAULT_TENANT
from tenure.pipeline.remote_handles import StoreHandle
from tenure.storage.files import Files
from tenure.storage.tree import TreeEntry
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.identity import DIRECTORY, LakeIdentity, Stage, StoreLake, id_file, store_lakes
from tenure.table.lake.manifests import AS_PUBLISHED, File, FileShape, Manifest, Manifests, Written, no_base
from tenure.table.lake.publishing import Merges, Replaced, publish
from tests.simulation import lake_edges
from tests.simulation.hub import Hub
from tests.simulation.nodes import Cluster, Node
from tests.simulation.predicates import Violation
from tests.simulation.shapes import blind_write, read_modify_write
from tests.simulation.trace import Put
from tests.simulation.tracing import TracingStore, TracingTransaction
from tests.simulation.workload import BASED, PLAIN, Client, watch_forever

GATE = 105
"""The table whose one row says who has closed the other for writing."""

ID = "own"
"""What the lake and its store carry."""

Contents = dict[bytes, list[tuple[Timestamp, bytes | None]]]
"""All revisions of each key, tombstones too; the time of an import's own is AS_PUBLISHED."""


class SimTree:
    """The files of all nodes, and how an operator may mix them up with another store's.

    While the other lake is mounted in the place of this one, its id and its files are what is listed, and its
    files are what is deleted. Reads and writes go to this one all the same: what they would miss is not
    what is asked here.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._contents: dict[str, Contents] = {}
        self._count = 0
        self.others = {f"{DEFAULT_TENANT}/j{number}-r1-0-live" for number in range(3)}
        """The other store's: of jobs that nobody here knows, so here they look like strays."""
        self.has_other_mounted = False
        self.others_deleted: list[str] = []

    def add(self, contents: Contents) -> str:
        self._count += 1
        self._contents[f"file{self._count}"] = contents
        return f"file{self._count}"

    def read(self, name: str) -> Contents:
        self._hub.sleep(0.2 * self._hub.tape.draw("lake.read") ** 2, "lake")
        if name not in self._contents:
            raise BaseMoved(f'file "{name}" is gone')
        return self._contents[name]

    def children(self, directory: str) -> Iterator[TreeEntry]:
        if directory == DIRECTORY:
            yield TreeEntry(id_file("other" if self.has_other_mounted else ID), 1, 0)
        elif self.has_other_mounted:
            yield from (TreeEntry(name, 1, 0) for name in sorted(self.others))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            if not self.has_other_mounted:
                self._contents.pop(name, None)
            elif name in self.others:
                self.others_deleted.append(name)

    def delete_unfinished(self, *, before_micros: int) -> int:
        return 0


class SimJobs:
    def open(self, snapshot: object) -> tuple[()]:
        return ()


class SimFiles(Files):
    """As one node has opened them."""

    def __init__(self, tree: SimTree) -> None:
        super().__init__(cast(Any, tree), "sim")
        self.tree = tree


class SimBase:
    def __init__(self, manifest: Manifest, files: SimFiles) -> None:
        self.manifest = manifest
        self.flushed_at = manifest.flushed_at
        self._files = files

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        return _visible(self.dated().get(key, []), at)

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        return {key: value for key in keys if (value := self.get(key, at)) is not None}

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        contents = self.dated()
        keys = sorted((key for key in contents if span.lo <= key < span.hi), reverse=reverse)
        rows = ((key, _visible(contents[key], at)) for key in keys)
        return [(key, value) for key, value in rows if value is not None][:limit]

    def dated(self) -> Contents:
        """All there is, with the times at which imports were published."""
        dated: Contents = {}
        for file in self.manifest.live:
            for key, revisions in self._files.tree.read(file.name).items():
                dated[key] = [
                    (file.published_at if at == AS_PUBLISHED else at, value) for at, value in revisions
                ]
        return dated


def _visible(revisions: list[tuple[Timestamp, bytes | None]], at: Timestamp) -> bytes | None:
    return next((value for since_at, value in reversed(revisions) if since_at <= at), None)


class SimBases(LakeBases):
    def _base(self, manifest: Manifest, head: bytes) -> Any:
        return SimBase(manifest, cast(SimFiles, self.files))


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


def flush(client: LakeClient) -> None:
    began_with, contents, at = _merged(client)
    if began_with.live and not at[1]:
        made = Replaced(())
    else:
        made = _replaced(client, began_with, contents)
    client.think()
    manifests, keyspace = client.lake.manifests, client.store.keyspace
    client.transact(lambda txn: publish(txn, keyspace, manifests, began_with, made, at[0]))
    client.trace.seen["flushed"] += 1


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
    began_with, contents, _ = _merged(client)
    rows: dict[bytes, bytes | None] = {}
    for number, key in enumerate(client.keys):
        if client.maybe(0.5):
            rows[key] = b"%s/%d" % (closed, number) if client.maybe(0.7) else None
            contents.setdefault(key, []).append((AS_PUBLISHED, rows[key]))
    made = _replaced(client, began_with, contents, has_input=True)
    client.think()

    def open_again(txn: TracingTransaction) -> None:
        if txn.get(client.gate) != closed:
            raise RetryError("somebody else has the table")
        publish(txn, client.store.keyspace, client.lake.manifests, began_with, made, None)
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


def _merged(client: LakeClient) -> tuple[Manifest, Contents, tuple[Timestamp, int]]:
    """A manifest, all that it and the store have, up to when, and how much of it is new."""
    snapshot = client.store.snapshot()
    began_with = client.lake.manifests.get(snapshot, BASED, 1) or no_base(BASED, 1)
    contents = {key: list(each) for key, each in SimBase(began_with, _files(client)).dated().items()}
    new = 0
    for page in snapshot.revisions(client.span, since_at=began_with.flushed_at, limit=1 + client.pick(3)):
        for revision in page:
            contents.setdefault(revision.key, []).append((revision.at, revision.value))
            new += 1
        client.pause()
    return began_with, contents, (snapshot.at, new)


def _replaced(
    client: LakeClient, began_with: Manifest, contents: Contents, *, has_input: bool = False
) -> Replaced:
    name = _files(client).tree.add(contents)
    published_at = AS_PUBLISHED if has_input else 0
    file = File(name, b"", b"\xff", len(contents), 1, b"", 0, published_at, published_at)
    return Replaced(tuple(each.name for each in began_with.files), (Written(file, FileShape(())),))


def _files(client: LakeClient) -> SimFiles:
    return cast(SimFiles, client.lake.files)


SHAPES: dict[str, Callable[[LakeClient], None]] = {
    "use": use,
    "hold": hold,
    "read at": read_at,
    "flush": flush,
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
        return super().judge(is_whole=is_whole) + mixed_up


@contextmanager
def sizes() -> Iterator[None]:
    """Few revisions per commit that cleans: so some stay below the mark for a while."""
    former = upkeep.CLEAN_ROWS, upkeep.CLEAN_COMMITS
    upkeep.CLEAN_ROWS, upkeep.CLEAN_COMMITS = 2, 2
    try:
        yield
    finally:
        upkeep.CLEAN_ROWS, upkeep.CLEAN_COMMITS = former
