"""Nodes that run jobs, as processes to be killed and stopped, and the verdict in the end.

    with JobFleet(run, "kill") as fleet:
        fleet.start_node("p0") ... fleet.kill_node("p0"), fleet.halt_node("p0", factor=5)
        fleet.settle(result)       no new jobs; waits until every job has come to an end
        fleet.judge(result)        reads the whole history, after the processes have ended

On PostgreSQL each fleet has a database of its own.

Walk: the scenarios (`job_kills`, `job_stops`, `dead_sessions`) use this; this uses `job_worker`
(as processes), `job_history` and `job_checker`.
"""

import random
import signal
import time
from dataclasses import replace
from types import TracebackType

import psycopg
from psycopg import sql

from tenure.base.env import SystemEnv
from tenure.base.errors import TenureError
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.sessions.session_records import SessionId, Sessions
from tenure.kv.store import Store
from tenure.storage.addresses import open_engine
from tests.faults.checker import Verdict
from tests.faults.harness import Fleet, Place, Result, Run, integrity, wait_for
from tests.faults.job_checker import Adoption, Halt, adoptions, check
from tests.faults.job_history import JobHistory, read_history
from tests.faults.job_worker import FAILURE

NODES = ("p0", "p1", "p2")
TTL_SECONDS, HEARTBEAT_SECONDS = 1.5, 0.2
ADOPTION_SLACK_SECONDS = 2.0
"""How long after one ttl a job of a dead node may still wait for its next claim."""

EFFECT = b'{"e":"effect"'
PLANNED_FAILURE = f"ArithmeticError: {FAILURE}"
SETTLE_SECONDS_MAX = 60.0
LOAD = ("--create-seconds", "0.05")


class JobFleet(Fleet):
    def __init__(
        self, run: Run, name: str, *, ttl: float = TTL_SECONDS, heartbeat: float = HEARTBEAT_SECONDS
    ) -> None:
        self.ttl_seconds = ttl
        self._heartbeat_seconds = heartbeat
        self.halts: list[Halt] = []
        self.history = JobHistory()
        super().__init__(own_place(run, f"jobs_{name}"), run.seed)

    def _set_up(self) -> None:
        self.store = Store(open_engine(self.place.address, SystemEnv()), SystemEnv())
        self.sessions = Sessions(self.store.keyspace)
        self.jobs = Jobs(self.store.keyspace, self.sessions, self.store.clock)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        try:
            self.store.close()
        except TenureError:
            pass  # the store may be away, and is not needed any more
        self.store.engine.close()
        remove(self.place)

    # ── processes ──────────────────────────────────────────────────────────────────────────────

    def start_node(self, name: str, *more: str) -> None:
        times = ("--ttl", str(self.ttl_seconds), "--heartbeat", str(self._heartbeat_seconds))
        self._launch("tests.faults.job_worker", name, "", (*times, *more))

    def process(self, name: str) -> str:
        return f"{name}.{self._incarnations[name]}"

    def kill_node(self, name: str) -> None:
        self.halts.append(Halt(self.process(name), _wall_micros()))
        self.kill(name)

    def halt_node(self, name: str, *, factor: float) -> None:
        """Stops a node for so many ttls, and wakes it."""
        micros = _wall_micros()
        self.signal(name, signal.SIGSTOP)
        time.sleep(factor * self.ttl_seconds)
        woken_micros = _wall_micros()
        self.signal(name, signal.SIGCONT)
        self.halts.append(Halt(self.process(name), micros, factor, woken_micros))

    def require_effects(self, result: Result, names: tuple[str, ...], when: str) -> None:
        """Each of these processes must have effects again without being restarted."""
        before = self.lengths()
        goes_on = wait_for(lambda: all(self.count(EFFECT, before, name) for name in names), 30)
        result.require(goes_on, f"not every node runs jobs again {when}")

    # ── the end ────────────────────────────────────────────────────────────────────────────────

    def settle(self, result: Result) -> None:
        """Lets all jobs come to an end, paused ones too, and ends the processes."""
        (self.place.directory / "quiet").touch()
        ended = wait_for(self._is_settled, SETTLE_SECONDS_MAX)
        result.require(ended, f"not every job has ended: {self._open_jobs()[:5]}")
        self.stop()

    def _is_settled(self) -> bool:
        time.sleep(0.1)
        try:
            for id, state in self._open_jobs():
                if state in (JobState.PAUSED, JobState.PAUSE_REQUESTED):
                    self.store.transact(lambda txn, id=id: self.jobs.resume(txn, id))  # type: ignore[misc]
            return not self._open_jobs()
        except TenureError:
            return False  # it went on meanwhile, or the store is away: look again

    def _open_jobs(self) -> list[tuple[int, JobState]]:
        return [(control.id, control.state) for control in self.jobs.open(self.store.snapshot())]

    def judge(self, result: Result) -> Verdict:
        self.history = read_history(self.store)
        verdict = check(self.history, self.events(), self.halts)
        if self.place.engine == "sqlite":
            self._troubles += integrity(self.place.path)
        result.violations += [*self._troubles, *verdict.violations]
        if self._troubles:
            result.violations.append((self.place.directory / "errors").read_text()[-2000:])
        counts = verdict.counts
        result.counts |= {"jobs": len(self.history.jobs)}
        for name in ("effects", "undone", "canceled", "failed", "sessions"):
            if counts[name]:
                result.counts[name] = counts[name]
        result.require(counts["effects"] > 0, "no job had any effect")
        self._require_no_bugs(result)
        return verdict

    def _require_no_bugs(self, result: Result) -> None:
        """Errors of our own tree say all in a line; a traceback is a bug, or a job made to fail."""
        errors = (self.place.directory / "errors").read_text()
        bugs = errors.count("Traceback (most recent call last)") - errors.count(f"\n{PLANNED_FAILURE}")
        result.require(bugs <= 0, f"{bugs} tracebacks of no planned failure, the last: {errors[-1500:]}")

    def sessions_of(self, process: str) -> list[SessionId]:
        """Under which sessions a process lived, by its own word."""
        events = next((events for name, events in self.events() if name == process), [])
        named = [SessionId(*event["session"]) for event in events if "session" in event]
        return list(dict.fromkeys(named))

    def adoptions(self, halt: Halt) -> list[Adoption]:
        held_by = [each for each in self.sessions_of(halt.process) if each.epoch_at < halt.at]
        return adoptions(self.history, halt, held_by)

    def require_adoption(self, result: Result, halts: list[Halt], name: str = "adopted s") -> None:
        """The jobs of each of these nodes must have a new claim within ttl + slack."""
        bound = self.ttl_seconds + ADOPTION_SLACK_SECONDS
        found = [(halt, each) for halt in halts for each in self.adoptions(halt)]
        late = [(halt, each) for halt, each in found if each.seconds is None or each.seconds > bound]
        for halt, each in late[:5]:
            result.violations.append(f"adoption: job {each.job} of {halt.process} took {each.seconds} s")
        seconds = sorted(each.seconds for _, each in found if each.seconds is not None)
        if seconds:
            result.counts[name] = distribution(seconds)


def distribution(seconds: list[float]) -> str:
    """min / median / p90 / max of sorted values, and how many there are."""
    shown = [seconds[0], *(seconds[int(len(seconds) * part)] for part in (0.5, 0.9)), seconds[-1]]
    return "/".join(f"{each:.2f}" for each in shown) + f" of {len(seconds)}"


def _wall_micros() -> int:
    return time.time_ns() // 1000


def own_place(run: Run, name: str) -> Place:
    """A place for nodes: on PostgreSQL a database of its own, which `remove` takes away."""
    place = run.place(name)
    if place.server is None:
        return place
    database = f"{name}_{random.SystemRandom().randrange(1 << 32):08x}"
    with psycopg.connect(place.server.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
    return replace(place, address=f"postgresql://postgres@127.0.0.1:{place.server.port}/{database}")


def remove(place: Place) -> None:
    """Takes the database away, so that repeated runs do not fill the disk."""
    if place.server is None:
        return
    database = sql.Identifier(place.address.rpartition("/")[2])
    try:
        with psycopg.connect(place.server.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
    except psycopg.Error:
        pass
