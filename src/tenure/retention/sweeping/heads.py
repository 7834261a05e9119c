"""The heads that sweeps look at, and which of them are due.

    1 .. 99, without the catalog    system heads      a ttl of their own
    descriptors, names, maps        the catalog       the longest ttl
    100 ..                          indexes           the ttl of their zones

A head is due if its pair can move and there may be something to remove:

* it was written to after its last threshold, which the head clock tells of all heads at once;
* a point was given up that the last sweep had kept;
* the last sweep had to leave tombstones, because a merge of the index was under way.

A dropped table is swept like others until it is collected: a protection may keep it for long, and keeps only
what is visible at its time.

All revisions of any other head had ended by its last threshold, those in its files too, so its last sweep
took all that its points did not keep.

Invariant (idle-heads): a head that is not due costs a round no call of the engine and no commit.

Walk: `retention.sweeping.rounds` lists heads and asks `is_due`; pure.
"""

from collections.abc import Iterator

from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import Table
from tenure.kv.keys import DESCRIPTORS, NAMES, SCHEMA_MAPS, USER_TABLES, Keyspace
from tenure.retention.sweeping.sweep_records import UNDER_WAY, SweepRecord
from tenure.storage.engine import WrittenHeads
from tenure.table.lake.keep import Keep

CATALOG_TABLES = (DESCRIPTORS, NAMES, SCHEMA_MAPS)
"""The tables that together are the catalog as of a time."""


def catalog_heads(keyspace: Keyspace) -> tuple[bytes, ...]:
    return tuple(keyspace.head(table) for table in CATALOG_TABLES)


def system_heads(keyspace: Keyspace) -> Iterator[bytes]:
    """All heads of system records that are not the catalog's."""
    return (keyspace.head(table) for table in range(1, USER_TABLES) if table not in CATALOG_TABLES)


def index_heads(keyspace: Keyspace, table: Table) -> Iterator[bytes]:
    """The heads of the indexes that a table has."""
    return (keyspace.head(table.id, index.id) for index in table.indexes)


def former_indexes(table: Table) -> list[int]:
    """The indexes that a table has had: the ids that were used and are no longer."""
    present = {index.id for index in table.indexes}
    return [id for id in range(1, table.next_index) if id not in present]


def all_heads(keyspace: Keyspace, table: Table) -> list[bytes]:
    """The heads of all indexes that a table has, or has had."""
    return [keyspace.head(table.id, index) for index in range(1, table.next_index)]


def has_moved(written: WrittenHeads, head: bytes, record: SweepRecord | None) -> bool:
    """Whether a head may have been written to after its last threshold."""
    return written.may_have_changed(head, ZERO_AT if record is None else record.keep.threshold)


def may_be_due(record: SweepRecord | None) -> bool:
    """Whether a head that has not moved may be due: only its pair can tell."""
    return record is not None and (bool(record.keep.points) or record.has_left_tombstones)


def is_due(record: SweepRecord | None, keep: Keep, has_moved: bool) -> bool:
    """Whether a head is to be swept with a pair."""
    if record is None:
        return has_moved and keep.threshold > ZERO_AT
    if record.stage in UNDER_WAY:
        return False
    given_up = set(record.keep.points) - set(keep.points)
    is_left = has_moved or record.has_left_tombstones
    return bool(given_up) or (is_left and keep.threshold > record.keep.threshold)
