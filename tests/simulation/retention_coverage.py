"""What protections cover and how long zones keep history, worked out plainly: the oracle of retention.

Written from the sentences of the design and not from the product's code, which it is compared with.

Walk: `retention_trace` and `retention_predicates` ask `covered_from` and `ttl_seconds`.
"""

from collections.abc import Mapping, Sequence

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.catalog.descriptors.definitions import DescriptorState, ElementState, Table
from tenure.catalog.descriptors.zones import GC_TTL_SECONDS
from tenure.kv.keys import Keyspace
from tenure.retention.protections.protection_records import Mode, Protection


def covered_from(
    keyspace: Keyspace, protection: Protection, head: bytes, versions: Sequence[Table]
) -> Timestamp | None:
    """The time from which a protection covers an index; None if it does not.

    `versions` are all that the index's table has had by then.
    """
    if any(lo[: len(head)] <= head < hi for lo, hi in protection.spans):
        return protection.at
    _, index = keyspace.table_and_index(head)
    ends = [*(each.modified_at for each in versions[1:]), MAX_AT]
    for version, end_at in zip(versions, ends, strict=False):
        from_at = max(version.modified_at, protection.at)
        if from_at < end_at and _lies_public(version, index, protection.objects):
            is_covered = protection.mode is Mode.AFTER or from_at == protection.at
            return from_at if is_covered else None
    return None


def _lies_public(version: Table, index: int, objects: Sequence[int]) -> bool:
    places = (version.id, version.schema, version.database)
    is_public = any(each.id == index and each.state is ElementState.PUBLIC for each in version.indexes)
    return version.state is DescriptorState.PUBLIC and is_public and any(each in objects for each in places)


def needs(protection: Protection, from_at: Timestamp, at: Timestamp, until: Timestamp) -> bool:
    """Whether a protection that covers an index from a time needs a revision of it (I27)."""
    if protection.mode is Mode.AT:
        return at <= protection.at < until
    return until > from_at


def ttl_seconds(zones: Mapping[tuple[int, int], int | None], table: Table | None, index: int) -> int:
    """How long history of an index is kept, by the zones and the place of its table."""
    keys = [(0, 0)]
    if table is not None:
        keys = [(table.id, index), (table.id, 0), (table.schema, 0), (table.database, 0), (0, 0)]
    return next((found for key in keys if (found := zones.get(key)) is not None), GC_TTL_SECONDS)
