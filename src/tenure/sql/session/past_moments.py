"""Makes a block read the past that a clause names: AS OF SYSTEM TIME, or AS OF SNAPSHOT.

A snapshot is a time that is protected. It is read in the name of its protection, so thresholds do not matter.

Walk: statements that have the clause call `read_past` -> `text.as_of.timestamp_of`, or the store's named
snapshots -> `Block.read_as_of`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.expr.types.datatype import Datum
from tenure.kv.protected_reads import ProtectedRead
from tenure.sql.session.block import Block
from tenure.sql.session.session_state import SessionState
from tenure.sql.text.as_of import snapshot_name, timestamp_of


def read_past(session: SessionState, block: Block, operand: str, values: Sequence[Datum] = ()) -> None:
    """Makes all reads of a block be as of the moment or the snapshot that a clause names."""
    name = snapshot_name(operand)
    if name is None:
        block.read_as_of(timestamp_of(operand, session.env.wall_micros(), values))
        return
    services = session.services
    now = services.store.snapshot()
    found = services.snapshots.find(now, name)
    block.read_as_of(found.at, [services.snapshots.protected_read(now, found)])


class PastMoment(NamedTuple):
    at: Timestamp
    protection: bytes | None = None
    """The id of the snapshot's protection, if a clause names one."""
    protected: ProtectedRead | None = None
    """That reads in its name."""


def moment_of(session: SessionState, operand: str) -> PastMoment:
    """The time that a clause names."""
    name = snapshot_name(operand)
    if name is None:
        return PastMoment(timestamp_of(operand, session.env.wall_micros()))
    services = session.services
    now = services.store.snapshot()
    found = services.snapshots.find(now, name)
    return PastMoment(found.at, found.protection, services.snapshots.protected_read(now, found))
