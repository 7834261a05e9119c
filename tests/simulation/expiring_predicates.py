"""What must hold of expiring leases over the whole history: I10, I13, I17, I39, and that they go.

Walk: `schema_predicates.check` calls these over a `SchemaIndex`; without such leases they say nothing.
"""

from collections.abc import Callable, Iterator

from tenure.base.timestamp import Timestamp, seconds_between, to_text
from tenure.catalog.descriptors.definitions import DescriptorState, place_of
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import RowKey


def frontiers(index: SchemaIndex) -> Iterator[Violation]:
    """I13: what a lease is used up to was committed and acknowledged."""
    told: dict[RowKey, list[tuple[int, Timestamp]]] = {}
    for row in index.old_rows:
        if row.writer.state == "committed":
            told.setdefault(row.key, []).append((row.writer.ended, row.expires_at))
    for step, keys, expires_at in index.trace.row_frontiers:
        for key in keys:
            known = [expires for ended, expires in told.get(key, ()) if ended <= step]
            if expires_at > max(known, default=0):
                message = f"{key} was to be used up to {to_text(expires_at)}"
                yield Violation("I13", message, step)


def readers(index: SchemaIndex) -> Iterator[Violation]:
    """I13: what only read did so below the greatest expiration of each lease."""
    greatest: dict[RowKey, Timestamp] = {}
    for row in index.old_rows:
        greatest[row.key] = max(greatest.get(row.key, 0), row.expires_at)
    for record, at in index.committed_uses():
        for key in record.rows.values() if record.session is None else ():
            if at >= greatest.get(key, 0):
                message = f"t{record.txn.id} read at {to_text(at)} under {key}, which had expired"
                yield Violation("I13", message, record.txn.ended, (record.txn.id,))


def served(index: SchemaIndex) -> Iterator[Violation]:
    """I17: what is handed out is the version that a row was written for, before it was handed out."""
    written: dict[tuple[str, int, int], int] = {}
    for row in index.old_rows:
        key = row.process, row.key.descriptor, row.key.version
        if row.writer.state == "committed":
            written[key] = min(written.get(key, row.writer.ended), row.writer.ended)
    for record in index.trace.uses.values():
        for handed in record.handed if record.session is None else ():
            used = handed.descriptor
            if written.get((record.process, used.id, used.version), handed.step) >= handed.step:
                message = f"t{record.txn.id} was given {used.id} v{used.version}, which was not leased"
                yield Violation("I17", message, handed.step, (record.txn.id,))


def two_leases(index: SchemaIndex) -> Iterator[Violation]:
    """Counts how often two versions were leased at once."""
    for id, versions in index.versions.items():
        for at, descriptor, _ in versions[1:]:
            rows = index.old_rows_before(at + 1)
            if any(row.key.descriptor == id and row.key.version < descriptor.version for row in rows):
                index.trace.seen["two versions leased by expiring leases"] += 1
    yield from ()


def removals(index: SchemaIndex) -> Iterator[Violation]:
    """I39: a name goes when no valid lease of another process gives it.

    The publisher's own row does not count: it has closed that lease, nothing there pins it (`expiring_watch`
    judges that as I12 in the instant of the commit), and the row is deleted only after the commit. Seed 6 of
    the profile `expiring` has such a row: instance 2 takes the name "a" while its own row of version 1 is
    still there. Nor does a row that has expired: nobody can use it (docs/decisions/0056).
    """
    for place, revisions in index.names.items():
        former: int | None = None
        for revision, id in revisions:
            own = index.trace.processes[revision.writer.id]
            for row in index.old_rows_before(revision.at) if former is not None and id is None else ():
                held = index.version_of(row.key.descriptor, row.key.version)
                is_named = (
                    held is not None and held.state is not DescriptorState.DROPPED and place_of(held) == place
                )
                is_valid = revision.at < row.expires_at and row.process != own
                if row.key.descriptor == former and is_named and is_valid:
                    message = f"{place} was taken from {former}, and {row.key} may still resolve it"
                    yield Violation("I39", message, revision.step, (revision.writer.id,))
            former = id


def left(index: SchemaIndex, seconds_max: float) -> Iterator[Violation]:
    """I9: at the end no row is left that has expired long ago."""
    last_at = index.trace.landings[-1].at if index.trace.landings else 0
    for row in index.old_rows:
        if row.until_at is None and seconds_between(row.expires_at, last_at) > seconds_max:
            yield Violation("I9", f"{row.key} has expired and is left", row.writer.landed, (row.writer.id,))


PREDICATES: tuple[Callable[[SchemaIndex], Iterator[Violation]], ...] = (
    frontiers,
    readers,
    served,
    two_leases,
    removals,
)
