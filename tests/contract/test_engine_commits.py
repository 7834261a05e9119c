"""The engine contract: what makes one commit land or fail."""

import pytest

from tenure.base.timestamp import to_bytes
from tenure.storage.engine import Commit, CommitStatus, Outcome, Stamp, Write
from tests.contract.engine_client import (
    ALL,
    GUARD,
    HEAD,
    LAST_HEAD,
    NEXT_HEAD,
    Client,
    key,
    span,
    values,
    write,
)


def test_a_commit_lands_just_above_the_clock(client: Client) -> None:
    first_at = client.put("a")
    assert client.put("b") == first_at + 1
    assert client.engine.clock_at() == first_at + 1


def test_a_commit_lands_at_the_wall_clock_if_that_is_higher(client: Client) -> None:
    wall_at = client.engine.wall_micros() << 10
    outcome = client.engine.commit(client.group(Commit(0, writes=(write("a"),)), wall_at=wall_at))[0]
    assert outcome == Outcome(CommitStatus.COMMITTED, wall_at, b"", 0)
    assert client.engine.clock_at() == wall_at


def test_a_commit_without_writes_takes_a_timestamp_too(client: Client) -> None:
    at = client.put("a")
    assert client.try_one(Commit(at, points=(key("a"),))) == Outcome(CommitStatus.COMMITTED, at + 1, b"", 0)
    assert client.engine.clock_at() == at + 1


def test_an_empty_group_changes_nothing(client: Client) -> None:
    at = client.put("a")
    assert client.commit() == []
    assert client.engine.clock_at() == at


@pytest.mark.invariant("I2")
def test_a_commit_conflicts_with_a_newer_revision_of_its_point(client: Client) -> None:
    read_at = client.put("a")
    newer_at = client.put("a", b"newer")
    outcome = client.try_one(Commit(read_at, points=(key("b"), key("a")), writes=(write("c"),)))
    assert outcome == Outcome(CommitStatus.CONFLICT, newer_at, key("a"), 0)
    assert client.get("c") is None
    assert client.engine.clock_at() == newer_at


@pytest.mark.invariant("I2")
def test_a_commit_conflicts_with_a_newer_revision_in_its_span(client: Client) -> None:
    read_at = client.put("a")
    newer_at = client.put("b")
    spans = (span("0", "1"), span("a", "c"), span("x", "z"))
    outcome = client.try_one(Commit(read_at, spans=spans, writes=(write("c"),)))
    assert outcome == Outcome(CommitStatus.CONFLICT, newer_at, key("b"), 0)
    assert client.get("c") is None


@pytest.mark.parametrize("newer", [b"newer", None])
def test_a_tombstone_conflicts_like_any_revision(client: Client, newer: bytes | None) -> None:
    read_at = client.put("a")
    client.put("a", newer)
    assert client.try_one(Commit(read_at, points=(key("a"),))).status is CommitStatus.CONFLICT


def test_a_revision_at_read_at_is_no_conflict(client: Client) -> None:
    read_at = client.put("a")
    client.put("elsewhere")
    commit = Commit(read_at, points=(key("a"),), spans=(span("a", "b"),))
    assert client.try_one(commit).status is CommitStatus.COMMITTED


def test_spans_are_half_open_in_validation(client: Client) -> None:
    read_at = client.put("0")
    client.put("b")
    assert client.try_one(Commit(read_at, spans=(span("a", "b"),))).status is CommitStatus.COMMITTED
    assert client.try_one(Commit(read_at, spans=(span("b", "b\0"),))).status is CommitStatus.CONFLICT


@pytest.mark.parametrize("head", [HEAD, NEXT_HEAD, LAST_HEAD])
def test_a_span_over_several_heads_is_validated_in_each(client: Client, head: bytes) -> None:
    read_at = client.write(write("a"), write("a", head=NEXT_HEAD), write("a", head=LAST_HEAD))
    client.put("n", head=head)
    assert client.try_one(Commit(read_at, spans=(ALL,))).key == key("n", head)
    narrow = (key("b"), key("b", LAST_HEAD))
    expected = CommitStatus.COMMITTED if head == LAST_HEAD else CommitStatus.CONFLICT
    assert client.try_one(Commit(read_at, spans=(narrow,))).status is expected


def test_many_points_are_validated_too(client: Client) -> None:
    read_at = client.put("a")
    points = tuple(key(f"p{number:03}") for number in range(300))
    client.put("between")
    assert client.try_one(Commit(read_at, points=points)).status is CommitStatus.COMMITTED
    client.put("p200")
    assert client.try_one(Commit(read_at, points=points)).key == key("p200")


def test_blind_writes_never_conflict(client: Client) -> None:
    client.put("a", b"1")
    client.put("a", b"2")
    assert client.try_one(Commit(0, writes=(write("a", b"3"),))).status is CommitStatus.COMMITTED


@pytest.mark.parametrize("mark", [GUARD.threshold_first, GUARD.cleaned_last])
def test_a_commit_below_a_mark_is_refused(client: Client, mark: bytes) -> None:
    read_at = client.put("a")
    client.write(Write(mark, to_bytes(read_at + 1)))
    commit = Commit(read_at, points=(key("a"),), guards=(GUARD,), writes=(write("b"),))
    assert client.try_one(commit) == Outcome(CommitStatus.BELOW_MARK, read_at + 1, b"", 0)
    assert client.get("b") is None
    assert client.try_one(commit._replace(read_at=read_at + 1)).status is CommitStatus.COMMITTED


def test_a_mark_is_judged_before_a_conflict(client: Client) -> None:
    read_at = client.put("a")
    client.write(Write(GUARD.threshold_first, to_bytes(read_at + 1)), write("a"))
    commit = Commit(read_at, points=(key("a"),), guards=(GUARD,), deadline_at=1)
    assert client.try_one(commit).status is CommitStatus.BELOW_MARK


@pytest.mark.invariant("I4")
def test_the_deadline_is_strict(client: Client) -> None:
    at = client.put("a")
    late = client.try_one(Commit(at, writes=(write("b"),), deadline_at=at + 1))
    assert late == Outcome(CommitStatus.TOO_LATE, at + 1, b"", 0)
    assert client.get("b") is None
    in_time = client.try_one(Commit(at, writes=(write("b"),), deadline_at=at + 2))
    assert in_time == Outcome(CommitStatus.COMMITTED, at + 1, b"", 0)


def test_not_before_is_strict(client: Client) -> None:
    at = client.put("a")
    early = client.try_one(Commit(at, writes=(write("b"),), not_before_at=at + 1))
    assert early == Outcome(CommitStatus.TOO_EARLY, at + 1, b"", 0)
    assert client.get("b") is None
    in_time = client.try_one(Commit(at, writes=(write("b"),), not_before_at=at))
    assert in_time == Outcome(CommitStatus.COMMITTED, at + 1, b"", 0)


def test_a_conflict_is_judged_before_the_deadline_and_that_before_not_before(client: Client) -> None:
    at = client.put("a")
    client.put("a")
    both = Commit(at, points=(key("a"),), deadline_at=at, not_before_at=at + 9)
    assert client.try_one(both).status is CommitStatus.CONFLICT
    assert client.try_one(both._replace(points=())).status is CommitStatus.TOO_LATE


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("by_span", [False, True])
def test_an_excused_revision_is_no_conflict(client: Client, by_span: bool) -> None:
    read_at = client.put("a")
    child_at = client.put("a", b"child")
    commit = _reading("a", read_at, by_span)
    assert client.try_one(commit).status is CommitStatus.CONFLICT
    assert client.try_one(commit._replace(excused=(child_at,))).status is CommitStatus.COMMITTED


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("by_span", [False, True])
def test_a_stranger_beneath_a_childs_revision_conflicts(client: Client, by_span: bool) -> None:
    read_at = client.put("a")
    stranger_at = client.put("a", b"stranger")
    child_at = client.put("a", b"child")
    outcome = client.try_one(_reading("a", read_at, by_span)._replace(excused=(child_at,)))
    assert outcome == Outcome(CommitStatus.CONFLICT, stranger_at, key("a"), 0)


@pytest.mark.invariant("I8")
@pytest.mark.parametrize("by_span", [False, True])
def test_a_stranger_above_a_childs_revision_conflicts(client: Client, by_span: bool) -> None:
    read_at = client.put("a")
    child_at = client.put("a", b"child")
    stranger_at = client.put("a", b"stranger")
    outcome = client.try_one(_reading("a", read_at, by_span)._replace(excused=(child_at,)))
    assert outcome == Outcome(CommitStatus.CONFLICT, stranger_at, key("a"), 0)


@pytest.mark.invariant("I8")
def test_several_children_are_excused(client: Client) -> None:
    client.put("a", b"old")
    read_at = client.put("a")
    excused = (client.put("a", b"1"), client.put("b", b"2"), client.put("a", b"3"))
    commit = Commit(read_at, points=(key("a"),), spans=(span("a", "z"),), excused=excused)
    assert client.try_one(commit).status is CommitStatus.COMMITTED
    assert client.try_one(commit._replace(excused=excused[1:])).status is CommitStatus.CONFLICT


def _reading(name: str, read_at: int, by_span: bool) -> Commit:
    if by_span:
        return Commit(read_at, spans=(span(name, name + "\0"),))
    return Commit(read_at, points=(key(name),))


def test_a_write_can_hold_its_own_timestamp_in_key_and_value(client: Client) -> None:
    stamped = Write(HEAD + b"<--at-->z", b"a<--at-->", Stamp(len(HEAD)), Stamp(1, plus=7))
    at = client.write(stamped)
    assert client.engine.get(HEAD + to_bytes(at) + b"z", GUARD).revisions == [
        (HEAD + to_bytes(at) + b"z", at, b"a" + to_bytes(at + 7))
    ]


def test_a_stamp_in_a_key_may_add_to_the_timestamp(client: Client) -> None:
    at = client.write(Write(HEAD + b"<--at-->", None, Stamp(len(HEAD), plus=3)))
    assert [revision.key for revision in client.history().revisions] == [HEAD + to_bytes(at + 3)]


def test_a_stamped_key_replaces_what_it_meets(client: Client) -> None:
    at = client.put("a")
    client.write(Write(HEAD + to_bytes(at + 2), b"old"))
    client.write(Write(HEAD + b"<--at-->", b"new", Stamp(len(HEAD))))
    assert values(client.scan(HEAD, HEAD + b"\x7f", since_at=at)) == [b"new"]
    assert values(client.history(at)) == [b"old", b"new"]


def test_check_says_what_fails_without_committing(client: Client) -> None:
    read_at = client.put("a")
    commit = Commit(read_at, points=(key("a"),), spans=(span("b", "c"),), guards=(GUARD,))
    assert client.engine.check(commit) == (read_at, None)
    newer_at = client.put("b")
    assert client.engine.check(commit) == (newer_at, Outcome(CommitStatus.CONFLICT, newer_at, key("b"), 0))
    assert client.engine.check(commit._replace(excused=(newer_at,))) == (newer_at, None)
    mark_at = client.write(Write(GUARD.cleaned_first, to_bytes(newer_at)))
    assert client.engine.check(commit) == (mark_at, Outcome(CommitStatus.BELOW_MARK, newer_at, b"", 0))
    assert client.engine.clock_at() == mark_at
