"""The engine contract: lanes decide what became of a group whose answer was lost."""

import pytest

from tenure.base.errors import OutcomeUnknown, RetryError, SessionLost
from tenure.storage.engine import Commit, CommitStatus, Outcome, Removal, Removes
from tests.contract.engine_client import ALL, Client, key, write


@pytest.mark.invariant("I5")
def test_settle_tells_what_a_group_came_to(client: Client) -> None:
    old_at = client.put("a")
    client.put("a")
    outcomes = client.commit(
        Commit(old_at, writes=(write("b"),)),
        Commit(old_at, points=(key("a"),)),
        Commit(old_at, writes=(write("c"),), deadline_at=1),
        Commit(0, removals=(Removal(*ALL, Removes.SUPERSEDED, client.engine.clock_at(), 9),)),
    )
    assert outcomes[3].removed == 1
    assert client.engine.settle(client.lane, client.seq) == outcomes
    assert client.engine.settle(client.lane, client.seq) == outcomes


@pytest.mark.invariant("I5")
def test_settle_refuses_a_group_that_did_not_land_for_ever(client: Client) -> None:
    at = client.put("a")
    late = client.group(Commit(at, writes=(write("b"),)))
    assert client.engine.settle(client.lane, late.seq) is None
    assert client.engine.settle(client.lane, late.seq) is None
    with pytest.raises(RetryError):
        client.engine.commit(late)
    assert client.get("b") is None
    assert client.engine.clock_at() == at
    assert client.engine.settle(client.lane, late.seq) is None


def test_a_lane_goes_on_after_a_refusal(client: Client) -> None:
    client.engine.settle(client.lane, client.group().seq)
    client.put("a")
    assert client.get("a") is not None


def test_a_group_that_landed_does_not_land_twice(client: Client) -> None:
    group = client.group(Commit(0, writes=(write("a"),)))
    client.engine.commit(group)
    with pytest.raises(RetryError):
        client.engine.commit(group)
    assert len(client.history().revisions) == 1


def test_lanes_know_nothing_of_one_another(client: Client) -> None:
    other = Client(client.engine)
    client.engine.settle(client.lane, 5)
    other.put("a")
    assert client.engine.settle(other.lane, 1) == [Outcome(CommitStatus.COMMITTED, 1, b"", 0)]


def test_nothing_lands_on_a_closed_lane(client: Client) -> None:
    client.put("a")
    client.engine.close_lane(client.lane)
    with pytest.raises(SessionLost):
        client.put("b")
    with pytest.raises(OutcomeUnknown):
        client.engine.settle(client.lane, 1)
    assert client.get("b") is None


def test_a_lane_may_be_closed_twice(client: Client) -> None:
    client.engine.close_lane(client.lane)
    client.engine.close_lane(client.lane)


def test_an_urgent_lane_commits_like_any(client: Client) -> None:
    urgent = Client(client.engine, urgent=True)
    at = urgent.put("a")
    assert client.put("b") == at + 1
    assert urgent.engine.settle(urgent.lane, 1) == [Outcome(CommitStatus.COMMITTED, at, b"", 0)]
    urgent.engine.close_lane(urgent.lane)
    with pytest.raises(SessionLost):
        urgent.put("c")
