"""The stored records of a job, and the fence that a run of it carries.

Format 2 of a control keeps errors as a `JobError` each; format 1 kept the text that SHOW JOBS shows.

Walk: `cluster.jobs.job_table` stores them, `cluster.jobs.claims` decides who holds one.
"""

from typing import Any, NamedTuple

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.cluster.jobs.job_errors import JobError, from_text
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import Keyspace
from tenure.kv.records import Record, Records

NOBODY = SessionId(0, ZERO_AT)

CONTROL_FORMAT = 2


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
    """Attempts that failed for a passing reason since the last one that made progress."""
    retry_at: Timestamp = ZERO_AT
    started_at: Timestamp = ZERO_AT
    finished_at: Timestamp = ZERO_AT
    error: JobError | None = None
    """The error of the last failed attempt."""
    errors: tuple[JobError, ...] = ()
    """The errors of the last attempts, shortened; the oldest first."""
    canceled: bool = False
    """Whether it reverts because a user canceled it: decides its terminal state."""
    lease_instance: int = 0
    """The holder in version 1: see `version_one.old_claims`."""
    needs: tuple[str, ...] = ()
    """The resources that a process must have to run it, such as "spark". Pausing, canceling and reverting
    need none.
    """

    @property
    def error_text(self) -> str:
        """The text that SHOW JOBS shows; empty without an error."""
        return "" if self.error is None else self.error.text

    @property
    def claim(self) -> SessionId:
        return SessionId(self.claim_instance, self.claim_epoch_at)


def control_records(keyspace: Keyspace, table: int) -> Records[JobControl]:
    upgrades = {1: _with_structured_errors}
    return Records(keyspace, table, JobControl, key=("id",), format=CONTROL_FORMAT, upgrades=upgrades)


def _with_structured_errors(fields: list[Any]) -> list[Any]:
    error, errors = fields[_ERROR], fields[_ERROR + 1]
    fields[_ERROR] = from_text(error) if error else None
    fields[_ERROR + 1] = [from_text(each) for each in errors]
    return fields


_ERROR = JobControl.__struct_fields__.index("error")


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
