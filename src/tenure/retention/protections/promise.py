"""Whether a time can still be protected, and until when: pure functions over values.

    history   ──────┬──────────────┬───────────────────┬─────────►  time
                threshold      covered from         `at` + shortest ttl
                    '── must be ──'                    '── the commit must be before

The threshold proves that nothing was removed; it refuses what a ttl that was raised meanwhile would allow.
The deadline is what users can rely on: a time can be protected while it is younger than the ttl, and not
later, even if no sweep has removed anything yet.

Invariant (I28): a protection commits only before `at` + the shortest ttl in force of what it covers, and only
if each index is covered from a time at or above its threshold.

Walk: `protection_store.ProtectionStore.protect` calls `check_thresholds` and `deadline`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from tenure.base.errors import SnapshotTooOld
from tenure.base.timestamp import MAX_AT, Timestamp, add_seconds, to_text
from tenure.catalog.descriptors.definitions import AnyDescriptor, Database, Schema, Table
from tenure.catalog.descriptors.zones import Zone, ZoneKey, effective_ttl
from tenure.retention.protections.protection_records import Mode, Protection
from tenure.retention.protections.table_histories import TableHistories

Index = tuple[int, int]
"""A table's id and an index's."""


def check_thresholds(
    from_times: Mapping[bytes, Timestamp], thresholds: Mapping[bytes, Timestamp], name: Callable[[bytes], str]
) -> None:
    """Refuses if an index, by its head, is to be covered from a time below its threshold."""
    for head, from_at in from_times.items():
        threshold_at = thresholds.get(head, 0)
        if threshold_at > from_at:
            raise SnapshotTooOld(
                f'"{name(head)}" cannot be protected at {to_text(from_at)}: '
                f"history before {to_text(threshold_at)} is gone",
                hint="Protect a later time, or keep history longer with gc.ttlseconds.",
            )


def deadline(
    protection: Protection,
    zones: Mapping[ZoneKey, Zone],
    histories: TableHistories,
    indexes: Collection[Index],
) -> Timestamp:
    """The time before which the protection must commit; `indexes` are those that it covers."""
    newest, ttls = histories.newest, [ttl_of(zones, histories.newest, each) for each in indexes]
    if protection.mode is Mode.AFTER:
        ttls += _ttls_under(zones, newest, protection.objects)
    return add_seconds(protection.at, min(ttls)) if ttls else MAX_AT


def ttl_of(zones: Mapping[ZoneKey, Zone], newest: Mapping[int, AnyDescriptor], index: Index) -> int:
    """The ttl in force of an index, by its table's present place; what has no descriptor has the default."""
    table = newest.get(index[0])
    if not isinstance(table, Table):
        return effective_ttl(zones).seconds
    return effective_ttl(zones, table.database, table.schema, *index).seconds


def _ttls_under(
    zones: Mapping[ZoneKey, Zone], newest: Mapping[int, AnyDescriptor], objects: Iterable[int]
) -> Iterator[int]:
    """The ttls of the objects themselves, and of all zones of what they contain now."""
    wanted = set(objects)
    for id in wanted:
        yield effective_ttl(zones, *_path(newest.get(id))).seconds
    for (id, _), zone in zones.items():
        if zone.gc_ttl_seconds is not None and wanted & set(_path(newest.get(id))):
            yield zone.gc_ttl_seconds


def _path(descriptor: AnyDescriptor | None) -> tuple[int, ...]:
    """The ids of the objects that contain it, outermost first, and its own."""
    match descriptor:
        case None:
            return ()
        case Database():
            return (descriptor.id,)
        case Schema():
            return (descriptor.database, descriptor.id)
        case _:
            return (descriptor.database, descriptor.schema, descriptor.id)
