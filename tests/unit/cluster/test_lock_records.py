"""Lines in the store: who is in whose way, and who of a cycle gives way."""

import random
from collections.abc import Sequence

import pytest

from tenure.cluster.locks.lock_records import LockHolder, LockRecord, in_the_way, must_give_way
from tenure.cluster.locks.lock_table import LockMode, conflict
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.records import replace

S, X = LockMode.SHARE, LockMode.EXCLUSIVE


def record(
    key: str, owner: int, mode: LockMode, since_at: int, *, started_at: int | None = None
) -> LockRecord:
    """A record of an owner on a node of its own."""
    return LockRecord(
        key.encode(), owner, 1, since_at, owner, mode, owner if started_at is None else started_at, since_at
    )


def notice(key: str, instance: int, owner: int, *awaits: int) -> LockRecord:
    """An owner of some node that waits in its memory for others there."""
    return LockRecord(key.encode(), instance, 1, 1, owner, X, owner, 1, awaits)


def blockers(mine: LockRecord, *others: LockRecord, firm: Sequence[LockRecord] = ()) -> list[int]:
    return [each.owner for each in in_the_way(mine, [mine, *others], firm)]


def test_the_first_in_line_holds() -> None:
    assert blockers(record("a", 1, X, 10), record("a", 2, X, 11), record("a", 3, S, 12)) == []


def test_what_came_before_and_conflicts_is_in_the_way() -> None:
    line = [record("a", 1, S, 10), record("a", 2, X, 11), record("a", 3, S, 12)]
    assert [[each.owner for each in in_the_way(mine, line, [])] for mine in line] == [[], [1], [2]]


def test_a_second_record_does_not_wait_for_those_who_wait_for_the_first() -> None:
    first, other, writer = record("a", 1, S, 10), record("a", 2, S, 11), record("a", 3, X, 12)
    assert blockers(record("a", 1, X, 13), first, other, writer, firm=[first]) == [2]
    assert blockers(record("a", 1, X, 13), first, other, writer) == [2, 3]


@pytest.mark.invariant("I9")
def test_the_youngest_of_a_cycle_gives_way_and_no_other() -> None:
    lines = [
        [record("a", 1, X, 10), record("a", 2, X, 14)],
        [record("b", 2, X, 11), record("b", 3, X, 15)],
        [record("c", 3, X, 12), record("c", 1, X, 16)],
        [record("d", 4, X, 13), record("d", 3, X, 17)],
    ]
    holders = [LockHolder(SessionId(number, 1), number) for number in (1, 2, 3, 4)]
    assert [must_give_way(holder, lines) for holder in holders] == [False, False, True, False]


def test_a_chain_is_no_cycle() -> None:
    lines = [[record("a", 1, X, 10), record("a", 2, X, 12)], [record("b", 2, X, 11), record("b", 3, X, 13)]]
    assert not any(must_give_way(LockHolder(SessionId(number, 1), number), lines) for number in (1, 2, 3))


def test_who_has_no_record_waits_for_nobody() -> None:
    line = [record("a", 1, X, 10)]
    assert not must_give_way(LockHolder(line[0].session, 9), [line])


def test_a_notice_is_in_nobodys_way() -> None:
    assert blockers(record("a", 1, X, 10), notice("a", 2, 7, 8)) == []


@pytest.mark.invariant("I9")
def test_a_cycle_through_waits_in_the_memory_of_a_node_is_seen() -> None:
    """Of node 1, owner 1 has `a` and waits for node 2, and owner 5 has `b` and waits for owner 1."""
    held = replace(record("b", 1, X, 11), owner=5, started_at=5)
    lines = [
        [record("c", 2, X, 10), replace(record("c", 1, X, 13), started_at=1)],
        [held, record("b", 2, X, 14)],
        [notice("a", 1, 5, 1)],
    ]
    holders = [LockHolder(SessionId(1, 1), 1), LockHolder(SessionId(1, 1), 5), LockHolder(SessionId(2, 1), 2)]
    assert [must_give_way(holder, lines) for holder in holders] == [False, True, False]


def test_owners_of_one_node_are_not_in_each_others_way() -> None:
    mine = record("a", 1, X, 12)
    assert blockers(mine, replace(mine, owner=2, ticket=11, since_at=11)) == []


@pytest.mark.invariant("lock-exclusion")
@pytest.mark.parametrize("seed", range(50))
def test_of_two_records_that_conflict_at_most_one_holds(seed: int) -> None:
    """Records come at growing times; an owner's are deleted together, or one that does not hold alone."""
    rng = random.Random(seed)
    line: list[LockRecord] = []
    holding: list[LockRecord] = []
    for at in range(1, 300):
        if rng.random() < 0.1 and line:
            given_up = rng.choice(line)
            line = [each for each in line if each is not given_up or each in holding]
        elif rng.random() < 0.5 and line:
            gone = rng.choice(line).owner
            line = [each for each in line if each.owner != gone]
            holding = [each for each in holding if each.owner != gone]
        else:
            line.append(record("a", rng.randrange(5), rng.choice([S, X]), at))
        for each in rng.sample(line, len(line)):  # some look now, others later
            if (
                each not in holding
                and rng.random() < 0.7
                and not in_the_way(each, line, [mine for mine in holding if mine.owner == each.owner])
            ):
                holding.append(each)
        for one in holding:
            for other in holding:
                assert one.owner == other.owner or not conflict(one.mode, other.mode)
