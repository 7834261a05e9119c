"""Thresholds: how much history of a head stays, decided from values alone.

    ttl 40, protect_at 25 and 70, protect_after 80, now 100

    ──25────────────────60────70────80────────────100──►
      point             threshold
                        = min(100 - 40, 80)

The threshold is the oldest readable time. It stays at or below each time from which a `protect_after`
covers the head. It may pass a `protect_at`, which then becomes a kept point. Threshold and points are one
pair, a `Keep`: a removal uses the pair of one publication, and never a threshold that it reads again.

    head                  threshold                                        points
    index of a table      min(now - ttl of its zone, each protect_after)   each protect_at below it
    catalog               min(now - longest ttl, each protection)          none
    other system heads    min(now - ttl of system heads, ...)              as an index

A dropped object ends at its first dropped version without draining names: writers on the version before the
drop commit until then. Its data may be collected once no readable time lies before its end.

Invariant (I29): a threshold never goes back.

Walk: sweeps call these in the transaction that publishes, with values read there -> `table.lake.keep.Keep`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from tenure.base.timestamp import Timestamp, add_seconds
from tenure.catalog.descriptors.definitions import AnyDescriptor, Table, is_dropped
from tenure.table.lake.keep import Keep

V = TypeVar("V", bound=AnyDescriptor)


class HeadHold(NamedTuple):
    """What one protection keeps of one head."""

    at: Timestamp
    """The time at which the head stays readable; for a `protect_after`, the time from which it is covered."""
    is_after: bool
    """Whether all later times stay readable, too."""
    protection: bytes = b""
    """Its id."""


class Decision(NamedTuple):
    keep: Keep
    held_by: bytes = b""
    """The protection that keeps the threshold below what the ttl allows; empty if there is none."""


def of_index(
    *,
    now_at: Timestamp,
    ttl_seconds: float,
    previous_at: Timestamp,
    holds: Collection[HeadHold] = (),
) -> Decision:
    """The pair of an index; `previous_at` is its threshold so far: its publication if a merge filled it."""
    by_ttl_at = max(previous_at, add_seconds(now_at, -ttl_seconds))
    first = min((hold for hold in holds if hold.is_after), default=None)
    if first is None or first.at >= by_ttl_at:
        return Decision(_pair(by_ttl_at, holds))
    threshold = max(previous_at, first.at)
    return Decision(_pair(threshold, holds), first.protection if threshold < by_ttl_at else b"")


def _pair(threshold: Timestamp, holds: Iterable[HeadHold]) -> Keep:
    points = {hold.at for hold in holds if not hold.is_after and hold.at < threshold}
    return Keep(threshold, tuple(sorted(points)))


def of_catalog(
    *,
    now_at: Timestamp,
    ttls_seconds: Iterable[float],
    previous_at: Timestamp,
    holds: Iterable[HeadHold] = (),
) -> Decision:
    """The pair of the catalog's heads, given all ttls in force and all protections, of any object.

    Callers that may read old rows may read their descriptors: so each protection counts as a `protect_after`.
    """
    after = [hold._replace(is_after=True) for hold in holds]
    return of_index(now_at=now_at, ttl_seconds=max(ttls_seconds), previous_at=previous_at, holds=after)


# ── ends of dropped objects ─────────────────────────────────────────────────────────────────────


def end_of(versions: Sequence[AnyDescriptor]) -> Timestamp | None:
    """When a dropped object ended, given its newest versions in order; None if it has not ended.

    If the versions before its end are no longer known, it is the first one that is.
    """
    ended = _last_run(versions, lambda version: is_dropped(version) and not version.draining)
    return ended[0].modified_at if ended else None


def index_end_of(versions: Sequence[Table], index: int) -> Timestamp | None:
    """When an index left its table, given the table's newest versions in order; None if the table has it."""
    without = _last_run(versions, lambda version: all(each.id != index for each in version.indexes))
    return without[0].modified_at if without else None


def _last_run(versions: Sequence[V], holds: Callable[[V], bool]) -> list[V]:
    """The last versions for which something holds."""
    run: list[V] = []
    for version in reversed(versions):
        if not holds(version):
            break
        run.append(version)
    return run[::-1]


def may_collect(end_at: Timestamp, pairs: Iterable[Keep]) -> bool:
    """Whether nothing of an object that ended is readable any more, given the pairs of all its heads."""
    return all(pair.threshold >= end_at and all(at >= end_at for at in pair.points) for pair in pairs)
