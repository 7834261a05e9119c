"""The engine contract: which revisions a removal takes."""

import pytest

from tenure.base.timestamp import Timestamp
from tenure.storage.engine import Commit, CommitStatus, Removal, Removes
from tests.contract.engine_client import ALL, HEAD, LAST_HEAD, NEXT_HEAD, Client, key, span, values, write

MANY = 1000


def remove(
    client: Client,
    removes: Removes,
    at: Timestamp,
    *,
    lo: bytes = ALL[0],
    hi: bytes = ALL[1],
    limit: int = MANY,
) -> int:
    outcome = client.try_one(Commit(0, removals=(Removal(lo, hi, removes, at, limit),)))
    assert outcome.status is CommitStatus.COMMITTED
    return outcome.removed


def test_superseded_takes_what_ended_by_then(client: Client) -> None:
    client.put("a", b"1")
    client.put("a", b"2")
    third_at = client.put("a", b"3")
    client.put("a", b"4")
    assert remove(client, Removes.SUPERSEDED, third_at) == 2
    assert values(client.history()) == [b"3", b"4"]
    assert client.value("a", third_at) == b"3"


def test_superseded_keeps_what_ended_just_after(client: Client) -> None:
    client.put("a", b"1")
    second_at = client.put("a", b"2")
    assert remove(client, Removes.SUPERSEDED, second_at - 1) == 0
    assert remove(client, Removes.SUPERSEDED, second_at) == 1


def test_superseded_keeps_living_tombstones(client: Client) -> None:
    client.put("a", b"1")
    gone_at = client.put("a", None)
    assert remove(client, Removes.SUPERSEDED, gone_at) == 1
    assert values(client.history()) == [None]


def test_garbage_takes_living_tombstones_too(client: Client) -> None:
    client.put("a", b"1")
    gone_at = client.put("a", None)
    client.put("b", b"lives")
    later_at = client.put("c", None)
    assert remove(client, Removes.GARBAGE, gone_at) == 2
    assert values(client.history()) == [b"lives", None]
    assert remove(client, Removes.GARBAGE, later_at - 1) == 0
    assert remove(client, Removes.GARBAGE, later_at) == 1
    assert client.get("c") is None


def test_garbage_keeps_a_tombstone_that_was_visible_then_but_is_past(client: Client) -> None:
    client.put("a", b"1")
    gone_at = client.put("a", None)
    client.put("a", b"2")
    assert remove(client, Removes.GARBAGE, gone_at) == 1
    assert values(client.history()) == [None, b"2"]


def test_flushed_takes_all_that_was_committed_by_then(client: Client) -> None:
    client.put("a", b"1")
    client.put("b", b"1")
    upto_at = client.put("a", b"2")
    client.put("a", b"3")
    client.put("c", b"4")
    assert remove(client, Removes.FLUSHED, upto_at) == 3
    assert values(client.history()) == [b"3", b"4"]
    assert client.get("b") is None


@pytest.mark.parametrize("removes", list(Removes))
def test_a_removal_keeps_to_its_span(client: Client, removes: Removes) -> None:
    for name in "abc":
        client.put(name, b"1")
        client.put(name, None)
    lo, hi = span("b", "c")
    assert remove(client, removes, client.engine.clock_at(), lo=lo, hi=hi) >= 1
    left = {revision.key for revision in client.history().revisions}
    assert {key("a"), key("c")} <= left
    assert client.value("a", client.engine.clock_at() - 6) in (b"1", None)
    assert len([r for r in client.history().revisions if r.key in (key("a"), key("c"))]) == 4


@pytest.mark.parametrize("removes", list(Removes))
def test_a_removal_crosses_heads(client: Client, removes: Removes) -> None:
    for head in (HEAD, NEXT_HEAD, LAST_HEAD):
        client.put("a", b"1", head)
        client.put("a", None, head)
    expected = 2 if removes is Removes.SUPERSEDED else 4
    assert remove(client, removes, client.engine.clock_at(), lo=HEAD, hi=LAST_HEAD) == expected


@pytest.mark.parametrize("removes", list(Removes))
def test_a_removal_stops_at_its_limit_and_ends_when_repeated(client: Client, removes: Removes) -> None:
    for name in "abcd":
        client.put(name, b"1")
        client.put(name, None)
    upto_at = client.engine.clock_at()
    total = 4 if removes is Removes.SUPERSEDED else 8
    counts: list[int] = []
    while not counts or counts[-1] > 0:
        counts.append(remove(client, removes, upto_at, limit=3))
    assert max(counts) == 3
    assert sum(counts) == total
    assert len(client.history().revisions) == 8 - total


def test_the_past_goes_before_the_present(client: Client) -> None:
    for name in "ab":
        client.put(name, b"1")
        client.put(name, None)
    remove(client, Removes.GARBAGE, client.engine.clock_at(), limit=2)
    assert values(client.history()) == [None, None]


def test_several_removals_are_counted_together(client: Client) -> None:
    for name in "ab":
        client.put(name, b"1")
        client.put(name, b"2")
    at = client.engine.clock_at()
    removals = tuple(Removal(*span(lo, hi), Removes.SUPERSEDED, at, MANY) for lo, hi in ("ab", "bc"))
    assert client.try_one(Commit(at, removals=removals)).removed == 2


def test_a_commit_that_fails_removes_nothing(client: Client) -> None:
    old_at = client.put("a")
    at = client.put("a")
    removal = Removal(*ALL, Removes.FLUSHED, at, MANY)
    outcome = client.try_one(Commit(old_at, points=(key("a"),), removals=(removal,)))
    assert outcome == (CommitStatus.CONFLICT, at, key("a"), 0)
    assert len(client.history().revisions) == 2


def test_writes_and_removals_land_together(client: Client) -> None:
    client.put("a", b"1")
    at = client.put("a", b"2")
    removal = Removal(*ALL, Removes.SUPERSEDED, at, MANY)
    outcome = client.try_one(Commit(at, writes=(write("mark"),), removals=(removal,)))
    assert outcome == (CommitStatus.COMMITTED, at + 1, b"", 1)
    assert client.get("mark") is not None
    assert values(client.history()) == [b"2", b"v"]
