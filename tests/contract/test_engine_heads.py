"""The engine contract: the head clock, which says what has moved since a time."""

from random import Random

import pytest

from tenure.storage.engine import (
    EVERY_HEAD,
    HEAD_BYTES,
    Commit,
    CommitStatus,
    Removal,
    Removes,
    Stamp,
    Write,
    WrittenHeads,
)
from tests.contract.engine_client import ALL, HEAD, LAST_HEAD, NEXT_HEAD, Client, key, write

HEADS = (HEAD, NEXT_HEAD, LAST_HEAD)


def start(client: Client) -> int:
    """Says that all writers keep the head clock from here on; returns when."""
    outcome = client.try_one(Commit(0, writes=(write("start"),), moves=(EVERY_HEAD,)))
    assert outcome.status is CommitStatus.COMMITTED
    return outcome.at


@pytest.mark.invariant("head-clock")
def test_a_commit_moves_the_heads_of_its_writes(client: Client) -> None:
    start_at = start(client)
    assert client.engine.moved_heads(start_at) == (start_at, frozenset())
    first_at = client.put("a", head=NEXT_HEAD)
    second_at = client.write(write("a", None), write("b", head=LAST_HEAD))
    assert client.engine.moved_heads(start_at) == (second_at, frozenset(HEADS))
    assert client.engine.moved_heads(first_at) == (second_at, frozenset({HEAD, LAST_HEAD}))
    assert client.engine.moved_heads(second_at) == (second_at, frozenset())


@pytest.mark.invariant("head-clock")
def test_before_the_head_clock_is_kept_any_head_may_have_moved(client: Client) -> None:
    before_at = client.put("a")
    assert client.engine.moved_heads(before_at).heads is None
    start_at = start(client)
    assert client.engine.moved_heads(before_at).heads is None
    assert client.engine.moved_heads(start_at - 1).heads is None
    assert client.engine.moved_heads(start_at).heads == frozenset()


def test_a_commit_moves_heads_that_it_names(client: Client) -> None:
    start_at = start(client)
    client.try_one(Commit(0, writes=(write("a"),), moves=(NEXT_HEAD,)))
    assert client.engine.moved_heads(start_at).heads == frozenset({HEAD, NEXT_HEAD})


@pytest.mark.invariant("head-clock")
def test_a_raised_threshold_moves_its_head_and_does_not_write_to_it(client: Client) -> None:
    start_at = start(client)
    written_at = client.put("a", head=NEXT_HEAD)
    named_at = client.try_one(Commit(0, writes=(write("a"),), moves=(LAST_HEAD,))).at
    thresholds = (NEXT_HEAD, LAST_HEAD)
    raised = client.commit(*[Commit(0, writes=(write("b"),), thresholds=thresholds) for _ in range(2)])
    assert client.engine.moved_heads(raised[0].at).heads == frozenset({HEAD, *thresholds})
    written = client.engine.written_heads()
    times = {HEAD: raised[1].at, NEXT_HEAD: written_at, LAST_HEAD: named_at}
    assert written == WrittenHeads(start_at, times)
    assert not written.may_have_changed(NEXT_HEAD, written_at)
    assert written.may_have_changed(NEXT_HEAD, written_at - 1)


def test_a_head_that_is_forgotten_leaves_the_head_clock_and_comes_back_with_the_next_write(
    client: Client,
) -> None:
    start_at = start(client)
    client.put("a", head=NEXT_HEAD)
    last_at = client.put("a", head=LAST_HEAD)
    refused = Commit(start_at, points=(key("a", LAST_HEAD),), writes=(write("c"),), forgotten=(LAST_HEAD,))
    forgetting = Commit(0, writes=(write("b"),), thresholds=(NEXT_HEAD,), forgotten=(NEXT_HEAD,))
    statuses = [outcome.status for outcome in client.commit(refused, forgetting)]
    assert statuses == [CommitStatus.CONFLICT, CommitStatus.COMMITTED]
    assert client.engine.written_heads().written_at.keys() == {HEAD, LAST_HEAD}
    assert client.engine.moved_heads(last_at).heads == frozenset({HEAD})
    at = client.put("b", head=NEXT_HEAD)
    assert client.engine.written_heads().written_at[NEXT_HEAD] == at


def test_a_head_whose_threshold_is_raised_by_a_group_that_writes_to_it_is_written(client: Client) -> None:
    start(client)
    first, second = client.commit(
        Commit(0, writes=(write("a", head=NEXT_HEAD),)),
        Commit(0, writes=(write("a"),), thresholds=(NEXT_HEAD,)),
    )
    assert client.engine.moved_heads(first.at).heads == frozenset({HEAD, NEXT_HEAD})
    assert client.engine.written_heads().written_at == {HEAD: second.at, NEXT_HEAD: first.at}


def test_before_the_head_clock_is_kept_any_head_may_have_been_written_to(client: Client) -> None:
    before_at = client.put("a")
    assert client.engine.written_heads().may_have_changed(NEXT_HEAD, before_at)
    start_at = start(client)
    written = client.engine.written_heads()
    assert written.may_have_changed(NEXT_HEAD, before_at)
    assert not written.may_have_changed(NEXT_HEAD, start_at)


def test_a_commit_that_fails_moves_nothing(client: Client) -> None:
    old_at = client.put("a")
    client.put("a")
    at = start(client)
    outcomes = client.commit(
        Commit(old_at, points=(key("a"),), writes=(write("b", head=NEXT_HEAD),), moves=(NEXT_HEAD,)),
        Commit(0, writes=(write("b", head=LAST_HEAD),)),
    )
    assert [outcome.status for outcome in outcomes] == [CommitStatus.CONFLICT, CommitStatus.COMMITTED]
    assert client.engine.moved_heads(at).heads == frozenset({LAST_HEAD})


def test_each_member_of_a_group_moves_its_heads_at_its_own_time(client: Client) -> None:
    start(client)
    members = [Commit(0, writes=(write("a", head=head),)) for head in (HEAD, NEXT_HEAD, HEAD)]
    first, second, third = client.commit(*members)
    assert client.engine.moved_heads(first.at).heads == frozenset({HEAD, NEXT_HEAD})
    assert client.engine.moved_heads(second.at).heads == frozenset({HEAD})
    assert client.engine.moved_heads(third.at).heads == frozenset()


def test_a_key_with_a_stamp_moves_its_head(client: Client) -> None:
    at = start(client)
    client.write(Write(NEXT_HEAD + bytes(8), b"v", key_stamp=Stamp(HEAD_BYTES)))
    assert client.engine.moved_heads(at).heads == frozenset({NEXT_HEAD})


def test_a_removal_moves_nothing(client: Client) -> None:
    client.put("a")
    client.put("a")
    at = start(client)
    removal = Removal(*ALL, Removes.FLUSHED, at, 10)
    assert client.try_one(Commit(0, removals=(removal,))).removed == 3
    assert client.engine.moved_heads(at).heads == frozenset()


@pytest.mark.invariant("head-clock")
def test_random_commits_move_what_a_naive_look_finds(client: Client) -> None:
    rng = Random(7)
    start_at = start(client)
    ats = [start_at]
    for _ in range(30):
        heads = rng.sample(HEADS, rng.randint(1, 3))
        ats.append(client.write(*(write(rng.choice("abc"), head=head) for head in heads)))
    revisions = client.history().revisions
    for at in ats:
        expected = frozenset(revision.key[:HEAD_BYTES] for revision in revisions if revision.at > at)
        assert client.engine.moved_heads(at).heads == expected
