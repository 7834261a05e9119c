"""The engine contract: which revisions a removal takes."""

from collections.abc import Iterator

import pytest

from tenure.base.timestamp import Timestamp
from tenure.storage.engine import Commit, CommitStatus, Outcome, Removal, Removes
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


def batches(client: Client, removal: Removal) -> Iterator[Outcome]:
    """Runs a removal to its end, batch by batch."""
    while True:
        outcome = client.try_one(Commit(0, removals=(removal,)))
        assert outcome.status is CommitStatus.COMMITTED
        yield outcome
        if not outcome.last:
            return
        removal = removal._replace(after=outcome.last)


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
def test_a_removal_stops_at_its_limit_and_continues_there(client: Client, removes: Removes) -> None:
    for name in "abcd":
        client.put(name, b"1")
        client.put(name, None)
    total = 4 if removes is Removes.SUPERSEDED else 8
    outcomes = list(batches(client, Removal(*ALL, removes, client.engine.clock_at(), limit=3)))
    assert max(outcome.removed for outcome in outcomes) == 3
    assert sum(outcome.removed for outcome in outcomes) == total
    assert len(client.history().revisions) == 8 - total


@pytest.mark.invariant("kept-points")
def test_a_revision_visible_at_a_kept_point_stays(client: Client) -> None:
    ats = [client.put("a", b"%d" % number) for number in range(6)]
    removal = Removal(*ALL, Removes.SUPERSEDED, ats[5], MANY, points=(ats[1], ats[3], ats[5]))
    assert client.try_one(Commit(0, removals=(removal,))).removed == 3
    assert values(client.history()) == [b"1", b"3", b"5"]
    assert [client.value("a", at) for at in (ats[1], ats[3], ats[5])] == [b"1", b"3", b"5"]


@pytest.mark.invariant("kept-points")
def test_a_kept_point_holds_from_the_start_of_a_revision_to_just_before_its_end(client: Client) -> None:
    names = {name: client.put(name, b"1") for name in "abc"}
    end_at = client.write(*(write(name, b"2") for name in "abc"))
    first_at = names["a"]
    for points, left in (((first_at, end_at), "a"), ((end_at,), "")):
        removal = Removal(*ALL, Removes.SUPERSEDED, end_at, MANY, points=points)
        list(batches(client, removal))
        assert {revision.key for revision in client.history(until_at=end_at - 1).revisions} == {
            key(name) for name in left
        }


def test_a_tombstone_stays_while_a_kept_point_holds_a_past_revision_of_its_key(client: Client) -> None:
    first_at = client.put("a", b"1")
    gone_at = client.put("a", None)
    removal = Removal(*ALL, Removes.GARBAGE, gone_at, MANY, points=(first_at,))
    assert client.try_one(Commit(0, removals=(removal,))).removed == 0
    assert client.value("a", first_at) == b"1"
    assert client.try_one(Commit(0, removals=(removal._replace(points=()),))).removed == 2
    assert client.history().revisions == []


def test_a_tombstone_stays_while_a_newer_past_revision_of_its_key_is_there(client: Client) -> None:
    client.put("a", b"1")
    first_gone_at = client.put("a", None)
    second_at = client.put("a", b"2")
    client.put("a", None)
    assert remove(client, Removes.GARBAGE, second_at - 1) == 1
    assert client.value("a", second_at) == b"2"
    assert client.get("a", first_gone_at) is not None


def test_a_removal_continues_inside_a_key(client: Client) -> None:
    ats = [client.put("a", b"%d" % number) for number in range(40)]
    removal = Removal(*ALL, Removes.GARBAGE, ats[-1], limit=3, points=tuple(ats[:30:2]))
    outcomes = list(batches(client, removal))
    assert sum(outcome.removed for outcome in outcomes) == 24
    assert len(outcomes) == 39 // 3 + 1
    assert [client.value("a", at) for at in ats[:30:2]] == [b"%d" % n for n in range(0, 30, 2)]


def test_of_several_removals_those_after_a_cut_wait(client: Client) -> None:
    for name in "abc":
        client.put(name, b"1")
        client.put(name, b"2")
    at = client.engine.clock_at()
    first, second = (Removal(*span(lo, hi), Removes.SUPERSEDED, at, 1) for lo, hi in ("ac", "cd"))
    outcome = client.try_one(Commit(at, removals=(first, second)))
    assert outcome.removed == 1 and outcome.last
    rest = first._replace(after=outcome.last, limit=MANY)
    assert client.try_one(Commit(at, removals=(rest, second))).removed == 2


def test_where_a_removal_was_cut_is_remembered_with_its_outcome(client: Client) -> None:
    for value in (b"1", b"2", b"3"):
        client.put("a", value)
    removal = Removal(*ALL, Removes.SUPERSEDED, client.engine.clock_at(), limit=1)
    outcome = client.try_one(Commit(0, removals=(removal,)))
    assert outcome.last
    assert client.engine.settle(client.lane, client.seq) == [outcome]


def test_the_past_goes_before_the_present(client: Client) -> None:
    for name in "ab":
        client.put(name, b"1")
        client.put(name, None)
    remove(client, Removes.GARBAGE, client.engine.clock_at(), limit=2)
    assert values(client.history()) == [None, None]


def test_of_several_removals_each_is_counted(client: Client) -> None:
    for name, revisions in (("a", 4), ("b", 1), ("c", 3), ("d", 2)):
        for number in range(revisions):
            client.put(name, b"%d" % number)
    at = client.engine.clock_at()
    parts = [Removal(*span(name, name + "~"), Removes.SUPERSEDED, at, 3) for name in "bcad"]
    outcome = client.try_one(Commit(0, removals=tuple(parts)))
    assert (outcome.removed, outcome.counts) == (5, (0, 2, 3))
    rest = client.try_one(Commit(0, removals=(parts[2]._replace(after=outcome.last), parts[3])))
    assert (rest.removed, rest.counts, rest.last) == (1, (0, 1), b"")


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
    assert outcome == Outcome(CommitStatus.CONFLICT, at, key("a"), 0)
    assert len(client.history().revisions) == 2


def test_writes_and_removals_land_together(client: Client) -> None:
    client.put("a", b"1")
    at = client.put("a", b"2")
    removal = Removal(*ALL, Removes.SUPERSEDED, at, MANY)
    outcome = client.try_one(Commit(at, writes=(write("mark"),), removals=(removal,)))
    assert outcome == Outcome(CommitStatus.COMMITTED, at + 1, b"", 1)
    assert client.get("mark") is not None
    assert values(client.history()) == [b"2", b"v"]
