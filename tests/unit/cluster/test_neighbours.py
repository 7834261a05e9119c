"""Whether a node is alone, as of a moment ago."""

from tenure.base.env import ManualEnv
from tenure.cluster.sessions.neighbours import Neighbours
from tests.unit.cluster.members import Member, expire


def neighbours(member: Member) -> Neighbours:
    return Neighbours(member.store, member.sessions, member.liveness.session)


def test_the_only_node_is_alone(member: Member) -> None:
    member.start()
    assert neighbours(member).is_alone()


def test_a_node_that_comes_is_noticed(member: Member, other: Member) -> None:
    member.start()
    known = neighbours(member)
    other.start()
    known.follow()
    assert not known.is_alone()


def test_a_node_that_was_there_before_is_known(member: Member, other: Member) -> None:
    other.start()
    member.start()
    assert not neighbours(member).is_alone()


def test_a_node_that_goes_is_noticed(member: Member, other: Member) -> None:
    member.start()
    other.start()
    known = neighbours(member)
    other.liveness.release()
    known.follow()
    assert known.is_alone()


def test_the_new_session_of_a_node_is_its_own(member: Member, other: Member, env: ManualEnv) -> None:
    member.start()
    known = neighbours(member)
    expire(env)
    other.deaths.reap()
    member.liveness.step()  # it finds out
    known.follow()
    member.start()
    known.follow()
    assert known.is_alone()
