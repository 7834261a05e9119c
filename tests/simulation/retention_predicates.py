"""What must hold of a history of zones, protections and sweeps: I27 to I32, as one function each and more.

That each readable time shows what was visible then (I30) is judged at each commit, by `retention_trace`.

Walk: `retention_world.RetentionCluster.judge` -> `check` -> each of `PREDICATES` over a `RetentionHistory`.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tenure.base.timestamp import MAX_AT, Timestamp, add_seconds
from tenure.kv.keys import DESCRIPTORS, MANIFESTS, NAMES, PROTECTIONS_META, SCHEMA_MAPS, USER_TABLES
from tenure.retention.protections.protection_records import JOB, Mode, Protection, job_of
from tenure.retention.sweeping.sweep_records import SweepRecord, SweepStage
from tenure.storage.engine import Removes
from tests.simulation.predicates import Violation
from tests.simulation.retention_coverage import covered_from, needs, ttl_seconds
from tests.simulation.retention_history import Change, Changes, RetentionHistory, before
from tests.simulation.retention_trace import end_of
from tests.simulation.trace import Get, Landing, Range, Txn, head

if TYPE_CHECKING:
    from tests.simulation.retention_world import RetentionCluster

CATALOG = (DESCRIPTORS, NAMES, SCHEMA_MAPS)


def check(cluster: "RetentionCluster", *, is_whole: bool) -> list[Violation]:
    history = RetentionHistory(cluster.trace)
    found = [violation for predicate in PREDICATES for violation in predicate(history)]
    observe(history)
    found += system_thresholds(history, cluster.knobs.system_seconds)
    if is_whole:
        found += collected(history, cluster)
    return found


def observe(history: RetentionHistory) -> None:
    """Counts what only the whole history shows."""
    seen, under_way = history.trace.seen, set[bytes]()
    for _, record in sorted(history.publications(), key=lambda each: each[0].step):
        seen["sweep held back by a protection"] += bool(record.held_by)
        seen["sweep kept a point"] += bool(record.keep.points)
        seen["sweep replaced under way"] += record.head in under_way
        seen["table collected"] += record.stage is SweepStage.COLLECTING
        under_way.add(record.head)
    for key in history.trace.keys_in(history.keyspace.index_span(MANIFESTS)):
        for version in history.trace.versions[key]:
            is_sweep = not any(put.key == history.claim_key_of(key) for put in version.writer.puts)
            seen["file dropped by an edit"] += version.value is not None and is_sweep


# ── I27, I28: protections ───────────────────────────────────────────────────────────────────────


def kept(history: RetentionHistory) -> Iterator[Violation]:
    """I27: what a protection needs was lost neither before it was made nor before its release."""
    for loss in history.trace.losses:
        if loss.value is None:
            continue  # what a tombstone hides is judged by what is shown
        tables = history.tables(history.keyspace.table_and_index(head(loss.key))[0])
        for changes in history.protections.values():
            protection = _in_force(changes, loss.step)
            if protection is None:
                continue
            from_at = covered_from(history.keyspace, protection, head(loss.key), tables)
            if from_at is not None and needs(protection, from_at, loss.at, loss.until):
                message = f"{_name(protection)} needs {loss.key.hex()} at {loss.at}, which is gone"
                yield Violation("I27", message, loss.step)


def _in_force(changes: Changes, step: int) -> Protection | None:
    """As a protection is at a step; before it was made, as it was made; None after its release."""
    change = before(changes, step + 1) or changes[0]
    record: Protection | None = change.record
    return record


def answered(history: RetentionHistory) -> Iterator[Violation]:
    """I27: a time that a protection keeps is not refused while the record is there."""
    for read in history.trace.refused:
        changes = history.protections[read.protection]
        first, last = before(changes, read.began), before(changes, read.step)
        if first is None or last is None or first.record is None or last.record is None:
            continue
        table, _ = history.keyspace.table_and_index(read.head)
        tables = history.tables(table, until_step=read.began)
        from_at = covered_from(history.keyspace, last.record, read.head, tables)
        is_kept = read.at == last.record.at if last.record.mode is Mode.AT else read.at >= (from_at or 0)
        if from_at is not None and is_kept:
            message = (
                f"a read of {read.head.hex()} at {read.at} was refused, which {_name(last.record)} keeps"
            )
            yield Violation("I27", message, read.step)


def promised(history: RetentionHistory) -> Iterator[Violation]:
    """I28: a protection commits before its ttl has passed, and at or above the thresholds."""
    for changes in history.protections.values():
        made, protection = changes[0], changes[0].record
        name, zones = _name(protection), history.zones_at(made.step)
        for table in CATALOG:
            threshold_at = history.threshold_at(history.keyspace.head(table), made.step)
            if threshold_at > protection.at:
                yield _violation("I28", made, f"{name} lies below the catalog's threshold {threshold_at}")
        for each in history.user_heads():
            id, index = history.keyspace.table_and_index(each)
            tables = history.tables(id, until_step=made.step)
            from_at = covered_from(history.keyspace, protection, each, tables)
            if from_at is None:
                continue
            threshold_at = history.threshold_at(each, made.step)
            if threshold_at > from_at:
                yield _violation(
                    "I28", made, f"{name} covers {each.hex()} below its threshold {threshold_at}"
                )
            place = tables[-1] if history.is_described(id, made.step) else None
            ttl = ttl_seconds(zones, place, index)
            if made.at >= add_seconds(protection.at, ttl):
                yield _violation("I28", made, f"{name} was made after the ttl of {ttl} s of {each.hex()}")


# ── I29: sweeps ─────────────────────────────────────────────────────────────────────────────────


def published(history: RetentionHistory) -> Iterator[Violation]:
    """I29: a pair is that of the zones and protections at its publication, and no threshold goes back."""
    for change, record in history.publications():
        table, index = history.keyspace.table_and_index(record.head)
        previous_at = history.threshold_at(record.head, change.step)
        if record.keep.threshold < previous_at:
            yield _violation("I29", change, f"the threshold of {record.head.hex()} goes back")
        if table in CATALOG:
            zones = history.zones_at(change.step)
            ttl = max((each for each in zones.values() if each is not None), default=0)
            yield from _not_above(change, record, previous_at, add_seconds(change.at, -ttl), "the ttls")
            for protection in history.protections_at(change.step):
                yield from _not_above(change, record, previous_at, protection.at, _name(protection))
        elif table >= USER_TABLES:
            yield from _of_index(history, change, record, index, previous_at)


def _of_index(
    history: RetentionHistory, change: Change, record: SweepRecord, index: int, previous_at: Timestamp
) -> Iterator[Violation]:
    id, _ = history.keyspace.table_and_index(record.head)
    tables = history.tables(id, until_step=change.step)
    ttl = ttl_seconds(history.zones_at(change.step), tables[-1], index)
    if record.ttl_seconds != ttl:
        yield _violation("I29", change, f"it took the ttl for {record.ttl_seconds} s, which is {ttl} s")
    yield from _not_above(change, record, previous_at, add_seconds(change.at, -ttl), "the ttl")
    for protection in history.protections_at(change.step):
        from_at = covered_from(history.keyspace, protection, record.head, tables)
        if from_at is None:
            continue
        if protection.mode is Mode.AFTER:
            yield from _not_above(change, record, previous_at, from_at, _name(protection))
        elif protection.at < record.keep.threshold and protection.at not in record.keep.points:
            yield _violation("I29", change, f"{_name(protection)} is no kept point of {record.head.hex()}")


def _not_above(
    change: Change, record: SweepRecord, previous_at: Timestamp, bound_at: Timestamp, why: str
) -> Iterator[Violation]:
    if record.keep.threshold > max(previous_at, bound_at):
        message = f"the threshold {record.keep.threshold} of {record.head.hex()} has passed {why}"
        yield _violation("I29", change, message)


def system_thresholds(history: RetentionHistory, ttl: float) -> Iterator[Violation]:
    """I29, of the heads that have a ttl of their own."""
    for change, record in history.publications():
        table, _ = history.keyspace.table_and_index(record.head)
        if table < USER_TABLES and table not in CATALOG:
            previous_at = history.threshold_at(record.head, change.step)
            yield from _not_above(change, record, previous_at, add_seconds(change.at, -ttl), "the ttl")


def removed(history: RetentionHistory) -> Iterator[Violation]:
    """I29: a removal uses the pair of the publication that its head has, and cleaning its mark."""
    for landing in history.trace.landings:
        for removal in landing.removals if landing.removed else ():
            each = head(removal.lo)
            if removal.removes is Removes.FLUSHED and removal.at <= history.cleaned_at(
                each, landing.step + 1
            ):
                continue
            record = before(history.sweeps(each), landing.step)
            keep = None if record is None or record.record is None else record.record.keep
            if keep is None or (removal.at, tuple(removal.points)) != (
                keep.threshold,
                () if removal.removes is Removes.FLUSHED else keep.points,
            ):
                message = f"removed from {each.hex()} by {removal.at} {removal.points}, not by {keep}"
                yield Violation("I29", message, landing.step, (landing.txn.id,))


def tombstones(history: RetentionHistory) -> Iterator[Violation]:
    """I29: a sweep takes a tombstone only where the index has neither a manifest nor an open merge claim."""
    takers: dict[bytes, list[Landing]] = {}
    for landing in history.trace.landings:
        for removal in landing.removals if landing.removed else ():
            if removal.removes is Removes.GARBAGE:
                takers.setdefault(head(removal.lo), []).append(landing)
    for loss in history.trace.losses:
        each = head(loss.key)
        if loss.value is not None:
            continue
        for landing in takers.get(each, ()):
            if loss.began < landing.step <= loss.step and (
                history.has_manifest(each, landing.step) or history.merging_job(each, landing.step)
            ):
                message = f"the tombstone of {loss.key.hex()} was taken above a base or under a merge"
                yield Violation("I29", message, loss.step, (landing.txn.id,))


def lost(history: RetentionHistory) -> Iterator[Violation]:
    """I30: a revision goes only if a published pair of its head does not need it, or its table has ended."""
    pairs: dict[bytes, list[tuple[int, SweepRecord]]] = {}
    for change, record in history.publications():
        pairs.setdefault(record.head, []).append((change.step, record))
    for loss in history.trace.losses:
        if loss.value is None:
            continue
        table, _ = history.keyspace.table_and_index(head(loss.key))
        known = [record.keep for step, record in pairs.get(head(loss.key), ()) if step < loss.step]
        if any(not keep.needs(loss.at, loss.until) for keep in known):
            continue
        ended_at = end_of(history.tables(table, until_step=loss.step))
        if ended_at is None or history.threshold_at(head(loss.key), loss.step) < ended_at:
            message = f"{loss.key.hex()} at {loss.at} until {loss.until} was lost without a pair: {known}"
            yield Violation("I30", message, loss.step)


def claimed(history: RetentionHistory) -> Iterator[Violation]:
    """A manifest is edited under an open merge claim only by the merge, which releases the claim."""
    keyspace = history.keyspace
    for key in history.trace.keys_in(keyspace.index_span(MANIFESTS)):
        for version in history.trace.versions[key]:
            each = keyspace.head(*history.index_of(key))
            if version.value is None or not history.merging_job(each, version.step):
                continue
            if not any(put.key == history.claim_key(each) for put in version.writer.kept_puts()):
                message = f"the manifest of {each.hex()} was edited under somebody else's claim"
                yield Violation("edit-claim", message, version.step, (version.writer.id,))


# ── I30: reads ──────────────────────────────────────────────────────────────────────────────────


def refused(history: RetentionHistory) -> Iterator[Violation]:
    """I30: a read below a threshold gives no answer, except in the name of a protection of its time."""
    for txn in history.trace.txns:
        for read in txn.reads:
            if isinstance(read, Get) and (read.is_in_memory or read.key in _written(txn)):
                continue
            each = head(read.key if isinstance(read, Get) else read.span.lo)
            if 0 < read.read_at < history.threshold_at(each, read.began) and not _is_named(
                history, txn, read
            ):
                message = f"t{txn.id} read {each.hex()} at {read.read_at}, below its threshold"
                yield Violation("I30", message, read.step, (txn.id,))


def _written(txn: Txn) -> set[bytes]:
    return {put.key for put in txn.puts}


def _is_named(history: RetentionHistory, txn: Txn, read: Get | Range) -> bool:
    """Whether it reads in the name of a protection that was there after the read had begun."""
    protection = history.trace.names.get(txn.id)
    if protection is None:
        return False
    at_start = before(history.protections[protection.id], read.began)
    each = head(read.key if isinstance(read, Get) else read.span.lo)
    table, _ = history.keyspace.table_and_index(each)
    is_covered = covered_from(history.keyspace, protection, each, history.tables(table)) is not None
    is_there = at_start is not None and at_start.record is not None
    return is_there and is_covered and protection.mode is Mode.AT and protection.at == read.read_at


# ── I31, I32: records ───────────────────────────────────────────────────────────────────────────


def chained(history: RetentionHistory) -> Iterator[Violation]:
    """I31: zones and protections go through the meta record, which counts the protections exactly."""
    meta_key = history.keyspace.key(PROTECTIONS_META, ())
    for changes in history.zones.values():
        for change in changes:
            has_looked = any(isinstance(read, Get) and read.key == meta_key for read in change.writer.reads)
            if not has_looked and change.writer is not history.metas[0].writer:  # that of the first catalog
                yield _violation("I31", change, "a zone was changed without a look at the meta record")
    moved = {change.step: change for change in history.metas}
    for changes in history.protections.values():
        for change in changes:
            if change.step not in moved:
                yield _violation("I31", change, "a protection changed and the meta record did not")
        if not any(
            isinstance(read, Range) and read.span.lo[:8] == history.zones_span.lo[:8]
            for read in changes[0].writer.reads
        ):
            yield _violation("I31", changes[0], "a protection was made without a look at the zones")
    for former, change in zip(history.metas, history.metas[1:], strict=False):
        if change.record.version != former.record.version + 1:
            yield _violation("I31", change, f"the meta record goes from {former.record} to {change.record}")
    for change in history.metas:
        yield from _counted(history, change)


def _counted(history: RetentionHistory, change: Change) -> Iterator[Violation]:
    records = history.protections_at(change.step + 1)
    counted = (
        len(records),
        sum(len(each.spans) for each in records),
        sum(len(each.objects) for each in records),
    )
    meta = change.record
    if (meta.records, meta.spans, meta.objects) != counted:
        yield _violation("I31", change, f"the meta record counts {meta}, but there are {counted}")


def tracked(history: RetentionHistory) -> Iterator[Violation]:
    """I31: the state of a tracker is the list of protections as of its time."""
    for known in history.trace.lists:
        expected = []
        for changes in history.protections.values():
            by_then = [change for change in changes if change.at <= known.read_at]
            if by_then and by_then[-1].record is not None:
                expected.append(by_then[-1].record)
        if sorted(expected, key=lambda each: each.id) != sorted(known.records, key=lambda each: each.id):
            message = (
                f"a tracker had {len(known.records)} protections as of {known.read_at}, not {len(expected)}"
            )
            yield Violation("I31", message, known.step)


def owned(history: RetentionHistory) -> Iterator[Violation]:
    """I32: a job's protection is made in the transaction that makes the job, and ends in its last one."""
    for changes in history.protections.values():
        made, last = changes[0], changes[-1]
        job = job_of(made.record)
        if made.record.meta_type != JOB or not job:
            continue
        controls = history.control(job)
        if not controls or controls[0].writer is not made.writer:
            yield _violation("I32", made, f"{_name(made.record)} was made before or after its job")
            continue
        ended = [version for version in controls if version.value is None]
        if (last.record is None) != bool(ended) or (ended and ended[0].writer is not last.writer):
            yield _violation("I32", last, f"{_name(made.record)} and its job did not end together")


# ── the end ─────────────────────────────────────────────────────────────────────────────────────


def collected(history: RetentionHistory, cluster: "RetentionCluster") -> Iterator[Violation]:
    """I30, I32: with all released and the ttl a second, no record is left, and what may go is gone."""
    closed, step = history.trace.closed, history.trace.step
    if not closed:
        yield Violation("I9", "the last sweep has not come to its end", step)
        return
    left = history.protections_at(closed)
    if left:
        yield Violation("I32", f"{len(left)} protections are left, such as {_name(left[0])}", step)
    for each in history.user_heads():
        id, _ = history.keyspace.table_and_index(each)
        tables, present = history.tables(id), cluster.wire.present(each)
        is_gone = bool(tables) and end_of(tables) is not None
        has_taken = _took_tombstones(history, each)
        for key, at, until, value in present.stored:
            if is_gone:
                yield Violation("I30", f"{key.hex()} at {at} outlives its table", step)
            elif until <= history.trace.lowered_at:
                yield Violation("I30", f"{key.hex()} at {at} until {until} is not needed and not gone", step)
            elif value is None and until == MAX_AT and at <= present.threshold_at and has_taken:
                yield Violation("I30", f"a tombstone of {key.hex()} at {at} is not gone", step)


def _took_tombstones(history: RetentionHistory, head_bytes: bytes) -> bool:
    """Whether the last sweep of a head found neither a base nor a merge."""
    changes = history.sweeps(head_bytes)
    return bool(changes) and changes[-1].record is not None and changes[-1].record.takes_tombstones


def _violation(predicate: str, change: Change, message: str) -> Violation:
    return Violation(predicate, message, change.step, (change.writer.id,))


def _name(protection: Protection) -> str:
    targets = f"{list(protection.objects)} {[(lo.hex(), hi.hex()) for lo, hi in protection.spans]}"
    return f"protect_{protection.mode.name.lower()} {protection.at} of {targets}"


PREDICATES: tuple[Callable[[RetentionHistory], Iterator[Violation]], ...] = (
    kept,
    answered,
    promised,
    published,
    removed,
    tombstones,
    lost,
    claimed,
    refused,
    chained,
    tracked,
    owned,
)
