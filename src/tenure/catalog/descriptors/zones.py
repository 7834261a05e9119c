"""Zones: how long history is kept, per object; inherited from what contains it.

    default (0, 0) ──► database ──► schema ──► table ──► index

An object without a zone, or whose zone does not set a value, has the value of the next object that contains
it. A zone belongs to an id: a renamed or moved object keeps its own, and inherits from its present place.

Walk: `catalog.bootstrap` writes the default, `catalog.changes.zone_changes` changes zones; `retention` asks
`effective_ttl` how long history is kept.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from tenure.kv.keys import ZONES, Keyspace
from tenure.kv.records import Record, Records
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction

GC_TTL_SECONDS = 14_400
"""Four hours: long enough for a night's incremental backups, short enough to forget mistakes."""

GC_TTL_SECONDS_MIN = 1
"""With no time at all, every statement would lose the race with the sweep that removes what it reads."""

GC_TTL_SECONDS_MAX = 100 * 365 * 86_400
"""A hundred years: the sum of a timestamp and a ttl stays a timestamp."""

ZoneKey: TypeAlias = tuple[int, int]
"""A descriptor's id and an index's; (id, 0) is the whole object, (0, 0) the default of the tenant."""

DEFAULT_ZONE: ZoneKey = (0, 0)


class Zone(Record, frozen=True):
    descriptor: int
    """0: the default of the whole tenant."""
    index: int
    gc_ttl_seconds: int | None = None
    """None: inherited."""


def zones(keyspace: Keyspace) -> Records[Zone]:
    return Records(keyspace, ZONES, Zone, key=("descriptor", "index"))


def all_zones(txn: Transaction | Snapshot, keyspace: Keyspace) -> dict[ZoneKey, Zone]:
    return {(each.descriptor, each.index): each for each in zones(keyspace).scan(txn)}


class EffectiveTtl(NamedTuple):
    seconds: int
    source: ZoneKey
    """The zone that sets it."""


def effective_ttl(
    zones: Mapping[ZoneKey, Zone], database: int = 0, schema: int = 0, table: int = 0, index: int = 0
) -> EffectiveTtl:
    """The ttl in force for an object that lies at this place, and the zone it comes from; 0: nothing."""
    places = [key for key in ((table, index), (table, 0), (schema, 0), (database, 0)) if key[0]]
    for key in (*places, DEFAULT_ZONE):
        zone = zones.get(key)
        if zone is not None and zone.gc_ttl_seconds is not None:
            return EffectiveTtl(zone.gc_ttl_seconds, key)
    return EffectiveTtl(GC_TTL_SECONDS, DEFAULT_ZONE)


def longest_ttl_seconds(zones: Mapping[ZoneKey, Zone]) -> int:
    """No index of the tenant has a longer ttl."""
    return max(
        (each.gc_ttl_seconds for each in zones.values() if each.gc_ttl_seconds), default=GC_TTL_SECONDS
    )
