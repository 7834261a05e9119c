"""The protections' meta record: their number and size, and a version that each of them moves.

It lies below retention because zone changes read it: a zone and a protection that do not see each other
cannot both commit.

Walk: `catalog.bootstrap` writes the first; `retention.protections.protection_store` moves it,
`catalog.changes.zone_changes` and `retention.protections.protection_catalog` read it.
"""

from tenure.kv.keys import PROTECTIONS_META, Keyspace
from tenure.kv.records import Record, Records


class ProtectionMeta(Record, frozen=True):
    version: int = 0
    """Grows by one with each protection that is made, changed or released."""
    records: int = 0
    spans: int = 0
    bytes: int = 0
    """The size of the records as they are stored."""
    objects: int = 0
    """The databases, schemas and tables that are targets, counted once per protection."""


def protection_meta(keyspace: Keyspace) -> Records[ProtectionMeta]:
    return Records(keyspace, PROTECTIONS_META, ProtectionMeta, key=())
