"""One attempt at a job: what its failure means for the job, and when the next attempt is due.

    a conflict, a store that is away             passing: tried again, after a pause that doubles
    no space, no permission                      tried again as often as the kind allows, then failed
    history that is gone                         tried again a few times, then failed; a revert is tried again
    any other error                              the job has failed, and is reverted

A job that fails for want of space is reverted like any other: its tables come back, and the waiting statement
is told why. Retrying for longer would keep the tables offline until an operator notices.

What a job reads for long it protects; everything else it reads as of now. If its process stands still for
longer than history is kept, such a read finds it gone: the next attempt reads anew.

Walk: `cluster.jobs.execution` calls `attempt` for a job's function and for its revert.
"""

import logging
from collections.abc import Callable

from tenure.base.errors import (
    DiskFull,
    FenceLost,
    NoPermission,
    OutcomeUnknown,
    RetryError,
    SessionLost,
    SnapshotTooOld,
    StoreError,
    TenureError,
    for_operator,
)
from tenure.base.retries import grown_seconds
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.runs import JobKind, Lacking, Run, Stopped

RETRY_SECONDS, RETRY_SECONDS_MAX = 1.0, 300.0
"""Pauses after an attempt that failed for a passing reason: doubled each time, up to the second."""

PASSING = (RetryError, StoreError, OutcomeUnknown)
"""Failures that say nothing about the job: the store was away, or another transaction was in the way."""

BLOCKED = (DiskFull, NoPermission)
"""Of these, those that last until an operator acts: a kind says how often they are retried."""

BLOCKED_ATTEMPTS_MAX = 5
"""For jobs that a client waits for: 15 s of pauses, in which another job may free space."""

OLD_READ_ATTEMPTS_MAX = 3
"""How often a job is tried that finds history gone: if it was not the process that stood still, it fails."""

ENDLESS = JobKind(lambda run: None)
"""Retries for ever, as a revert does."""

_log = logging.getLogger(__name__)


def attempt(work: Callable[[Run], None], run: Run, kind: JobKind = ENDLESS) -> JobError | None:
    """Runs a job's function; returns the error of the job itself, if any."""
    try:
        work(run)
        return None
    except (RetryError, *BLOCKED) as error:
        is_blocked = isinstance(error, BLOCKED)
        attempts_max = kind.blocked_attempts_max if is_blocked else kind.attempts_max
        if attempts_max is None or run.attempts + 1 < attempts_max:
            raise
        _log.warning("job %d failed, tried %d times: %s", run.job.id, attempts_max, for_operator(error))
        return JobError.of(error)
    except SnapshotTooOld as error:
        if run.is_stopped():
            raise Stopped from error
        if kind is not ENDLESS and run.attempts + 1 >= OLD_READ_ATTEMPTS_MAX:
            _log.warning("job %d failed: %s", run.job.id, for_operator(error))
            return JobError.of(error)
        raise RetryError(str(error)) from error
    except (FenceLost, SessionLost, Stopped, Lacking, *PASSING):
        raise
    except Exception as error:
        if run.is_stopped():
            raise Stopped from error  # an error of a stopped function says nothing about the job
        # An error of our own tree says everything in its message; any other is a bug, so its traceback is
        # logged.
        is_expected = isinstance(error, TenureError)
        _log.warning("job %d failed: %s", run.job.id, for_operator(error), exc_info=not is_expected)
        return JobError.of(error)


def retry_seconds(attempts: int) -> float:
    return grown_seconds(attempts, RETRY_SECONDS, RETRY_SECONDS_MAX)
