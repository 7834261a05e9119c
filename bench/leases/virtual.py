"""Nodes' sessions and chores on a virtual clock, over one in-memory engine.

    heartbeat ──► a commit, which signals every watch ──► each listener looks
    a chore that is due ──► done; it says when it is due again

No threads and no waiting: what a node's loops would do is called when it is due, and the clock
moves in between. CPU time is kept per part of a node's upkeep, as this process used it.

Walk: `bench.leases.upkeep` makes a `Cluster`, adds nodes' upkeep to it, and lets it live.
"""

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bench.leases.places import fill
from tenure.base.env import ManualEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, Settings
from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.catalog_records import Catalog
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.cluster.sessions.liveness import JITTER, Liveness
from tenure.cluster.sessions.session_records import Sessions
from tenure.cluster.sessions.versions import PROGRAM
from tenure.kv.keys import EXPIRATIONS, Span
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine

SPREAD_HEARTBEATS = 10
"""After so many the jitter has spread the heartbeats of nodes that started together."""

Chore = Callable[[], float]
"""Does something, and returns the seconds until it is due again."""


class Member:
    """A node's session, and what its upkeep has cost."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = Settings(DEFINITIONS)
        self.sessions = Sessions(store.keyspace)
        self.liveness = Liveness(store, self.sessions, lambda: self.settings, address="", version=PROGRAM)
        self.liveness.step()
        self.cpu: defaultdict[str, float] = defaultdict(float)
        """CPU seconds by part."""

    def heartbeat(self) -> float:
        with self.timed("heartbeats"):
            pause_seconds = self.liveness.step()
        assert pause_seconds is not None, "a node that lives wants another heartbeat"
        return pause_seconds

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.cpu[part] += time.process_time() - began


class Cluster:
    def __init__(self, nodes: int, made: Sequence[AnyDescriptor]) -> None:
        self.env = ManualEnv(seed=nodes)
        self.engine = SqliteEngine(MEMORY, self.env)
        stores = [Store(self.engine, self.env) for _ in range(nodes)]
        self.store = stores[0]
        self.catalog = Catalog(self.store.keyspace)
        fill(self.store, self.catalog, made)
        self._signalled: dict[Callable[[], None], None] = {}
        self._chores: list[tuple[float, int, Chore]] = []
        self.members = [Member(store) for store in stores]
        for member in self.members:
            self.add(member.heartbeat)
        self.live_for(SPREAD_HEARTBEATS * self.members[0].settings[LIVENESS_HEARTBEAT])

    def add(self, chore: Chore, *, in_seconds: float = 0.0) -> None:
        heapq.heappush(self._chores, (self.env.monotonic() + in_seconds, len(self._chores), chore))

    def live_for(self, seconds: float) -> None:
        """Does every chore when it is due."""
        until = self.env.monotonic() + seconds
        while self._chores[0][0] <= until:
            due, number, chore = self._chores[0]
            self.env.advance(max(0.0, due - self.env.monotonic()))
            pause_seconds = chore()
            heapq.heapreplace(self._chores, (self.env.monotonic() + pause_seconds, number, chore))
            self.signal()
        self.env.advance(max(0.0, until - self.env.monotonic()))

    def listen(self, look: Callable[[], None], spans: Sequence[Span]) -> None:
        """Has something done after each chore that has written to these spans, as their watches would."""
        self.engine.subscribe(lambda: self._signalled.update({look: None}), spans)

    def signal(self) -> None:
        """Has those look whose spans were written to since the last time."""
        signalled, self._signalled = self._signalled, {}
        for look in signalled:
            look()

    def written(self, table: int, since_at: Timestamp) -> int:
        """Revisions of a table since then, from any node."""
        return len(self.store.history(self.store.keyspace.table_span(table), since_at=since_at).revisions)

    def verify(self, since_at: Timestamp, seconds: float) -> None:
        """Checks that all nodes have lived on, by heartbeats at their pace."""
        alive = sum(1 for _ in self.members[0].sessions.list(self.store.snapshot()))
        assert alive == len(self.members), f"{alive} of {len(self.members)} nodes are alive"
        expected = len(self.members) * seconds / self.members[0].settings[LIVENESS_HEARTBEAT]
        found = self.written(EXPIRATIONS, since_at)
        assert abs(found - expected) <= 2 * JITTER * expected, f"{found} heartbeats instead of {expected:.0f}"

    def close(self) -> None:
        self.engine.close()
