"""Which revisions are needed, against the definition: those that some readable time shows."""

import random

import numpy as np
import pytest

from tenure.table.lake.keep import KEEP_ALL, Keep
from tenure.table.lake.merging import needed_rows

END = 30
"""Times of the naive oracle are below this."""


def _is_shown(keep: Keep, at: int, until: int) -> bool:
    readable = {*range(keep.threshold, END), *keep.points}
    return any(at <= time < until for time in readable)


@pytest.mark.invariant("keep-exact")
def test_a_revision_is_needed_exactly_if_a_readable_time_shows_it() -> None:
    rng = random.Random(7)
    spans = [(at, until) for at in range(END) for until in range(at + 1, END)]
    for _ in range(100):
        threshold = rng.randrange(END)
        points = tuple(sorted(rng.sample(range(END), rng.randrange(4))))
        keep = Keep(threshold, points)
        expected = [_is_shown(keep, at, until) for at, until in spans]
        assert [keep.needs(at, until) for at, until in spans] == expected
        at, until = (np.array(times, dtype=np.int64) for times in zip(*spans, strict=True))
        assert needed_rows(keep, at, until).tolist() == expected


def test_a_revision_that_ends_at_the_threshold_is_not_needed() -> None:
    assert not Keep(40).needs(30, 40)
    assert Keep(40).needs(30, 41)


def test_a_kept_point_needs_the_revision_that_begins_there_and_not_the_one_that_ends() -> None:
    keep = Keep(40, (25,))
    assert keep.needs(25, 26) and keep.needs(10, 26)
    assert not keep.needs(10, 25) and not keep.needs(26, 40)


def test_a_keep_without_a_threshold_needs_everything() -> None:
    assert KEEP_ALL.needs(1, 2)
