"""Past files: which of them a merge rewrites, so that their number stays bounded.

Each merge writes the revisions that it ended as new past files. Past files are merged by size, as the levels
of a log-structured tree are:

    tier   0        1        2 ...      full
    rows   < 1,024  < 4,096  < 16,384   >= 262,144

The key space is cut where live files begin, and a past file belongs to the range of its first key. When
`FANOUT` files of one such range are in one tier, they become one file, which may fill up the tier above. So a
range has at most `FILES_MAX` files that are not full, besides those that the newest merge wrote, and beyond
the first tier a row is rewritten at most once per tier. A file of wide rows is full from `FULL_BYTES` in
memory on. Full files are never rewritten for their number:
there is one for hundreds of thousands of revisions, and their times tell which reads need them.

Files that are close in time are merged first. So a full file covers few times, and is dropped as a whole once
`Keep` needs none of them.

Invariant (past-bounded): after a merge no range has `FANOUT` past files of one tier, but for new ones.

Walk: `pipeline.merge` calls `needless` and `groups_due` when it plans its tasks.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import File, Manifest

FANOUT = 4
FIRST_TIER_ROWS = 1_024
"""Fewer rows cost as much to write as so many."""

FULL_ROWS, FULL_BYTES = 1 << 18, 8 << 20
"""`FANOUT` files that are not full have at most `format.FILE_ROWS` rows together, and few enough bytes for
the memory of a task: it holds no more.
"""

GROUP_ROWS_MAX, GROUP_BYTES_MAX = FANOUT * FULL_ROWS, FANOUT * FULL_BYTES


def needless(manifest: Manifest, keep: Keep) -> tuple[File, ...]:
    """The past files without a needed row: they are dropped without being read."""
    return tuple(file for file in manifest.past if not keep.needs(file.first_at, file.until))


def groups_due(live: Sequence[File], past: Iterable[File]) -> list[tuple[File, ...]]:
    """The groups of past files that a merge makes into one file each."""
    firsts = [file.first for file in live[1:]]  # keys before the first file belong to it
    ranges: dict[int, list[File]] = {}
    for file in past:
        ranges.setdefault(bisect_right(firsts, file.first), []).append(file)
    return [group for files in ranges.values() for group in _groups(files)]


class _Group(NamedTuple):
    """Files that will be merged into one."""

    files: tuple[File, ...]
    rows: int
    size: int
    """In memory, in bytes."""

    @property
    def is_full(self) -> bool:
        return self.rows >= FULL_ROWS or self.size >= FULL_BYTES


def _groups(files: Iterable[File]) -> list[tuple[File, ...]]:
    """The groups of one range; a group may include the result of a lower tier's merge."""
    ordered = sorted(files, key=lambda file: (file.until, file.first_at, file.name))
    tiers: dict[int, list[_Group]] = {}
    for file in ordered:
        alone = _Group((file,), file.rows, file.held_size)
        if not alone.is_full:
            tiers.setdefault(tier(file.rows), []).append(alone)
    full: list[_Group] = []
    for number in range(tier(FULL_ROWS)):
        waiting = tiers.pop(number, [])
        while len(waiting) >= FANOUT:
            merged, waiting = _first(waiting)
            if merged.is_full:
                full.append(merged)
            elif tier(merged.rows) > number:
                tiers.setdefault(tier(merged.rows), []).append(merged)
            else:
                waiting.append(merged)
        full += waiting
    return [group.files for group in full if len(group.files) > 1]


def _first(groups: Sequence[_Group]) -> tuple[_Group, list[_Group]]:
    """As many of the first groups as a task may hold, as one, and the others."""
    rows, size, count = 0, 0, 0
    for group in groups:
        if rows + group.rows > GROUP_ROWS_MAX or size + group.size > GROUP_BYTES_MAX:
            break
        rows, size, count = rows + group.rows, size + group.size, count + 1
    files = tuple(file for group in groups[:count] for file in group.files)
    return _Group(files, rows, size), list(groups[count:])


def tier(rows: int) -> int:
    """The tier of a file with so many rows."""
    number = 0
    while rows >= FIRST_TIER_ROWS * FANOUT**number:
        number += 1
    return number


FILES_MAX = (FANOUT - 1) * tier(FULL_ROWS)
"""Past files of a range that are not full: fifteen, besides those of the newest merge."""
