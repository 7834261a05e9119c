"""What must hold of the use of leases, over the whole history: I10, I13, I17 and I18.

Walk: `schema_predicates.check` calls these over a `SchemaIndex`.
"""

from collections.abc import Callable, Iterator

from tenure.base.timestamp import Timestamp, to_text
from tenure.catalog.descriptors.definitions import AnyDescriptor
from tenure.catalog.descriptors.equal_versions import logical_of
from tenure.cluster.sessions.session_records import SessionId
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import Handed, UseRecord


def two_versions(index: SchemaIndex) -> Iterator[Violation]:
    """I10: a commit uses a version only within [M(v), M(v+2)); its own children's versions do not count."""
    for record, at in index.committed_uses():
        family = {record.txn, *record.txn.descendants()}
        for handed in record.handed:
            used = handed.descriptor
            versions = index.versions.get(used.id, [])
            # Use of a version counts as use of every version of equal `logical`.
            equal = max(each.version for _, each, _ in versions if logical_of(each) == logical_of(used))
            later = [each for each in versions if each[1].version > equal and each[0] <= at]
            strangers = [each for each in later if each[2] not in family]
            if len(strangers) > 1 or (len(strangers) == 1 and strangers[0][1].version > equal + 1):
                newest = later[-1][1].version
                message = f"t{record.txn.id} used {used.id} v{used.version} when v{newest} was there"
                txns = (record.txn.id, later[-1][2].id)
                yield Violation("I10", message, record.txn.landed or handed.step, txns)
            if used.modified_at > at and not _is_same(index.version_at(used.id, at), used):
                message = f"t{record.txn.id} used {used.id} v{used.version} before it was there"
                yield Violation("I10", message, handed.step, (record.txn.id,))
            if strangers:
                index.trace.seen["commit under the version before the newest"] += 1


def frontiers(index: SchemaIndex) -> Iterator[Violation]:
    """I13: what a lease is used up to was committed and acknowledged, of the lease's own epoch."""
    told: dict[SessionId, list[tuple[int, Timestamp]]] = {}
    for session, given in index.expirations.items():
        told[session] = [(txn.ended, expires) for txn, expires in given if txn.state == "committed"]
    for step, session, expires_at in index.trace.frontiers:
        known = [expires for ended, expires in told.get(session, ()) if ended <= step]
        if expires_at > max(known, default=0):
            message = f"a lease of {session} was to be used up to {to_text(expires_at)}"
            yield Violation("I13", message, step)


def readers(index: SchemaIndex) -> Iterator[Violation]:
    """I13: what only read did so below the greatest expiration of the lease's session."""
    for record, at in index.committed_uses():
        if record.session is None:
            continue
        greatest_at = max((expires for _, expires in index.expirations.get(record.session, ())), default=0)
        if record.handed and at >= greatest_at:
            message = f"t{record.txn.id} read at {to_text(at)} under {record.session}, which had expired"
            yield Violation("I13", message, record.txn.ended, (record.txn.id,))


def served(index: SchemaIndex) -> Iterator[Violation]:
    """I17, I18: what is handed out is the version current as of the lease that pins it, and committed."""
    for record in index.trace.uses.values():
        for handed in record.handed:
            yield from _judge_handed(index, record, handed)


def _judge_handed(index: SchemaIndex, record: UseRecord, handed: Handed) -> Iterator[Violation]:
    used, txn = handed.descriptor, record.txn
    for lease_at in {record.lease_at or handed.lease_at, handed.lease_at}:
        current = index.version_at(used.id, lease_at)
        if not _is_same(current, used):
            what = "none" if current is None else f"v{current.version}"
            lease = f"the lease at {to_text(lease_at)}"
            message = f"t{txn.id} was given {used.id} v{used.version} under {lease}, which has {what}"
            yield Violation("I17", message, handed.step, (txn.id,))
    is_newer = txn.read_at and used.modified_at > txn.read_at
    if is_newer and not _is_same(index.version_at(used.id, txn.read_at), used):
        message = f"t{txn.id} reads at {to_text(txn.read_at)} by {used.id} v{used.version}, which is newer"
        yield Violation("I18", message, handed.step, (txn.id,))


def _is_same(current: AnyDescriptor | None, used: AnyDescriptor) -> bool:
    """Whether one counts as the other: the same version, or one of equal `logical`."""
    return current is not None and logical_of(current) == logical_of(used)


def moved(index: SchemaIndex) -> Iterator[Violation]:
    """I16: a pin lies under a lease that has the same version."""
    for record in index.trace.uses.values():
        last = {each.descriptor.id: each.descriptor for each in record.handed}
        for id, lease_at in record.pinned.items():
            current = index.version_at(id, lease_at)
            if id in last and not _is_same(current, last[id]):
                message = (
                    f"t{record.txn.id}'s pin of {id} v{last[id].version} went to a lease that has another"
                )
                yield Violation("I16", message, record.txn.ended, (record.txn.id,))


def two_leases(index: SchemaIndex) -> Iterator[Violation]:
    """Counts how often two versions were leased at once, and by whom."""
    for versions in index.versions.values():
        for at, descriptor, _ in versions[1:]:
            if any(row.lease_at < at and row.covers(descriptor.id) for row in index.rows_before(at + 1)):
                index.trace.seen["two versions leased at once"] += 1
    yield from ()


PREDICATES: tuple[Callable[[SchemaIndex], Iterator[Violation]], ...] = (
    two_versions,
    frontiers,
    readers,
    served,
    moved,
    two_leases,
)
