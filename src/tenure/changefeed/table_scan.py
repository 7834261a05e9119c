"""Scans of a whole table: all its rows at a time, or the difference that a new primary index makes.

    ROWS        every row visible at T
    TAKEOVER    at M another version took over, maybe with another primary index. Its rows are compared with
                those of the former version just before M:
                    only in the former one     deleted at M
                    in both                    emitted if it looks different, or if all rows are wanted
                    only in the new one        emitted
                If the key columns have changed, all former rows are deleted, and all new ones emitted

A scan goes by key, and can go on from any cursor. The cursor of a takeover has a byte before the key: whether
it is among the former rows or the new ones, where these are read one after the other.

Walk: `changefeed.table_stream` takes pages from `scan_rows` or `scan_takeover`.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from tenure.base.timestamp import Timestamp
from tenure.changefeed.table_events import primary_of
from tenure.changefeed.version_rows import RowChange, Values, VersionRows
from tenure.kv.store import Store
from tenure.storage.engine import HEAD_BYTES

FORMER, NEW = b"\x00", b"\x01"


class Scanned(NamedTuple):
    change: RowChange | None
    """None: this row is not emitted."""
    cursor: bytes
    """Where the scan goes on after this row."""


def scan_rows(store: Store, rows: VersionRows, at: Timestamp, cursor: bytes) -> Iterator[Scanned]:
    for suffix, value in _stored(store, rows, at, cursor):
        yield Scanned(_emitted(rows, at, suffix, value), _after(suffix))


def scan_takeover(
    store: Store, former: VersionRows, rows: VersionRows, at: Timestamp, cursor: bytes, *, is_full: bool
) -> Iterator[Scanned]:
    if primary_of(former.version.table).parts != primary_of(rows.version.table).parts:
        yield from _rekeyed(store, former, rows, at, cursor)
        return
    old, new = _stored(store, former, at - 1, cursor), _stored(store, rows, at, cursor)
    for suffix, before, after in paired(old, new):
        if after is None:
            assert before is not None
            change: RowChange | None = _deleted(former, at, suffix, before)
        else:
            change = _emitted(rows, at, suffix, after)
            if before is not None and not is_full and _looks_same(former, before, rows, after, suffix):
                change = None
            elif before is not None:
                values = _decoded(former, suffix, before)
                change = change._replace(before=values, before_rows=former)
        yield Scanned(change, _after(suffix))


def _rekeyed(
    store: Store, former: VersionRows, rows: VersionRows, at: Timestamp, cursor: bytes
) -> Iterator[Scanned]:
    if cursor[:1] != NEW:
        for suffix, value in _stored(store, former, at - 1, cursor[1:]):
            yield Scanned(_deleted(former, at, suffix, value), FORMER + _after(suffix))
        cursor = NEW
    for suffix, value in _stored(store, rows, at, cursor[1:]):
        yield Scanned(_emitted(rows, at, suffix, value), NEW + _after(suffix))


A = TypeVar("A")


def paired(
    old: Iterator[tuple[bytes, A]], new: Iterator[tuple[bytes, A]]
) -> Iterator[tuple[bytes, A | None, A | None]]:
    """Two sequences in key order, side by side: what stands under a key in each of them."""
    left, right = next(old, None), next(new, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[0] < right[0]):
            assert left is not None
            yield left[0], left[1], None
            left = next(old, None)
        elif left is None or right[0] < left[0]:
            yield right[0], None, right[1]
            right = next(new, None)
        else:
            yield left[0], left[1], right[1]
            left, right = next(old, None), next(new, None)


def _stored(store: Store, rows: VersionRows, at: Timestamp, cursor: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys without their head, and values."""
    for key, value in store.snapshot(at).scan(rows.span_after(cursor)):
        yield key[HEAD_BYTES:], value


def _after(suffix: bytes) -> bytes:
    return suffix + b"\0"


def _emitted(rows: VersionRows, at: Timestamp, suffix: bytes, value: bytes) -> RowChange:
    values = _decoded(rows, suffix, value)
    return RowChange(rows, at, rows.key_of(values), values)


def _deleted(rows: VersionRows, at: Timestamp, suffix: bytes, value: bytes) -> RowChange:
    values = _decoded(rows, suffix, value)
    return RowChange(rows, at, rows.key_of(values), None, values, rows)


def _decoded(rows: VersionRows, suffix: bytes, value: bytes) -> Values:
    return rows.decode(rows.span.lo[:HEAD_BYTES] + suffix, value)


def _looks_same(former: VersionRows, before: bytes, rows: VersionRows, after: bytes, suffix: bytes) -> bool:
    """By the columns that both versions show."""
    old = dict(zip(former.read_ids, _decoded(former, suffix, before), strict=True))
    new = dict(zip(rows.read_ids, _decoded(rows, suffix, after), strict=True))
    # By their texts: equal numbers may look different.
    return all(repr(old[id]) == repr(new[id]) for id in old.keys() & new.keys())
