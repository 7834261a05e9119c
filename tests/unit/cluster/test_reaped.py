"""The session of a process that its parent has reaped: fenced first, then ended before it expires."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import SessionLost
from tenure.cluster.sessions.reaped_sessions import end_reaped
from tenure.kv.store import Store
from tests.unit.cluster.members import Member


@pytest.mark.invariant("reaped-is-fenced")
def test_a_reaped_session_is_fenced_before_it_is_ended(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = Store(member.store.engine, member.store.env)
    session, sessions = member.start(), member.sessions
    close_lane, was_there = parent.engine.close_lane, []

    def noting(lane: bytes) -> None:
        close_lane(lane)
        was_there.append(sessions.find(parent.snapshot(), session.id) is not None)

    monkeypatch.setattr(parent.engine, "close_lane", noting)
    assert end_reaped(parent, session.id)
    assert was_there == [True] * len(member.store.lanes())
    assert sessions.find(parent.snapshot(), session.id) is None
    assert list(sessions.dead_lanes(parent.snapshot())) == []
    with pytest.raises(SessionLost):
        member.store.transact(lambda txn: txn.put(member.store.keyspace.head(200, 1) + b"k", b"late"))


def test_a_session_that_is_gone_already_is_left_alone(member: Member) -> None:
    parent = Store(member.store.engine, member.store.env)
    session = member.start()
    assert end_reaped(parent, session.id)
    assert not end_reaped(parent, session.id)


def test_the_next_session_under_the_same_instance_id_is_not_touched(member: Member, env: ManualEnv) -> None:
    parent = Store(member.store.engine, env)
    former = member.start()
    assert end_reaped(parent, former.id)
    member.liveness.step()  # finds its session gone
    member.liveness.step()
    later = member.liveness.session()
    assert later.id.instance == former.id.instance
    assert not end_reaped(parent, former.id)
    assert member.sessions.find(parent.snapshot(), later.id) is not None
