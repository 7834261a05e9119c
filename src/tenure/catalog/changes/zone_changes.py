"""Changes of zones, in the caller's transaction.

Each reads the protections' meta record, which every protection writes, and each protection reads the zones:
of a protection and a zone change that did not see each other only one commits.

Invariant (zone-chain): a transaction that changes a zone has the protections' meta record in its read set.

Walk: the statements CONFIGURE ZONE call `configure` and `discard`; `catalog.changes.publisher` calls
`follow_indexes`, and `retention.sweeping.collection` `forget`; these write `catalog.descriptors.zones`.
"""

from tenure.base.errors import InvalidParameter
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, visible
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
from tenure.kv.records import replace
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


def follow_indexes(
    txn: Transaction, keyspace: Keyspace, former: AnyDescriptor | None, descriptor: AnyDescriptor
) -> None:
    """Called with each version that is published: an index that takes the place of another gets its zone.

    TRUNCATE and changes of types replace indexes; users know them by their names. The former index keeps its
    zone as long as its history is kept.
    """
    if not isinstance(former, Table) or not isinstance(descriptor, Table):
        return
    before = {each.id: each.name for each in visible(former.indexes)}
    after = {each.name: each.id for each in visible(descriptor.indexes) if each.id not in before}
    records = zones(keyspace)
    for id in sorted(before.keys() - {each.id for each in visible(descriptor.indexes)}):
        zone, successor = records.get(txn, descriptor.id, id), after.get(before[id])
        if zone is None or successor is None or records.get(txn, descriptor.id, successor) is not None:
            continue
        protection_meta(keyspace).get(txn)
        records.put(txn, replace(zone, index=successor))


def forget(txn: Transaction, keyspace: Keyspace, descriptor: int, *index: int) -> None:
    """Deletes the zones of an object that is gone and of its indexes, or of one index of it."""
    records = zones(keyspace)
    for zone in list(records.scan(txn, descriptor, *index)):
        protection_meta(keyspace).get(txn)
        records.delete(txn, zone.descriptor, zone.index)


def check_ttl(gc_ttl_seconds: int) -> None:
    lower, upper = GC_TTL_SECONDS_MIN, GC_TTL_SECONDS_MAX
    if not lower <= gc_ttl_seconds <= upper:
        raise InvalidParameter(f"gc.ttlseconds must be between {lower} and {upper}, not {gc_ttl_seconds}")
