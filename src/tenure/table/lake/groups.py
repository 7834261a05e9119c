"""Row groups of files, decoded and cached: lookups by key read these.

A group is found by its file's footer, which has the first key of each. It is read whole, and the most
recently used ones are kept, up to a number of bytes. Keys are compared in place in the Arrow array: some
fourteen steps for a group, no copy.

    run of a key     a past file has several consecutive revisions of a key, also across groups

Walk: `lake.base` -> `DecodedGroups.group` -> `lake.checked_files`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tenure.base.env import Env
from tenure.base.timestamp import Timestamp
from tenure.table.arrays import Column, HeldKeys, Keys, Rows
from tenure.table.key_order import even
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.format import AT, KEY, UNTIL, Footer, entries
from tenure.table.lake.manifests import File, FileShape

ARRAY_KEY_BYTES_MAX = 48
"""Keys of at most this length are held as an array that numpy can search, as wide as the longest."""

SOUGHT_KEYS_MAX = 3
"""So many keys of a group are searched for one by one; for more, comparing all keys of the group costs
less.
"""


class DecodedGroup(NamedTuple):
    file: File
    shape: FileShape
    rows: Rows
    keys: Keys
    at: Column
    until: Column | None
    """None in a live file."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def held_bytes(self) -> int:
        return int(self.rows.nbytes)

    def key(self, row: int) -> bytes:
        key: bytes = self.keys[row].as_py()
        return key

    def seek(self, key: bytes) -> int:
        """The first row whose key is not below this one."""
        lo, hi = 0, len(self.keys)
        while lo < hi:
            middle = (lo + hi) // 2
            if self.keys[middle].as_py() < key:
                lo = middle + 1
            else:
                hi = middle
        return lo

    def rows_of(self, keys: list[bytes]) -> list[int]:
        """The rows that have one of these keys, in their order."""
        if len(keys) <= SOUGHT_KEYS_MAX:
            sought = [(self.seek(key), key) for key in keys]
            return [row for row, key in sought if row < len(self.keys) and self.key(row) == key]
        is_one = pc.is_in(self.keys, value_set=pa.array(keys, self.keys.type))
        rows: list[int] = np.flatnonzero(is_one.to_numpy(zero_copy_only=False)).tolist()
        return rows

    def is_visible(self, row: int, at: Timestamp) -> bool:
        published_at = self.file.published_at
        if (self.at[row].as_py() or published_at) > at:
            return False
        return self.until is None or at < (self.until[row].as_py() or published_at)

    def values(self, first: int, end: int) -> list[bytes]:
        """The values as the store would have them."""
        return entries(self.shape, self.rows.slice(first, end - first))

    def keys_at(self, rows: list[int]) -> list[bytes]:
        keys: list[bytes] = self.keys.take(pa.array(rows, pa.int32())).to_pylist() if rows else []
        return keys

    def values_at(self, rows: list[int]) -> dict[bytes, bytes]:
        """The same of some rows, by their keys."""
        if not rows:
            return {}
        rows_at = self.rows.take(pa.array(rows, pa.int32()))
        return dict(zip(rows_at.column(KEY).to_pylist(), entries(self.shape, rows_at), strict=True))


class DecodedGroups:
    """One per node, for all its threads."""

    def __init__(self, files: CheckedFiles, env: Env, *, bytes_max: int) -> None:
        self.files = files
        self._lock = env.lock()
        self._bytes_max = bytes_max
        self._groups: dict[tuple[str, int], DecodedGroup] = {}
        """The most recently used one is last."""
        self._keys: dict[tuple[str, int], Any] = {}
        """Keys alone, of groups of which only these were read: they are evicted before groups."""
        self.held_bytes = 0

    def footer(self, file: File) -> Footer:
        return self.files.footer(file)

    def place(self, file: File, key: bytes) -> int:
        """The first group that may have a key: with duplicates, groups before the last may have some, too."""
        firsts = self.footer(file).firsts
        number = self.last_place(file, key)
        while number > 0 and firsts[number] == key:
            number -= 1
        return number

    def last_place(self, file: File, key: bytes) -> int:
        """The last group that may have a key."""
        return max(0, bisect_right(self.footer(file).firsts, key) - 1)

    def group(self, file: File, shape: FileShape, number: int) -> DecodedGroup:
        key = (file.name, number)
        with self._lock:
            found = self._groups.pop(key, None)
            if found is not None:
                self._groups[key] = found
                return found
        group = _group(file, shape, self.files.read_groups(file, [number]))
        with self._lock:
            if key not in self._groups:
                self._groups[key] = group
                self.held_bytes += group.held_bytes
            self._evict()
        return group

    def keys(self, file: File, numbers: Sequence[int]) -> list[HeldKeys]:
        """The keys of some groups; those not held are read at once, and nothing else of the file.

        As numpy arrays where none is long: searching there is ten times as fast.
        """
        with self._lock:
            found = {number: self._keys.get((file.name, number)) for number in numbers}
        missing = [number for number, keys in found.items() if keys is None]
        if missing:
            footer = self.footer(file)
            keys, start = self.files.read_groups(file, missing, [KEY]).column(KEY).combine_chunks(), 0
            for number in missing:
                count = footer.metadata.row_group(number).num_rows
                found[number] = _copied(keys.slice(start, count))
                start += count
            self._hold_keys(file, {number: found[number] for number in missing})
        return [found[number] for number in numbers]

    def _hold_keys(self, file: File, keys_of: dict[int, HeldKeys]) -> None:
        with self._lock:
            for number, keys in keys_of.items():
                if (file.name, number) not in self._keys:
                    self._keys[file.name, number] = keys
                    self.held_bytes += keys.nbytes
            self._evict()

    def forget(self) -> None:
        """Drops all that is held."""
        with self._lock:
            self._groups.clear()
            self._keys.clear()
            self.held_bytes = 0
        self.files.forget()

    def _evict(self) -> None:
        while self.held_bytes > self._bytes_max and self._keys:
            self.held_bytes -= self._keys.pop(next(iter(self._keys))).nbytes
        while self.held_bytes > self._bytes_max and len(self._groups) > 1:
            oldest = next(iter(self._groups))
            self.held_bytes -= self._groups.pop(oldest).held_bytes


def _group(file: File, shape: FileShape, rows: Rows) -> DecodedGroup:
    rows = rows.combine_chunks()
    names = rows.column_names

    def column(name: str) -> Column | None:
        if name not in names:
            return None
        chunks = rows.column(name).chunks
        return chunks[0] if chunks else rows.column(name).combine_chunks()

    return DecodedGroup(file, shape, rows, column(KEY), column(AT), column(UNTIL))


def _copied(keys: Keys) -> HeldKeys:
    """A copy that does not keep the array alive from which it was cut."""
    widest = pc.max(pc.binary_length(keys)).as_py()
    if not widest or widest > ARRAY_KEY_BYTES_MAX:
        return keys.take(pa.array(range(len(keys)), pa.int32()))
    alike = even(keys)
    if pa.types.is_fixed_size_binary(alike.type):
        return np.frombuffer(alike.buffers()[1], dtype=f"S{widest}").copy()
    return np.array(keys.to_pylist(), dtype=np.bytes_)
