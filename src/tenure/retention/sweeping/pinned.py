"""How many bytes each protection pins: what would be garbage by the ttl, and is needed by the protection.

    past revisions in the store    counted one by one, over the first keys of an index
    past files of the lake         whole files, by their bounds

A large index is not read as a whole for a figure: of its keys in the store only the first are counted. A
revision that several protections need counts for each of them.

Walk: `retention.sweeping.rounds` calls `pinned_bytes` for swept heads that protections cover.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from tenure.base.timestamp import Timestamp
from tenure.kv.store import Store
from tenure.retention.thresholds import HeadHold
from tenure.storage.engine import Revision, Revisions
from tenure.table.lake.manifests import Manifest

KEYS_MAX = 10_000
"""Keys of an index that are counted: some tens of milliseconds."""

PAGE_KEYS = 1_000


class PastPiece(NamedTuple):
    """Bytes that no time shows outside of [at, until)."""

    at: Timestamp
    until: Timestamp
    size: int


def pinned_bytes(
    store: Store, head: bytes, manifest: Manifest | None, holds: Sequence[HeadHold], ended_at: Timestamp
) -> dict[bytes, int]:
    """By protection; `ended_at` is the threshold that the ttl alone would give."""
    pieces = [*_in_store(store, head), *_in_files(manifest)]
    return pinned_by(holds, [piece for piece in pieces if piece.until <= ended_at])


def pinned_by(holds: Iterable[HeadHold], ended: Sequence[PastPiece]) -> dict[bytes, int]:
    """How much of the pieces that have ended each protection needs."""
    return {
        hold.protection: sum(
            size for at, until, size in ended if (until > hold.at if hold.is_after else at <= hold.at < until)
        )
        for hold in holds
    }


def _in_store(store: Store, head: bytes) -> Iterator[PastPiece]:
    keyspace = store.keyspace
    span = keyspace.head_span(head)
    guard, lo, clock_at = keyspace.guard(span), span.lo, store.engine.clock_at()
    for _ in range(KEYS_MAX // PAGE_KEYS):
        page = store.engine.revisions(Revisions(lo, span.hi, guard, 0, clock_at, PAGE_KEYS))
        for _, of_key in groupby(page.revisions, lambda each: each.key):
            yield from _pieces(list(of_key))
        if not page.last:
            return
        lo = page.last + b"\0"


def _pieces(revisions: Sequence[Revision]) -> Iterator[PastPiece]:
    """The revisions of one key but the newest."""
    for former, later in pairwise(revisions):
        yield PastPiece(former.at, later.at, len(former.key) + len(former.value or b""))


def _in_files(manifest: Manifest | None) -> Iterator[PastPiece]:
    for file in () if manifest is None else manifest.past:
        yield PastPiece(file.first_at, file.until, file.size)
