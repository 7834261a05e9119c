"""The runner: adopts open jobs and runs each exactly once at a time.

    watch of open jobs ──► in memory ──► claim ──► a task of its own: Run
    a claim's session expires ─► delete it ─► claim what it held
    a control record changes under a run ─► the run is told to stop

    open_jobs      the open jobs, in memory
    job_holders    the holders of jobs, and whether each still holds them
    adoption       which jobs may be claimed now; claiming them
    active_runs    the runs under way here
    execution      one run: the kind's function, and how it ends
    runner         following the watch, pacing, starting and stopping

A follower keeps the open jobs in memory, so that a step reads only what has changed. Its watch spaces its
reads, which bounds the number of steps in a second. The runner wakes by watch, at the earliest expiry of a
session that holds a claim, when a retry is due, and at the slow poll.

Walk: `composition.background` runs `step` in a loop; `step` -> `Adoption.adopt_free` -> `_start` ->
`JobExecution.execute`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tenure.base.settings import JOBS_ADOPT_INTERVAL, Settings
from tenure.base.timestamp import Timestamp, seconds_between
from tenure.cluster.jobs.active_runs import ActiveRuns
from tenure.cluster.jobs.adoption import Adoption, Candidates
from tenure.cluster.jobs.execution import JobExecution
from tenure.cluster.jobs.job_holders import JobHolders
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.open_jobs import OpenJobs
from tenure.cluster.jobs.runs import JobKind, Run
from tenure.cluster.sessions.deaths import Deaths
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.follower import Follower
from tenure.kv.snapshot import Snapshot
from tenure.kv.store import Store
from tenure.storage.engine import Revision

SPACING_SECONDS = 0.01
"""The time between two steps. Runs that end meanwhile are replaced together; a hundred steps a second are
plenty.
"""

DRAIN_SECONDS = 0.02
"""How often a drain checks whether the runs have ended."""


class JobRunner:
    def __init__(
        self,
        store: Store,
        session: Callable[[], NodeSession],
        deaths: Deaths,
        jobs: Jobs,
        kinds: Mapping[str, JobKind],
        settings: Callable[[], Settings],
        *,
        has: Iterable[str] = (),
    ) -> None:
        self._store = store
        self._session = session
        self._jobs = jobs
        self._has = frozenset(has)
        self._kinds = dict(kinds)
        self._settings = settings
        self._open = OpenJobs(self._kinds, has=self._has)
        self._active = ActiveRuns(store.env)
        self._holders = JobHolders(store, deaths, jobs)
        self._adoption = Adoption(store, jobs, self._holders, self._active)
        self._execution = JobExecution(store, jobs, self._kinds, lambda: self._draining)
        self._follower = Follower(
            store, [jobs.open_span()], self._load, self._apply, spacing_seconds=SPACING_SECONDS
        )
        self._draining = False
        self._due = 0.0

    def step(self) -> float:
        """Waits for changes or due times, notes the changes, and adopts available jobs.

        Bounded by the slow poll; a loop calls it again at once.
        """
        # Read before the jobs: a run that has ended by then is shown as ended.
        busy = frozenset(run.job.id for run in self._active.all())
        self._follow(max(0.0, self._due - self._store.env.monotonic()))
        pause_seconds: float = self._settings()[JOBS_ADOPT_INTERVAL]
        if not self._draining:
            session = self._session()
            due = self._holders.look(self._open, session)
            self._adopt(session, self._candidates(session, busy))
            pause_seconds = min(pause_seconds, self._pause(session, busy, due))
        self._due = self._store.env.monotonic() + pause_seconds
        return 0.0

    def wake(self) -> None:
        """Ends a step's wait: a run has ended, or the node is stopping."""
        self._due = 0.0
        self._follower.wake()

    # ── the open jobs ───────────────────────────────────────────────────────────────────────────

    def _follow(self, seconds: float) -> None:
        self._follower.step(seconds)
        self._active.stop_outdated(self._open)

    def _load(self, snapshot: Snapshot) -> None:
        self._open = OpenJobs(self._kinds, self._jobs.open(snapshot), has=self._has)

    def _apply(self, revisions: Sequence[Revision]) -> None:
        for key, _, value in revisions:
            control = None if value is None else self._jobs.decode_control(value)
            self._open.note(self._jobs.id_of(key), control)

    def lacks(self, need: str) -> bool:
        """Whether a job waits for a process that has this resource, according to the watch."""
        return self._open.lack(need)

    # ── adopting and running ───────────────────────────────────────────────────────────────────

    def _candidates(self, session: NodeSession, busy: frozenset[int]) -> Candidates:
        return self._adoption.candidates(self._open, session, busy)

    def _adopt(self, session: NodeSession, candidates: Candidates) -> None:
        for control in candidates.held:
            run = self._adoption.adopt(session, control)
            if run is not None:
                self._start(session, run)
        if candidates.free:
            for run in self._adoption.adopt_free(session, candidates.free, self._follower.resolved_at):
                self._start(session, run)

    def _start(self, session: NodeSession, run: Run) -> None:
        self._active.add(run)
        if session.done.is_set():
            run.stop()  # `end_session` may have run before this run existed
        try:
            self._store.env.spawn(f"job {run.job.id}", lambda: self._run(run))
        except BaseException:
            self._active.remove(run)
            raise

    def _run(self, run: Run) -> None:
        try:
            self._execution.execute(run)
        finally:
            self._active.remove(run)
            self.wake()

    def _pause(self, session: NodeSession, busy: frozenset[int], due: list[Timestamp]) -> float:
        """Seconds to the next step: none if there is more to adopt, or a run has ended since the look."""
        if any(self._candidates(session, busy)) or any(id not in self._active for id in busy):
            return 0.0
        now_at = self._store.clock.now()
        return min((seconds_between(now_at, at) for at in due), default=float("inf"))

    def reserve(self, id: int) -> None:
        """Keeps this node from adopting a job that a transaction here claims under the node's session."""
        self._active.reserve(id)

    def unreserve(self, id: int) -> None:
        """Called when the transaction is over: the job may be adopted like any other."""
        self._active.unreserve(id)
        self.wake()

    # ── ending ─────────────────────────────────────────────────────────────────────────────────

    def is_idle(self) -> bool:
        return not self._active.all()

    def end_session(self, session: NodeSession) -> None:
        """Called when the session is gone: stops everything claimed under it."""
        self._active.stop_session(session.id)

    def drain(self, *, timeout: float) -> bool:
        """Stops adopting, stops all runs and waits for them; returns whether all have ended."""
        self._draining = True
        self.wake()
        env = self._store.env
        deadline = env.monotonic() + timeout
        while not self.is_idle():
            self._active.stop()
            if env.monotonic() >= deadline:
                return False
            env.sleep(DRAIN_SECONDS)
        return True
