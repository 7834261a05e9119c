"""What transactions are made with: what those of a store share, what may be known beforehand, their states.

Walk: `kv.store` makes a `Scope`; `kv.transaction` has a `TransactionState`, and may start from `ReadAhead`
values.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from tenure.base.clock import Clock
from tenure.base.timestamp import Timestamp
from tenure.kv.bases import Bases
from tenure.kv.buffer import CommitLimits
from tenure.kv.keys import Keyspace
from tenure.kv.volume import Volume
from tenure.storage.engine import Engine, Write, stamped


class TransactionState(Enum):
    OPEN = "open"
    SUBMITTED = "submitted"
    """On its way; what became of it is not taken in yet."""
    COMMITTED = "committed"
    ENDED = "ended"
    """Rolled back, failed, or with an outcome that is not known here."""


class Scope(NamedTuple):
    """What all transactions of a store share."""

    engine: Engine
    keyspace: Keyspace
    clock: Clock
    limits: CommitLimits
    bases: Bases
    volume: Volume


class ReadAhead(NamedTuple):
    """Values of keys, all as they were at one time: what a transaction need not ask for."""

    at: Timestamp
    values: Mapping[bytes, bytes | None]


def values_at(writes: Iterable[Write], commit_at: Timestamp) -> dict[bytes, bytes | None]:
    """What a commit has put under each key."""
    return {key: value for key, _, value in (stamped(write, commit_at) for write in writes)}
