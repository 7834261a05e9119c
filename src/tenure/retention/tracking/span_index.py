"""An index over spans: which of them overlap a given one.

A balanced tree in arrays: spans sorted by their first key; the middle of each part is its root and holds the
greatest end of the part. A part is left out if all its spans end at or before the query, and everything
behind the first span that begins at or after the query's end.

Walk: `tracker.TrackedState` builds one per state and asks `over`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class SpanIndex(Generic[T]):
    def __init__(self, entries: Iterable[tuple[bytes, bytes, T]]) -> None:
        """`entries` are (lo, hi, item)."""
        ordered = sorted(entries, key=lambda entry: entry[0])
        self._los = [lo for lo, _, _ in ordered]
        self._his = [hi for _, hi, _ in ordered]
        self._items = [item for _, _, item in ordered]
        self._greatest = [b""] * len(ordered)
        self._build(0, len(ordered))

    def _build(self, first: int, end: int) -> bytes:
        """Fills in the greatest ends of a part, and returns that of all of it."""
        if first >= end:
            return b""
        root = (first + end) >> 1
        left, right = self._build(first, root), self._build(root + 1, end)
        self._greatest[root] = max(self._his[root], left, right)
        return self._greatest[root]

    def over(self, lo: bytes, hi: bytes) -> list[T]:
        """The items whose spans overlap [lo, hi), one per span."""
        his, greatest = self._his, self._greatest
        begun = bisect_left(self._los, hi)
        found = []
        stack = [(0, len(his))] if his else []
        while stack:
            first, end = stack.pop()
            root = (first + end) >> 1
            if greatest[root] <= lo:
                continue
            if first < root:
                stack.append((first, root))
            if root < begun:
                if his[root] > lo:
                    found.append(self._items[root])
                if root + 1 < end:
                    stack.append((root + 1, end))
        return found
