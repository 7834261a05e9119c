"""Which past files are merged: few stay, and rows are rewritten seldom."""

import random
from collections import Counter

import pytest

from tenure.kv.records import replace
from tenure.table.lake.keep import Keep
from tenure.table.lake.manifests import File, Manifest
from tenure.table.lake.past_files import (
    FILES_MAX,
    FULL_BYTES,
    FULL_ROWS,
    GROUP_ROWS_MAX,
    groups_due,
    needless,
    tier,
)


def _file(number: int, rows: int, first: bytes = b"a", times: tuple[int, int] = (1, 2)) -> File:
    return File(f"f{number}", first, first + b"z", rows, rows, b"", 0, first_at=times[0], until=times[1])


class Tree:
    """The past files of one range, merged whenever they are due."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.written = 0
        """Rows, those of new files too."""
        self._names = 0

    def flush(self, rows: int) -> None:
        groups = groups_due([], self.files)
        for group in groups:
            self.files = [file for file in self.files if file not in group]
            self._add(sum(file.rows for file in group), max(file.until for file in group))
        self._add(rows, self._names + 1)

    def _add(self, rows: int, until: int) -> None:
        self._names += 1
        self.files.append(_file(self._names, rows, times=(0, until)))
        self.written += rows


@pytest.mark.invariant("past-bounded")
@pytest.mark.parametrize("most", [1, 50, 5_000, 400_000])
def test_few_files_stay_and_a_row_is_rewritten_once_per_tier(most: int) -> None:
    rng, tree, rows = random.Random(most), Tree(), 0
    for _ in range(500):
        size = rng.randrange(1, most + 1)
        rows += size
        tree.flush(size)
        small = [file for file in tree.files if file.rows < FULL_ROWS]
        assert len(small) <= FILES_MAX + 1
    assert sum(file.rows for file in tree.files) == rows
    if most >= 5_000:
        assert tree.written <= (1 + tier(FULL_ROWS)) * rows


@pytest.mark.invariant("past-bounded")
def test_after_a_merge_no_tier_is_full() -> None:
    rng = random.Random(1)
    for _ in range(50):
        files = [_file(n, int(rng.paretovariate(0.5))) for n in range(rng.randrange(200))]
        groups = groups_due([], files)
        assert all(sum(file.rows for file in group) <= GROUP_ROWS_MAX for group in groups)
        taken = [file for group in groups for file in group]
        assert len(set(taken)) == len(taken)
        left = [file for file in files if file not in taken]
        left += [_file(1_000 + n, sum(file.rows for file in group)) for n, group in enumerate(groups)]
        assert groups_due([], left) == []
        tiers = Counter(tier(file.rows) for file in left if file.rows < FULL_ROWS)
        assert all(count < 4 for count in tiers.values())


def test_a_task_holds_a_bounded_number_of_bytes() -> None:
    """Four files of a thousand wide rows would be gigabytes."""
    size = FULL_BYTES - 1
    files = [replace(_file(n, 100), held_size=size) for n in range(9)]
    groups = groups_due([], files)
    assert [len(group) for group in groups] == [4, 4]
    full = [replace(_file(n, 100), held_size=FULL_BYTES) for n in range(9)]
    assert groups_due([], full) == []


def test_files_of_different_ranges_are_not_merged() -> None:
    live = [_file(90, 1, b"a"), _file(91, 1, b"m")]
    past = [_file(n, 10, b"b" if n % 2 else b"n") for n in range(8)] + [_file(8, 10, b"A")]
    groups = groups_due(live, past)
    assert sorted([{file.first for file in group} for group in groups], key=min) == [{b"A", b"b"}, {b"n"}]


def test_a_file_goes_unread_only_if_no_time_in_it_is_readable() -> None:
    files = (_file(1, 1, times=(10, 20)), _file(2, 1, times=(10, 21)), _file(3, 1, times=(12, 18)))
    manifest = Manifest(1, 1, 100, past=files)
    assert needless(manifest, Keep(20)) == (files[0], files[2])
    assert needless(manifest, Keep(20, (11,))) == (files[2],)
    assert needless(manifest, Keep()) == ()
