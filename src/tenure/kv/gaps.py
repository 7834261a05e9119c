"""Gaps: the part of its stream that a watch can no longer deliver, as a value that says why.

    delivered up to R          gap.at                          the store clock
    ─────────────────┤╌╌╌╌╌╌╌╌╌╌╌╌┤──────────────────────────────────┤
                       revisions of (R, gap.at] may be missing

    reason           what has happened                            how a stream of rows goes on
    below threshold  a sweep has collected history                scan at gap.at: what was between is lost
    imported         a merge with input has replaced rows         scan again at gap.at
    flushed          revisions have moved from store to lake      read (R, gap.at] from the lake

If several apply, the first of the table is reported. A follower of state loads again in any case.

Both kinds of merges move the cleaned mark, and its history tells them apart: a merge with input stamps the
mark with its own commit timestamp, cleaning sets it to a time before its commit. If that history was swept
itself, the reason is "imported": scanning again is right after a flush too.

Invariant (gap-reason): a gap in which a merge with input was published is never called flushed.

Walk: `kv.watch` calls `find_gap` with each answer of `Engine.history`; `kv.follower` handles the gap.
"""

from enum import Enum
from typing import NamedTuple

from tenure.base.timestamp import Timestamp, from_bytes
from tenure.kv.keys import Keyspace, Span
from tenure.storage.engine import Engine, Guard, History, ReadResult


class GapReason(Enum):
    BELOW_THRESHOLD = "below the threshold"
    IMPORTED = "imported"
    FLUSHED = "flushed"


class Gap(NamedTuple):
    span: Span
    """The watched span that has the gap; other spans of the same watch may be complete."""
    at: Timestamp
    """Revisions up to here may be missing; a watch that starts here is complete."""
    reason: GapReason


def find_gap(
    engine: Engine, keyspace: Keyspace, span: Span, found: ReadResult, since_at: Timestamp
) -> Gap | None:
    """Compares a history since a time with the marks of the same engine snapshot."""
    at = max(found.threshold_at, found.cleaned_at)
    if at <= since_at:
        return None
    if found.threshold_at > since_at:
        return Gap(span, at, GapReason.BELOW_THRESHOLD)
    was_imported = _was_imported(engine, keyspace, keyspace.guard(span), since_at, at)
    return Gap(span, at, GapReason.IMPORTED if was_imported else GapReason.FLUSHED)


def _was_imported(
    engine: Engine, keyspace: Keyspace, guard: Guard, since_at: Timestamp, gap_at: Timestamp
) -> bool:
    """Whether a merge with input has moved a cleaned mark since a time, up to the gap's end."""
    marks = Span(guard.cleaned_first, guard.cleaned_last + b"\0")
    moves = engine.history(History(marks.lo, marks.hi, keyspace.guard(marks), since_at, until_at=gap_at))
    if moves.threshold_at > since_at:
        return True
    return any(value is not None and from_bytes(value) == at for _, at, value in moves.revisions)
