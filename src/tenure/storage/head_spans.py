"""Spans, searched by head: which of many may hold keys with one of a few heads.

A commit names few heads, and a watch may have a thousand spans: each head costs one binary search.

Walk: `storage.signals` and `kv.watch` -> `HeadSpans.touched`; pure.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from tenure.storage.engine import head_of


class HeadSpans:
    """`spans` are sorted by their first keys; the answers are positions in this order."""

    def __init__(self, spans: Sequence[tuple[bytes, bytes]]) -> None:
        self._starts = [head_of(lo) for lo, _ in spans]
        assert self._starts == sorted(self._starts), "the spans are not sorted"
        self._ends = [hi for _, hi in spans]
        self._ends_so_far = list(accumulate(self._ends, max))
        """The greatest end of a span and those before it: spans may overlap."""

    def touched(self, heads: Iterable[bytes]) -> list[int]:
        """The spans that may hold keys with one of these heads, in order."""
        found: set[int] = set()
        for head in heads:
            position = bisect_right(self._starts, head) - 1
            while position >= 0 and self._ends_so_far[position] > head:
                if self._ends[position] > head:
                    found.add(position)
                position -= 1
        return sorted(found)
