"""What transactions are made with: the objects that a store's transactions share, values read ahead, states.

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
    """Sent; its outcome has not been processed yet."""
    COMMITTED = "committed"
    ENDED = "ended"
    """Rolled back, failed, or with an unknown outcome."""


class Scope(NamedTuple):
    """The objects that all transactions of a store share."""

    engine: Engine
    keyspace: Keyspace
    clock: Clock
    limits: CommitLimits
    bases: Bases
    volume: Volume


class ReadAhead(NamedTuple):
    """Values of keys, all as of one time, which a transaction need not read."""

    at: Timestamp
    values: Mapping[bytes, bytes | None]


def values_at(writes: Iterable[Write], commit_at: Timestamp) -> dict[bytes, bytes | None]:
    """The values that a commit has written, by key."""
    return {key: value for key, _, value in (stamped(write, commit_at) for write in writes)}
