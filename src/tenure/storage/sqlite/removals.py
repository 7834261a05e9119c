"""How SQLite removes revisions, inside the section.

A batch is a window of the primary key. Without kept points SQLite decides by itself: one statement finds the
end of the window, another deletes what may go in it. With kept points the rows are looked at without their
values, and what may go is deleted by one statement for each run of neighbours: a statement would compare
every row with every point. Both cost what they look at, however much lies elsewhere.

Walk: `sqlite.section.Ledger.apply` -> `remove_all`; `storage.removals` decides.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from tenure.base.timestamp import Timestamp
from tenure.storage.engine import Removal, Removes
from tenure.storage.removals import (
    BEFORE_ALL_AT,
    FLUSHED_PLACE,
    Phase,
    RemovalPlace,
    encode_place,
    first_place,
    is_kept,
)
from tenure.storage.sqlite.head_clock import Execute, heads

_WINDOW_END = (
    "SELECT key, until FROM past WHERE (key, until) > (?, ?) AND key < ? ORDER BY key, until LIMIT 1 OFFSET ?"
)
_WINDOW_ROWS = "SELECT count(*) FROM past WHERE (key, until) > (?, ?) AND key < ?"
_DELETE_WINDOW = "DELETE FROM past WHERE (key, until) > (?, ?) AND (key, until) <= (?, ?) AND until <= ?"
_DELETED = "SELECT changes()"
_PAST = "SELECT key, until, at FROM past WHERE (key, until) > (?, ?) AND key < ? ORDER BY key, until LIMIT ?"
_DELETE_RUN = "DELETE FROM past WHERE (key, until) >= (?, ?) AND (key, until) <= (?, ?)"
_TOMBSTONES = (
    "SELECT key, at, EXISTS (SELECT 1 FROM past p WHERE p.key = l.key)"
    " FROM live l INDEXED BY live_tombstones"
    " WHERE value IS NULL AND key >= ? AND key < ? ORDER BY key LIMIT ?"
)
_DELETE_TOMBSTONES = "DELETE FROM live WHERE key IN (SELECT value FROM carray(?))"
_FLUSHED_PAST = (
    "DELETE FROM past WHERE (key, until) IN (SELECT key, until FROM past INDEXED BY past_changes"
    " WHERE substr(key, 1, 10) = ? AND at <= ? AND key >= ? AND key < ? LIMIT ?)"
    " RETURNING 1"
)
_FLUSHED_LIVE = (
    "DELETE FROM live WHERE key IN (SELECT key FROM live INDEXED BY live_changes"
    " WHERE substr(key, 1, 10) = ? AND at <= ? AND key >= ? AND key < ? LIMIT ?)"
    " RETURNING 1"
)


def remove_all(execute: Execute, removals: Iterable[Removal]) -> tuple[list[int], bytes]:
    """Runs removals in order, up to the first that its limit cuts.

    Returns how many revisions each has removed, and the place of the cut: empty if there was none.
    """
    counts = list[int]()
    for removal in removals:
        count, place = remove(execute, removal)
        counts.append(count)
        if place:
            return counts, place
    return counts, b""


def remove(execute: Execute, removal: Removal) -> tuple[int, bytes]:
    if removal.removes is Removes.FLUSHED:
        removed = _remove_flushed(execute, removal)
        return removed, FLUSHED_PLACE if removed == removal.limit else b""
    removed, left, place = 0, removal.limit, first_place(removal)
    if place.phase is Phase.PAST:
        remove_past = _remove_beside_points if removal.points else _remove_window
        removed, looked_at, place = remove_past(execute, removal, place)
        left -= looked_at
    if removal.removes is Removes.SUPERSEDED and place.phase is Phase.TOMBSTONES:
        return removed, b""
    if not left:
        return removed, encode_place(place)
    tombstones, end = _remove_tombstones(execute, removal, place.key, left)
    return removed + tombstones, end


def _remove_window(execute: Execute, removal: Removal, place: RemovalPlace) -> tuple[int, int, RemovalPlace]:
    """Returns how many revisions went, how many were looked at, and where to continue."""
    start = (place.key, place.until_at)
    ends = execute(_WINDOW_END, (*start, removal.hi, removal.limit - 1))
    if ends:
        looked_at, end = removal.limit, RemovalPlace(Phase.PAST, *ends[0])
        last = (end.key, end.until_at)
    else:
        ((looked_at,),) = execute(_WINDOW_ROWS, (*start, removal.hi))
        end, last = RemovalPlace(Phase.TOMBSTONES, removal.lo), (removal.hi, BEFORE_ALL_AT)
    execute(_DELETE_WINDOW, (*start, *last, removal.at))
    ((removed,),) = execute(_DELETED, ())
    return removed, looked_at, end


def _remove_beside_points(
    execute: Execute, removal: Removal, place: RemovalPlace
) -> tuple[int, int, RemovalPlace]:
    """The same, if some of the revisions are visible at a kept point."""
    rows = execute(_PAST, (place.key, place.until_at, removal.hi, removal.limit))
    points = sorted(removal.points)
    removed = 0
    for stays, run in groupby(rows, lambda row: is_kept(row[2], row[1], removal.at, points)):
        if not stays:
            removed += _delete_run(execute, [(key, until_at) for key, until_at, _ in run])
    if len(rows) < removal.limit:
        return removed, len(rows), RemovalPlace(Phase.TOMBSTONES, removal.lo)
    return removed, len(rows), RemovalPlace(Phase.PAST, rows[-1][0], rows[-1][1])


def _delete_run(execute: Execute, run: Sequence[tuple[bytes, Timestamp]]) -> int:
    execute(_DELETE_RUN, (*run[0], *run[-1]))
    return len(run)


def _remove_tombstones(execute: Execute, removal: Removal, lo: bytes, limit: int) -> tuple[int, bytes]:
    """Returns how many went, and the place of the cut: empty if all were looked at."""
    rows = execute(_TOMBSTONES, (lo, removal.hi, limit))
    keys = tuple(key for key, at, has_past in rows if at <= removal.at and not has_past)
    if keys:
        execute(_DELETE_TOMBSTONES, (keys,))
    if len(rows) < limit:
        return len(keys), b""
    return len(keys), encode_place(RemovalPlace(Phase.TOMBSTONES, rows[-1][0] + b"\0"))


def _remove_flushed(execute: Execute, removal: Removal) -> int:
    """The lake has every revision committed by then, whether it has ended or not."""
    lo, hi, at, limit = removal.lo, removal.hi, removal.at, removal.limit
    removed = 0
    for head in heads(execute, lo, hi, table="past"):
        removed += len(execute(_FLUSHED_PAST, (head, at, lo, hi, limit - removed)))
    for head in heads(execute, lo, hi):
        removed += len(execute(_FLUSHED_LIVE, (head, at, lo, hi, limit - removed)))
    return removed
