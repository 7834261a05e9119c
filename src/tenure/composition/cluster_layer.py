"""A node's part in the cluster: settings, its session, who is dead, jobs as records, locks.

    settings ──► dead predecessors are ended ──► session ──► deaths ──► locks

Walk: `node.py` calls `build_cluster` after the store is open; this makes `ClusterSettings`, `Liveness` (or
that of version 1), `Deaths`, `Neighbours`, `Jobs` and the locks, and starts the loops of settings and
heartbeat.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tenure.base.node_memory import NodeMemory, node_memory
from tenure.base.settings import Settings
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.locks.advisory_locks import AdvisoryLocks
from tenure.cluster.locks.lock_waits import LockWaits
from tenure.cluster.locks.row_locks import RowLocks
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import Liveness, NodeLiveness, NodeSession
from tenure.cluster.sessions.neighbours import Neighbours
from tenure.cluster.sessions.reaped_sessions import end_proved
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.cluster.sessions.versions import Versions
from tenure.cluster.settings import ClusterSettings
from tenure.composition.node_start import NodeStart
from tenure.composition.older_versions import OlderVersions
from tenure.kv.store import Store
from tenure.storage.lifelines import Lifeline, open_lifelines


@dataclass(frozen=True)
class ClusterLayer:
    sessions: Sessions
    settings: ClusterSettings
    memory: NodeMemory
    older: OlderVersions
    liveness: NodeLiveness
    deaths: Deaths
    jobs: Jobs
    neighbours: Neighbours
    lock_waits: LockWaits
    row_locks: RowLocks
    advisory_locks: AdvisoryLocks
    on_lost: list[Callable[[NodeSession], None]]
    """Called when the session is lost; the layers built later add to it."""

    def session_id(self) -> SessionId:
        return self.liveness.session().id

    def instance(self) -> int:
        return self.session_id().instance

    def current(self) -> Settings:
        return self.settings.current()


def build_cluster(start: NodeStart, store: Store) -> ClusterLayer:
    options, env, lifecycle = start
    sessions = Sessions(store.keyspace)
    versions = Versions(store.keyspace, sessions)
    settings = ClusterSettings(store, options.settings, versions.finalize)
    lifecycle.on_stop(settings.close)
    lifecycle.settings = settings.current
    memory = node_memory(env, settings.current)
    lifecycle.run(lifecycle.loop("settings", settings.follow, interrupt=settings.wake))
    older = OlderVersions(options, store, sessions, versions, settings)
    on_lost: list[Callable[[NodeSession], None]] = []

    def lost(session: NodeSession) -> None:
        for each in on_lost:
            each(session)

    lifeline = _prove_deaths(start, store)
    if options.is_version_one:
        liveness: NodeLiveness = older.version_one().liveness(lost)
    else:
        liveness = Liveness(
            store,
            sessions,
            settings.current,
            address="",
            version=options.version,
            has=options.has,
            lifeline=lifeline,
            join=lambda txn: versions.join(txn, options.version),
            beside=older.beat,
            on_lost=lost,
        )
    liveness.step()
    lifecycle.on_stop_close("session", liveness.release)
    settings.load()  # the first node has just given the cluster its version
    lifecycle.run(lifecycle.loop("heartbeat", liveness.step))
    deaths = Deaths(store, sessions)
    lifecycle.on_stop(deaths.close)
    neighbours = Neighbours(store, sessions, liveness.session)
    lifecycle.on_stop(neighbours.close)
    lock_waits = LockWaits(store, deaths, liveness.session, neighbours.is_alone)
    row_locks = RowLocks(lock_waits)
    lifecycle.on_stop(row_locks.tables.close)
    advisory_locks = AdvisoryLocks(lock_waits)
    return ClusterLayer(
        sessions,
        settings,
        memory,
        older,
        liveness,
        deaths,
        Jobs(store.keyspace, sessions, store.clock, older.claims),
        neighbours,
        lock_waits,
        row_locks,
        advisory_locks,
        on_lost,
    )


def _prove_deaths(start: NodeStart, store: Store) -> Lifeline | None:
    """Ends the sessions of a dead predecessor on this machine, and lets a successor do so for this
    process.
    """
    options, env, lifecycle = start
    # Spark's executors may outlive the process that runs Spark.
    lifelines = None if options.spark is not None else open_lifelines(options.store, env)
    if lifelines is None:
        return None
    lifecycle.on_stop(lifelines.close)
    own = lifelines.own()
    end_proved(store, lifelines)
    lifelines.tidy(env.wall_micros() / 1_000_000)
    return own
