"""Durable commits on SQLite: 16 threads of ours beside a loop that does one commit each.

The peer is bare apsw on the same tables: BEGIN IMMEDIATE, one upsert (a trigger keeps the old
revision), the clock, COMMIT; WAL with `synchronous=FULL`, one fsync per commit, and a checkpointer
off the commit path as ours has it. What group commit gains depends on the fsync, so it is measured
twice: at the disk's own speed and with every fsync slowed to 2 ms. Where the peer wins: CPU per
commit, and the latency of a single commit.

Walk: `bench.__main__` -> `run`.
"""

import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress

import apsw

from bench.ratio import Bar, Ratio, compare
from bench.store.places import TABLE, VALUE, row_key, sqlite_store, store_path
from bench.store.rounds import Pace, alternate, note
from bench.store.slow_disk import slow_disk
from tenure.base.env import SystemEnv
from tenure.kv.store import Store
from tenure.storage.sqlite.database_file import SCHEMA, WAL_PAGES_MAX
from tenure.storage.upkeep import CHECKPOINT_SECONDS

THREADS = 16
KEYS_PER_THREAD = 500
"""Then they are overwritten: commits of a running system mostly change what is there."""
UPSERT = (
    "INSERT INTO live(key, at, value) VALUES (?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET at = excluded.at, value = excluded.value"
)


def run(quick: bool) -> list[Ratio]:
    own = _measure("commits.sqlite", commits=160 if quick else 8_000, limit=2.0, slowed=False)
    slowed = _measure("commits.sqlite.fsync_2ms", commits=160 if quick else 1_600, limit=8.0, slowed=True)
    return own + slowed


def _measure(name: str, *, commits: int, limit: float, slowed: bool) -> list[Ratio]:
    rounds = 1 if commits < 1_000 else 5
    with (
        slow_disk() if slowed else nullcontext() as vfs,
        store_path() as path,
        store_path() as peer_path,
        sqlite_store(path, vfs=vfs) as store,
    ):
        peer = BareLoop(peer_path, vfs)
        try:
            ours = Commits(store)
            many, one, bare = alternate(
                rounds,
                lambda: ours.run(THREADS, commits),
                lambda: ours.run(1, commits // 4),
                lambda: peer.run(commits // 4),
            )
            ours.verify()
            peer.verify()
        finally:
            peer.close()
    return ratios(name, limit, many=many, one=one, bare=bare)


def ratios(name: str, limit: float, *, many: Pace, one: Pace, bare: Pace) -> list[Ratio]:
    note(
        f"{name}: {THREADS} threads {many.rate:,.0f}/s, {many.cpu_micros:.0f} us CPU per commit; "
        f"1 thread {one.rate:,.0f}/s, {one.cpu_micros:.0f} us; "
        f"bare {bare.rate:,.0f}/s, {bare.cpu_micros:.0f} us"
    )
    return [
        compare(name, ours=many.rate, peer=bare.rate, unit="commits/s", bar=Bar.AT_LEAST, limit=limit),
        compare(f"{name}.one_thread", ours=one.rate, peer=bare.rate, unit="commits/s", bar=Bar.NONE),
        compare(f"{name}.cpu", ours=many.cpu_micros, peer=bare.cpu_micros, unit="us/commit", bar=Bar.NONE),
    ]


class Commits:
    """Threads that each put one row per transaction, numbered, and remember what was acknowledged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._acknowledged: dict[bytes, bytes] = {}
        self._done = 0

    def run(self, threads: int, commits: int) -> int:
        each = commits // threads
        workers = [threading.Thread(target=self._commit, args=(worker, each)) for worker in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self._done += each * threads
        return each * threads

    def _commit(self, worker: int, commits: int) -> None:
        transact = self._store.transact
        keys = [row_key(self._store, worker * KEYS_PER_THREAD + i) for i in range(KEYS_PER_THREAD)]
        last = [0] * KEYS_PER_THREAD
        for nr in range(commits):
            slot = nr % KEYS_PER_THREAD
            last[slot] = nr
            transact(_put(keys[slot], numbered(nr)))
        used = range(min(commits, KEYS_PER_THREAD))
        self._acknowledged |= {keys[slot]: numbered(last[slot]) for slot in used}

    def verify(self) -> None:
        """Every acknowledged row is there, and as many revisions as there were commits."""
        span = self._store.keyspace.index_span(TABLE)
        snapshot = self._store.snapshot()
        assert dict(snapshot.scan(span)) == self._acknowledged, "an acknowledged commit is not there"
        revisions = self._store.history(span, since_at=0).revisions
        assert len(revisions) == self._done, f"{self._done} commits made {len(revisions)} revisions"
        assert len({revision.at for revision in revisions}) == self._done, "two commits share a timestamp"


def _put(key: bytes, value: bytes) -> Callable[..., None]:
    return lambda txn: txn.put(key, value)


def numbered(nr: int) -> bytes:
    return nr.to_bytes(8, "big") + VALUE[8:]


class BareLoop:
    def __init__(self, path: str, vfs: str | None) -> None:
        self._connection = _connect(path, vfs)
        self._connection.execute(SCHEMA)
        self._checkpointer = _connect(path, vfs)
        self._closing = threading.Event()
        self._upkeep = threading.Thread(target=self._keep_up)
        self._upkeep.start()
        self._wall_micros = SystemEnv().wall_micros
        self._done = 0

    def _keep_up(self) -> None:
        while not self._closing.wait(CHECKPOINT_SECONDS):
            with suppress(apsw.BusyError):  # a commit is checkpointing by itself
                self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def run(self, commits: int) -> int:
        execute = self._connection.cursor().execute
        head = bytes(10)
        for nr in range(commits):
            at = self._wall_micros() << 10
            execute("BEGIN IMMEDIATE")
            execute(UPSERT, (head + (nr % (THREADS * KEYS_PER_THREAD)).to_bytes(4, "big"), at, numbered(nr)))
            execute("UPDATE clock SET at = ?", (at,))
            execute("COMMIT")
        self._done += commits
        return commits

    def verify(self) -> None:
        ((rows,),) = self._connection.execute(
            "SELECT (SELECT count(*) FROM live) + (SELECT count(*) FROM past)"
        )
        assert rows == self._done, f"{self._done} commits made {rows} revisions"

    def close(self) -> None:
        self._closing.set()
        self._upkeep.join()
        self._checkpointer.close()
        self._connection.close()


def _connect(path: str, vfs: str | None) -> apsw.Connection:
    connection = apsw.Connection(path, vfs=vfs)
    connection.set_busy_timeout(10_000)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", WAL_PAGES_MAX)
    return connection
