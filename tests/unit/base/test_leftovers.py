"""When a node collects garbage: after it has grown by what no account holds."""

import gc
import threading
import weakref
from itertools import accumulate, takewhile

from tenure.base.memory import TRIM_BYTES, ResidentMemory, lone_account
from tenure.base.node_memory import (
    LEFT_BYTES_MAX,
    PAUSE_STEPS,
    PAUSE_STEPS_MAX,
    QUIET_BYTES_MAX,
    Leftovers,
    MemoryLimits,
    NodeMemory,
)
from tenure.base.settings import DEFINITIONS, Settings

MIB = 1 << 20
OWN, GROWN = 60 * MIB, 60 * MIB + LEFT_BYTES_MAX + 1


def steps_of(leftovers: Leftovers, left_bytes: int, steps: int) -> list[int]:
    """The steps, from 1 on, that collect."""
    return [n for n in range(1, steps + 1) if leftovers.should_collect(left_bytes, was_freed=False)]


def test_a_process_that_has_hardly_grown_is_not_collected() -> None:
    leftovers = Leftovers()
    assert steps_of(leftovers, OWN, 1) == []
    assert steps_of(leftovers, OWN + LEFT_BYTES_MAX, 10) == []


def test_a_process_that_has_grown_is_collected_after_pauses_that_double() -> None:
    leftovers = Leftovers()
    assert not leftovers.should_collect(OWN, was_freed=False)
    found = steps_of(leftovers, GROWN, 4 * PAUSE_STEPS_MAX)
    pauses = [PAUSE_STEPS << n for n in range(10)]
    ends = [end - 1 for end in accumulate(takewhile(lambda each: each <= PAUSE_STEPS_MAX, pauses))]
    assert (
        found == ends
    )  # the step before counts for the first pause; after the longest, it is the node's own
    assert steps_of(leftovers, GROWN, 4 * PAUSE_STEPS_MAX) == []


def test_what_is_given_back_makes_the_pauses_short_again() -> None:
    leftovers = Leftovers()
    assert not leftovers.should_collect(OWN, was_freed=False)
    assert steps_of(leftovers, GROWN, 20)
    assert not leftovers.should_collect(GROWN, was_freed=False)
    assert leftovers.should_collect(GROWN, was_freed=True)


def test_a_node_collects_only_while_its_users_hold_little() -> None:
    resident, collections = [OWN], [0]

    def collect() -> None:
        collections[0] += 1
        resident[0] = OWN

    limits = MemoryLimits(lambda: Settings(DEFINITIONS), machine=lambda: 8192 * MIB)
    process = ResidentMemory(lambda: resident[0], ())
    memory = NodeMemory(limits, threading.RLock(), process, collect)
    memory.step()
    session = memory.open_session("ann", 1)
    session.charge(QUIET_BYTES_MAX + 1)
    resident[0] = GROWN + QUIET_BYTES_MAX + TRIM_BYTES
    for _ in range(3 * PAUSE_STEPS):
        memory.step()
    assert collections == [0]
    memory.close_session("ann", session)
    for _ in range(3 * PAUSE_STEPS):
        memory.step()
    assert collections == [1]


def test_an_account_that_is_closed_needs_no_collection() -> None:
    gc.disable()
    try:
        account = lone_account(MIB)
        large = weakref.ref(account.large)
        account.close()
        assert large() is None
    finally:
        gc.enable()
