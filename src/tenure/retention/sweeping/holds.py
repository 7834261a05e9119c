"""What the tracked protections keep of each head.

A protection of objects is looked up by every place that the table has had since the oldest protected time,
not by its place today: a table that was moved or dropped stays covered. A protection of a span covers indexes
that have left the table as well, which no version in reach may name any more.

Walk: `retention.sweeping.publication` asks for the holds of heads -> `retention.protections.coverage`.
"""

from collections import defaultdict
from collections.abc import Sequence

from tenure.base.timestamp import Timestamp
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.keys import Keyspace
from tenure.retention.protections.coverage import covered, covers_by_span
from tenure.retention.protections.protection_records import Mode, Protection
from tenure.retention.sweeping.heads import all_heads
from tenure.retention.thresholds import HeadHold
from tenure.retention.tracking.tracker import TrackedState


def oldest_object_at(state: TrackedState) -> Timestamp | None:
    """The oldest time of a protection of objects; None if there is none."""
    return min((each.at for each in state.records if each.objects), default=None)


def table_holds(
    keyspace: Keyspace, state: TrackedState, versions: Sequence[Table]
) -> dict[bytes, list[HeadHold]]:
    """By head; `versions` reach back to the oldest protection of objects."""
    if not versions or not state.records:
        return {}
    places = {place for each in versions for place in (each.id, each.schema, each.database)}
    found = {each.id: each for each in state.records_of(places)}
    found |= {each.id: each for each in state.records_over(*keyspace.table_span(versions[-1].id))}
    holds = defaultdict[bytes, list[HeadHold]](list)
    for protection in found.values():
        by_span = [head for head in all_heads(keyspace, versions[-1]) if covers_by_span(protection, head)]
        from_times = covered(keyspace, protection, versions) | dict.fromkeys(by_span, protection.at)
        for head, from_at in from_times.items():
            holds[head].append(_hold(protection, from_at))
    return holds


def head_holds(keyspace: Keyspace, state: TrackedState, head: bytes) -> list[HeadHold]:
    """Of a head of system records, which only spans can name."""
    found = {each.id: each for each in state.records_over(*keyspace.head_span(head))}
    return [_hold(each, each.at) for each in found.values()]


def all_holds(state: TrackedState) -> list[HeadHold]:
    return [_hold(each, each.at) for each in state.records]


def _hold(protection: Protection, at: Timestamp) -> HeadHold:
    return HeadHold(at, protection.mode is Mode.AFTER, protection.id)
