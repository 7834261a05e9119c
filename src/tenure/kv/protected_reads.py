"""Reads in the name of a protection: below the threshold, at exactly the time that it keeps.

    base chosen ──► rows read ──► below the threshold? ──► the record is there? ──► the answer stands
                                          │ no                     │ no
                                          └──► it stands           └──► SnapshotTooOld

A protection of one time is made once and deleted once. So its record, found after the rows were read, was
there while they were read, and nothing that it keeps was removed. The record is asked for each page, and only
where the read would fail otherwise: a read above the threshold costs nothing more. The files of a base never
change, so what a base answers depends on when it was chosen, not on when its files are read.

A history has no such exception: a protection of one time does not keep the revisions between two times.

Invariant (protected-read): a read below the threshold answers only if, after its rows were read, the store
has a protection of exactly its time that covers the index.

Walk: `kv.snapshot` and `table.lake.scanning` -> `is_protected` -> `Engine.get`.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.keys import Keyspace, Span
from tenure.storage.engine import HEAD_BYTES, Engine


class ProtectedRead(NamedTuple):
    """A protection of one time, as far as reads must know it."""

    at: Timestamp
    record_key: bytes
    covers: Callable[[bytes], bool]
    """Whether it covers the index with this head."""


def is_protected(
    engine: Engine, keyspace: Keyspace, protected: Iterable[ProtectedRead], span: Span, at: Timestamp
) -> bool:
    """Whether one of these protections keeps what is visible at this time in the index of the span.

    To be asked after the rows were read. A span of several indexes is not protected.
    """
    guard = keyspace.guard(span)
    if guard.threshold_first != guard.threshold_last:
        return False
    head = span.lo[:HEAD_BYTES]
    return any(
        each.at == at and each.covers(head) and _exists(engine, keyspace, each.record_key)
        for each in protected
    )


def _exists(engine: Engine, keyspace: Keyspace, key: bytes) -> bool:
    found = engine.get(key, keyspace.point_guard(key)).revisions
    return bool(found) and found[0].value is not None
