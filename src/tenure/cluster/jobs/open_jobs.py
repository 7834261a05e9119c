"""The open jobs in a runner's memory, indexed so that a step costs what changed and not what is open.

    all open ──┬── nothing for this process: another kind, paused          by id alone
               ├── of a kind it knows, but needs what it has not           by id, for starting a worker
               ├── to be tried again at a time                             in a heap, until then
               └── the rest, by holder ──┬── nobody    free to claim, the oldest first
                                         └── a session, an instance        asked once for all its jobs

A holder is the one that the record names; whether it is alive is not known here.

Walk: `cluster.jobs.runner` notes changes from its watch, and takes jobs to adopt from here.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import chain, islice
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.job_records import NOBODY, JobControl
from tenure.cluster.jobs.job_states import CLAIMABLE, JobState
from tenure.cluster.sessions.session_records import SessionId


class JobHolder(NamedTuple):
    claim: SessionId
    lease: int


RUNNABLE = (JobState.PENDING, JobState.RUNNING)

FREE = JobHolder(NOBODY, NOBODY.instance)


class OpenJobs:
    def __init__(
        self,
        kinds: Container[str],
        controls: Iterable[JobControl] = (),
        *,
        has: frozenset[str] = frozenset(),
    ) -> None:
        self._kinds = kinds
        self._has = has
        self._lacking: dict[int, tuple[str, ...]] = {}
        self._controls: dict[int, JobControl] = {}
        self._by_holder: dict[JobHolder, dict[int, JobControl]] = {}
        self._later: list[tuple[Timestamp, int]] = []
        for control in controls:
            self.note(control.id, control)

    def note(self, id: int, control: JobControl | None) -> None:
        """Notes the current control record of a job; None if the job is over."""
        former = self._controls.pop(id, None)
        self._lacking.pop(id, None)
        if former is not None:
            self._take_out(former)
        if control is None:
            return
        self._controls[id] = control
        if self._is_lacking(control):
            self._lacking[id] = control.needs
        if control.retry_at and self._is_wanted(control):
            heappush(self._later, (control.retry_at, id))
        else:
            self._put_in(control)

    def take_due(self, now_at: Timestamp) -> None:
        """Moves the jobs whose retry is due to those of their holder."""
        while self._later and self._later[0][0] <= now_at:
            retry_at, id = heappop(self._later)
            control = self._controls.get(id)
            if control is not None and control.retry_at == retry_at:  # else it was noted again since
                self._put_in(control)

    def next_retry_at(self) -> Timestamp | None:
        """When to look again; may be too early, never too late."""
        return self._later[0][0] if self._later else None

    def get(self, id: int) -> JobControl | None:
        return self._controls.get(id)

    def free(self, *, first: int = 0, window: int) -> Iterator[JobControl]:
        """Jobs without a holder: so many of the oldest, beginning at `first` among them."""
        controls = list(islice(self.of(FREE).values(), window))
        return chain(islice(controls, first, None), islice(controls, first))

    def count_free(self) -> int:
        return len(self.of(FREE))

    def of(self, holder: JobHolder) -> Mapping[int, JobControl]:
        return self._by_holder.get(holder, {})

    def holders(self) -> list[JobHolder]:
        """The holders of jobs that this process could run."""
        return [holder for holder in self._by_holder if holder != FREE]

    def lack(self, need: str) -> bool:
        """Whether a runnable job waits for a process that has this resource."""
        # A copy: another thread may add some meanwhile.
        return any(need in needs for needs in tuple(self._lacking.values()))

    def _is_wanted(self, control: JobControl) -> bool:
        is_ours = control.kind in self._kinds and control.state in CLAIMABLE
        return is_ours and not self._is_lacking(control)

    def _is_lacking(self, control: JobControl) -> bool:
        """Whether it could run, but not here. Pausing, canceling and reverting a job need no resource."""
        return control.state in RUNNABLE and not self._has.issuperset(control.needs)

    def _put_in(self, control: JobControl) -> None:
        if self._is_wanted(control):
            self._by_holder.setdefault(_holder(control), {})[control.id] = control

    def _take_out(self, control: JobControl) -> None:
        holder = _holder(control)
        jobs = self._by_holder.get(holder, {})
        jobs.pop(control.id, None)
        if not jobs:
            self._by_holder.pop(holder, None)


def _holder(control: JobControl) -> JobHolder:
    return JobHolder(control.claim, control.lease_instance)
