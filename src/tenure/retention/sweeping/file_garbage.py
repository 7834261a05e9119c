"""How much of an index's past files is garbage, and what a sweep does about it: pure.

    a past file whose rows have all ended, with no kept point inside      an edit of the manifest drops it
    files of which much has ended since they were last rewritten          a merge rewrites them

What a file's rows ended at is known by its bounds alone, so their number is an estimate: ends are taken to be
spread evenly between `first_at` and `until`. Only what ended since the pair of the last rewriting counts, or
a file of which a kept point needs some rows would be rewritten by every sweep.

Walk: `retention.sweeping.file_sweeps` calls these with a manifest.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import File, Manifest
from tenure.table.lake.past_files import needless

MERGE_SHARE = 0.2
"""A merge is due when so much of the base's rows is garbage: the rest of what it reads and writes stays."""

FILE_SHARE = 0.5
"""A file is rewritten if so much of it is garbage: then its number of rows halves at least."""


class FileGarbage(NamedTuple):
    ended: tuple[str, ...]
    """Files without a needed row."""
    wasteful: tuple[str, ...]
    """Files that a merge would rewrite."""
    rows: int
    """About how many rows are garbage, those of ended files too."""
    ended_rows: int
    is_merge_due: bool


def file_garbage(manifest: Manifest, keep: Keep, former: Keep) -> FileGarbage:
    """What a pair does not need of a base whose past files were rewritten by a former pair."""
    ended = needless(manifest, keep)
    names = {file.name for file in ended}
    shares = {file: garbage_share(file, keep, former) for file in manifest.past if file.name not in names}
    rows = round(sum(share * file.rows for file, share in shares.items()))
    total = manifest.rows + _rows(manifest.past) - _rows(ended)
    wasteful = tuple(file.name for file, share in shares.items() if share >= FILE_SHARE)
    is_due = bool(wasteful) and rows >= MERGE_SHARE * total
    return FileGarbage(tuple(sorted(names)), wasteful, rows + _rows(ended), _rows(ended), is_due)


def garbage_share(file: File, keep: Keep, former: Keep) -> float:
    """About how much of a file has ended between two pairs, from 0 to 1."""
    given_up = set(former.points) - set(keep.points)
    if any(file.first_at <= point < file.until for point in given_up) and file.until <= keep.threshold:
        return 1.0
    length = file.until - file.first_at
    ended = min(file.until, keep.threshold) - max(file.first_at, former.threshold)
    return max(0.0, ended / length) if length > 0 else 0.0


def _rows(files: Iterable[File]) -> int:
    return sum(file.rows for file in files)
