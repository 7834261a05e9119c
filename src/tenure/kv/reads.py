"""What a transaction has read: its refresh spans, for the section to prove that they are unchanged.

Of some keys all that counts is that they have a row, whichever: those are kept apart, as **present**, until
the transaction commits. Then they are read once more if its time has moved, and count as any read does.

What the transaction's views have read (`kv.view`) is kept **apart**, by the time up to which it is known to
hold: a view goes on reading at the time of its opening when the transaction's own time has moved up. Such
reads are proved from their own time on, when the transaction's time moves and when it commits.

    apart   {V: read by a view opened at V, R: proved up to the transaction's read_at R}

A statement that reads again may forget what it has read itself, never what views have.

Walk: `kv.transaction` and `kv.view` note every read here; a commit or a refresh carries them all.
"""

from bisect import bisect_left
from itertools import islice
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Keyspace, Span, disjoint
from tenure.storage.engine import Guard


class Reads(NamedTuple):
    """How much a transaction had read at some point of it."""

    points: int
    spans: int


NOTHING_READ = Reads(0, 0)


class Proof(NamedTuple):
    """What has to be unchanged, as a commit wants it: sorted, disjoint, with the marks to look at."""

    points: tuple[bytes, ...]
    spans: tuple[Span, ...]
    guards: tuple[Guard, ...]


class RefreshSpans:
    __slots__ = ("_keyspace", "apart", "points", "present", "spans")

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.points: dict[bytes, None] = {}
        """Keys read one by one, in the order in which they were first read."""
        self.spans: list[Span] = []
        self.present: dict[bytes, Timestamp] = {}
        """Keys that have a row, and when that was so."""
        self.apart: dict[Timestamp, RefreshSpans] = {}
        """What views have read, by the time up to which it holds."""

    def of_views(self, at: Timestamp) -> "RefreshSpans":
        """Where a view opened at that time notes what it reads."""
        reads = self.apart.get(at)
        if reads is None:
            reads = self.apart[at] = RefreshSpans(self._keyspace)
        return reads

    def older(self, at: Timestamp | None) -> bool:
        """Whether views have read something that is not known to hold at that time."""
        return any(each != at for each in self.apart)

    def holding(self, at: Timestamp) -> None:
        """All that views have read was found to hold up to that time."""
        if not self.apart:
            return
        together = RefreshSpans(self._keyspace)
        for reads in self.apart.values():
            together.points |= reads.points
            together.spans += reads.spans
        self.apart = {at: together}

    @property
    def is_empty(self) -> bool:
        return not (self.points or self.spans or self.present or self.apart)

    def mark(self) -> Reads:
        return Reads(len(self.points), len(self.spans))

    def forget(self, since: Reads, within: Span | None = None) -> None:
        for key in self._points_since(since):
            if within is None or within.lo <= key < within.hi:
                del self.points[key]
        kept = [each for each in self.spans[since.spans :] if within is not None and not _is_in(each, within)]
        self.spans[since.spans :] = kept

    def relax(self, since: Reads, at: Timestamp, without: bytes | None = None) -> None:
        """Of the keys read by themselves since then, only that they have a row counts; one may have none."""
        for key in self._points_since(since):
            if key != without:
                del self.points[key]
                self.present[key] = at

    def _points_since(self, since: Reads) -> list[bytes]:
        """From the end: much may have been read before."""
        return list(islice(reversed(self.points), len(self.points) - since.points))[::-1]

    def settle(self, at: Timestamp) -> list[bytes]:
        """Lets the rows that are present count as read; returns those that have to be read again for that."""
        again = [key for key, seen_at in self.present.items() if seen_at != at]
        self.points |= dict.fromkeys(self.present.keys() - again)
        self.present.clear()
        return again

    def proof(self, at: Timestamp | None = None) -> Proof:
        """Of all that was read: what views have read is part of it as far as it is known to hold at `at`."""
        apart = self.apart.get(at) if self.apart and at is not None else None
        if apart is not None:
            together = RefreshSpans(self._keyspace)
            together.points = self.points | apart.points
            together.spans = self.spans + apart.spans
            return together.proof()
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
