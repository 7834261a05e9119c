"""What sessions cost: 300 nodes on a virtual clock over one engine, and 10,000 claims under one of them.

No processes and no threads: each node's heartbeat is called when it is due, and the clock moves in
between. What was written is counted in the store's own history.

Walk: `__main__` and `test_jobs_smoke` call these with a `Run`.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tenure.base.env import ManualEnv
from tenure.base.settings import DEFINITIONS, LIVENESS_HEARTBEAT, Settings
from tenure.base.timestamp import Timestamp, micros_of
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import JITTER, Liveness
from tenure.cluster.sessions.session_records import Sessions
from tenure.kv.keys import EXPIRATIONS
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.faults.harness import Result, Run, merged
from tests.faults.job_history import revisions

NODES = 300
CLAIMS = 10_000
CLAIMS_PER_COMMIT = 500
VIRTUAL_SECONDS, VIRTUAL_SECONDS_SMOKE = 600.0, 120.0
"""The first take some ten seconds of real time; the second are for runs of less than four."""


class Members:
    """Nodes' sessions over one engine, and the clock they share."""

    def __init__(self, count: int) -> None:
        self.env = ManualEnv(seed=count)
        self.engine = SqliteEngine(MEMORY, self.env)
        self.settings = Settings(DEFINITIONS)
        self.stores = [Store(self.engine, self.env) for _ in range(count)]
        self._due: list[tuple[float, int, Liveness]] = []
        for number, store in enumerate(self.stores):
            sessions = Sessions(store.keyspace)
            node = Liveness(store, sessions, lambda: self.settings, address="", version=1)
            self._due.append((self.env.monotonic() + (node.step() or 0.0), number, node))
        heapq.heapify(self._due)
        self.first = next(node for _, number, node in self._due if number == 0)

    def live_for(self, seconds: float) -> None:
        """Calls every heartbeat when it is due."""
        until = self.env.monotonic() + seconds
        while self._due[0][0] <= until:
            due, number, node = self._due[0]
            self.env.advance(max(0.0, due - self.env.monotonic()))
            pause_seconds = node.step()
            assert pause_seconds is not None, "a node that lives wants another heartbeat"
            heapq.heapreplace(self._due, (self.env.monotonic() + pause_seconds, number, node))
        self.env.advance(max(0.0, until - self.env.monotonic()))

    def written(self, since_at: Timestamp) -> tuple[Counter[int], Counter[int]]:
        """Revisions since then: by table, and by second."""
        tables: Counter[int] = Counter()
        seconds: Counter[int] = Counter()
        for key, at, _ in revisions(self.stores[0]):
            if at > since_at:
                tables[int.from_bytes(key[4:8], "big")] += 1
                seconds[micros_of(at) // 1_000_000] += 1
        return tables, seconds

    def close(self) -> None:
        self.engine.close()


@contextmanager
def _members(count: int) -> Iterator[Members]:
    with closing(Members(count)) as members:
        yield members


def sessions_300(run: Run) -> Result:
    return merged(liveness_writes(run), claims_cost_nothing(run))


def liveness_writes(run: Run) -> Result:
    """Writes per second are nodes / heartbeat, and heartbeats are all that is written."""
    result = Result()
    seconds = VIRTUAL_SECONDS if run.seconds >= 4 else VIRTUAL_SECONDS_SMOKE
    with _members(NODES) as members:
        heartbeat_seconds = members.settings[LIVENESS_HEARTBEAT]
        members.live_for(10 * heartbeat_seconds)  # by then the jitter has spread them
        since_at = members.engine.clock_at()
        members.live_for(seconds)
        tables, by_second = members.written(since_at)
        alive = sum(1 for _ in Sessions(members.stores[0].keyspace).list(members.stores[0].snapshot()))
    expected, found = NODES / heartbeat_seconds, tables[EXPIRATIONS] / seconds
    each = sorted(by_second[second] for second in list(by_second)[1:-1])
    result.counts |= {"nodes": alive, "virtual s": seconds, "writes/s": round(found, 2)}
    result.counts["in one second"] = f"{each[0]} to {each[-1]}"
    result.require(alive == NODES, f"{alive} of {NODES} nodes are alive")
    result.require(set(tables) == {EXPIRATIONS}, f"more than heartbeats was written: {dict(tables)}")
    is_near = expected / (1 + JITTER) <= found <= expected / (1 - JITTER)
    result.require(is_near, f"{found:.1f} heartbeats a second instead of {expected:.1f}")
    return result


def claims_cost_nothing(run: Run) -> Result:
    """However much one session claims, its heartbeat is all that is written."""
    result = Result()
    seconds = 60.0
    with _members(2) as members:
        store, session = members.stores[0], members.first.session()
        jobs = Jobs(store.keyspace, Sessions(store.keyspace), store.clock)
        claimed = 0
        while claimed < CLAIMS:

            def claim(txn: Transaction) -> int:
                made = [jobs.create(txn, kind="idle") for _ in range(CLAIMS_PER_COMMIT)]
                return sum(jobs.claim(txn, job.id, session.id) is not None for job in made)

            claimed += store.transact(claim)
        since_at = members.engine.clock_at()
        other = Deaths(members.stores[1], Sessions(store.keyspace))
        members.live_for(seconds)
        other.reap()
        other.close()
        tables, _ = members.written(since_at)
        held = sum(control.claim == session.id for control in jobs.open(store.snapshot()))
    beats = 2 * seconds / members.settings[LIVENESS_HEARTBEAT]
    result.counts |= {"claims": held, "writes beside heartbeats": tables.total() - tables[EXPIRATIONS]}
    result.require(held == CLAIMS, f"{held} of {CLAIMS} claims are held")
    result.require(set(tables) == {EXPIRATIONS}, f"claims made writes: {dict(tables)}")
    is_near = beats / (1 + 2 * JITTER) <= tables[EXPIRATIONS] <= beats / (1 - 2 * JITTER)
    result.require(is_near, f"{tables[EXPIRATIONS]} heartbeats instead of {beats:g}")
    return result
