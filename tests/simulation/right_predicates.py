"""What must hold of privileges: the stored ones are those of all grants, and nobody goes by older ones.

Walk: `schema_predicates.check` calls these over a `SchemaIndex`; `right_shapes` has recorded the checks.
"""

from collections.abc import Callable, Iterator

from tenure.base.timestamp import Timestamp
from tenure.catalog.accounts.privileges import held
from tenure.catalog.descriptors.definitions import ROOT
from tenure.catalog.descriptors.role_records import NAMED, ObjectPrivileges, RoleObject, named
from tenure.kv.keys import PRIVILEGES
from tests.simulation.predicates import Violation
from tests.simulation.schema_history import SchemaIndex
from tests.simulation.schema_trace import Declared
from tests.simulation.trace import head


def model(index: SchemaIndex) -> Iterator[Violation]:
    """After each commit a role has what was granted to it and not revoked since, in the order of commits."""
    rights: dict[tuple[int, str], int] = {}
    for at, declared in _changes(index):
        right = declared.right
        assert right is not None
        key, bits = (right.table, right.role), rights.get((right.table, right.role), 0)
        rights[key] = bits | right.bits if right.is_grant else bits & ~right.bits
        stored = _held_at(index, right.table, right.role, at)
        if stored != rights[key]:
            txn = declared.use.txn
            message = f"{right.role} has {stored} on {right.table}, and was granted {rights[key]}"
            yield Violation("rights", message, txn.landed, (txn.id,))


def _changes(index: SchemaIndex) -> list[tuple[Timestamp, Declared]]:
    """Grants and revokes that were committed, in this order."""
    found = [
        (each.use.txn.landed_at, each)
        for each in index.trace.declared
        if each.right is not None and each.use.txn.landed_at is not None
    ]
    return sorted(found, key=lambda each: each[0])


def _held_at(index: SchemaIndex, table: int, role: str, at: Timestamp) -> int:
    stored = index.privileges_at(table, at)
    return 0 if stored is None else held(stored.entries, {role}, ROOT)


def answers(index: SchemaIndex) -> Iterator[Violation]:
    """A check answers as the privileges of its lease say."""
    for record, _ in index.committed_uses():
        for check in record.checked:
            if index.version_at(check.table, check.lease_at) is None:
                continue
            bits = _held_at(index, check.table, check.role, check.lease_at)
            if bool(bits & check.privilege) != check.is_allowed:
                message = (
                    f"t{record.txn.id}: {check.role} has {bits} on {check.table}, told {check.is_allowed}"
                )
                yield Violation("rights", message, check.step, (record.txn.id,))


def freshness(index: SchemaIndex) -> Iterator[Violation]:
    """No statement that began after a REVOKE had returned went by a lease from before it."""
    returned = [
        (declared.ended, at, declared.right)
        for at, declared in _changes(index)
        if declared.right is not None and not declared.right.is_grant and declared.outcome == "done"
    ]
    for record, _ in index.committed_uses():
        for check in record.checked:
            for ended, at, right in returned:
                is_of_it = (right.table, right.role) == (check.table, check.role)
                if is_of_it and check.is_allowed and check.step > ended and check.lease_at < at:
                    message = f"t{record.txn.id} went by a right of {check.role} that was revoked before"
                    yield Violation("rights", message, check.step, (record.txn.id,))


def role_objects(index: SchemaIndex) -> Iterator[Violation]:
    """The roles that privileges name, and the objects kept by role, change in the same commits."""
    by_table: dict[int, frozenset[str]] = {}
    kept: dict[bytes, RoleObject] = {}
    commits: dict[Timestamp, list[tuple[bytes, bytes | None]]] = {}
    for key, version in index.role_revisions:
        commits.setdefault(version.at, []).append((key, version.value))
    for at in sorted(commits):
        for key, value in commits[at]:
            if head(key) == index.keyspace.head(PRIVILEGES):
                record = None if value is None else index.catalog.role_record(key, value)
                assert record is None or isinstance(record, ObjectPrivileges)
                by_table[index.object_of(key)] = named(record)
            elif value is None:
                kept.pop(key, None)
            else:
                kept[key] = index.role_object(value)
        expected = {(role, table) for table, roles in by_table.items() for role in roles}
        found = {(each.role, each.object) for each in kept.values() if each.kind == NAMED}
        if expected != found:
            yield Violation("rights", f"objects by role differ: {sorted(expected ^ found)}", 0)


PREDICATES: tuple[Callable[[SchemaIndex], Iterator[Violation]], ...] = (
    model,
    answers,
    freshness,
    role_objects,
)
