"""The reads of a transaction: its refresh spans, which the section proves to be unchanged.

For some keys it only matters that they have a row, with any content. Those are kept apart, as **present**,
until the transaction commits. Then they are read once more if its time has moved, and count as any read does.

The reads of the transaction's views (`kv.view`) are kept **apart**, by the time up to which they are proved:
a view goes on reading at the time of its opening when the transaction's own time has moved up. Such reads are
proved from their own time on, when the transaction's time moves and when it commits.

    apart   {V: read by a view opened at V, R: proved up to the transaction's read_at R}

A statement that reads again may forget its own reads, never those of views.

Walk: `kv.commit_proof` keeps one; its transaction and `kv.view` record every read there, for the commit.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Keyspace, Span, disjoint
from tenure.storage.engine import Guard, heads_of

POINTS_FEW = 16
"""Up to so many keys, their heads are taken one by one."""


class Reads(NamedTuple):
    """How much a transaction had read at some point."""

    points: int
    spans: int
    groups: int = 0
    constraints: int = 0
    """How many proofs of earlier statements there were: see `kv.statement_proofs`."""


NOTHING_READ = Reads(0, 0)


class Proof(NamedTuple):
    """The reads that must be unchanged, as a commit needs them: sorted, disjoint, with the marks to
    compare.
    """

    points: tuple[bytes, ...]
    spans: tuple[Span, ...]
    guards: tuple[Guard, ...]


NOTHING_TO_PROVE = Proof((), (), ())


class HasReads(Protocol):
    @property
    def reads(self) -> "RefreshSpans": ...


class RefreshSpans:
    __slots__ = ("_keyspace", "apart", "points", "present", "spans")

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self.points: dict[bytes, None] = {}
        """Keys read one by one, in the order in which they were first read."""
        self.spans: list[Span] = []
        self.present: dict[bytes, Timestamp] = {}
        """Keys that have a row, with the time at which they were read."""
        self.apart: dict[Timestamp, RefreshSpans] = {}
        """The reads of views, by the time up to which they are proved."""

    def of_views(self, at: Timestamp) -> "RefreshSpans":
        """The reads of a view that was opened at that time."""
        reads = self.apart.get(at)
        if reads is None:
            reads = self.apart[at] = RefreshSpans(self._keyspace)
        return reads

    def older(self, at: Timestamp | None) -> bool:
        """Whether views have reads that are not proved at that time."""
        return any(each != at for each in self.apart)

    def holding(self, at: Timestamp) -> None:
        """Records that all reads of views are proved up to that time."""
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

    def clear(self) -> None:
        """The transaction is over: nothing has to be proved any more."""
        self.points.clear()
        self.spans.clear()
        self.present.clear()
        self.apart.clear()

    def mark(self) -> Reads:
        return Reads(len(self.points), len(self.spans))

    def forget(self, since: Reads, within: Span | None = None) -> None:
        for key in self._points_since(since):
            if within is None or within.lo <= key < within.hi:
                del self.points[key]
        kept = [each for each in self.spans[since.spans :] if within is not None and not _is_in(each, within)]
        self.spans[since.spans :] = kept

    def take(self, since: Reads) -> "RefreshSpans":
        """Removes the reads by keys and spans since a mark, and returns them."""
        taken = RefreshSpans(self._keyspace)
        taken.points = dict.fromkeys(self._points_since(since))
        taken.spans = self.spans[since.spans :]
        self.forget(since)
        return taken

    def joined(self, others: "Iterable[HasReads]") -> "RefreshSpans":
        """These reads and others, for one proof of all."""
        together = RefreshSpans(self._keyspace)
        together.points, together.spans = dict(self.points), list(self.spans)
        for other in others:
            together.points |= other.reads.points
            together.spans += other.reads.spans
        return together

    def relax(self, since: Reads, at: Timestamp, without: bytes | None = None) -> None:
        """Of the keys read one by one since then, only their presence counts; `without` is a key that had no
        row.
        """
        for key in self._points_since(since):
            if key != without:
                del self.points[key]
                self.present[key] = at

    def _points_since(self, since: Reads) -> list[bytes]:
        """Walks from the end: much may have been read before."""
        return list(islice(reversed(self.points), len(self.points) - since.points))[::-1]

    def settle(self, at: Timestamp) -> list[bytes]:
        """Counts the present rows as read; returns those that must be read again for that."""
        again = [key for key, seen_at in self.present.items() if seen_at != at]
        self.points |= dict.fromkeys(self.present.keys() - again)
        self.present.clear()
        return again

    def proof(self, at: Timestamp | None = None) -> Proof:
        """The proof of all reads; those of views are included as far as they are proved at `at`."""
        apart = self.apart.get(at) if self.apart and at is not None else None
        if apart is not None:
            together = RefreshSpans(self._keyspace)
            together.points = self.points | apart.points
            together.spans = self.spans + apart.spans
            return together.proof()
        if not self.points and not self.spans:
            return NOTHING_TO_PROVE
        spans = disjoint(self.spans) if self.spans else ()
        points = _outside(spans, sorted(self.points))
        keys = points if len(points) <= POINTS_FEW else heads_of(points)
        guards: dict[Guard, None] = dict.fromkeys(map(self._keyspace.point_guard, keys))
        guards |= {self._keyspace.guard(span): None for span in spans}
        return Proof(tuple(points), spans, tuple(guards))


def _outside(spans: Sequence[Span], points: list[bytes]) -> list[bytes]:
    """Those of sorted keys that lie in none of the spans; the list is changed."""
    for span in spans:
        del points[bisect_left(points, span.lo) : bisect_left(points, span.hi)]
    return points


def _is_in(span: Span, within: Span) -> bool:
    return within.lo <= span.lo and span.hi <= within.hi
