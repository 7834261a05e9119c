"""Questions to all nodes, through the store."""

import pytest

from tenure.base.env import ManualEnv
from tenure.base.interruptible import unchecked
from tenure.cluster.inquiries import NOBODY, PART_BYTES, Answers, Inquiries, Inquiry
from tenure.kv.keys import INQUIRIES, REPLIES
from tenure.kv.records import replace
from tests.unit.cluster.members import Member, expire

HAS = "sql"


def inquiries(member: Member) -> Inquiries:
    """Those of a node that serves SQL."""
    id = member.start().id
    record = member.sessions.instances.get(member.store.snapshot(), id.instance)
    assert record is not None
    member.transact(lambda txn: member.sessions.instances.put(txn, replace(record, has=(HAS,))))
    return Inquiries(
        member.store,
        member.sessions,
        lambda: member.liveness.session().id,
        needs=HAS,
    )


def left_over(member: Member) -> list[bytes]:
    snapshot, keyspace = member.store.snapshot(), member.store.keyspace
    return [key for table in (INQUIRIES, REPLIES) for key, _ in snapshot.scan(keyspace.index_span(table))]


@pytest.mark.invariant("inquiries-leave-nothing")
def test_the_others_answer_and_nothing_stays(member: Member, other: Member) -> None:
    asking, answering = inquiries(member), inquiries(other)
    answering.answer = lambda subject: [subject.encode(), b"x"]
    told = asking.ask("weather", lambda: _follow(answering))
    assert told == Answers({other.liveness.session().id.instance: [b"weather", b"x"]}, [])
    assert left_over(member) == []


def test_a_node_that_is_alone_writes_nothing(member: Member) -> None:
    alone = inquiries(member)
    before = member.store.engine.clock_at()
    assert alone.ask("weather", unchecked) == NOBODY
    assert member.store.engine.clock_at() == before


def test_an_empty_answer_is_an_answer(member: Member, other: Member) -> None:
    asking, answering = inquiries(member), inquiries(other)
    told = asking.ask("weather", lambda: _follow(answering))
    assert told == Answers({other.liveness.session().id.instance: []}, [])


def test_a_long_answer_comes_whole(member: Member, other: Member) -> None:
    asking, answering = inquiries(member), inquiries(other)
    items = [bytes([n]) * (PART_BYTES // 2) for n in range(5)]
    answering.answer = lambda subject: items
    told = asking.ask("weather", lambda: _follow(answering))
    assert told.items == {other.liveness.session().id.instance: items}
    assert left_over(member) == []


def test_a_node_that_does_not_answer_is_named(member: Member, other: Member, env: ManualEnv) -> None:
    asking, _ = inquiries(member), inquiries(other)
    told = asking.ask("weather", lambda: env.advance(1.0))
    assert told == Answers({}, [other.liveness.session().id.instance])
    assert left_over(member) == []


def test_a_node_that_goes_while_it_is_asked_is_not_missed(
    member: Member, other: Member, env: ManualEnv
) -> None:
    asking, _ = inquiries(member), inquiries(other)

    def go() -> None:
        other.liveness.release()
        env.advance(3.0)

    assert asking.ask("weather", go) == Answers({}, [])


def test_an_asker_that_is_canceled_leaves_nothing(member: Member, other: Member) -> None:
    asking, answering = inquiries(member), inquiries(other)

    def cancel() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asking.ask("weather", cancel)
    _follow(answering)  # too late: its question is gone
    assert left_over(member) == []


def test_what_a_dead_asker_has_left_is_tidied_away(member: Member, other: Member, env: ManualEnv) -> None:
    asking, answering = inquiries(member), inquiries(other)
    member.store.transact(lambda txn: asking._put(txn, Inquiry(*asking._session(), 1, "weather")))
    _follow(answering)
    answering.tidy()
    assert left_over(other) != []  # its asker is still there
    expire(env)
    other.start()
    other.deaths.reap()
    answering.tidy()
    assert left_over(other) == []


def _follow(answering: Inquiries) -> None:
    answering.wake()  # it looks once and does not wait
    answering.follow()
