"""Adopting jobs: which may be claimed now, and claiming them.

A job is adopted if nobody claims it, if its claiming session is proved gone, or if this very session claims
it but no run of it is under way here (its task ended without a step, or a request came).

Jobs without a holder are claimed several in one transaction, which starts from the watched records: its
commit is refused if another node has claimed one first. Then none is claimed; the next attempt is for half as
many and begins at a random place among the oldest, until no claim was contested for a while. The values as of
a claim's commit are handed to its runs: the last step of a run that did nothing else needs no read. In either
case the fence is read and validated like everything else.

Walk: `cluster.jobs.runner` calls `candidates`, `adopt` and `adopt_free`; this calls `Jobs.claim` and makes
the `Run`.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from tenure.base.errors import RetryError, TooEarly
from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.active_runs import ActiveRuns
from tenure.cluster.jobs.job_holders import JobHolders
from tenure.cluster.jobs.job_records import Fence, Job, JobControl, JobProgress
from tenure.cluster.jobs.job_table import Jobs
from tenure.cluster.jobs.open_jobs import OpenJobs
from tenure.cluster.jobs.runs import Run
from tenure.cluster.sessions.liveness import NodeSession
from tenure.kv.scope import ReadAhead
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction

ADOPTED_MAX = 16
"""Claims per step, so that one node does not claim a whole backlog while others are idle."""

WINDOW = 64 * ADOPTED_MAX
"""The number of oldest free jobs among which a node begins at random: room for as many nodes as clusters
have.
"""

UNCONTESTED = 16
"""After so many uncontested claims in a row, a node begins with the oldest again."""

RUNS_MAX = 32
"""Runs at a time in one process."""


class Candidates(NamedTuple):
    held: list[JobControl]
    """Claimed by a session that is gone, or by this one without a run."""
    free: list[JobControl]


class Adoption:
    def __init__(self, store: Store, jobs: Jobs, holders: JobHolders, active: ActiveRuns) -> None:
        self._store = store
        self._jobs = jobs
        self._holders = holders
        self._active = active
        self._claims_max = ADOPTED_MAX
        self._contested = 0
        """How many uncontested claims are left until it begins with the oldest again."""

    def candidates(self, open_jobs: OpenJobs, session: NodeSession, busy: frozenset[int]) -> Candidates:
        """The jobs that may be adopted now, as far as there is room."""
        room = min(ADOPTED_MAX, RUNS_MAX - len(self._active))
        unavailable = busy | self._active.unavailable_ids()
        held = list(islice(_idle(self._available(open_jobs, session), unavailable), room))
        first = 0
        if self._contested:
            first = int(self._store.env.rng.random() * min(WINDOW, open_jobs.count_free()))
        free = _idle(open_jobs.free(first=first, window=WINDOW), unavailable)
        return Candidates(held, list(islice(free, min(self._claims_max, room - len(held)))))

    def _available(self, open_jobs: OpenJobs, session: NodeSession) -> Iterator[JobControl]:
        now_at = self._store.clock.now()
        for holder in open_jobs.holders():
            if self._holders.is_available(open_jobs, holder, session, now_at):
                yield from open_jobs.of(holder).values()

    def adopt(self, session: NodeSession, control: JobControl) -> Run | None:
        """Claims a job that has a holder; None if another node was first."""
        txn = self._store.begin()
        try:
            fence = self._jobs.claim(txn, control.id, session.id)
            job = self._jobs.get(txn, control.id)
            progress = self._jobs.progress(txn, control.id)
            if fence is None:
                return None  # the watch will report it
            assert job is not None, "a control record has no job"
            txn.commit()
        except (RetryError, TooEarly):
            return None
        finally:
            txn.rollback()
        return self._make_run(control, job, progress, fence)

    def adopt_free(
        self, session: NodeSession, controls: list[JobControl], resolved_at: Timestamp
    ) -> Iterator[Run]:
        """Claims jobs without a holder in one transaction, from the watched records as of `resolved_at`.

        The caller starts each run before it asks for the next.
        """
        jobs = self._jobs.among(self._store.snapshot(), [control.id for control in controls])
        # A job without a record has ended and was deleted meanwhile; the watch will report it.
        controls = [control for control in controls if control.id in jobs]
        read_ahead = ReadAhead(resolved_at, dict(map(self._jobs.encode_control, controls)))

        def claim(txn: Transaction) -> tuple[Transaction, list[Fence | None]]:
            return txn, [self._jobs.claim(txn, control.id, session.id) for control in controls]

        try:
            txn, fences = self._store.transact(claim, attempts=1, read_ahead=read_ahead)
        except RetryError:
            self._claims_max, self._contested = max(1, self._claims_max // 2), UNCONTESTED
            return
        self._claims_max = min(ADOPTED_MAX, 2 * self._claims_max)
        self._contested = max(0, self._contested - 1)
        for control, fence in zip(controls, fences, strict=True):
            if fence is not None:
                yield self._make_run(
                    control, jobs[control.id], self._progress(control), fence, txn.values_at_commit()
                )

    def _progress(self, control: JobControl) -> JobProgress:
        if not control.run:
            return JobProgress(control.id)  # a job that never ran has no progress
        return self._jobs.progress(self._store.snapshot(), control.id)

    def _make_run(
        self,
        control: JobControl,
        job: Job,
        progress: JobProgress,
        fence: Fence,
        read_ahead: ReadAhead | None = None,
    ) -> Run:
        needs, attempts = control.needs, control.attempts
        return Run(
            self._store,
            self._jobs,
            job,
            progress,
            fence,
            needs=needs,
            attempts=attempts,
            read_ahead=read_ahead,
        )


def _idle(controls: Iterable[JobControl], unavailable: set[int] | frozenset[int]) -> Iterator[JobControl]:
    return (each for each in controls if each.id not in unavailable)
