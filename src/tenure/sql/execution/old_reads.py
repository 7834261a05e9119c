"""Reads whose history is gone, by the names that users know.

Walk: `sql.clients.session` calls `with_name` for an error of a statement.
"""

from tenure.base.errors import SnapshotTooOld
from tenure.base.settings import GC_SYSTEM_TTL
from tenure.kv.keys import USER_TABLES
from tenure.retention.sweeping.heads import CATALOG_TABLES
from tenure.sql.session.services import Services
from tenure.storage.engine import HEAD_BYTES

ZONE_TTL = "gc.ttlseconds"
_UNNAMED = "cannot read at"


def with_name(services: Services, error: SnapshotTooOld) -> SnapshotTooOld:
    """The error with the name of what was read, and with what would have kept it."""
    name, setting = _read(services, error.head)
    if not name:
        return error
    text = str(error).replace(_UNNAMED, f"cannot read {name} at", 1)
    return SnapshotTooOld(text, hint=f"Read at a later time, or keep history longer with {setting}.")


def _read(services: Services, head: bytes) -> tuple[str, str]:
    """The name of an index's table, and the ttl that it has; without a name if the table is gone."""
    if len(head) < HEAD_BYTES:
        return "", ""
    table, _ = services.store.keyspace.table_and_index(head)
    if table in CATALOG_TABLES:
        return "the catalog", ZONE_TTL
    if table < USER_TABLES:
        return "the system's records", GC_SYSTEM_TTL.name
    newest = services.leases.newest
    found = None if newest is None else newest.descriptor(table)
    return ("", "") if found is None else (f'table "{found.name}"', ZONE_TTL)
