"""A snapshot with a transaction's uncommitted writes over it: the store as that transaction would leave it.

Reading it is no read of the transaction. A proof made here holds as of the snapshot's time, and the caller
must ensure by other means that it stays true until the transaction commits.

Walk: `schema_change.in_transaction` makes one for the proofs of a change whose transaction has written rows.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter

from tenure.base.timestamp import ZERO_AT, Timestamp
from tenure.kv.keys import Span
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction


class Overlay(Snapshot):
    def __init__(self, snapshot: Snapshot, txn: Transaction) -> None:
        super().__init__(snapshot._engine, snapshot._keyspace, snapshot.at, snapshot._bases)
        self._writes = {key: txn.get(key) for key in txn.written(snapshot._keyspace.all())}

    def get(self, key: bytes, *, flushed_at: Timestamp = ZERO_AT) -> bytes | None:
        if key in self._writes:
            return self._writes[key]
        return super().get(key, flushed_at=flushed_at)

    def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        flushed_at: Timestamp = ZERO_AT,
    ) -> Iterator[tuple[bytes, bytes]]:
        writes = self._within(span)
        rows_max = None if limit is None else limit + len(writes)  # some of the store's rows may be hidden
        stored = super().scan(span, limit=rows_max, reverse=reverse, flushed_at=flushed_at)
        shown = [(key, value) for key, value in writes.items() if value is not None]
        rows = merge(
            ((key, value) for key, value in stored if key not in writes),
            sorted(shown, reverse=reverse),
            key=itemgetter(0),
            reverse=reverse,
        )
        return islice(rows, limit)

    def read_span(self, span: Span, *, flushed_at: Timestamp = ZERO_AT) -> dict[bytes, bytes | None]:
        return super().read_span(span, flushed_at=flushed_at) | self._within(span)

    def _within(self, span: Span) -> dict[bytes, bytes | None]:
        lo, hi = span
        return {key: value for key, value in self._writes.items() if lo <= key < hi}
