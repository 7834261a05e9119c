"""Counts how much this process has written to each index: a flush begins when that is enough.

A hint only: other processes write too, and the counts are lost with the process.

Walk: `kv.scope` carries a `Volume` to the transactions, which add their commits; the upkeep of the lake calls
`take`.
"""

from collections import defaultdict
from collections.abc import Iterable

from tenure.storage.engine import HEAD_BYTES, Write


class Volume:
    def __init__(self) -> None:
        self._bytes: defaultdict[bytes, int] = defaultdict(int)

    def add(self, writes: Iterable[Write]) -> None:
        counted = self._bytes
        for write in writes:
            counted[write.key[:HEAD_BYTES]] += len(write.key) + len(write.value or b"")

    def take(self, least: int) -> list[bytes]:
        """The heads that have grown by so many bytes; their counts start anew."""
        grown = [head for head, size in list(self._bytes.items()) if size >= least]
        for head in grown:
            self._bytes.pop(head, None)
        return grown
