"""A node's parts over an engine that several of them share, driven by hand."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tenure.base.env import Env, ManualEnv
from tenure.base.settings import DEFINITIONS, Settings
from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Fence, Job, JobControl, Jobs
from tenure.cluster.jobs.runner import JobRunner
from tenure.cluster.jobs.runs import JobKind
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import Liveness, NodeSession
from tenure.cluster.sessions.session_records import ExistingSession, SessionId, Sessions
from tenure.kv.store import DEFAULT_TENANT, Store
from tenure.storage.engine import Engine

TTL_SECONDS = 40.0
T = TypeVar("T")


class Member:
    def __init__(
        self, engine: Engine, env: Env, *, tenant: int = DEFAULT_TENANT, settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings(DEFINITIONS)
        self.store = Store(engine, env, tenant=tenant, settings=self.settings)
        self.sessions = Sessions(self.store.keyspace)
        self.lost: list[NodeSession] = []
        self.liveness = Liveness(
            self.store,
            self.sessions,
            lambda: self.settings,
            address="host:26257",
            version=1,
            on_lost=self._on_lost,
        )
        self.deaths = Deaths(self.store, self.sessions)
        self.jobs = Jobs(self.store.keyspace, self.sessions, self.store.clock)
        self.runner = self.make_runner({})

    def make_runner(self, kinds: Mapping[str, JobKind], has: Iterable[str] = ()) -> JobRunner:
        self.runner = JobRunner(
            self.store, self.liveness.session, self.deaths, self.jobs, kinds, lambda: self.settings, has=has
        )
        return self.runner

    def _on_lost(self, session: NodeSession) -> None:
        self.lost.append(session)
        self.runner.end_session(session)

    def transact(self, work: Callable[..., T]) -> T:
        return self.store.transact(work)

    # ── sessions ───────────────────────────────────────────────────────────────────────────────

    def start(self) -> NodeSession:
        """Gets a session, if it has none yet."""
        self.liveness.step()
        return self.liveness.session()

    def found(self, session: SessionId) -> ExistingSession | None:
        return self.sessions.find(self.store.snapshot(), session)

    def expires_at(self, session: SessionId) -> Timestamp:
        present = self.found(session)
        assert present is not None, "the session is gone"
        return present.expires_at

    # ── jobs ───────────────────────────────────────────────────────────────────────────────────

    def create_job(self, kind: str = "work", payload: bytes = b"", needs: Iterable[str] = ()) -> Job:
        return self.transact(lambda txn: self.jobs.create(txn, kind=kind, payload=payload, needs=needs))

    def claim(self, job: Job, session: NodeSession | None = None) -> Fence:
        held = session or self.liveness.session()
        fence = self.transact(lambda txn: self.jobs.claim(txn, job.id, held.id))
        assert fence is not None, "the job is not to be had"
        return fence

    def control(self, job: Job) -> JobControl:
        control = self.jobs.control(self.store.snapshot(), job.id)
        assert control is not None, "the job is forgotten"
        return control

    def state(self, job: Job) -> JobState:
        return self.control(job).state


def make_session(member: Member, *, ttl_seconds: float = TTL_SECONDS, wanted: int | None = None) -> SessionId:
    """A session of nobody's: made by hand, and never extended by itself."""
    txn = member.store.begin()
    instance = member.sessions.create(
        txn,
        ttl_seconds=ttl_seconds,
        lanes=(),
        address="host:1",
        started_at=1,
        version=1,
        wanted=wanted,
    )
    return SessionId(instance, txn.commit())


def expire(env: ManualEnv, *, ttl_seconds: float = TTL_SECONDS) -> None:
    """Lets so much time pass that whatever was extended by now has expired."""
    env.advance(ttl_seconds + 1)
