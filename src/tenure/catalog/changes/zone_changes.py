"""Changes of zones, in the caller's transaction.

Each reads the protections' meta record, which every protection writes, and each protection reads the zones:
of a protection and a zone change that did not see each other only one commits.

Invariant (zone-chain): a transaction that changes a zone has the protections' meta record in its read set.

Walk: the statements CONFIGURE ZONE call `configure` and `discard`; these write `catalog.descriptors.zones`.
"""

from tenure.base.errors import InvalidParameter
from tenure.catalog.descriptors.protection_meta import protection_meta
from tenure.catalog.descriptors.zones import (
    DEFAULT_ZONE,
    GC_TTL_SECONDS_MAX,
    GC_TTL_SECONDS_MIN,
    Zone,
    ZoneKey,
    zones,
)
from tenure.kv.keys import Keyspace
from tenure.kv.transaction import Transaction


def configure(txn: Transaction, keyspace: Keyspace, key: ZoneKey, *, gc_ttl_seconds: int) -> None:
    """Sets how long history of an object is kept; the key is (descriptor, index)."""
    check_ttl(gc_ttl_seconds)
    protection_meta(keyspace).get(txn)
    zones(keyspace).put(txn, Zone(*key, gc_ttl_seconds))


def discard(txn: Transaction, keyspace: Keyspace, key: ZoneKey) -> bool:
    """Removes an object's own zone, so that it inherits; False if it has none."""
    if key == DEFAULT_ZONE:
        raise InvalidParameter(
            "the default zone cannot be discarded", hint="Set its values with CONFIGURE ZONE USING."
        )
    protection_meta(keyspace).get(txn)
    records = zones(keyspace)
    if records.get(txn, *key) is None:
        return False
    records.delete(txn, *key)
    return True


def check_ttl(gc_ttl_seconds: int) -> None:
    lower, upper = GC_TTL_SECONDS_MIN, GC_TTL_SECONDS_MAX
    if not lower <= gc_ttl_seconds <= upper:
        raise InvalidParameter(f"gc.ttlseconds must be between {lower} and {upper}, not {gc_ttl_seconds}")
