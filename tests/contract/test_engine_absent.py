"""The engine contract: keys that a commit counts on being absent, without having read them."""

import pytest

from tenure.storage.engine import Commit, CommitStatus, Outcome
from tests.contract.engine_client import Client, key, statuses, write

DONE, TAKEN = CommitStatus.COMMITTED, CommitStatus.TAKEN


@pytest.mark.invariant("absent")
def test_a_key_that_has_a_row_is_taken_and_nothing_is_written(client: Client) -> None:
    at = client.put("a", b"1")
    commit = Commit(0, absent=(key("a"),), writes=(write("a", b"2"), write("b")))
    assert client.try_one(commit) == Outcome(TAKEN, at, key("a"), 0)
    assert client.value("a") == b"1"
    assert client.get("b") is None


@pytest.mark.parametrize("name", ["never there", "gone"])
def test_a_key_without_a_row_is_absent(client: Client, name: str) -> None:
    client.put("gone")
    client.put("gone", None)
    commit = Commit(0, absent=(key(name),), writes=(write(name, b"2"),))
    assert client.try_one(commit).status is DONE
    assert client.value(name) == b"2"


def test_a_key_that_was_free_when_the_transaction_read_may_be_taken_since(client: Client) -> None:
    read_at = client.put("z")
    at = client.put("a")
    commit = Commit(read_at, points=(key("z"),), absent=(key("a"),), writes=(write("a"),))
    assert client.try_one(commit) == Outcome(TAKEN, at, key("a"), 0)


def test_the_first_key_that_is_taken_is_named(client: Client) -> None:
    at = client.put("a")
    client.put("c")
    commit = Commit(0, absent=(key("b"), key("c"), key("a")), writes=(write("b"),))
    assert client.try_one(commit) == Outcome(TAKEN, at + 1, key("c"), 0)


def test_a_row_with_an_empty_value_is_there(client: Client) -> None:
    client.put("a", b"")
    assert client.try_one(Commit(0, absent=(key("a"),), writes=(write("a"),))).status is TAKEN


def test_members_of_a_group_take_keys_from_one_another_and_free_them(client: Client) -> None:
    client.put("old")
    outcomes = client.commit(
        Commit(0, absent=(key("a"),), writes=(write("a", b"1"),)),
        Commit(0, absent=(key("a"),), writes=(write("a", b"2"),)),
        Commit(0, writes=(write("a", None), write("old", None))),
        Commit(0, absent=(key("a"), key("old")), writes=(write("a", b"3"),)),
        Commit(0, writes=(write("b"),)),
        Commit(0, absent=(key("b"),), writes=(write("c"),)),
    )
    assert statuses(outcomes) == [DONE, TAKEN, DONE, DONE, DONE, TAKEN]
    assert outcomes[1].at == outcomes[0].at
    assert client.value("a") == b"3"
    assert client.get("c") is None


def test_a_member_that_was_refused_takes_no_key(client: Client) -> None:
    old_at = client.put("x")
    client.put("x")
    outcomes = client.commit(
        Commit(old_at, points=(key("x"),), writes=(write("a"),)),
        Commit(0, absent=(key("a"),), writes=(write("a"),)),
    )
    assert statuses(outcomes) == [CommitStatus.CONFLICT, DONE]


def test_a_key_is_said_to_be_taken_only_if_the_reads_hold_and_it_is_in_time(client: Client) -> None:
    old_at = client.put("x")
    at = client.put("x")
    taken = Commit(at, absent=(key("x"),), writes=(write("y"),))
    outcomes = client.commit(
        taken._replace(read_at=old_at, points=(key("x"),)),
        taken._replace(deadline_at=at),
        taken._replace(not_before_at=at + 9),
        taken,
    )
    assert outcomes == [
        Outcome(CommitStatus.CONFLICT, at, key("x"), 0),
        Outcome(CommitStatus.TOO_LATE, at + 1, b"", 0),
        Outcome(CommitStatus.TOO_EARLY, at + 1, b"", 0),
        Outcome(TAKEN, at, key("x"), 0),
    ]


def test_a_check_of_reads_does_not_look_at_what_is_to_be_absent(client: Client) -> None:
    at = client.put("a")
    assert client.engine.check(Commit(at, absent=(key("a"),))) == (at, None)


def test_many_keys_may_be_counted_on(client: Client) -> None:
    names = [f"k{number:03}" for number in range(200)]
    commit = Commit(0, absent=tuple(key(name) for name in names), writes=(write("w"),))
    assert client.try_one(commit).status is DONE
    client.put(names[150])
    assert client.try_one(commit).key == key(names[150])
