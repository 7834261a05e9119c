"""Sweep records: what the last sweep of each head has published, and how far its removal is.

    (none) ──► PUBLISHED ──► SWEPT ──► PUBLISHED ──► ...          a head that is in use
                  └────────────┴─────► COLLECTING ──► COLLECTED   a head whose object has ended
                                            ▲             │
                                            └─────────────┘       a writer came late

A record holds the pair of one publication. A removal reads its record again in each transaction, and stops if
another publication has replaced it: so it removes by its own pair alone, also if it is continued by another
process. The record of the round says which job sweeps by the schedule, and when it was started.

Walk: `retention.sweeping.publication` writes these with the thresholds, `retention.sweeping.removal` moves
the cursor; `SHOW GC STATUS` shows them.
"""

from enum import Enum

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.keys import SWEEP_ROUND, SWEEPS, Keyspace
from tenure.kv.records import Record, Records
from tenure.table.lake.keep import KEEP_ALL, Keep


class SweepStage(Enum):
    PUBLISHED = "published"
    """Its pair is published; revisions are being removed."""
    SWEPT = "swept"
    """All that the pair does not need has left the store."""
    COLLECTING = "collecting"
    """Its object has ended; all rows and files are being removed."""
    COLLECTED = "collected"


UNDER_WAY = frozenset((SweepStage.PUBLISHED, SweepStage.COLLECTING))
"""The stages in which something is left to remove."""


class SweepRecord(Record, frozen=True):
    head: bytes
    stage: SweepStage
    keep: Keep
    """The pair of its publication."""
    published_at: Timestamp = ZERO_AT
    """The commit that published the pair."""
    ttl_seconds: float = 0.0
    held_by: bytes = b""
    """The protection that keeps the threshold below what the ttl allows; empty if there is none."""
    takes_tombstones: bool = False
    """Whether the last removal takes tombstones, too."""
    cursor: bytes = b""
    """Where the removal goes on; empty: at the beginning."""
    removed: int = 0
    """Revisions that have left the store since the publication."""
    finished_at: Timestamp = ZERO_AT
    """When the last removal was finished."""
    ended_at: Timestamp = ZERO_AT
    """The end of its object, if it has ended."""
    files_keep: Keep = KEEP_ALL
    """The pair by which its past files were last rewritten."""
    garbage_rows: int = 0
    """About how many rows of its past files no readable time shows."""
    pinned: tuple[tuple[bytes, int], ...] = ()
    """The protections that cover it, and about how many bytes each pins."""
    has_left_tombstones: bool = False
    """Whether the last removal took no tombstones although the index has no base: a merge was under way."""
    is_forgotten: bool = False
    """Whether its threshold is gone, because no readable time of the catalog names the index."""


class SweepRound(Record, frozen=True):
    job: int
    started_at: Timestamp


def sweep_records(keyspace: Keyspace) -> Records[SweepRecord]:
    return Records(keyspace, SWEEPS, SweepRecord, key=("head",))


def sweep_round(keyspace: Keyspace) -> Records[SweepRound]:
    return Records(keyspace, SWEEP_ROUND, SweepRound, key=())
