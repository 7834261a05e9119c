"""Zones: how long history is kept, per object; inherited from what contains it.

    default (0, 0) ──► database ──► schema ──► table ──► index

Walk: `catalog.bootstrap` writes the default; retention reads them and refuses what contradicts.
"""

from tenure.kv.keys import ZONES, Keyspace
from tenure.kv.records import Record, Records

GC_TTL_SECONDS = 14_400
"""Four hours: long enough for a night's incremental backups, short enough to forget mistakes."""


class Zone(Record, frozen=True):
    descriptor: int
    """0: the default of the whole tenant."""
    index: int
    gc_ttl_seconds: int | None = None
    """None: inherited."""


def zones(keyspace: Keyspace) -> Records[Zone]:
    return Records(keyspace, ZONES, Zone, key=("descriptor", "index"))
