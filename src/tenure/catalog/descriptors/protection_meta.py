"""The protections' meta record: their number and size, and a version that each of them moves.

It lies below retention because zone changes read it: a zone and a protection that do not see each other
cannot both commit.

Walk: `catalog.bootstrap` writes the first; retention moves it.
"""

from tenure.kv.keys import PROTECTIONS_META, Keyspace
from tenure.kv.records import Record, Records


class ProtectionMeta(Record, frozen=True):
    version: int = 0
    records: int = 0
    spans: int = 0
    bytes: int = 0


def protection_meta(keyspace: Keyspace) -> Records[ProtectionMeta]:
    return Records(keyspace, PROTECTIONS_META, ProtectionMeta, key=())
