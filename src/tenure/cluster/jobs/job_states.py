"""A job's states and the table of legal steps between them.

    pending ──► running ──► succeeded
       │  ▲       │  │
       │  │       │  ├─ pause-requested ──► paused ──► pending
       │  └ retry ┘  ├─ cancel-requested ─┐
       │             └─ (failure) ────────┴► reverting ──► canceled · failed · revert-failed
       └─ pause-requested, cancel-requested

Control statements write only the two request states and `pending` (resume); the node that claims the job
carries a request out. A terminal state is final.

Invariant (I25): every step is in the table; a terminal job is neither claimed nor written again.

Walk: `cluster.jobs.job_table` asks `check_step` before each write of a state.
"""

from enum import Enum

from tenure.base.errors import IllegalStep


class JobState(Enum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSE_REQUESTED = "pause-requested"
    PAUSED = "paused"
    CANCEL_REQUESTED = "cancel-requested"
    REVERTING = "reverting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    REVERT_FAILED = "revert-failed"


STEPS: dict[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.PAUSE_REQUESTED, JobState.CANCEL_REQUESTED}),
    JobState.RUNNING: frozenset(
        {
            JobState.PENDING,
            JobState.PAUSE_REQUESTED,
            JobState.CANCEL_REQUESTED,
            JobState.REVERTING,
            JobState.SUCCEEDED,
        }
    ),
    JobState.PAUSE_REQUESTED: frozenset({JobState.PAUSED, JobState.PENDING, JobState.CANCEL_REQUESTED}),
    JobState.PAUSED: frozenset({JobState.PENDING, JobState.CANCEL_REQUESTED}),
    JobState.CANCEL_REQUESTED: frozenset({JobState.REVERTING}),
    JobState.REVERTING: frozenset({JobState.CANCELED, JobState.FAILED, JobState.REVERT_FAILED}),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELED: frozenset(),
    JobState.REVERT_FAILED: frozenset(),
}

TERMINAL = frozenset(state for state, following in STEPS.items() if not following)

GIVEN_UP = frozenset(
    {
        JobState.CANCEL_REQUESTED,
        JobState.REVERTING,
        JobState.CANCELED,
        JobState.FAILED,
        JobState.REVERT_FAILED,
    }
)
"""States from which a job does not return to running: its effects so far are not wanted."""

CLAIMABLE = frozenset(STEPS) - TERMINAL - {JobState.PAUSED}
"""States in which a node has something to do."""


def check_step(job: int, former: JobState, state: JobState) -> None:
    if state not in STEPS[former]:
        raise IllegalStep(f"job {job} is {former.value} and cannot become {state.value}")
