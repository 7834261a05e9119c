"""What a transaction has read: its refresh spans, for the section to prove that they are unchanged.

Walk: `kv.transaction` notes every read here; a commit or a refresh carries them all.
"""

from bisect import bisect_left
from typing import NamedTuple

from tenure.kv.keys import Keyspace, Span, disjoint
from tenure.storage.engine import Guard


class Reads(NamedTuple):
    """How much a transaction had read at some point of it."""

    points: int
    spans: int


class Proof(NamedTuple):
    """What has to be unchanged, as a commit wants it: sorted, disjoint, with the marks to look at."""

    points: tuple[bytes, ...]
    spans: tuple[Span, ...]
    guards: tuple[Guard, ...]


class RefreshSpans:
    __slots__ = ("_keyspace", "points", "spans")

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.points: dict[bytes, None] = {}
        """Keys read one by one, in the order in which they were first read."""
        self.spans: list[Span] = []

    def mark(self) -> Reads:
        return Reads(len(self.points), len(self.spans))

    def forget(self, since: Reads, within: Span | None = None) -> None:
        for key in list(self.points)[since.points :]:
            if within is None or within.lo <= key < within.hi:
                del self.points[key]
        kept = [each for each in self.spans[since.spans :] if within is not None and not _is_in(each, within)]
        self.spans[since.spans :] = kept

    def proof(self) -> Proof:
        if not self.spans:
            guard = self._keyspace.point_guard
            return Proof(
                tuple(sorted(self.points)), (), tuple(dict.fromkeys([guard(key) for key in self.points]))
            )
        spans = disjoint(self.spans)
        starts = [lo for lo, _ in spans]
        points = tuple(key for key in sorted(self.points) if not _covers(spans, starts, key))
        guards: dict[Guard, None] = {self._keyspace.point_guard(key): None for key in points}
        guards |= {self._keyspace.guard(span): None for span in spans}
        return Proof(points, spans, tuple(guards))


def _is_in(span: Span, within: Span) -> bool:
    return within.lo <= span.lo and span.hi <= within.hi


def _covers(spans: tuple[Span, ...], starts: list[bytes], key: bytes) -> bool:
    position = bisect_left(starts, key + b"\0") - 1
    return position >= 0 and key < spans[position].hi
