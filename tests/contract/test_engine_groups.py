"""The engine contract: members of a group are decided in order, each after those before it."""

from tenure.base.timestamp import to_bytes
from tenure.storage.engine import Commit, CommitStatus, Outcome, Removal, Removes, Stamp, Write
from tests.contract.engine_client import GUARD, HEAD, NEXT_HEAD, Client, key, span, statuses, values, write

DONE, CONFLICT = CommitStatus.COMMITTED, CommitStatus.CONFLICT


def test_members_get_increasing_timestamps_in_their_order(client: Client) -> None:
    at = client.put("z")
    outcomes = client.commit(*(Commit(at, writes=(write(name),)) for name in "abacbd"))
    assert [outcome.at for outcome in outcomes] == list(range(at + 1, at + 7))


def test_blind_writes_of_one_key_land_one_after_the_other(client: Client) -> None:
    outcomes = client.commit(*(Commit(0, writes=(write("a", value),)) for value in (b"1", b"2", b"3")))
    assert statuses(outcomes) == [DONE] * 3
    assert values(client.history()) == [b"1", b"2", b"3"]
    assert client.value("a") == b"3"
    assert client.value("a", outcomes[1].at) == b"2"


def test_a_member_conflicts_with_the_write_of_an_earlier_one(client: Client) -> None:
    read_at = client.put("a")
    outcomes = client.commit(
        Commit(read_at, points=(key("a"),), writes=(write("a", b"1"),)),
        Commit(read_at, points=(key("a"),), writes=(write("a", b"2"),)),
        Commit(read_at, spans=(span("a", "b"),), writes=(write("c"),)),
    )
    assert statuses(outcomes) == [DONE, CONFLICT, CONFLICT]
    assert outcomes[1] == outcomes[2] == Outcome(CONFLICT, read_at + 1, key("a"), 0)
    assert client.value("a") == b"1"
    assert client.get("c") is None


def test_a_member_is_not_disturbed_by_the_write_of_a_later_one(client: Client) -> None:
    read_at = client.put("a")
    outcomes = client.commit(
        Commit(read_at, points=(key("a"),), spans=(span("a", "z"),)),
        Commit(read_at, writes=(write("a", b"2"),)),
    )
    assert statuses(outcomes) == [DONE, DONE]


def test_one_that_fails_does_not_fail_the_rest_and_takes_no_timestamp(client: Client) -> None:
    old_at = client.put("a")
    at = client.put("a")
    outcomes = client.commit(
        Commit(at, writes=(write("b"),)),
        Commit(old_at, points=(key("a"),), writes=(write("x1"),)),
        Commit(at, writes=(write("x2"),), deadline_at=at + 2),
        Commit(at, writes=(write("x3"),), not_before_at=at + 2),
        Commit(at, writes=(write("c"),), not_before_at=at + 1, deadline_at=at + 3),
    )
    assert [(outcome.status, outcome.at) for outcome in outcomes] == [
        (DONE, at + 1),
        (CONFLICT, at),
        (CommitStatus.TOO_LATE, at + 2),
        (CommitStatus.TOO_EARLY, at + 2),
        (DONE, at + 2),
    ]
    assert [client.get(name) is None for name in ("b", "x1", "x2", "x3", "c")] == [0, 1, 1, 1, 0]


def test_a_member_that_failed_disturbs_nobody(client: Client) -> None:
    old_at = client.put("a")
    at = client.put("a")
    outcomes = client.commit(
        Commit(old_at, points=(key("a"),), writes=(write("b"),)),
        Commit(at, points=(key("b"),), writes=(write("b", b"2"),)),
    )
    assert statuses(outcomes) == [CONFLICT, DONE]
    assert values(client.history(at)) == [b"2"]


def test_a_member_sees_a_key_that_an_earlier_one_stamped(client: Client) -> None:
    at = client.put("a")
    stamped = Write(HEAD + b"s<--at-->", b"1", Stamp(len(HEAD) + 1))
    outcomes = client.commit(
        Commit(at, writes=(stamped,)),
        Commit(at, points=(HEAD + b"s" + to_bytes(at + 1),)),
        Commit(at, spans=(span("s", "t"),)),
        Commit(at, spans=(span("a", "s"),)),
    )
    assert statuses(outcomes) == [DONE, CONFLICT, CONFLICT, DONE]


def test_a_member_is_judged_by_a_mark_that_an_earlier_one_wrote(client: Client) -> None:
    at = client.put("a")
    outcomes = client.commit(
        Commit(at, writes=(Write(GUARD.threshold_first, to_bytes(at + 1)),)),
        Commit(at, points=(key("a"),), guards=(GUARD,)),
    )
    assert statuses(outcomes) == [DONE, CommitStatus.BELOW_MARK]


def test_a_member_may_excuse_an_earlier_one(client: Client) -> None:
    at = client.put("a")
    outcomes = client.commit(
        Commit(at, writes=(write("a", b"child"),)),
        Commit(at, points=(key("a"),), excused=(at + 1,)),
        Commit(at, points=(key("a"),)),
    )
    assert statuses(outcomes) == [DONE, DONE, CONFLICT]


def test_a_member_removes_what_an_earlier_one_superseded(client: Client) -> None:
    at = client.put("a", b"1")
    removal = Removal(*span("a", "b"), Removes.SUPERSEDED, at + 1, 10)
    outcomes = client.commit(
        Commit(at, writes=(write("a", b"2"), write("k", head=NEXT_HEAD))),
        Commit(at, removals=(removal,), writes=(write("b"),)),
        Commit(at, writes=(write("a", b"3"),)),
    )
    assert [outcome.removed for outcome in outcomes] == [0, 1, 0]
    assert [revision.value for revision in client.history().revisions] == [b"2", b"v", b"v", b"3"]


def test_a_large_group_is_decided_like_its_members_one_by_one(client: Client) -> None:
    read_at = client.put("0")
    members = [
        Commit(read_at, points=(key(f"{number % 7}"),), writes=(write(f"{number % 11}", bytes([number])),))
        for number in range(100)
    ]
    outcomes = client.commit(*members)
    written: set[int] = set()
    for number, outcome in enumerate(outcomes):
        assert outcome.status is (CONFLICT if number % 7 in written else DONE), number
        if outcome.status is DONE:
            written.add(number % 11)
