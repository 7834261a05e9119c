"""What a protection covers: which indexes, and each from when. Pure functions over values.

    protect_at 30 of a schema                       protect_after 30 of the same schema

    table   in the schema   covered                 table   in the schema   covered from
    a       [10, ..)        yes                     a       [10, ..)        30
    b       [10, 40)        yes                     b       [10, 40)        30, also after 40
    c       [10, 20)        no                      c       [10, 20)        never
    d       [50, ..)        no                      d       [50, 60)        50, also after 60

An index lies public under a target while its table's version is public, lists the index as public, and is
the target itself or names it as its schema or database. The times are those of the table's own versions, so a
table that was moved, converted or dropped later stays covered, and one that came later is covered from when
it came. A span covers every index that it touches, whole, from the protection's own time on.

Invariant (coverage): an object target covers an index from the later of `at` and the first time at or after
`at` at which the index lay public under it; a `protect_at` only if that time is `at`.

Walk: `protection_store.ProtectionStore.protect` and sweeps call `covered` with the versions of one table.
"""

from collections.abc import Collection, Iterator, Sequence

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.descriptors.definitions import DescriptorState, Table, visible
from tenure.kv.keys import Keyspace, Span
from tenure.retention.protections.protection_records import Mode, Protection


def covered(keyspace: Keyspace, protection: Protection, versions: Sequence[Table]) -> dict[bytes, Timestamp]:
    """The heads of a table's indexes that a protection covers, with the time from which it does.

    `versions` are the table's own, oldest first: the one that was current at the protection's `at`, and all
    later ones. Older ones may be among them.
    """
    found: dict[bytes, Timestamp] = {}
    for version, since_at in _current_from(versions, protection.at):
        if protection.mode is Mode.AT and since_at > protection.at:
            break
        if not lies_under(version, protection.objects):
            continue
        for index in visible(version.indexes):
            found.setdefault(keyspace.head(version.id, index.id), since_at)
    for head in _heads(keyspace, versions):
        if covers_by_span(protection, head):
            found[head] = protection.at
    return found


def lies_under(version: Table, objects: Collection[int]) -> bool:
    """Whether this version of a table is public, and one of the objects is or contains the table."""
    if version.state is not DescriptorState.PUBLIC:
        return False
    return version.id in objects or version.schema in objects or version.database in objects


def covers_by_span(protection: Protection, head: bytes) -> bool:
    """Whether a span of the protection touches an index."""
    return any(touches(Span(lo, hi), head) for lo, hi in protection.spans)


def touches(span: Span, head: bytes) -> bool:
    """Whether some key of an index can lie in a span."""
    return span.lo[: len(head)] <= head < span.hi


def _current_from(versions: Sequence[Table], at: Timestamp) -> Iterator[tuple[Table, Timestamp]]:
    """The versions current at `at` or later, each with the first such time."""
    ends = [*(each.modified_at for each in versions[1:]), MAX_AT]
    for version, end_at in zip(versions, ends, strict=False):
        if end_at > at:
            yield version, max(version.modified_at, at)


def _heads(keyspace: Keyspace, versions: Sequence[Table]) -> set[bytes]:
    return {keyspace.head(each.id, index.id) for each in versions for index in each.indexes}
