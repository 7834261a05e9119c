"""What clients do in the world of jobs: create, pause, resume, cancel, ask who lives, use a frontier.

Walk: `members.Process` spawns a `JobClient` or more; `workload.Client` draws its operations by weight.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tenure.base.errors import SessionLost
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import SessionId
from tenure.cluster.sessions.versions import OLDEST
from tenure.kv.transaction import Transaction
from tests.simulation.hub import Hub
from tests.simulation.job_trace import Answer, Frontier, JobTrace, record_of
from tests.simulation.labour import KINDS
from tests.simulation.workload import PLAIN, Client

if TYPE_CHECKING:
    from tests.simulation.processes import Process


class JobClient(Client):
    """A client of one process, which may use the process's parts as a statement would."""

    def __init__(self, process: "Process", name: str, weights: Mapping[str, float]) -> None:
        hub: Hub = process.cluster.hub
        shapes = {shape: _of(self, run) for shape, run in SHAPES.items()}
        super().__init__(hub, process.cluster.knobs, process.store, name, shapes=shapes, weights=weights)
        self.process = process
        self.is_leaving = False

    @property
    def job_trace(self) -> JobTrace:
        return self.process.cluster.job_trace

    def _operate(self) -> None:
        if not self.is_leaving:
            super()._operate()

    def some_job(self) -> int | None:
        """Mostly one of the newest: those are under way."""
        jobs = self.job_trace.jobs[self.process.tenant]
        jobs = jobs[-4:] if not self.maybe(0.2) else jobs
        return jobs[self.pick(len(jobs))] if jobs else None

    def some_session(self) -> SessionId | None:
        sessions = self.job_trace.sessions[self.process.tenant]
        sessions = sessions[-5:] if not self.maybe(0.3) else sessions
        return sessions[self.pick(len(sessions))] if sessions else None


def _of(client: JobClient, run: Callable[[JobClient], None]) -> Callable[[Client], None]:
    return lambda _: run(client)


def create(client: JobClient) -> None:
    _create(client, KINDS[client.pick(len(KINDS))])


def create_late(client: JobClient) -> None:
    _create(client, "late")


def _create(client: JobClient, kind: str) -> None:
    payload = b"%d" % client.process.cluster.knobs.steps
    client.store.transact(lambda txn: client.process.jobs.create(txn, kind=kind, payload=payload))


def _control(statement: Callable[[Jobs, Transaction, int], None], client: JobClient) -> None:
    job = client.some_job()
    if job is not None:
        client.pause()
        client.store.transact(lambda txn: statement(client.process.jobs, txn, job))


def ask(client: JobClient) -> None:
    """Asks of somebody whether he lives: of the memory, and of the store."""
    session = client.some_session()
    if session is not None:
        client.process.deaths.is_dead(session)
        client.pause()
        client.process.deaths.is_alive(session)
        client.process.deaths.is_dead(session)


def await_death(client: JobClient) -> None:
    session = client.some_session()
    if session is not None:
        client.process.deaths.await_death(
            session, timeout=0.5 + 4.0 * client.tape.draw(f"{client.name}.past")
        )


def use_frontier(client: JobClient) -> None:
    """Does something that is right only while the session lives, and proves it by the frontier alone."""
    if client.process.version == OLDEST:
        return  # it knows of no sessions
    session = client.process.liveness.session()
    trace = client.job_trace

    def run(txn: Transaction) -> None:
        client.think()
        frontier = Frontier(trace.tick(), session.id, session.expires_at)
        txn.deadline_at = frontier.expires_at
        client.pause()
        txn.put(client.some_key(PLAIN), record_of(txn).next_value())
        trace.frontiers.append(frontier)
        trace.frontier_uses[record_of(txn).id] = frontier

    client.store.transact(run, attempts=3)


def observe(client: JobClient) -> None:
    """Observes the session, its own or another's, over several heartbeats, and writes."""
    session = client.process.liveness.session().id
    if client.maybe(0.3) or client.process.version == OLDEST:
        session = client.some_session() or session
    sessions, trace, tenant = client.process.sessions, client.job_trace, client.process.tenant

    def run(txn: Transaction) -> None:
        began = trace.tick()
        try:
            sessions.observe(txn, session)
        except SessionLost:
            trace.answers.append(Answer(began, trace.tick(), "observe", session, "dead", tenant))
            raise
        trace.answers.append(Answer(began, trace.tick(), "observe", session, "alive", tenant))
        client.think()
        client.think()
        txn.put(client.some_key(PLAIN), record_of(txn).next_value())

    client.store.transact(run, attempts=3)


def look(client: JobClient) -> None:
    """Lists jobs, as a statement would: every job has a control record, whatever its state."""
    client.store.transact(lambda txn: list(client.process.jobs.list(txn)), attempts=3)


SHAPES: dict[str, Callable[[JobClient], None]] = {
    "create": create,
    "create late": create_late,
    "pause": partial(_control, Jobs.request_pause),
    "resume": partial(_control, Jobs.resume),
    "cancel": partial(_control, Jobs.request_cancel),
    "ask": ask,
    "await death": await_death,
    "use frontier": use_frontier,
    "observe": observe,
    "look": look,
}

PROFILES: dict[str, dict[str, float]] = {
    "jobs": {
        "create": 2,
        "pause": 2,
        "resume": 2,
        "cancel": 1,
        "ask": 1,
        "await death": 0.5,
        "use frontier": 1,
        "observe": 1,
        "look": 0.3,
    },
    "busy jobs": {"create": 4, "pause": 3, "resume": 4, "cancel": 1},
    "late failures": {"create late": 1},
    "sessions": {"ask": 2, "await death": 1, "use frontier": 2, "observe": 2, "create": 0.5},
}
"""By name, beside those of the store."""
