"""The engine contract: the store clock, and nodes whose clocks run ahead."""

import pytest

from tenure.base.errors import ClockAhead, InvalidParameter
from tenure.base.timestamp import from_micros
from tenure.storage.engine import Commit, CommitStatus, Outcome
from tests.contract.engine_client import Client, write

SECOND = 1_000_000


def test_push_clock_raises_the_clock(client: Client) -> None:
    at = from_micros(client.engine.wall_micros() - SECOND)
    assert client.engine.push_clock(at) == at
    assert client.engine.clock_at() == at
    assert client.put("a") == at + 1


def test_push_clock_never_lowers_the_clock(client: Client) -> None:
    at = from_micros(client.engine.wall_micros() - SECOND)
    client.engine.push_clock(at)
    assert client.engine.push_clock(at - 1) == at
    assert client.engine.clock_at() == at


def test_push_clock_refuses_the_future(client: Client) -> None:
    at = client.put("a")
    with pytest.raises(InvalidParameter):
        client.engine.push_clock(from_micros(client.engine.wall_micros() + 10 * SECOND))
    assert client.engine.clock_at() == at


def test_a_node_far_ahead_commits_nothing(client: Client) -> None:
    ahead_at = from_micros(client.engine.wall_micros() + 10 * SECOND)
    group = client.group(Commit(0, writes=(write("a"),)), wall_at=ahead_at, max_offset_micros=SECOND)
    with pytest.raises(ClockAhead, match="ahead"):
        client.engine.commit(group)
    assert client.get("a") is None
    assert client.engine.clock_at() == 0
    assert client.engine.settle(client.lane, group.seq) is None


def test_a_group_refused_for_its_clock_may_be_sent_again(client: Client) -> None:
    ahead_at = from_micros(client.engine.wall_micros() + 10 * SECOND)
    group = client.group(Commit(0, writes=(write("a"),)), wall_at=ahead_at, max_offset_micros=SECOND)
    with pytest.raises(ClockAhead):
        client.engine.commit(group)
    assert client.engine.commit(group._replace(wall_at=0)) == [Outcome(CommitStatus.COMMITTED, 1, b"", 0)]


def test_a_node_a_little_ahead_commits_at_its_own_time(client: Client) -> None:
    ahead_at = from_micros(client.engine.wall_micros() + 10 * SECOND)
    group = client.group(Commit(0, writes=(write("a"),)), wall_at=ahead_at, max_offset_micros=20 * SECOND)
    assert client.engine.commit(group)[0].at == ahead_at
    assert client.put("b") == ahead_at + 1


def test_the_wall_clock_moves_on(client: Client) -> None:
    first = client.engine.wall_micros()
    assert first > 1_600_000_000 * SECOND
    assert client.engine.wall_micros() >= first
