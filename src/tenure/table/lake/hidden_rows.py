"""Hidden rows: positions in a base's files of keys that have changed since, as a bitmap for each file.

    delta    k2 changed at 20, k7 gone at 30
    file     k1 k2 k3 | k6 k7 k8         positions 1 and 4, hidden from 20 and from 30 on
    at 25    010000                      at 35    010010

A file's bitmap goes with the scan of it, so nothing else need be compared there. It is extended as the delta
grows: new revisions cost a search for their keys, in the row groups where they may be.

The bitmaps are never changed in place: readers keep theirs.

Invariant (hidden-exact): exactly those rows of a file are hidden whose key has a revision since.

Walk: `table.columnar` extends a `HiddenRows` by revisions -> `located` -> `lake.groups`; scans get `bits`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.storage.engine import HEAD_BYTES, Revision
from tenure.table.arrays import Bytes, HeldKeys, Int64s, KeyArray, Keys
from tenure.table.lake.groups import ARRAY_KEY_BYTES_MAX, DecodedGroups
from tenure.table.lake.manifests import File

FEW = 64
"""Of keys that numpy cannot hold, fewer than one for so many rows of a group are searched for one by one:
that takes less time than comparing all rows.
"""


class HiddenFileRows(NamedTuple):
    """The hidden rows of one file."""

    bits: Bytes
    """All that are hidden by now, the first row's bit first."""
    positions: tuple[Int64s, ...]
    at: tuple[Int64s, ...]
    """The rows and the times from which they are hidden, in the order of arrival."""
    last_at: Timestamp

    @property
    def held_bytes(self) -> int:
        return int(self.bits.nbytes + 2 * sum(each.nbytes for each in self.positions))

    def bits_at(self, at: Timestamp) -> Bytes:
        if at >= self.last_at:
            return self.bits
        is_hidden = np.zeros(len(self.bits) * 8, dtype=bool)
        for positions, times in zip(self.positions, self.at, strict=True):
            is_hidden[positions[times <= at]] = True
        return np.packbits(is_hidden)


class HiddenRows(NamedTuple):
    """The hidden rows of all files of a base, by name; files that are not named have none."""

    files: Mapping[str, HiddenFileRows] = {}

    @property
    def held_bytes(self) -> int:
        return sum(hidden.held_bytes for hidden in self.files.values())

    def with_revisions(
        self, groups: DecodedGroups, files: Sequence[File], revisions: Sequence[Revision]
    ) -> "HiddenRows":
        """With the keys of revisions that are newer than all before them; in time order."""
        firsts: dict[bytes, Timestamp] = {}
        for key, at, _ in revisions:
            firsts.setdefault(key, at)
        return self.with_keys(groups, files, firsts)

    def with_keys(
        self, groups: DecodedGroups, files: Sequence[File], hidden_at: Mapping[bytes, Timestamp]
    ) -> "HiddenRows":
        keys = sorted(hidden_at)
        times = np.array([hidden_at[key] for key in keys], dtype=np.int64)
        changed = dict(self.files)
        for file, positions, which in located(groups, files, [key[HEAD_BYTES:] for key in keys]):
            changed[file.name] = _extended(changed.get(file.name), file, positions, times[which])
        return HiddenRows(changed)


def hidden_at(hidings: Iterable[HiddenRows], file: File, at: Timestamp) -> bytes | None:
    """A bitmap of the rows of a file that one of them hides; None if all are visible."""
    found = [hiding.files[file.name].bits_at(at) for hiding in hidings if file.name in hiding.files]
    bits = np.bitwise_or.reduce(found) if found else None
    return None if bits is None or not bits.any() else bits.tobytes()


def _extended(hidden: HiddenFileRows | None, file: File, positions: Int64s, at: Int64s) -> HiddenFileRows:
    if hidden is None:
        hidden = HiddenFileRows(np.zeros((file.rows + 7) // 8, dtype=np.uint8), (), (), ZERO_AT)
    is_new = (hidden.bits[positions >> 3] >> (7 - (positions & 7))) & 1 == 0
    positions, at = positions[is_new], at[is_new]
    if not len(positions):
        return hidden
    bits = hidden.bits.copy()
    np.bitwise_or.at(bits, positions >> 3, (128 >> (positions & 7)).astype(np.uint8))
    last_at = max(hidden.last_at, int(at.max()))
    return HiddenFileRows(bits, (*hidden.positions, positions), (*hidden.at, at), last_at)


def located(
    groups: DecodedGroups, files: Iterable[File], keys: Sequence[bytes]
) -> Iterator[tuple[File, Int64s, Int64s]]:
    """The rows of files that have one of these sorted keys: their positions, and which keys."""
    # A key too long for an array, or cut to the width of one, equals none of those in it: no key is a prefix
    # of another.
    sought = np.array([key[: ARRAY_KEY_BYTES_MAX + 1] for key in keys], dtype=np.bytes_)
    for file in files:
        first, end = bisect_left(keys, file.first), bisect_right(keys, file.last)
        if first == end:
            continue
        runs = []
        for start, rows, lo, hi in _within(groups, file, keys, first, end):
            is_array = isinstance(rows, np.ndarray)
            found, counts, which = _searched(rows, sought[lo:hi]) if is_array else _sought(rows, keys[lo:hi])
            runs.append((found + start, counts, which + lo))
        yield file, *_spread(*map(np.concatenate, zip(*runs, strict=True)))


def _spread(firsts: Int64s, counts: Int64s, which: Int64s) -> tuple[Int64s, Int64s]:
    """All rows of runs: a key may have several consecutive rows."""
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(firsts, counts) + within, np.repeat(which, counts)


Runs: TypeAlias = tuple[Int64s, Int64s, Int64s]
"""Where in a group the rows of a key begin, how many there are, and of which key."""


def _searched(rows: KeyArray, keys: KeyArray) -> Runs:
    keys = keys.astype(rows.dtype)  # else numpy would widen all rows to the longest key that is searched for
    found = rows.searchsorted(keys)
    return found, rows.searchsorted(keys, "right") - found, np.arange(len(keys))


def _sought(rows: Keys, keys: Sequence[bytes]) -> Runs:
    found, which = (_few if len(keys) * FEW < len(rows) else _many)(rows, keys)
    return found, np.ones(len(found), dtype=np.int64), which


def _many(rows: Keys, keys: Sequence[bytes]) -> tuple[Int64s, Int64s]:
    """The positions in a group whose key is one of these, and which: by comparing every row."""
    places = pc.index_in(rows, value_set=pa.array(keys, pa.binary()))
    found = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    return found, places.drop_null().to_numpy().astype(np.int64)


def _few(rows: Keys, keys: Sequence[bytes]) -> tuple[Int64s, Int64s]:
    """The same, by a search for each key: a key may have several consecutive rows."""
    found, places = [], []
    for place, key in enumerate(keys):
        row = bisect_left(rows, key, key=_plain)
        while row < len(rows) and rows[row].as_py() == key:
            found.append(row)
            places.append(place)
            row += 1
    return np.array(found, dtype=np.int64), np.array(places, dtype=np.int64)


def _plain(key: pa.Scalar) -> bytes:
    plain: bytes = key.as_py()
    return plain


def _within(
    groups: DecodedGroups, file: File, keys: Sequence[bytes], first: int, end: int
) -> Iterator[tuple[int, HeldKeys, int, int]]:
    """The row groups that keys may be in: where each starts, its keys, and which of the searched keys."""
    footer = groups.footer(file)
    wanted = []
    for number, (least, start) in enumerate(zip(footer.firsts, footer.starts, strict=True)):
        beyond = footer.firsts[number + 1] if number + 1 < len(footer.firsts) else None
        lo = bisect_left(keys, least, first, end)
        # A key with several revisions may continue in the next group: there it is the first.
        hi = end if beyond is None else bisect_right(keys, beyond, first, end)
        if lo < hi:
            wanted.append((number, start, lo, hi))
    arrays = groups.keys(file, [number for number, *_ in wanted])
    for (_, start, lo, hi), rows in zip(wanted, arrays, strict=True):
        yield start, rows, lo, hi
