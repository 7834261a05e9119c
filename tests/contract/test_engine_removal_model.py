"""The engine contract: removals over random histories, against a naive oracle.

The oracle has all revisions in a list. A removal may change no read at its time or later, nor at a kept
point, and what no such read needs is gone when it has come to its end.
"""

from random import Random
from typing import NamedTuple

import pytest

from tenure.base.timestamp import MAX_AT, Timestamp
from tenure.storage.engine import Commit, CommitStatus, Removal, Removes, Revision, Write
from tests.contract.engine_client import ALL, HEAD, NEXT_HEAD, Client, key

SEEDS = 12
NAMES = "abcdefgh"


class Interval(NamedTuple):
    key: bytes
    at: Timestamp
    until_at: Timestamp
    value: bytes | None


class History:
    """Every revision that was ever written."""

    def __init__(self, client: Client, rng: Random) -> None:
        self.client = client
        self.rng = rng
        self.revisions: list[Revision] = []

    def write_some(self, commits: int) -> None:
        for _ in range(commits):
            hot = self.rng.random() < 0.5
            names = ["a"] if hot else self.rng.sample(NAMES, self.rng.randint(1, 3))
            head = self.rng.choice((HEAD, HEAD, NEXT_HEAD))
            value = None if self.rng.random() < 0.3 else b"%d" % len(self.revisions)
            at = self.client.write(*(Write(key(name, head), value) for name in names))
            self.revisions += [Revision(key(name, head), at, value) for name in names]

    def intervals(self) -> list[Interval]:
        found = []
        for number, (of_key, at, value) in enumerate(self.revisions):
            later = (each.at for each in self.revisions[number + 1 :] if each.key == of_key)
            found.append(Interval(of_key, at, next(later, MAX_AT), value))
        return found

    def rows(self, at: Timestamp) -> dict[bytes, bytes]:
        return {
            each.key: each.value
            for each in self.intervals()
            if each.at <= at < each.until_at and each.value is not None
        }


def needed(history: History, removal: Removal) -> set[tuple[bytes, Timestamp]]:
    """The revisions that a removal must leave, by brute force."""
    intervals = history.intervals()
    past = {
        (each.key, each.at)
        for each in intervals
        if each.until_at < MAX_AT
        and (each.until_at > removal.at or any(each.at <= p < each.until_at for p in removal.points))
    }
    keys = {each for each, _ in past}
    live = {
        (each.key, each.at)
        for each in intervals
        if each.until_at == MAX_AT
        and not (
            removal.removes is Removes.GARBAGE
            and each.value is None
            and each.at <= removal.at
            and each.key not in keys
        )
    }
    return past | live


def stored(client: Client) -> set[tuple[bytes, Timestamp]]:
    return {(revision.key, revision.at) for revision in client.history().revisions}


def rows(client: Client, at: Timestamp) -> dict[bytes, bytes | None]:
    return {revision.key: revision.value for revision in client.scan(at=at).revisions}


def run(client: Client, seed: int) -> None:
    rng = Random(seed)
    history = History(client, rng)
    history.write_some(rng.randint(1, 40))
    clock_at = client.engine.clock_at()
    first_at = history.revisions[0].at
    at = rng.randint(first_at, clock_at)
    points = tuple({rng.randint(first_at, clock_at) for _ in range(rng.choice((0, 0, 1, 3, 10)))})
    removes = rng.choice((Removes.SUPERSEDED, Removes.GARBAGE))
    removal = Removal(*ALL, removes, at, 1, points)
    writes_between = rng.random() < 0.5
    expected = needed(history, removal)
    while True:
        removal = removal._replace(limit=rng.choice((1, 2, 3, 7, 1_000)))
        outcome = client.try_one(Commit(0, removals=(removal,)))
        assert outcome.status is CommitStatus.COMMITTED
        assert outcome.removed <= removal.limit
        if not outcome.last:
            break
        if writes_between:
            history.write_some(rng.randint(0, 3))
        removal = removal._replace(after=outcome.last)
    if not writes_between:
        assert stored(client) == expected
    for readable_at in {*points, *range(at, client.engine.clock_at() + 1)}:
        assert rows(client, readable_at) == history.rows(readable_at), readable_at


@pytest.mark.invariant("kept-points")
@pytest.mark.invariant("I30")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_removal_changes_no_readable_time_and_leaves_nothing_else(client: Client, seed: int) -> None:
    run(client, seed)
