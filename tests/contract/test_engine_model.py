"""The engine contract against an oracle: a plain dict of histories, over random operations."""

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from tenure.base.timestamp import Timestamp
from tenure.storage.engine import Commit, CommitStatus, Outcome, Revision, Write
from tests.contract.engine_client import HEAD, LAST_HEAD, NEXT_HEAD, Client

HEADS = (HEAD, NEXT_HEAD, LAST_HEAD)
GROUPS = 250
READS = 6
Span = tuple[bytes, bytes]


class Model:
    """Each key's revisions in time order; everything else is a search through them."""

    def __init__(self) -> None:
        self.clock_at: Timestamp = 0
        self.revisions: list[Revision] = []

    def visible(self, at: Timestamp) -> dict[bytes, Revision]:
        return {revision.key: revision for revision in self.revisions if revision.at <= at}

    def scan(self, span: Span, at: Timestamp, since_at: Timestamp | None) -> list[Revision]:
        lo, hi = span
        found = sorted(r for r in self.visible(at).values() if lo <= r.key < hi)
        if since_at is None:
            return [revision for revision in found if revision.value is not None]
        return [revision for revision in found if revision.at > since_at]

    def history(self, span: Span, since_at: Timestamp, until_at: Timestamp) -> list[Revision]:
        lo, hi = span
        found = [r for r in self.revisions if lo <= r.key < hi and since_at < r.at <= until_at]
        return sorted(found, key=lambda revision: (revision.at, revision.key))

    def commit(self, commit: Commit) -> CommitStatus:
        strangers = [r for r in self.revisions if r.at > commit.read_at and r.at not in commit.excused]
        if any(_is_read(commit, revision.key) for revision in strangers):
            return CommitStatus.CONFLICT
        at = self.clock_at + 1
        if commit.deadline_at is not None and at >= commit.deadline_at:
            return CommitStatus.TOO_LATE
        if commit.not_before_at is not None and at <= commit.not_before_at:
            return CommitStatus.TOO_EARLY
        rows = {key for key, revision in self.visible(self.clock_at).items() if revision.value is not None}
        if rows & set(commit.absent):
            return CommitStatus.TAKEN
        self.clock_at = at
        self.revisions += [Revision(write.key, at, write.value) for write in commit.writes]
        return CommitStatus.COMMITTED


def _is_read(commit: Commit, key: bytes) -> bool:
    return key in commit.points or any(lo <= key < hi for lo, hi in commit.spans)


class Draw:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def key(self) -> bytes:
        return self.rng.choice(HEADS) + b"%02d" % self.rng.randrange(12)

    def bound(self) -> bytes:
        return self.key()[: self.rng.choice((4, 7, 8, 10, 12, 12, 12))]

    def span(self) -> Span:
        lo, hi = sorted((self.bound(), self.bound()))
        return lo, hi

    def at(self, clock_at: Timestamp) -> Timestamp:
        return self.rng.randint(max(0, clock_at - 40), clock_at)

    def commit(self, clock_at: Timestamp) -> Commit:
        rng = self.rng
        read_at = max(0, clock_at - rng.choice((0, 0, 1, 2, 5)))
        keys = {self.key() for _ in range(rng.randrange(4))}
        bounds = sorted({self.bound() for _ in range(rng.choice((0, 0, 2, 4)))})
        return Commit(
            read_at,
            points=tuple(self.key() for _ in range(rng.randrange(3))),
            spans=tuple(pairwise(bounds))[::2],
            excused=tuple(read_at + n for n in range(1, 6) if rng.random() < 0.5),
            absent=tuple(self.key() for _ in range(rng.choice((0, 0, 1, 2)))),
            writes=tuple(Write(key, rng.choice((None, b"", b"x", b"y"))) for key in keys),
            deadline_at=rng.choice((None, None, None, clock_at + 2)),
            not_before_at=rng.choice((None, None, None, clock_at + 1)),
        )


@pytest.mark.parametrize("seed", range(3))
def test_an_engine_agrees_with_a_dict_of_histories(client: Client, seed: int) -> None:
    draw, model = Draw(seed), Model()
    for _ in range(GROUPS):
        members = [draw.commit(model.clock_at) for _ in range(draw.rng.choice((1, 1, 2, 5)))]
        outcomes = client.commit(*members)
        for member, outcome in zip(members, outcomes, strict=True):
            _compare_outcome(model, member, outcome)
        for _ in range(READS):
            draw.rng.choice(COMPARISONS)(client, model, draw)


def _compare_outcome(model: Model, member: Commit, outcome: Outcome) -> None:
    before = list(model.revisions)
    assert outcome.status is model.commit(member)
    if outcome.status is CommitStatus.COMMITTED:
        assert outcome.at == model.clock_at
    elif outcome.status is CommitStatus.CONFLICT:
        assert _is_read(member, outcome.key)
        assert (outcome.key, outcome.at) in {(revision.key, revision.at) for revision in before}
        assert outcome.at > member.read_at
        assert outcome.at not in member.excused
    elif outcome.status is CommitStatus.TAKEN:
        rows = {
            key: revision.at
            for key, revision in model.visible(model.clock_at).items()
            if revision.value is not None
        }
        assert outcome.key == next(key for key in member.absent if key in rows)
        assert outcome.at == rows[outcome.key]
    else:
        assert outcome.at == model.clock_at + 1


def _compare_get(client: Client, model: Model, draw: Draw) -> None:
    key, at = draw.key(), draw.rng.choice((None, draw.at(model.clock_at)))
    expected = model.visible(model.clock_at if at is None else at).get(key)
    found = client.get(key[10:].decode(), at, key[:10])
    assert found == expected


def _compare_scan(client: Client, model: Model, draw: Draw) -> None:
    span, at = draw.span(), draw.rng.choice((None, draw.at(model.clock_at)))
    since_at = draw.rng.choice((None, draw.at(model.clock_at)))
    limit, reverse = draw.rng.choice((None, 1, 3)), draw.rng.choice((False, True))
    expected = model.scan(span, model.clock_at if at is None else at, since_at)
    expected = (expected[::-1] if reverse else expected)[:limit]
    found = client.scan(*span, at=at, since_at=since_at, limit=limit, reverse=reverse)
    assert list(found.revisions) == expected
    assert found.clock_at == model.clock_at


def _compare_history(client: Client, model: Model, draw: Draw) -> None:
    lo, hi = draw.span()
    since_at, until_at = draw.at(model.clock_at), draw.rng.choice((None, draw.at(model.clock_at)))
    limit = draw.rng.choice((None, 1, 2, 5))
    until = model.clock_at if until_at is None else until_at
    expected = model.history((lo, hi), since_at, until)
    found = client.history(since_at, until_at, limit=limit, lo=lo, hi=hi)
    assert list(found.revisions) == [r for r in expected if r.at <= found.through_at]
    if limit is None or len(expected) <= limit:
        assert found.through_at == until
    if expected:
        first = [revision for revision in expected if revision.at == expected[0].at]
        assert found.revisions[: len(first)] == first
        # Only a first transaction above the limit lets an answer be longer than that.
        assert limit is None or len(found.revisions) <= limit or len(first) > limit


COMPARISONS: tuple[Callable[[Client, Model, Draw], None], ...] = (
    _compare_get,
    _compare_scan,
    _compare_history,
)
