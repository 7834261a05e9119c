"""From the expiry of a session to its death being known in another process.

Sessions send one heartbeat and fall silent. The expiry is the answer to that heartbeat plus the ttl,
by the clock that all processes of a machine share. Another process waits for the death: ours with
`Deaths.await_death`, which wakes at the expiry and deletes the session; etcd's with a watch of a key
that hangs on the lease. Many sessions expire at random times, so that a poll is met at every phase;
the sides take turns. Nobody may be dead before a ttl has passed since the heartbeat was sent; that is
checked.

The ttl is 2 s, the shortest that etcd grants by default. It looks for expired leases twice a second.

Walk: `bench.__main__` -> `run`; the waiting processes run `mourn_sessions`, `mourn_leases`.
"""

import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from bench.liveness.etcd import Etcd, etcd
from bench.ratio import Bar, Ratio, compare
from bench.store.places import postgres, postgres_store, sqlite_store, store_path
from bench.store.rounds import Spread, note, spread
from tenure.base.settings import DEFINITIONS, LIVENESS_TTL, Settings
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.store import Store

TTL_SECONDS = 2
PAUSE_SECONDS = 0.1
"""On average between two sessions; drawn between nothing and twice that."""
LOST_SECONDS = 20.0
KEYS = (b"lease/", b"lease0")

_context = multiprocessing.get_context("spawn")

Silence = Callable[[], tuple[Any, float]]
"""Makes a session that falls silent; returns its id and when its last heartbeat was sent."""


def run(quick: bool) -> list[Ratio]:
    sessions, rounds = (3, 1) if quick else (12, 3)
    with (
        store_path() as path,
        sqlite_store(path) as sqlite,
        postgres() as server,
        postgres_store(server.dsn) as postgresql,
        etcd() as address,
    ):
        client = Etcd(address)
        with (
            _mourner(mourn_sqlite, path) as sqlite_pipe,
            _mourner(mourn_postgres, server.dsn) as postgres_pipe,
            _mourner(mourn_leases, address) as lease_pipe,
        ):
            sides: list[tuple[Silence, Connection[Any, Any]]] = [
                (lambda: _silent_session(sqlite), sqlite_pipe),
                (lambda: _silent_session(postgresql), postgres_pipe),
                (lambda: _silent_lease(client), lease_pipe),
            ]
            millis: list[list[float]] = [[] for _ in sides]
            for _ in range(rounds):
                for (silence, pipe), of_side in zip(sides, millis, strict=True):
                    of_side += _late_millis(silence, pipe, sessions)
        client.close()
    return _ratios(*map(spread, millis))


def _ratios(sqlite: Spread, postgresql: Spread, peer: Spread) -> list[Ratio]:
    name = "liveness.expiry"
    note(f"{name}: SQLite {sqlite}; PostgreSQL {postgresql}; etcd {peer}")
    return [
        compare(f"{name}.sqlite.p50", ours=sqlite.p50, peer=peer.p50, unit="ms", bar=Bar.AT_MOST, limit=1.0),
        compare(f"{name}.sqlite.max", ours=sqlite.worst, peer=peer.worst, unit="ms", bar=Bar.NONE),
        compare(f"{name}.postgres.p50", ours=postgresql.p50, peer=peer.p50, unit="ms", bar=Bar.NONE),
    ]


def _late_millis(silence: Silence, pipe: "Connection[Any, Any]", sessions: int) -> list[float]:
    """How long after its expiry each of the sessions was known to be dead."""
    chooser = random.Random(sessions)
    heartbeats: dict[Any, tuple[float, float]] = {}
    for _ in range(sessions):
        time.sleep(chooser.uniform(0, 2 * PAUSE_SECONDS))
        session, sent = silence()
        heartbeats[session] = sent, time.monotonic()
        pipe.send(session)
    late: list[float] = []
    for _ in range(sessions):
        assert pipe.poll(LOST_SECONDS), f"{sessions - len(late)} deaths were not noticed"
        session, known = pipe.recv()
        sent, answered = heartbeats.pop(session)
        assert known > sent + TTL_SECONDS, f"{session} was declared dead too early"
        late.append((known - answered - TTL_SECONDS) * 1e3)
    return late


def _silent_session(store: Store) -> tuple[SessionId, float]:
    """As of a node of its own: whoever finds it dead closes its store's lanes."""
    settings = Settings(DEFINITIONS).with_value(LIVENESS_TTL, TTL_SECONDS)
    store = Store(store.engine, store.env)
    liveness = Liveness(store, Sessions(store.keyspace), lambda: settings, address="", version=1)
    liveness.step()
    sent = time.monotonic()
    liveness.step()
    return liveness.session().id, sent


def _silent_lease(client: Etcd) -> tuple[bytes, float]:
    lease = client.grant(TTL_SECONDS)
    key = KEYS[0] + b"%x" % lease
    client.put(key, lease)
    sent = time.monotonic()
    client.keep_alive(lease)
    return key, sent


@contextmanager
def _mourner(mourn: Callable[..., None], where: str) -> "Iterator[Connection[Any, Any]]":
    """A process that is told of sessions and tells when it knew each of them to be dead."""
    here, there = _context.Pipe()
    process = _context.Process(target=mourn, args=(where, there), daemon=True)
    process.start()
    there.close()
    assert here.poll(LOST_SECONDS), "the waiting process did not start"
    here.recv()
    try:
        yield here
    finally:
        process.kill()
        process.join()


def mourn_sqlite(path: str, pipe: "Connection[Any, Any]") -> None:
    with sqlite_store(path) as store:
        _mourn_sessions(store, pipe)


def mourn_postgres(dsn: str, pipe: "Connection[Any, Any]") -> None:
    with postgres_store(dsn) as store:
        _mourn_sessions(store, pipe)


def _mourn_sessions(store: Store, pipe: "Connection[Any, Any]") -> None:
    deaths = Deaths(store, Sessions(store.keyspace))
    telling = threading.Lock()

    def await_death(session: SessionId) -> None:
        deaths.await_death(session)
        known = time.monotonic()
        with telling:
            pipe.send((session, known))

    pipe.send(None)
    while True:
        threading.Thread(target=await_death, args=(pipe.recv(),), daemon=True).start()


def mourn_leases(address: str, pipe: "Connection[Any, Any]") -> None:
    for key in Etcd(address).deletions(*KEYS):
        pipe.send(None if key is None else (key, time.monotonic()))
