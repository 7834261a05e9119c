"""The status of a job in words: what it does or waits for.

    nobody has what it needs         waits for a process with spark: Spark needs Java, and there is none ...
    it is to be tried again later    waits until 10:00:03 UTC to be tried again, after 2 attempts that failed
    transactions use what it changes waits for transactions that use the former version of t
    nobody has taken it yet          waits for a node to adopt it
    it runs, or has ended            what its last run said, or that it has begun

Walk: `tables.node` shows it; `statements.jobs.waiting_statements` asks `is_lacking` for a statement that
waits for the job.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from tenure.base.timestamp import micros_of
from tenure.catalog.descriptors.definitions import AnyDescriptor, EnumType, Table
from tenure.catalog.leases.wait_records import LeaseWait
from tenure.cluster.jobs.job_records import NOBODY, JobControl, JobProgress
from tenure.cluster.jobs.job_states import TERMINAL, JobState


def running_status(
    control: JobControl, progress: JobProgress, trouble: str, awaited: Sequence[str] = ()
) -> str:
    """`trouble` is why this node cannot start a process for jobs; `awaited` are the objects whose former
    version transactions still use."""
    if control.state in TERMINAL:
        return progress.status
    if awaited:
        names = ", ".join(awaited)
        return f"waits for transactions that use the former version of {names}: see SHOW BLOCKERS"
    if control.claim != NOBODY:
        return progress.status or "has begun"
    if control.attempts and control.retry_at:
        until = datetime.fromtimestamp(micros_of(control.retry_at) / 1_000_000, UTC)
        count = f"{control.attempts} attempt{'' if control.attempts == 1 else 's'}"
        why = f": {control.errors[-1].text}" if control.errors else ""
        return f"waits until {until:%H:%M:%S} UTC to be tried again, after {count} that failed{why}"
    if is_lacking(control):
        waits = f"waits for a process with {', '.join(control.needs)}"
        return f"{waits}: {trouble}" if trouble else waits
    return progress.status or ("waits for a node to adopt it" if control.state is JobState.PENDING else "")


def fraction(control: JobControl, progress: JobProgress) -> float:
    """How much of it is done; the last step of one that succeeded is never reported by its run."""
    return 1.0 if control.state is JobState.SUCCEEDED else progress.fraction


def awaited_by_job(
    waits: Iterable[LeaseWait], descriptor: Callable[[int], AnyDescriptor | None]
) -> dict[int, list[str]]:
    """The names of the objects that jobs wait for, by job."""
    found: dict[int, list[str]] = {}
    for wait in waits:
        for each in wait.awaited:
            changed = descriptor(each.descriptor)
            if isinstance(changed, Table | EnumType) and changed.job:
                names = found.setdefault(changed.job, [])
                if changed.name not in names:
                    names.append(changed.name)
    return found


def is_lacking(control: JobControl) -> bool:
    """Whether it could run, but no process has what it needs."""
    return control.state is JobState.PENDING and bool(control.needs) and control.claim == NOBODY
