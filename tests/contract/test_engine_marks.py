"""The engine contract on marks, against an oracle: groups whose members move marks that others guard.

A guard is of one head, or of several. A mark may be moved before a group, by an earlier member of the same
one, or by the very member that guards it; and it may be moved to a time on either side of what was read.
"""

import random
from itertools import count

import pytest

from tenure.base.errors import OutcomeUnknown
from tenure.base.timestamp import Timestamp, to_bytes
from tenure.storage.engine import Commit, CommitStatus, Guard, Outcome, Write
from tests.contract.engine_client import HEAD, MARKS_HEAD, Client, key, write

GROUPS = 120
HEADS = 3


def _mark(kind: str, head: int) -> bytes:
    return MARKS_HEAD + f"{kind}{head}".encode()


def _guard(first: int, last: int) -> Guard:
    return Guard(_mark("t", first), _mark("t", last), _mark("c", first), _mark("c", last))


class Model:
    """Marks and keys as plain dictionaries; each member is judged after those before it."""

    def __init__(self) -> None:
        self.clock_at: Timestamp = 0
        self.marks: dict[bytes, Timestamp] = {}
        self.written: dict[bytes, Timestamp] = {}

    def commit(self, commit: Commit, moved: dict[bytes, Timestamp]) -> CommitStatus:
        marks = [at for guard in commit.guards for key, at in self.marks.items() if _is_guarded(guard, key)]
        if max(marks, default=0) > commit.read_at:
            return CommitStatus.BELOW_MARK
        if any(self.written.get(key, 0) > commit.read_at for key in commit.points):
            return CommitStatus.CONFLICT
        self.clock_at += 1
        self.written |= {each.key: self.clock_at for each in commit.writes}
        self.marks |= moved
        return CommitStatus.COMMITTED


def _is_guarded(guard: Guard, mark: bytes) -> bool:
    return guard[0] <= mark <= guard[1] or guard[2] <= mark <= guard[3]


def _member(rng: random.Random, clock_at: Timestamp) -> tuple[Commit, dict[bytes, Timestamp]]:
    read_at = max(0, clock_at - rng.choice((0, 0, 1, 3)))
    points = tuple({HEAD + b"%d" % rng.randrange(4) for _ in range(rng.randrange(3))})
    first = rng.randrange(HEADS)
    last = first if rng.random() < 0.7 else rng.randrange(first, HEADS)
    moved = {
        _mark(rng.choice("tc"), rng.randrange(HEADS)): max(1, clock_at + rng.choice((-1, 0, 0, 1)))
        for _ in range(rng.choice((0, 0, 1)))
    }
    writes = [Write(HEAD + b"%d" % rng.randrange(4), b"v") for _ in range(rng.randrange(2))]
    writes += [Write(mark, to_bytes(at)) for mark, at in moved.items()]
    guards = (_guard(first, last),) if points or rng.random() < 0.5 else ()
    return Commit(read_at, points=points, guards=guards, writes=tuple(writes)), moved


@pytest.mark.parametrize("seed", range(4))
def test_members_are_judged_by_marks_as_they_are_when_their_turn_comes(client: Client, seed: int) -> None:
    rng, model, refused = random.Random(seed), Model(), count()
    for _ in range(GROUPS):
        members = [_member(rng, model.clock_at) for _ in range(rng.choice((1, 2, 2, 4)))]
        outcomes = client.commit(*(commit for commit, _ in members))
        expected = [model.commit(*member) for member in members]
        assert [outcome.status for outcome in outcomes] == expected
        for _ in range(expected.count(CommitStatus.BELOW_MARK)):
            next(refused)
    assert next(refused) > GROUPS / 10, "marks hardly ever mattered"


@pytest.mark.parametrize("kind", ["t", "c"])
def test_a_member_that_guards_one_key_is_judged_by_a_mark_that_an_earlier_one_moved(
    client: Client, kind: str
) -> None:
    at = client.put("a")
    outcomes = client.commit(
        Commit(at, writes=(Write(_mark(kind, 1), to_bytes(at + 1)),)),
        Commit(at, points=(key("a"),), guards=(_guard(1, 1),), writes=(write("b"),)),
        Commit(at, points=(key("a"),), guards=(_guard(2, 2),), writes=(write("c"),)),
    )
    assert [outcome.status for outcome in outcomes] == [
        CommitStatus.COMMITTED,
        CommitStatus.BELOW_MARK,
        CommitStatus.COMMITTED,
    ]


@pytest.mark.invariant("I5")
def test_a_group_that_its_lane_has_passed_is_not_settled_by_the_next_ones_outcomes(client: Client) -> None:
    client.put("a")
    passed = client.seq
    client.put("b")
    with pytest.raises(OutcomeUnknown):
        client.engine.settle(client.lane, passed)
    assert _statuses(client.engine.settle(client.lane, client.seq)) == [CommitStatus.COMMITTED]


def _statuses(outcomes: list[Outcome] | None) -> list[CommitStatus]:
    return [outcome.status for outcome in outcomes or ()]
