"""How a removal goes over a span: which revisions may go, and the place where its limit has cut it.

    past          (key, until) in order: those that ended by `at` and are visible at no kept point
    tombstones    (key) in order, after `past`: those committed by `at` of whose key `past` has nothing left

One key may have a million revisions, so a place lies behind a revision, not behind a key. Revisions that are
kept are looked at once in a pass and not again by its later batches.

A removal of flushed revisions needs no place: it looks only at revisions that it removes. The callers of an
engine keep places without reading them. The section of PostgreSQL makes them by itself, in the same form.

Invariant (kept-points): a removal leaves every revision that is visible at one of its kept points.

Walk: `storage.sqlite.removals` and `storage.postgres.group` call these; pure.
"""

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from tenure.base.timestamp import Timestamp, from_bytes, to_bytes
from tenure.storage.engine import Removal

BEFORE_ALL_AT: Timestamp = -1
"""Below the end of every revision."""

FLUSHED_PLACE = b"f"
"""The place of a removal of flushed revisions that its limit has cut."""


class Phase(IntEnum):
    PAST = 0
    TOMBSTONES = 1


class RemovalPlace(NamedTuple):
    phase: Phase
    key: bytes
    """In `past`: the key of the last revision looked at. In the tombstones: the first key to look at."""
    until_at: Timestamp = BEFORE_ALL_AT
    """In `past`: the end of the last revision looked at."""


def encode_place(place: RemovalPlace) -> bytes:
    if place.phase is Phase.PAST:
        return b"p" + to_bytes(place.until_at) + place.key
    return b"t" + place.key


def first_place(removal: Removal) -> RemovalPlace:
    """Where a removal begins."""
    after = removal.after
    if after.startswith(b"p"):
        return RemovalPlace(Phase.PAST, after[9:], from_bytes(after[1:9]))
    if after.startswith(b"t"):
        return RemovalPlace(Phase.TOMBSTONES, after[1:])
    return RemovalPlace(Phase.PAST, removal.lo)


def is_kept(at: Timestamp, until_at: Timestamp, removal_at: Timestamp, points: Sequence[Timestamp]) -> bool:
    """Whether a past revision must stay; `points` are sorted."""
    if until_at > removal_at:
        return True
    position = bisect_left(points, at)
    return position < len(points) and points[position] < until_at
