"""What must hold of reads that nobody has pinned anything for, and of the writes of a change under its job.

    believed    I10, I12, I13: the versions that a glance went by were usable when it read
    fenced      I23: a version of a change under way is written by whoever holds the change's job

Walk: `schema_predicates.check` calls these over a `SchemaIndex`.
"""

from collections.abc import Callable, Iterator

from tenure.base.timestamp import to_text
from tenure.catalog.descriptors.equal_versions import logical_of
from tenure.cluster.jobs.job_records import JobControl
from tenure.kv.keys import JOB_CONTROL
from tests.simulation.lease_watch import is_one_step
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.trace import Get, Txn, Version


def believed(index: SchemaIndex) -> Iterator[Violation]:
    """A read that was believed used each version within [M(v), M(v+2)), and before its session expired."""
    for step, (descriptors, session, at) in index.trace.believed:
        greatest_at = max((expires for _, expires in index.expirations.get(session, ())), default=0)
        if at >= greatest_at:
            message = f"a glance at {to_text(at)} was believed under {session}, which had expired"
            yield Violation("I13", message, step)
        for used in descriptors:
            versions = index.versions.get(used.id, [])
            equal = max(each.version for _, each, _ in versions if logical_of(each) == logical_of(used))
            later = [each for since_at, each, _ in versions if since_at <= at and each.version > equal]
            if len(later) > 1:
                message = f"a glance used {used.id} v{used.version} when v{later[-1].version} was there"
                yield Violation("I10", message, step)
            elif later and not is_one_step(used, later[0]):
                message = f"a glance used {used.id} v{used.version} beside a change of several steps"
                yield Violation("I12", message, step)


def fenced(index: SchemaIndex) -> Iterator[Violation]:
    """A version that names a job was written under its fence, by the process that holds its claim."""
    for id, versions in index.versions.items():
        for _, descriptor, txn in versions:
            job = getattr(descriptor, "job", 0)
            controls = index.controls.get(job, [])
            if not controls or controls[0][0].writer is txn:
                continue  # who makes the job has it
            what = f"t{txn.id} wrote {id} v{descriptor.version}"
            key = index.keyspace.key(JOB_CONTROL, (job,))
            if not any(isinstance(read, Get) and read.key == key for read in txn.reads):
                yield Violation("I23", f"{what} without looking at job {job}", txn.landed, (txn.id,))
            holder = _holder(controls, txn)
            if holder is not None and index.trace.processes[holder.id] != index.trace.processes[txn.id]:
                message = f"{what} after job {job} had been adopted by t{holder.id}"
                yield Violation("I23", message, txn.landed, (txn.id, holder.id))


def _holder(controls: list[tuple[Version, JobControl]], txn: Txn) -> Txn | None:
    """Who took the claim that stood just before a transaction landed; None if nobody held the job."""
    standing = [each for each in controls if each[0].step < txn.landed and each[0].writer is not txn]
    claim = standing[-1][1].claim if standing else None
    if claim is None or not claim.instance:
        return None
    taken = standing[-1][0]
    for version, control in reversed(standing):
        if control.claim != claim:
            break
        taken = version
    return taken.writer


PREDICATES: tuple[Callable[[SchemaIndex], Iterator[Violation]], ...] = (believed, fenced)
