"""How much of past files is garbage, by their bounds."""

import pytest

from tenure.retention.sweeping.file_garbage import FileGarbage, file_garbage, garbage_share
from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.manifests import File, Manifest


def past(name: str, first_at: int, until: int, rows: int = 100) -> File:
    return File(name, b"a", b"z", rows, 1_000, b"", 0, first_at=first_at, until=until)


def manifest(*files: File, live: int = 100) -> Manifest:
    return Manifest(200, 1, 1_000, live=(past("live", 0, 0, live),), past=files)


@pytest.mark.parametrize(
    ("keep", "former", "expected"),
    [
        (Keep(10), KEEP_ALL, 0.0),
        (Keep(20), KEEP_ALL, 0.5),
        (Keep(30), KEEP_ALL, 1.0),
        (Keep(40), KEEP_ALL, 1.0),
        (Keep(30), Keep(20), 0.5),
        (Keep(30), Keep(30), 0.0),
        (Keep(30, (15,)), Keep(30, (15, 17)), 1.0),
        (Keep(30, (15,)), Keep(30, (15, 40)), 0.0),
    ],
)
def test_the_share_of_a_file_that_ended_since_it_was_rewritten(
    keep: Keep, former: Keep, expected: float
) -> None:
    assert garbage_share(past("p", 10, 30), keep, former) == expected


def test_files_that_ended_whole_go_without_a_merge() -> None:
    found = file_garbage(manifest(past("p", 10, 30), past("q", 50, 90)), Keep(40), KEEP_ALL)
    assert found == FileGarbage(("p",), (), 100, 100, False)


def test_a_kept_point_inside_keeps_a_file_and_a_merge_rewrites_it() -> None:
    found = file_garbage(manifest(past("p", 10, 30)), Keep(40, (20,)), KEEP_ALL)
    assert found == FileGarbage((), ("p",), 100, 0, True)
    assert file_garbage(manifest(past("p", 10, 30)), Keep(50, (20,)), Keep(40, (20,))).rows == 0


def test_a_merge_is_due_only_if_enough_of_the_base_is_garbage() -> None:
    files = past("p", 10, 30), past("q", 50, 90, rows=10_000)
    found = file_garbage(manifest(*files, live=10_000), Keep(25), KEEP_ALL)
    assert (found.wasteful, found.is_merge_due) == (("p",), False)
