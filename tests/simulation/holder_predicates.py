"""Who holds a job, by whichever way, and that it moves only from those who are gone: I22 and the old lease.

    way       holds by                         is gone when
    session   its session                      the session is deleted
    mixed     its session and its lease        the session is deleted, or its old heartbeat has run out
    old       its lease                        its instance is deleted, or its old heartbeat has run out

A holder is taken from the recorded claims, not from the columns of the job: so it does not matter
whether the next one knew where to look.

Walk: `job_predicates.check` runs each of `PREDICATES` over a `JobIndex`.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.cluster.jobs.job_table import NOBODY, JobControl
from tenure.cluster.sessions.session_records import SessionId
from tenure.cluster.sessions.versions import PROGRAM
from tests.simulation.job_history import JobIndex
from tests.simulation.predicates import Violation
from tests.simulation.trace import Version


class Holder(NamedTuple):
    session: SessionId
    way: str
    since_at: Timestamp
    process: str


def claims(index: JobIndex) -> Iterator[Violation]:
    """I22: a job moves only where the former holder is gone; who takes it is there."""
    for job in index.rows:
        holder: Holder | None = None
        for version, before, after in index.states(job):
            if before is None or after is None:
                continue
            if version.writer.id in index.trace.claims:
                taker = _taker(index, version)
                yield from _judge_taking(index, job, version, before, holder, taker)
                yield from _judge_columns(job, version, after, taker)
                holder = taker
            elif _held(after) != _held(before):
                yield from _judge_letting_go(index, job, version, after, holder)
                holder = None


def _taker(index: JobIndex, version: Version) -> Holder:
    txn = version.writer
    return Holder(
        index.trace.claims[txn.id], index.trace.ways[txn.id], version.at, index.trace.processes[txn.id]
    )


def _judge_taking(
    index: JobIndex, job: int, version: Version, before: JobControl, holder: Holder | None, taker: Holder
) -> Iterator[Violation]:
    if not is_there(index, taker.session, version.at):
        yield wrong("I22", job, f"was claimed for {taker.session}, which is not there", version)
    if holder is not None and holder.session != taker.session:
        index.trace.seen["job adopted after death"] += 1
        if holder.way != taker.way:
            index.trace.seen[f"job taken from {holder.way} by {taker.way}"] += 1
        if not _is_gone(index, holder, version.at):
            yield wrong("I22", job, f"was taken from {holder.session}, which is there", version)
    claim, lease = before.claim, before.lease_instance
    knows_claim = taker.way != "old" and claim not in (NOBODY, taker.session)
    knows_lease = taker.way != "session" and lease not in (NOBODY.instance, taker.session.instance)
    if knows_claim and index.is_present_before(claim, version.at):
        yield wrong("I22", job, f"was taken from {claim}, which is there", version)
    if knows_lease and (index.beat_before(lease, version.at) or 0) >= version.at:
        yield wrong("I22", job, f"was taken from instance {lease}, whose heartbeat runs", version)


def _judge_columns(job: int, version: Version, after: JobControl, taker: Holder) -> Iterator[Violation]:
    if taker.way != "old" and after.claim != taker.session:
        yield wrong("I22", job, f"was claimed for {taker.session} and has the claim {after.claim}", version)
    if taker.way != "session" and after.lease_instance != taker.session.instance:
        message = f"was claimed for {taker.session} and has the lease {after.lease_instance}"
        yield wrong("I22", job, message, version)


def _judge_letting_go(
    index: JobIndex, job: int, version: Version, after: JobControl, holder: Holder | None
) -> Iterator[Violation]:
    fence = index.trace.fences.get(version.writer.id)
    if fence is None or holder is None or fence.session != holder.session:
        yield wrong("I22", job, "was let go, or given to somebody, by somebody else", version)
    elif _held(after) != (NOBODY, NOBODY.instance):
        yield wrong("I22", job, f"was given to {_held(after)} without a claim", version)


def _held(control: JobControl) -> tuple[SessionId, int]:
    return control.claim, control.lease_instance


def _is_gone(index: JobIndex, holder: Holder, at: Timestamp) -> bool:
    if holder.way != "old" and not index.is_present_before(holder.session, at):
        return True
    beat_at = index.beat_before(holder.session.instance, at)
    if holder.way == "mixed":
        return beat_at is not None and beat_at < at
    if holder.way == "session":
        return False
    life = index.old_life(holder.session.instance, holder.since_at)
    return life is None or not life.is_present_before(at) or beat_at is None or beat_at < at


def is_there(index: JobIndex, session: SessionId, at: Timestamp) -> bool:
    """Whether a session, or in version 1 an instance, exists just before a commit at this time."""
    if session.epoch_at:
        return index.is_present_before(session, at)
    return index.old_life(session.instance, at) is not None


def is_held_before(index: JobIndex, control: JobControl, at: Timestamp) -> bool:
    """Whether somebody who lives holds a job, by either way."""
    if control.claim != NOBODY:
        return index.is_present_before(control.claim, at)
    lease = control.lease_instance
    return lease != NOBODY.instance and index.old_life(lease, at) is not None


def old_heartbeats(index: JobIndex) -> Iterator[Violation]:
    """Old lease: until an upgrade is finalized each heartbeat is also one of the older way."""
    if index.settings.get("version", [(None, str(PROGRAM))])[0][1] == str(PROGRAM):
        return  # it has never been any other
    beaten = {
        (instance, version.writer.id): expires_at
        for instance, rows in index.beats.items()
        for version, expires_at in rows
    }
    for life in index.lives.values():
        rows = [(life.inserted, life.first_expires_at()), *life.expirations]
        for version, expires_at in rows:
            if (
                expires_at is None
                or version.value is None
                or index.version_before(version.at) in (0, PROGRAM)
            ):
                continue
            if (life.id.instance, version.writer.id) not in beaten:
                message = f"{life.id} lives on, but not for nodes of version 1"
                yield Violation("old-lease", message, version.step, (version.writer.id,))


def old_deletions(index: JobIndex) -> Iterator[Violation]:
    """Old lease: others remove an instance of version 1 only after its heartbeat has run out."""
    for instance, lives in index.old_lives.items():
        for life in lives:
            deleted = life.deleted
            if deleted is None or index.process_of(deleted.writer) == index.process_of(life.inserted.writer):
                continue
            index.trace.seen["older instance removed by another"] += 1
            beat_at = index.beat_before(instance, deleted.at)
            if beat_at is not None and beat_at >= deleted.at:
                message = f"instance {instance} of version 1 was removed while its heartbeat ran"
                yield Violation("old-lease", message, deleted.step, (deleted.writer.id,))


def versions(index: JobIndex) -> Iterator[Violation]:
    """Version join: nobody older than the cluster's version joins, nor is it raised past one who is there."""
    former = 0
    for version, text in index.settings.get("version", ()):
        number, txns = int(text or 0), (version.writer.id,)
        if number < former:
            yield Violation("version-join", f"the version fell to {number}", version.step, txns)
        for instance, rows in index.instances.items():
            found = next((row for each, row in reversed(rows) if each.at < version.at), None)
            if found is not None and found.version < number:
                message = f"version {number} was finalized beside instance {instance} of {found.version}"
                yield Violation("version-join", message, version.step, txns)
        former = number
    for instance, rows in index.instances.items():
        for version, row in rows:
            if row is not None and not row.draining and row.version < index.version_before(version.at):
                message = f"instance {instance} of version {row.version} joined a newer cluster"
                yield Violation("version-join", message, version.step, (version.writer.id,))


def wrong(predicate: str, job: int, what: str, version: Version) -> Violation:
    writer = version.writer
    return Violation(predicate, f"job {job} {what} (t{writer.id})", version.step, (writer.id,))


PREDICATES: tuple[Callable[[JobIndex], Iterator[Violation]], ...] = (
    claims,
    old_heartbeats,
    old_deletions,
    versions,
)
