"""What is stored of a job, and the fence that a run of it carries.

Walk: `cluster.jobs.job_table` keeps them, `cluster.jobs.claims` says who holds one.
"""

from typing import NamedTuple

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.records import Record

NOBODY = SessionId(0, ZERO_AT)

DETAIL = "\nDETAIL:  "
"""What stands before an error's detail in what a job's record says of it."""


class Job(Record, frozen=True):
    id: int
    kind: str
    owner: str
    description: str
    payload: bytes
    created_at: Timestamp


class JobControl(Record, frozen=True):
    id: int
    kind: str
    state: JobState = JobState.PENDING
    claim_instance: int = 0
    claim_epoch_at: Timestamp = ZERO_AT
    run: int = 0
    attempts: int = 0
    """Attempts that failed for a passing reason since the last one that got anywhere."""
    retry_at: Timestamp = ZERO_AT
    started_at: Timestamp = ZERO_AT
    finished_at: Timestamp = ZERO_AT
    error: str = ""
    errors: tuple[str, ...] = ()
    canceled: bool = False
    """Whether it reverts because somebody canceled it: says how it will end."""
    lease_instance: int = 0
    """Who holds it by the older way: see `cluster.sessions.expiring_liveness`."""
    needs: tuple[str, ...] = ()
    """What a process must have to run it, such as "spark". To pause, cancel or revert it takes nothing."""

    @property
    def claim(self) -> SessionId:
        return SessionId(self.claim_instance, self.claim_epoch_at)


class JobProgress(Record, frozen=True):
    id: int
    fraction: float = 0.0
    status: str = ""
    data: bytes = b""


class Fence(NamedTuple):
    job: int
    session: SessionId
    run: int
    state: JobState
