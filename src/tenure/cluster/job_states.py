"""A job's states and the table of legal steps between them.

    pending ──► running ──► succeeded
       │  ▲       │  │
       │  │       │  ├─ pause-requested ──► paused ──► pending
       │  └ retry ┘  ├─ cancel-requested ─┐
       │             └─ (failure) ────────┴► reverting ──► canceled · failed · revert-failed
       └─ pause-requested, cancel-requested

Control statements write only the two request states and `pending` (resume); whoever claims the
job carries a request out. Terminal is final.

Invariant (I25): every step is in the table; a terminal job is neither claimed nor written again.

Walk: `cluster.jobs` asks `check_step` before each write of a state.
"""

from enum import Enum

from tenure.base.errors import UserError


class State(Enum):
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


STEPS: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.RUNNING, State.PAUSE_REQUESTED, State.CANCEL_REQUESTED}),
    State.RUNNING: frozenset(
        {
            State.PENDING,
            State.PAUSE_REQUESTED,
            State.CANCEL_REQUESTED,
            State.REVERTING,
            State.SUCCEEDED,
        }
    ),
    State.PAUSE_REQUESTED: frozenset({State.PAUSED, State.PENDING, State.CANCEL_REQUESTED}),
    State.PAUSED: frozenset({State.PENDING, State.CANCEL_REQUESTED}),
    State.CANCEL_REQUESTED: frozenset({State.REVERTING}),
    State.REVERTING: frozenset({State.CANCELED, State.FAILED, State.REVERT_FAILED}),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELED: frozenset(),
    State.REVERT_FAILED: frozenset(),
}

TERMINAL = frozenset(state for state, following in STEPS.items() if not following)

GIVEN_UP = frozenset(
    {State.CANCEL_REQUESTED, State.REVERTING, State.CANCELED, State.FAILED, State.REVERT_FAILED}
)
"""States from which no job comes back: nobody wants what it has made so far."""

CLAIMABLE = frozenset(STEPS) - TERMINAL - {State.PAUSED}
"""States in which somebody has something to do."""


class IllegalStep(UserError):
    sqlstate = "55000"


def check_step(job: int, former: State, state: State) -> None:
    if state not in STEPS[former]:
        raise IllegalStep(f"job {job} is {former.value} and cannot become {state.value}")
