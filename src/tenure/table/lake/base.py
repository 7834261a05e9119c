"""An index's base: its rows in the lake, by key, at any time.

    T >= F    the live files as they are
    T <  F    rows of live files with at <= T, and of past files with at <= T < until

At most one revision of a key is visible at a time, so the sources need only be merged by key.

Invariant (base-at): for every T, a base shows of the keys flushed to it what the store showed.

Walk: `kv.bases` -> `LakeBase.get`, `.get_many` and `.page` -> `lake.groups`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.bases import Row
from tenure.kv.keys import Span
from tenure.storage.engine import HEAD_BYTES
from tenure.table.lake.groups import DecodedGroup, DecodedGroups
from tenure.table.lake.manifests import File, Manifest

CHUNK_ROWS = 256
"""Rows that are converted to stored values at once: a page needs some, and seldom a whole group."""


class PageRequest(NamedTuple):
    """The options of a page."""

    lo: bytes
    hi: bytes | None
    at: Timestamp
    reverse: bool
    chunk_rows: int


class LakeBase:
    def __init__(self, manifest: Manifest, groups: DecodedGroups, head: bytes) -> None:
        self.manifest = manifest
        self.flushed_at = manifest.flushed_at
        self.groups = groups
        self._head = head
        self._firsts = [file.first for file in manifest.live]

    @property
    def described(self) -> str:
        return f"{len(self.manifest.live)} files, {self.manifest.rows} rows"

    def rows_within(self, span: Span) -> int:
        """A lower bound."""
        lo, hi = span.lo[HEAD_BYTES:], self._end(span.hi)
        return sum(self._rows_of(file, lo, hi) for file in self._live_within(lo, hi))

    def _rows_of(self, file: File, lo: bytes, hi: bytes | None) -> int:
        if lo <= file.first and (hi is None or file.last < hi):
            return file.rows
        firsts = self.groups.footer(file).firsts
        first = bisect_left(firsts, lo)
        end = len(firsts) if hi is None else bisect_left(firsts, hi)
        # How much of the last group lies within is not known without reading it.
        return max(0, end - first - 1) * (file.rows // len(firsts))

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        suffix = key[HEAD_BYTES:]
        found = self._in_live(suffix, at)
        if found is None and at < self.flushed_at:
            return self._in_past(suffix, at)
        return found

    def get_many(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        suffixes = sorted({key[HEAD_BYTES:] for key in keys})
        for group, rows in self._rows_of_keys(suffixes, at):
            found |= group.values_at(rows)
        if at < self.flushed_at:
            for suffix in suffixes:
                if suffix not in found and (past := self._in_past(suffix, at)) is not None:
                    found[suffix] = past
        return {self._head + suffix: value for suffix, value in found.items()}

    def present(self, keys: Sequence[bytes], at: Timestamp) -> set[bytes]:
        found: set[bytes] = set()
        suffixes = sorted({key[HEAD_BYTES:] for key in keys})
        for group, rows in self._rows_of_keys(suffixes, at):
            found.update(group.keys_at(rows))
        if at < self.flushed_at:
            lost = [suffix for suffix in suffixes if suffix not in found]
            found.update(suffix for suffix in lost if self._in_past(suffix, at) is not None)
        return {self._head + suffix for suffix in found}

    def _rows_of_keys(self, keys: Sequence[bytes], at: Timestamp) -> Iterator[tuple[DecodedGroup, list[int]]]:
        """The rows of sorted keys in the live files, group by group: each is read once even if the cache is
        full.
        """
        for (file, number), wanted in groupby(keys, self._live_group):
            if file is None:
                continue
            group = self.groups.group(file, self.manifest.shapes[file.shape], number)
            rows = group.rows_of(list(wanted))
            if at < self.flushed_at:
                rows = [row for row in rows if group.is_visible(row, at)]
            yield group, rows

    def _live_group(self, key: bytes) -> tuple[File | None, int]:
        """The file and the group of it that may have a key; live files have at most one row of a key."""
        file = self._live_file(key)
        return (None, 0) if file is None else (file, self.groups.last_place(file, key))

    def _in_live(self, key: bytes, at: Timestamp) -> bytes | None:
        file = self._live_file(key)
        return None if file is None else self._look_up(file, key, at)

    def _live_file(self, key: bytes) -> File | None:
        number = bisect_right(self._firsts, key) - 1
        if number < 0 or self.manifest.live[number].last < key:
            return None
        return self.manifest.live[number]

    def _in_past(self, key: bytes, at: Timestamp) -> bytes | None:
        for file in self._past_at(at):
            if file.first <= key <= file.last:
                found = self._look_up(file, key, at)
                if found is not None:
                    return found
        return None

    def _look_up(self, file: File, key: bytes, at: Timestamp) -> bytes | None:
        for group, row in self._walk(file, key):
            if group.key(row) != key:
                return None
            if group.is_visible(row, at):
                return group.values(row, row + 1)[0]
        return None

    def _walk(self, file: File, key: bytes) -> Iterator[tuple[DecodedGroup, int]]:
        """The rows of a file from a key on."""
        shape = self.manifest.shapes[file.shape]
        count = len(self.groups.footer(file).firsts)
        for number in range(self.groups.place(file, key), count):
            group = self.groups.group(file, shape, number)
            for row in range(group.seek(key), len(group)):
                yield group, row

    def _past_at(self, at: Timestamp) -> list[File]:
        return [file for file in self.manifest.past if file.first_at <= at < file.until]

    # ── many rows ──────────────────────────────────────────────────────────────────────────────

    def page(self, span: Span, at: Timestamp, limit: int, *, reverse: bool) -> list[Row]:
        lo, hi = span.lo[HEAD_BYTES:], self._end(span.hi)
        request = PageRequest(lo, hi, at, reverse, max(1, min(limit, CHUNK_ROWS)))
        live = self._rows(self._live_within(lo, hi), request)
        if at >= self.flushed_at:
            return list(islice(live, limit))
        past = [self._rows([file], request) for file in self._past_at(at) if _meets(file, lo, hi)]
        return list(islice(merge(live, *past, reverse=reverse), limit))

    def _end(self, hi: bytes) -> bytes | None:
        """Where a span ends, without the head; None if it goes on to the end of the index."""
        return hi[HEAD_BYTES:] if hi.startswith(self._head) else None

    def _live_within(self, lo: bytes, hi: bytes | None) -> Sequence[File]:
        live = self.manifest.live
        first = max(0, bisect_right(self._firsts, lo) - 1)
        end = len(live) if hi is None else bisect_left(self._firsts, hi)
        return [file for file in live[first:end] if file.last >= lo]

    def _rows(self, files: Sequence[File], request: PageRequest) -> Iterator[Row]:
        for file in reversed(files) if request.reverse else files:
            for group, first, end in self._slices(file, request):
                yield from self._visible(group, first, end, request)

    def _slices(self, file: File, request: PageRequest) -> Iterator[tuple[DecodedGroup, int, int]]:
        """Slices of groups, in order, that lie between two keys."""
        firsts = self.groups.footer(file).firsts
        start = self.groups.place(file, request.lo)
        stop = len(firsts) if request.hi is None else bisect_left(firsts, request.hi)
        numbers = range(start, stop)
        for number in reversed(numbers) if request.reverse else numbers:
            group = self.groups.group(file, self.manifest.shapes[file.shape], number)
            first = group.seek(request.lo)
            end = len(group) if request.hi is None else group.seek(request.hi)
            if request.reverse:
                # From the end, so that the last rows come first and few are decoded in vain.
                for cut in range(end, first, -request.chunk_rows):
                    yield group, max(first, cut - request.chunk_rows), cut
            else:
                for cut in range(first, end, request.chunk_rows):
                    yield group, cut, min(end, cut + request.chunk_rows)

    def _visible(self, group: DecodedGroup, first: int, end: int, request: PageRequest) -> Iterator[Row]:
        keys = group.keys.slice(first, end - first).to_pylist()
        values = group.values(first, end)
        rows = range(end - first)
        is_past_read = request.at < self.flushed_at
        for row in reversed(rows) if request.reverse else rows:
            if not is_past_read or group.is_visible(first + row, request.at):
                yield self._head + keys[row], values[row]


def _meets(file: File, lo: bytes, hi: bytes | None) -> bool:
    return file.last >= lo and (hi is None or file.first < hi)
