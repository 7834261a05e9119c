"""The parts of columns in memory, and how changes become another part.

A part is sorted by key, and of one key by time: the last revision of a key in a part is the only one
that may still be open (`until` is the end of time).

    applied(cached, revisions)  1  the revisions as a part: each ends where the next of its key begins
                                2  the first of each key ends the open row in an earlier part

The last parts are joined when there are many; rows that are no longer visible at any readable time are
dropped when they are a good part of all, which moves the earliest readable time up.

Walk: `table.columnar` holds them; this calls `table.column_batches` for the arrays.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.table.arrays import Bools, Int64s, KeyArray, Rows
from tenure.table.column_batches import WantedColumns, batch, encoded
from tenure.table.lake.hidden_rows import HiddenRows

KEY_BYTES_MAX = 48
"""Longer keys are held as Python's bytes: an array as wide as the longest would be large."""

PARTS_MAX = 8
"""With more parts than this the last ones are joined: each costs every reader a little."""

DEAD_SHARE_MAX = 0.25
"""The fraction of invisible rows above which they are dropped."""

OPEN = MAX_AT


class RowPart(NamedTuple):
    keys: KeyArray
    """Without their heads; sorted."""
    at: Int64s
    until: Int64s
    table: Rows

    @property
    def held_bytes(self) -> int:
        # For Python's bytes, numpy counts the pointers only.
        keys = self.keys.nbytes if self.keys.dtype != object else len(self.keys) * 2 * KEY_BYTES_MAX
        return int(self.table.nbytes + keys + self.at.nbytes + self.until.nbytes)


class CachedParts(NamedTuple):
    wanted: WantedColumns
    parts: tuple[RowPart, ...]
    loaded_at: Timestamp
    """The earliest readable time,"""
    through_at: Timestamp
    """and the latest."""
    hiding: HiddenRows = HiddenRows()
    """Which rows of the base have changed since it was made, if the table has one."""

    @property
    def rows(self) -> int:
        return sum(len(part.at) for part in self.parts)

    @property
    def held_bytes(self) -> int:
        return sum(part.held_bytes for part in self.parts) + self.hiding.held_bytes

    def has(self, wanted: WantedColumns) -> bool:
        return wanted.columns.items() <= self.wanted.columns.items()


def piece(keys: list[bytes], at: list[Timestamp], batch: pa.RecordBatch) -> RowPart:
    """Rows that are all open, in key order."""
    until = np.full(len(keys), OPEN, dtype=np.int64)
    return RowPart(_keys(keys), np.array(at, dtype=np.int64), until, pa.Table.from_batches([batch]))


def together(pieces: Sequence[RowPart], schema: pa.Schema) -> RowPart:
    """Consecutive pieces as one part."""
    if not pieces:
        return RowPart(_keys([]), np.array([], np.int64), np.array([], np.int64), schema.empty_table())
    return RowPart(
        _joined_keys(pieces),
        np.concatenate([each.at for each in pieces]),
        np.concatenate([each.until for each in pieces]),
        pa.concat_tables([each.table for each in pieces]),
    )


def applied(
    cached: CachedParts, revisions: Sequence[Revision], through_at: Timestamp, read_at: Timestamp
) -> CachedParts:
    """Applies everything that happened up to `through_at`; stays readable at `read_at` and later."""
    if not revisions:
        return cached._replace(through_at=through_at)
    ordered = sorted(revisions)  # by key, then time; no two have both equal
    until = [later.at if later.key == each.key else OPEN for each, later in itertools.pairwise(ordered)]
    until.append(OPEN)
    firsts = [ordered[0], *(b for a, b in itertools.pairwise(ordered) if a.key != b.key)]
    keys = [each.key[HEAD_BYTES:] for each in firsts]
    ends = np.array([each.at for each in firsts], dtype=np.int64)
    parts = [_ended(part, keys, ends) for part in cached.parts]
    rows = [(each, end) for each, end in zip(ordered, until, strict=True) if each.value is not None]
    if rows:
        revised = [each for each, _ in rows]
        parts.append(
            RowPart(
                _keys([each.key for each in revised]),
                np.array([each.at for each in revised], dtype=np.int64),
                np.array([end for _, end in rows], dtype=np.int64),
                pa.Table.from_batches([batch(cached.wanted, revised)]),
            )
        )
    return _compacted(cached._replace(parts=tuple(parts), through_at=through_at), read_at)


def _ended(part: RowPart, newer: Sequence[bytes], ends: Int64s) -> RowPart:
    """The part, with open rows ended where they have a newer revision; those are in key order."""
    if not len(part.at):
        return part
    keys = _array(newer, part.keys.dtype)
    places = np.searchsorted(part.keys, keys, "right") - 1
    is_there = places >= 0
    is_there &= part.keys[places] == keys
    is_there &= part.until[places] == OPEN
    if not is_there.any():
        return part
    until = part.until.copy()
    until[places[is_there]] = ends[is_there]
    return part._replace(until=until)


def sorted_keys(keys: Iterable[bytes], like: KeyArray) -> KeyArray:
    """Keys as an array that can be searched for in another one."""
    return _array(sorted(key[HEAD_BYTES:] for key in keys), like.dtype)


def _keys(keys: Sequence[bytes]) -> KeyArray:
    suffixes = [key[HEAD_BYTES:] for key in keys]
    is_object = max(map(len, suffixes), default=0) > KEY_BYTES_MAX
    return _array(suffixes, np.dtype(object if is_object else np.bytes_))


def _array(suffixes: Sequence[bytes], dtype: np.dtype[Any]) -> KeyArray:
    """Without trailing zeros, which an array of bytes drops: no key is another one with zeros added.

    Nor is one a prefix of another: keys that are too long for a width are cut, and found nowhere.
    """
    if not dtype.hasobject:
        return np.array(suffixes, dtype=dtype)
    array = np.empty(len(suffixes), dtype=object)
    array[:] = [each.rstrip(b"\0") for each in suffixes]
    return array


def _compacted(parts: CachedParts, read_at: Timestamp) -> CachedParts:
    rows = sum(len(part.at) for part in parts.parts)
    dead = sum(int(np.count_nonzero(part.until <= read_at)) for part in parts.parts)
    if dead > rows * DEAD_SHARE_MAX:
        alive = [_filtered(part, part.until > read_at) for part in parts.parts]
        return parts._replace(parts=(_joined(alive),), loaded_at=max(parts.loaded_at, read_at))
    if len(parts.parts) > PARTS_MAX:
        first = _first_joined([len(part.at) for part in parts.parts])
        return parts._replace(parts=(*parts.parts[:first], _joined(parts.parts[first:])))
    return parts


def _first_joined(rows: Sequence[int]) -> int:
    """The part from which on all are joined: parts larger than all that follow stay, so a row seldom
    moves.
    """
    first, following = len(rows) - 2, rows[-1]
    while first > 1 and rows[first - 1] <= following + rows[first]:
        following += rows[first]
        first -= 1
    return first


def _filtered(part: RowPart, mask: Bools) -> RowPart:
    return RowPart(part.keys[mask], part.at[mask], part.until[mask], part.table.filter(pa.array(mask)))


def _joined(parts: Sequence[RowPart]) -> RowPart:
    """Parts with interleaving keys, as one."""
    keys = _joined_keys(parts)
    at = np.concatenate([part.at for part in parts])
    order = np.lexsort((at, keys)) if keys.dtype != object else _object_order(keys, at)
    until = np.concatenate([part.until for part in parts])
    table = pa.concat_tables([_plain(part.table) for part in parts]).take(pa.array(order))
    schema = parts[0].table.schema
    # Encoded anew: a dictionary may have values of rows that were dropped.
    columns = [encoded(column, type) for column, type in zip(table.columns, schema.types, strict=True)]
    return RowPart(keys[order], at[order], until[order], pa.table(columns, schema=schema))


def _plain(table: Rows) -> Rows:
    """Without dictionaries."""
    types = [each.value_type if pa.types.is_dictionary(each) else each for each in table.schema.types]
    return table.cast(pa.schema(zip(table.column_names, types, strict=True)))


def _joined_keys(parts: Sequence[RowPart]) -> KeyArray:
    if any(part.keys.dtype == object for part in parts):
        return np.concatenate([part.keys.astype(object) for part in parts])
    return np.concatenate([part.keys for part in parts])


def _object_order(keys: KeyArray, at: Int64s) -> Int64s:
    return np.array(sorted(range(len(keys)), key=lambda row: (keys[row], at[row])), dtype=np.int64)
