"""The tree of accounts: what is charged, refused and given back."""

import threading
from collections.abc import Callable

import pytest

from tenure.base.errors import OutOfMemory
from tenure.base.memory import (
    LARGE_BYTES,
    LOOK_BYTES,
    PIECE_BYTES,
    TRIM_BYTES,
    Account,
    Holding,
    ResidentMemory,
    charge_value,
    lone_account,
    making,
)
from tenure.base.node_memory import LEAST_BYTES, MemoryLimits, NodeMemory
from tenure.base.settings import DEFINITIONS, NODE_MEMORY, QUERY_MEMORY, SESSION_MEMORY, USER_MEMORY, Settings

MIB = 1 << 20
SETTINGS = Settings(
    DEFINITIONS,
    {QUERY_MEMORY: 20 * MIB, SESSION_MEMORY: 40 * MIB, USER_MEMORY: 60 * MIB, NODE_MEMORY: 100 * MIB},
)


def node_of(settings: Settings = SETTINGS, resident: Callable[[], int] = lambda: 0) -> NodeMemory:
    limits = MemoryLimits(lambda: settings, machine=lambda: 1024 * MIB)
    return NodeMemory(limits, threading.RLock(), ResidentMemory(resident, ()))


@pytest.mark.invariant("memory-sum")
def test_a_charge_counts_in_the_whole_branch() -> None:
    memory = node_of()
    first, second = memory.open_session("ann", 1), memory.open_session("ann", 2)
    memory.open_statement(first).charge(MIB)
    memory.open_statement(second).charge(2 * MIB)
    first.charge(3 * MIB)
    assert (first.held_bytes, second.held_bytes) == (4 * MIB, 2 * MIB)
    assert memory.users()["ann"].held_bytes == memory.node.held_bytes == 6 * MIB


def test_a_charge_that_is_refused_counts_nowhere() -> None:
    memory = node_of()
    session = memory.open_session("ann", 1)
    statement = memory.open_statement(session)
    with pytest.raises(OutOfMemory) as caught:
        statement.charge(21 * MIB, "a sort")
    assert str(caught.value) == (
        "the statement holds 0 bytes in memory, and 22020096 more for a sort would be above the limit of "
        "20971520 bytes"
    )
    assert caught.value.sqlstate == "53200"
    assert "sql.query_memory" in caught.value.hint
    assert memory.node.held_bytes == session.held_bytes == statement.held_bytes == 0


@pytest.mark.parametrize(
    ("sessions", "refusal"),
    [
        ([("ann", 3)], "session 0 holds"),
        ([("ann", 2), ("ann", 2)], 'user "ann" holds'),
        ([("ann", 2), ("bob", 2), ("cid", 2)], "the node holds"),
    ],
)
def test_each_level_has_a_limit(sessions: list[tuple[str, int]], refusal: str) -> None:
    memory = node_of()

    def charge_all() -> None:
        for number, (user, statements) in enumerate(sessions):
            session = memory.open_session(user, number)
            for _ in range(statements):
                memory.open_statement(session).charge(19 * MIB)

    with pytest.raises(OutOfMemory, match=refusal):
        charge_all()


@pytest.mark.invariant("memory-given-back")
def test_what_was_charged_is_given_back_when_its_owner_is_closed() -> None:
    memory = node_of()
    session = memory.open_session("ann", 1)
    statement = memory.open_statement(session)
    holding = Holding(statement)
    holding.hold_bytes(5 * MIB)
    session.charge(MIB)
    statement.close()
    assert (statement.held_bytes, session.held_bytes) == (0, MIB)
    holding.give_back()  # late, by whoever was not told
    assert session.held_bytes == MIB
    memory.close_session("ann", session)
    assert memory.node.held_bytes == 0
    assert memory.users() == {}


def test_a_user_is_there_as_long_as_a_session_is() -> None:
    memory = node_of()
    first, second = memory.open_session("ann", 1), memory.open_session("ann", 2)
    memory.close_session("ann", first)
    memory.close_session("ann", first)
    assert list(memory.users()) == ["ann"]
    memory.close_session("ann", second)
    assert memory.users() == {}


def test_a_little_is_never_refused() -> None:
    account = lone_account(1)
    account.charge(PIECE_BYTES)
    with pytest.raises(OutOfMemory):
        account.charge(1)


def test_rows_that_come_one_by_one_are_charged_in_pieces() -> None:
    account = lone_account(MIB)
    holding = Holding(account)

    def add_without_end() -> None:
        while True:
            holding.add(("x" * 1_000,))

    with pytest.raises(OutOfMemory):
        add_without_end()
    assert MIB - 2 * PIECE_BYTES < account.held_bytes <= MIB


def test_what_the_process_has_counts_as_well() -> None:
    resident = 0
    memory = node_of(resident=lambda: resident)
    statement = memory.open_statement(memory.open_session("ann", 1))
    statement.charge(2 * MIB)
    resident = 99 * MIB
    with pytest.raises(OutOfMemory, match="the node's process has no room"):
        statement.charge(LOOK_BYTES)
    memory.open_statement(memory.open_session("bob", 2)).charge(LARGE_BYTES)  # little goes on


def test_free_pages_are_given_back_before_anybody_is_refused() -> None:
    resident = [99 * MIB]
    process = ResidentMemory(lambda: resident[0], (lambda: resident.__setitem__(0, MIB),))
    account = Account("it", limit=lambda: 100 * MIB, process=process)
    process.freed_bytes = TRIM_BYTES + 1
    account.charge(10 * MIB)
    assert process.freed_bytes == 0


def test_a_loop_gives_free_pages_back() -> None:
    trims: list[int] = []
    memory = NodeMemory(
        MemoryLimits(lambda: SETTINGS),
        threading.RLock(),
        ResidentMemory(lambda: 0, (lambda: trims.append(1),)),
    )
    memory.step()
    session = memory.open_session("ann", 1)
    session.charge(TRIM_BYTES + 1)
    memory.close_session("ann", session)
    assert trims == []
    memory.step()
    memory.step()
    assert trims == [1]


def test_limits_that_are_not_set_follow_the_machine() -> None:
    limits = MemoryLimits(lambda: Settings(DEFINITIONS), machine=lambda: 1024 * MIB)
    assert (limits.node(), limits.user(), limits.session()) == (512 * MIB, 256 * MIB, 128 * MIB)
    tiny = MemoryLimits(lambda: Settings(DEFINITIONS, {NODE_MEMORY: 1}), machine=lambda: MIB)
    assert tiny.node() == LEAST_BYTES


def test_large_values_are_charged_to_the_statement_that_makes_them() -> None:
    account = lone_account(10 * MIB)
    with making(account.large):
        charge_value(4 * MIB)
        assert account.held_bytes == account.large_bytes == 4 * MIB
        with pytest.raises(OutOfMemory, match="large values"):
            charge_value(11 * MIB)
    account.settle()
    assert account.held_bytes == 0


def test_large_values_that_are_gone_are_not_counted_for_ever() -> None:
    """The process has not grown by what was made: so it is not there any more."""
    account = lone_account(10 * MIB)
    with making(account.large):
        for _ in range(100):
            charge_value(4 * MIB)
    assert account.held_bytes <= 10 * MIB


def test_values_that_many_make_at_once_are_seen_before_they_are_there() -> None:
    memory = node_of(resident=lambda: 60 * MIB)
    accounts = [memory.open_statement(memory.open_session(f"u{n}", n)) for n in range(3)]
    for account in accounts[:2]:
        with making(account.large):
            charge_value(15 * MIB)
    with making(accounts[2].large), pytest.raises(OutOfMemory):
        charge_value(15 * MIB)
    for account in accounts:
        account.close()
    assert memory.process.coming_bytes == 0


def test_threads_lose_no_charge() -> None:
    memory = node_of()
    sessions = [memory.open_session("ann", number) for number in range(4)]

    def work(session: Account) -> None:
        for _ in range(5_000):
            session.charge(10)
            session.release(7)

    threads = [threading.Thread(target=work, args=(each,)) for each in sessions]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert memory.node.held_bytes == 4 * 5_000 * 3
