"""Thresholds and cleaned marks: the times at which the store can no longer be read.

Both are kept per head (tenant, table, index) as ordinary keys whose value is a timestamp in
eight bytes, so that an engine can return the greatest of a span together with the rows:

    threshold      T is readable iff T >= threshold; published before history is removed
    cleaned mark   revisions up to here have left the store for the lake; moved in the very
                   transaction that removes the first of them

Invariant (I29): a mark never goes back.

Walk: retention publishes thresholds, cleaning moves marks; `kv.snapshot` and the section judge.
"""

from tenure.base.timestamp import ZERO_AT, Timestamp, from_bytes, to_bytes
from tenure.kv.keys import Keyspace
from tenure.kv.snapshot import Snapshot
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Removal, Removes


def threshold(txn: Transaction | Snapshot, keyspace: Keyspace, head: bytes) -> Timestamp:
    return _read(txn, keyspace.threshold_key(head))


def cleaned_mark(txn: Transaction | Snapshot, keyspace: Keyspace, head: bytes) -> Timestamp:
    return _read(txn, keyspace.cleaned_key(head))


def publish_threshold(txn: Transaction, keyspace: Keyspace, head: bytes, at: Timestamp) -> None:
    """Makes times below `at` unreadable; revisions that only they could see may be removed afterwards."""
    _raise_to(txn, keyspace.threshold_key(head), at)


def clean(txn: Transaction, keyspace: Keyspace, head: bytes, at: Timestamp, *, limit: int) -> None:
    """Removes flushed revisions of an index up to `at` and moves its mark, in one commit."""
    _raise_to(txn, keyspace.cleaned_key(head), at)
    span = keyspace.head_span(head)
    txn.remove(Removal(span.lo, span.hi, Removes.FLUSHED, at, limit))


def _read(txn: Transaction | Snapshot, key: bytes) -> Timestamp:
    value = txn.get(key)
    return ZERO_AT if value is None else from_bytes(value)


def _raise_to(txn: Transaction, key: bytes, at: Timestamp) -> None:
    assert at <= txn.read_at, "a mark above the store clock would stop every read"
    if _read(txn, key) < at:
        txn.put(key, to_bytes(at))
