"""The runs of jobs that are under way in this process, and the jobs that a transaction here walks itself.

Invariant (I24): in this process a job is not started before its previous run here has ended.

Walk: `cluster.jobs.runner` adds and removes runs and has them stopped; `cluster.jobs.adoption` asks which
jobs are taken.
"""

from tenure.base.env import Env
from tenure.cluster.jobs.job_records import Fence, JobControl
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.open_jobs import OpenJobs
from tenure.cluster.jobs.runs import Run
from tenure.cluster.sessions.session_records import SessionId


class ActiveRuns:
    def __init__(self, env: Env) -> None:
        self._lock = env.lock()
        self._runs: dict[int, Run] = {}
        self._reserved: set[int] = set()
        """Jobs that a transaction of this node claims and walks itself."""

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, id: int) -> bool:
        return id in self._runs

    def all(self) -> list[Run]:
        with self._lock:
            return list(self._runs.values())

    def unavailable_ids(self) -> set[int]:
        """Jobs that must not be adopted here now."""
        return self._reserved | self._runs.keys()

    def add(self, run: Run) -> None:
        with self._lock:
            assert run.job.id not in self._runs, "the former run has not ended"
            self._runs[run.job.id] = run

    def remove(self, run: Run) -> None:
        """May be called twice: an environment that runs a task at once raises the task's error from
        `spawn`.
        """
        with self._lock:
            self._runs.pop(run.job.id, None)

    def reserve(self, id: int) -> None:
        with self._lock:
            self._reserved.add(id)

    def unreserve(self, id: int) -> None:
        with self._lock:
            self._reserved.discard(id)

    def stop(self) -> None:
        for run in self.all():
            run.stop()

    def stop_session(self, session: SessionId) -> None:
        """Tells the runs that were claimed under a lost session to stop."""
        for run in self.all():
            if run.fence.session == session:
                run.stop()

    def stop_outdated(self, open_jobs: OpenJobs) -> None:
        """Tells runs whose fence is no longer valid in the store to stop; their writes would fail anyway."""
        for run in self.all():
            if is_outdated(run.fence, open_jobs.get(run.job.id)):
                run.stop()


def is_outdated(fence: Fence, control: JobControl | None) -> bool:
    """Whether a run must stop, according to the watched record of its job.

    The watch may be ahead of the run or behind it: the run's own steps are no reason to stop, nor is a
    control record from before its claim.
    """
    if control is None or control.run != fence.run:
        return control is None or control.run > fence.run
    return fence.state is JobState.RUNNING and control.state not in (JobState.RUNNING, JobState.REVERTING)
