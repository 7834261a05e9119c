"""Which of the transactions that wait for each other gives way."""

from itertools import permutations

import pytest

from tenure.catalog.leases.wait_records import (
    AwaitedDescriptor,
    Hold,
    LeaseWait,
    WaitOwner,
    is_in_cycle,
    must_give_way,
)
from tenure.kv.records import replace

OLD_AT, NEW_AT = 10, 20
"""A lease from before a change that is waited out, and the change."""


def wait(age: int, *, waits_for: int, holds: int | None = None, lease_at: int = OLD_AT) -> LeaseWait:
    """A wait of a transaction that began at `age`, on a node of its own."""
    held = () if holds is None else (Hold(holds, lease_at),)
    return LeaseWait(age, 1, 1, age, age, (AwaitedDescriptor(waits_for, NEW_AT),), held)


@pytest.mark.invariant("I9")
def test_of_two_that_wait_for_each_other_the_younger_gives_way() -> None:
    older, younger = wait(1, waits_for=200, holds=201), wait(2, waits_for=201, holds=200)
    assert must_give_way(younger, [older, younger])
    assert not must_give_way(older, [older, younger])


@pytest.mark.invariant("I9")
def test_exactly_one_of_a_longer_cycle_gives_way_however_it_is_listed() -> None:
    cycle = [
        wait(age, waits_for=200 + following, holds=200 + age) for age, following in ((1, 2), (2, 3), (3, 1))
    ]
    for listed in permutations(cycle):
        assert [each.started_at for each in listed if must_give_way(each, listed)] == [3]


@pytest.mark.invariant("I9")
def test_a_cycle_leads_through_a_lock_and_a_descriptor() -> None:
    """A change that has locked a row waits for a descriptor; who uses that waits for the row."""
    for change_age, user_age in ((1, 2), (2, 1)):
        change = replace(wait(change_age, waits_for=200), owner=7)
        user = LeaseWait(
            *(user_age, 1, 1, user_age, user_age, (), (Hold(200, OLD_AT),)),
            owner=8,
            awaits=(WaitOwner(change_age, 1, 7),),
        )
        waits = [change, user]
        assert all(is_in_cycle(each, waits) for each in waits)
        assert [each.started_at for each in waits if must_give_way(each, waits)] == [2]


def test_a_wait_for_the_lock_of_another_is_in_no_cycle_with_a_change() -> None:
    change = replace(wait(1, waits_for=200), owner=7)
    user = LeaseWait(2, 1, 1, 2, 2, (), (Hold(200, OLD_AT),), owner=8, awaits=(WaitOwner(1, 1, 9),))
    assert not any(is_in_cycle(each, [change, user]) for each in (change, user))


def test_a_chain_without_a_cycle_is_left_alone() -> None:
    waits = [wait(1, waits_for=200), wait(2, waits_for=201, holds=200)]
    assert not any(must_give_way(each, waits) for each in waits)


def test_a_pin_under_a_lease_that_knows_the_change_holds_nobody_up() -> None:
    waits = [wait(1, waits_for=200, holds=201, lease_at=NEW_AT), wait(2, waits_for=201, holds=200)]
    assert not any(must_give_way(each, waits) for each in waits)
