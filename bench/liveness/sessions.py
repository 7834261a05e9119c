"""How long a session takes to make, and a heartbeat to send.

    ours    create: a durable commit (existence, instance); heartbeat: a durable commit (expiration)
    etcd    grant: a proposal, durable in its log; keep-alive: the leader's memory, nothing durable

On SQLite every commit waits for its fsync; the same in PostgreSQL, whose figures are printed. etcd's
grant waits for the fsync of its log. Its keep-alive waits for no disk at all: after a change of leader
etcd gives every lease its whole ttl again, since nobody knows when it was last renewed. Ours is as
durable as everything else, so that an expiry, once it is known, stays true.

Walk: `bench.__main__` -> `run`.
"""

import time
from collections.abc import Callable

from bench.liveness.etcd import Etcd, etcd
from bench.ratio import Bar, Ratio, compare
from bench.store.places import postgres, postgres_store, sqlite_store, store_path
from bench.store.rounds import Spread, note, spread
from tenure.base.settings import DEFINITIONS, Settings
from tenure.cluster.sessions.liveness import Liveness
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.store import Store

ROUNDS = 10
TTL_SECONDS = 40


def run(quick: bool) -> list[Ratio]:
    each = 2 if quick else 40
    with (
        etcd() as address,
        store_path() as path,
        sqlite_store(path) as sqlite,
        postgres() as server,
        postgres_store(server.dsn) as postgresql,
    ):
        peer = Leases(Etcd(address))
        members: list[Members | Leases] = [Members(sqlite), Members(postgresql), peer]
        creates: list[list[float]] = [[] for _ in members]
        beats: list[list[float]] = [[] for _ in members]
        for _ in range(ROUNDS):
            for nr, member in enumerate(members):
                creates[nr] += _timed(member.create, each)
                beats[nr] += _timed(member.beat, each)
                member.end()
        peer.close()
    return _ratios("create", *map(spread, creates)) + _ratios("heartbeat", *map(spread, beats))


def _timed(call: Callable[[], None], times: int) -> list[float]:
    millis = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        millis.append((time.perf_counter() - began) * 1e3)
    return millis


def _ratios(what: str, sqlite: Spread, postgresql: Spread, peer: Spread) -> list[Ratio]:
    name = f"liveness.{what}"
    note(f"{name}: SQLite {sqlite}; PostgreSQL {postgresql}; etcd {peer}")
    return [
        compare(f"{name}.sqlite.p50", ours=sqlite.p50, peer=peer.p50, unit="ms", bar=Bar.AT_MOST, limit=2.0),
        compare(f"{name}.postgres.p50", ours=postgresql.p50, peer=peer.p50, unit="ms", bar=Bar.NONE),
    ]


class Members:
    """Nodes' sessions in one store; the last one made sends the heartbeats."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions = Sessions(store.keyspace)
        self._made: list[Liveness] = []

    def create(self) -> None:
        settings = Settings(DEFINITIONS)
        liveness = Liveness(self._store, self._sessions, lambda: settings, address="", version=1)
        liveness.step()
        self._made.append(liveness)

    def beat(self) -> None:
        session = self._made[-1].session()
        before_at = session.expires_at
        self._made[-1].step()
        assert session.expires_at > before_at, "the heartbeat did not move the expiration"

    def end(self) -> None:
        present = {session.id for session in self._sessions.list(self._store.snapshot())}
        assert present == {liveness.session().id for liveness in self._made}, "a session is not there"
        for liveness in self._made:
            liveness.release()
        self._made.clear()


class Leases:
    def __init__(self, client: Etcd) -> None:
        self._client = client
        self._lease = 0

    def create(self) -> None:
        self._lease = self._client.grant(TTL_SECONDS)

    def beat(self) -> None:
        self._client.keep_alive(self._lease)

    def end(self) -> None:
        """They are left to expire: revoking is not measured."""

    def close(self) -> None:
        self._client.close()
