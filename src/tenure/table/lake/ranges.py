"""Cutting a merge into ranges of keys, one for each task.

    live files    [a ─── f]   [h ─── m]      [p ─── z]
    cuts of delta       d         k  l
    ranges        ..d   d..h  h..k k..l l..p  p..

Ranges cover all keys, and a live file is read by every range that it overlaps. A file in one range alone
without changes is kept as it is; a file that is cut is rewritten in all its ranges.

Walk: the driver of a merge calls `ranges`; each is a task.
"""

from collections.abc import Sequence
from itertools import pairwise

from tenure.kv.keys import Span
from tenure.kv.records import Record
from tenure.storage.engine import HEAD_BYTES
from tenure.table.lake.manifests import File, Manifest


class FileRange(Record, frozen=True):
    lo: bytes
    hi: bytes
    """Whole keys: the span of the store that it covers."""
    files: tuple[File, ...]
    """The live files that have rows in it."""
    is_cut: bool = False
    """Whether one of them reaches beyond: then it cannot be kept."""


def ranges(manifest: Manifest, span: Span, cuts: Sequence[bytes]) -> list[FileRange]:
    """`cuts` are whole keys of the span's index; a range has about as much delta as lies between two."""
    head = span.lo[:HEAD_BYTES]
    bounds = {span.lo, span.hi, *cuts, *(head + file.first for file in manifest.live[1:])}
    return [_range(manifest, Span(lo, hi), head) for lo, hi in pairwise(sorted(bounds))]


def _range(manifest: Manifest, span: Span, head: bytes) -> FileRange:
    met = tuple(file for file in manifest.live if head + file.last >= span.lo and head + file.first < span.hi)
    is_cut = any(head + file.first < span.lo or head + file.last >= span.hi for file in met)
    return FileRange(span.lo, span.hi, met, is_cut)
