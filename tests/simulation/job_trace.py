"""What sessions and jobs add to the recorded history.

The store's own history says what was written and when; this adds on whose behalf: the process
that began a transaction, the fence or the session a write was made under, the frontier a node
believed in, what it was told about the dead, and which job functions were running.

Walk: `TracingJobs` and `TracingDeaths` are the product's, recording; `job_history` reads it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenure.base.errors import FenceLost
from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.claims import Claims, SessionClaims
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import TERMINAL, JobState
from tenure.cluster.jobs.job_table import Fence, JobControl, JobProgress, Jobs
from tenure.cluster.jobs.runs import Stopped
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import NodeSession
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.encoding import decode
from tenure.kv.keys import JOBS, SESSIONS, Keyspace
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES, Commit, Group, Outcome
from tenure.version_one.old_claims import MixedClaims, OldClaims
from tests.simulation.hub import Machine
from tests.simulation.trace import Trace, Txn, head
from tests.simulation.tracing import TracingStore, TracingTransaction

TENANTS = (1, 2)
"""Who may share a store; most runs have the first alone."""

WAYS: dict[type[Any], str] = {SessionClaims: "session", MixedClaims: "mixed", OldClaims: "old"}
"""How a node holds jobs: see `tenure.cluster.jobs.claims`."""


class Frontier(NamedTuple):
    """What a node took its session's expiration for."""

    step: int
    session: SessionId
    expires_at: Timestamp


class Answer(NamedTuple):
    """What a node was told about a session: "alive", "dead", "unknown" (a miss), "observed", "refused"."""

    began: int
    step: int
    question: str
    session: SessionId
    answer: str
    tenant: int
    """Whose node has asked."""


class Burial(NamedTuple):
    began: int
    step: int
    process: str
    session: SessionId


@dataclass(eq=False)
class Running:
    """A job's function at work in a process."""

    process: str
    job: int
    run: int
    what: str
    began: int
    ended: int | None = None


class Panic(Exception):
    """Thrown inside a job's terminal step, before its commit."""


class JobFailure(Exception):
    """What is wrong with a job itself."""


class JobTrace(Trace):
    def __init__(self) -> None:
        super().__init__()
        self.machines: dict[str, Machine] = {}
        self.current: dict[str, Callable[[], NodeSession | None]] = {}
        """By process: the session it goes by at this moment."""
        self.processes: dict[int, str] = {}
        """By transaction: the process that began it."""
        self.fences: dict[int, Fence] = {}
        """By transaction: the run that it writes for."""
        self.claims: dict[int, SessionId] = {}
        """By transaction: the session that it claims a job for."""
        self.ways: dict[int, str] = {}
        """By transaction: which of `WAYS` to hold a job it went by."""
        self.tenants: dict[str, int] = {}
        """By process: whose it is."""
        self.releases: dict[SessionId, str] = {}
        """Sessions that were given up, or were about to be, by the process they were of."""
        self.frontiers: list[Frontier] = []
        self.frontier_uses: dict[int, Frontier] = {}
        self.answers: list[Answer] = []
        self.burials: list[Burial] = []
        self.running: list[Running] = []
        self.left_under: dict[int, tuple[int, SessionId]] = {}
        """By transaction: the step at which its commit left, and the session of its process then."""
        self.sessions: dict[int, list[SessionId]] = {tenant: [] for tenant in TENANTS}
        """By tenant, in the order of their inserts; likewise the jobs."""
        self.jobs: dict[int, list[int]] = {tenant: [] for tenant in TENANTS}
        self.owners: dict[SessionId, int] = {}
        """By session: whose it is. Epochs come from one clock, so no two tenants have the same one."""
        self._session_heads = {Keyspace(tenant).head(SESSIONS): tenant for tenant in TENANTS}
        self._job_heads = {Keyspace(tenant).head(JOBS): tenant for tenant in TENANTS}
        self._decoders = Sessions(Keyspace(TENANTS[0]))

    def process(self, node: str) -> str:
        return f"{node}/{self.machines[node].generation}"

    def begin(self, node: str, tenant: int, parent: Txn | None, committed_only: bool, t: float) -> Txn:
        txn = super().begin(node, tenant, parent, committed_only, t)
        self.processes[txn.id] = self.process(node)
        return txn

    def session_of(self, process: str) -> NodeSession | None:
        """The session that a process goes by; None while it makes a new one, and in version 1."""
        current = self.current.get(process)
        session = None if current is None else current()
        if session is None or session.done.is_set() or not session.id.epoch_at:
            return None
        return session

    def sent(self, commit: Commit, txn: Txn) -> None:
        super().sent(commit, txn)
        session = self.session_of(self.processes[txn.id])
        if session is not None:
            self.frontiers.append(Frontier(self.tick(), session.id, session.expires_at))

    def dispatched(self, group: Group, node: str) -> None:
        session = self.session_of(self.process(node))
        if session is not None:
            for commit in group.members:
                self.left_under[self.txn_of(commit).id] = self.tick(), session.id

    def decided(self, commit: Commit, outcome: Outcome, **landing: Any) -> None:
        super().decided(commit, outcome, **landing)
        txn = self.txn_of(commit)
        if txn.landed != self.step or txn.landed_at is None:
            return
        for key, value in txn.final_writes(txn.landed_at).items():
            if value is not None and len(self.versions[key]) == 1:
                if tenant := self._session_heads.get(head(key)):
                    session = self._decoders.id_of(key)
                    self.sessions[tenant].append(session)
                    self.owners[session] = tenant
                elif tenant := self._job_heads.get(head(key)):
                    (job,) = decode(key[HEAD_BYTES:])
                    assert isinstance(job, int)
                    self.jobs[tenant].append(job)

    @contextmanager
    def at_work(self, process: str, fence: Fence, what: str) -> Iterator[None]:
        running = Running(process, fence.job, fence.run, what, self.tick())
        self.running.append(running)
        try:
            yield
        except Stopped:
            self.seen["run told to stop"] += 1
            raise
        finally:
            running.ended = self.tick()


def record_of(txn: Transaction) -> Txn:
    assert isinstance(txn, TracingTransaction)
    return txn.record


class TracingJobs(Jobs):
    """Records for whom each transaction writes, before the product looks at it."""

    def __init__(self, store: TracingStore, sessions: Sessions, claims: Callable[[], Claims]) -> None:
        super().__init__(store.keyspace, sessions, store.clock, claims)
        trace = store.engine.wire.trace
        assert isinstance(trace, JobTrace)
        self._trace = trace
        self.sessions = sessions
        self._panics: Callable[[], bool] = lambda: False

    def panic_when(self, panics: Callable[[], bool]) -> None:
        self._panics = panics

    def claim(self, txn: Transaction, id: int, session: SessionId) -> Fence | None:
        record = record_of(txn)
        self._trace.claims[record.id] = session
        try:
            return super().claim(txn, id, session)
        finally:
            self._trace.ways[record.id] = WAYS[type(self.claims())]

    def fenced(self, txn: Transaction, fence: Fence) -> JobControl:
        record = record_of(txn)
        self._trace.fences[record.id] = fence
        try:
            return super().fenced(txn, fence)
        except FenceLost:
            value = self._trace.value_at(self._control.key(fence.job), txn.read_at)
            control = None if value is None else self.decode_control(value)
            if control is None or control.run != fence.run:
                self._trace.seen["lost claim noticed by the fence"] += 1
            elif control.state is not fence.state:
                self._trace.seen["request noticed by the fence"] += 1
            else:
                self._trace.seen["lost session noticed by the fence"] += 1
            raise
        finally:
            self._trace.ways[record.id] = WAYS[type(self.claims())]

    def checkpoint(self, txn: Transaction, fence: Fence, progress: JobProgress) -> None:
        self._trace.fences[record_of(txn).id] = fence
        super().checkpoint(txn, fence, progress)

    def step(
        self, txn: Transaction, fence: Fence, state: JobState, *, error: JobError | None = None
    ) -> Fence | None:
        self._trace.fences[record_of(txn).id] = fence
        following = super().step(txn, fence, state, error=error)
        if state in TERMINAL and self._panics():
            self._trace.seen["panic inside a terminal step"] += 1
            raise Panic(f"job {fence.job} on its way to {state.value}")
        return following

    def retry(self, txn: Transaction, fence: Fence, *, error: JobError, retry_at: Timestamp) -> None:
        self._trace.fences[record_of(txn).id] = fence
        self._trace.seen["retry later"] += 1
        super().retry(txn, fence, error=error, retry_at=retry_at)

    def release(self, txn: Transaction, fence: Fence) -> None:
        self._trace.fences[record_of(txn).id] = fence
        super().release(txn, fence)


class TracingDeaths(Deaths):
    """Records burials, and what it says of the living and the dead."""

    _store: TracingStore

    @property
    def _trace(self) -> JobTrace:
        trace = self._store.engine.wire.trace
        assert isinstance(trace, JobTrace)
        return trace

    def bury(self, session: SessionId) -> bool:
        trace, node = self._trace, self._store.engine.machine.name
        began = trace.tick()
        is_gone = super().bury(session)
        if is_gone:
            trace.burials.append(Burial(began, trace.tick(), trace.process(node), session))
        return is_gone

    def _answered(self, began: int, question: str, session: SessionId, answer: str) -> None:
        step, tenant = self._trace.tick(), self._store.keyspace.tenant
        self._trace.answers.append(Answer(began, step, question, session, answer, tenant))

    def is_dead(self, session: SessionId) -> bool:
        began = self._trace.tick()
        is_dead = super().is_dead(session)
        if is_dead:
            self._answered(began, "is_dead", session, "dead")
        return is_dead

    def is_alive(self, session: SessionId) -> bool:
        began = self._trace.tick()
        is_alive = super().is_alive(session)
        self._answered(began, "is_alive", session, "alive" if is_alive else "dead")
        return is_alive

    def await_death(self, session: SessionId, *, timeout: float | None = None) -> bool:
        began = self._trace.tick()
        is_gone = super().await_death(session, timeout=timeout)
        self._answered(began, "await_death", session, "dead" if is_gone else "alive")
        return is_gone
