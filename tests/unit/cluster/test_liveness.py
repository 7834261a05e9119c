"""A node's own session: durable before use, kept alive, replaced when lost, given up last."""

import logging

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import OutcomeUnknown, RetryError, SessionLost, Unavailable
from tenure.base.loops import Loop
from tenure.base.settings import LIVENESS_HEARTBEAT, LIVENESS_TTL
from tenure.base.timestamp import ZERO_AT, add_seconds
from tenure.cluster.sessions.liveness import JITTER, RETRY_SECONDS, NodeSession
from tenure.kv.commits import SETTLE_PAUSES
from tenure.storage.engine import Group, Outcome
from tests.unit.cluster.members import TTL_SECONDS, Member, expire
from tests.unit.kv.breaking import BreakingEngine, Deliver, cut_after_landing, cut_before_landing


def away(group: Group, deliver: Deliver) -> list[Outcome]:
    raise Unavailable("the store is away")


def loop_of(member: Member, env: ManualEnv) -> Loop:
    log = logging.getLogger("test")
    return Loop("heartbeat", member.liveness.step, env, interval_seconds=5.0, log=log)


def lose(member: Member, other: Member, env: ManualEnv) -> NodeSession:
    """Has the node's session deleted by another; returns it."""
    session = member.liveness.session()
    expire(env)
    assert other.deaths.bury(session.id)
    return session


def test_without_a_step_there_is_no_session(member: Member) -> None:
    with pytest.raises(SessionLost):
        member.liveness.session()


def test_a_session_is_in_the_store_before_it_can_be_used(member: Member) -> None:
    session = member.start()
    assert member.found(session.id) is not None
    assert not session.done.is_set()


def test_an_instance_says_where_it_is_and_what_it_runs(member: Member) -> None:
    session = member.start()
    instance = member.sessions.instances.get(member.store.snapshot(), session.id.instance)
    assert instance is not None
    assert (instance.address, instance.version, instance.draining) == ("host:26257", 1, False)


def test_nodes_that_start_at_once_both_get_a_session(
    member: Member, other: Member, engine: BreakingEngine
) -> None:
    def other_first(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        other.liveness.step()
        return deliver(group)

    engine.on_commit = other_first
    member.liveness.step()
    assert {each.liveness.session().id.instance for each in (member, other)} == {1, 2}


# ── heartbeats ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I13")
def test_the_expiration_known_here_is_the_one_in_the_store(member: Member, env: ManualEnv) -> None:
    session = member.start()
    assert session.expires_at == member.expires_at(session.id)
    for _ in range(3):
        env.advance(5)
        before_at = session.expires_at
        member.liveness.step()
        assert before_at < session.expires_at == member.expires_at(session.id)


@pytest.mark.invariant("I13")
def test_a_heartbeat_without_acknowledgement_does_not_extend(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start()
    acknowledged_at = session.expires_at
    env.advance(5)
    engine.on_commit = cut_after_landing
    engine.settle_errors.append(OutcomeUnknown("nobody can tell"))
    with pytest.raises(OutcomeUnknown):
        member.liveness.step()
    assert session.expires_at == acknowledged_at < member.expires_at(session.id)
    assert not session.done.is_set()


@pytest.mark.invariant("I13")
def test_acknowledgements_out_of_order_do_not_lower_the_expiration(member: Member) -> None:
    session = member.start()
    expires_at = session.expires_at
    session.acknowledged(expires_at - 1)
    assert session.expires_at == expires_at


def test_a_heartbeat_that_was_cut_off_but_landed_counts(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start()
    env.advance(5)
    engine.on_commit = cut_after_landing
    member.liveness.step()
    assert session.expires_at == member.expires_at(session.id)


def test_a_store_that_is_away_for_less_than_a_ttl_ends_neither_the_session_nor_the_loop(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start()
    loop = loop_of(member, env)
    engine.on_commit = away
    while env.monotonic() < TTL_SECONDS * 0.9:
        env.advance(min(1.0, loop.run_once()))
    assert loop.failure is None
    assert member.liveness.session() is session
    assert member.lost == []
    engine.on_commit = None
    loop.run_once()
    assert session.expires_at == member.expires_at(session.id) > add_seconds(session.id.epoch_at, TTL_SECONDS)


def test_a_session_that_expires_while_the_store_is_away_is_given_up(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    """Others may have taken over what it claimed; the node, which cannot ask, must not go on."""
    session = member.start()
    loop = loop_of(member, env)
    engine.on_commit = away
    while env.monotonic() <= TTL_SECONDS + 1:
        assert not session.done.is_set()
        env.advance(min(1.0, loop.run_once()))
    loop.run_once()
    assert session.done.is_set()
    assert member.lost == [session]
    engine.on_commit = None
    loop.run_once()
    assert member.liveness.session().id != session.id
    assert member.liveness.session().expires_at == member.expires_at(member.liveness.session().id)


def test_a_heartbeat_without_an_answer_is_given_up_at_its_deadline(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start()
    env.advance(5)
    engine.on_commit = cut_after_landing
    engine.settle_errors += [Unavailable("the store is away")] * 1_000
    with pytest.raises(OutcomeUnknown):
        member.liveness.step()
    assert env.monotonic() == pytest.approx(5 + TTL_SECONDS, abs=SETTLE_PAUSES.seconds_max)
    assert session.done.is_set()
    assert member.lost == [session]


@pytest.mark.invariant("I13")
def test_the_heartbeat_after_one_without_an_answer_counts_and_keeps_it_from_landing(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    member.settings = member.settings.with_value(LIVENESS_TTL, 100.0)
    session = member.start()
    member.settings = member.settings.with_value(LIVENESS_TTL, TTL_SECONDS)
    engine.on_commit = cut_before_landing
    engine.settle_errors += [Unavailable("the store is away")] * 1_000
    before_at = session.expires_at
    with pytest.raises(OutcomeUnknown):
        member.liveness.step()  # its deadline has passed, the session has not expired
    late = engine.groups[-1]
    assert (session.expires_at, session.done.is_set()) == (before_at, False)
    engine.on_commit = None
    env.advance(TTL_SECONDS)
    member.liveness.step()
    assert session.expires_at == member.expires_at(session.id) > before_at
    with pytest.raises(RetryError):
        engine.engine.commit(late)


def test_lanes_of_a_session_that_may_have_come_to_be_are_closed_before_the_next(
    member: Member, engine: BreakingEngine
) -> None:
    engine.on_commit = cut_before_landing
    engine.settle_errors.append(OutcomeUnknown("nobody can tell"))
    with pytest.raises(OutcomeUnknown):
        member.liveness.step()
    engine.on_commit = None
    late, former = engine.groups[-1], member.store.lanes()
    session = member.start()
    with pytest.raises(SessionLost):
        engine.engine.commit(late)
    assert {*member.store.lanes()}.isdisjoint(former)
    assert [each.id for each in member.sessions.list(member.store.snapshot())] == [session.id]


def test_a_session_that_could_not_be_made_is_made_with_the_same_lanes(
    member: Member, engine: BreakingEngine
) -> None:
    lanes = member.store.lanes()
    engine.on_commit = away
    for _ in range(3):
        with pytest.raises(Unavailable):
            member.liveness.step()
    engine.on_commit = None
    member.start()
    assert member.store.lanes() == lanes


def test_a_heartbeat_that_was_refused_is_sent_again_soon(
    member: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start()
    expires_at = session.expires_at
    env.advance(5)
    engine.on_commit = cut_before_landing
    assert member.liveness.step() == RETRY_SECONDS
    assert (member.liveness.session(), session.expires_at) == (session, expires_at)


def test_a_lowered_ttl_keeps_the_session_and_its_expiration(member: Member, env: ManualEnv) -> None:
    session = member.start()
    expires_at = session.expires_at
    member.settings = member.settings.with_value(LIVENESS_TTL, 10.0)
    env.advance(5)
    member.liveness.step()
    assert session.expires_at == expires_at == member.expires_at(session.id)
    env.advance(30)
    member.liveness.step()
    assert session.expires_at == member.expires_at(session.id) > expires_at


def test_heartbeats_come_at_their_interval_spread_by_the_jitter(member: Member) -> None:
    interval_seconds = member.settings[LIVENESS_HEARTBEAT]
    made, first, *pauses = [member.liveness.step() or 0.0 for _ in range(102)]
    # Nodes that were started together part at the first heartbeat, which follows at once.
    assert made == 0.0
    assert interval_seconds * JITTER <= first <= interval_seconds * (1 + JITTER)
    assert len(set(pauses)) > 50
    assert interval_seconds * (1 - JITTER) <= min(pauses)
    assert max(pauses) <= interval_seconds * (1 + JITTER)


def test_an_interval_that_is_longer_than_the_ttl_costs_no_session(member: Member) -> None:
    """The two are changed one after the other, and a heartbeat may come between."""
    member.start()
    member.settings = member.settings.with_value(LIVENESS_TTL, 2.0).with_value(LIVENESS_HEARTBEAT, 5.0)
    assert max(member.liveness.step() or 0.0 for _ in range(20)) < 2.0


def test_a_heartbeat_goes_first_on_a_lane_of_its_own(member: Member, engine: BreakingEngine) -> None:
    member.start()
    member.liveness.step()
    urgent_lane = member.store.lanes()[1]
    assert [group.lane for group in engine.groups] == [urgent_lane, urgent_lane]


# ── losing it ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I20")
def test_a_session_that_was_deleted_is_dropped_and_not_revived(
    member: Member, other: Member, env: ManualEnv
) -> None:
    member.start()
    session = lose(member, other, env)
    assert member.liveness.step() == 0.0
    assert session.done.is_set()
    assert session.expires_at == ZERO_AT
    assert member.lost == [session]
    with pytest.raises(SessionLost):
        member.liveness.session()
    assert member.found(session.id) is None


@pytest.mark.invariant("I14")
def test_after_a_loss_the_node_goes_on_under_a_later_epoch(
    member: Member, other: Member, env: ManualEnv
) -> None:
    member.start()
    former = lose(member, other, env)
    loop = loop_of(member, env)
    for _ in range(3):
        loop.run_once()
    session = member.liveness.session()
    assert session.id.instance == former.id.instance
    assert session.id.epoch_at > former.id.epoch_at
    assert session.expires_at == member.expires_at(session.id)
    assert member.found(former.id) is None


def test_a_heartbeat_in_flight_while_the_session_is_deleted_finds_it_lost(
    member: Member, other: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start()
    expire(env)

    def delete_first(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        assert other.deaths.bury(session.id)
        return deliver(group)

    engine.on_commit = delete_first
    assert member.liveness.step() == 0.0
    assert session.done.is_set()
    assert member.found(session.id) is None


def test_an_expired_session_that_nobody_deleted_lives_on(member: Member, env: ManualEnv) -> None:
    session = member.start()
    expire(env)
    member.liveness.step()
    assert member.liveness.session() is session
    assert session.expires_at > member.store.clock.now()


def test_a_frozen_session_is_left_to_die_and_replaced(member: Member, env: ManualEnv) -> None:
    frozen = member.start()
    member.transact(lambda txn: member.sessions.freeze(txn, frozen.id, "test"))
    assert member.liveness.step() == 0.0
    assert frozen.done.is_set()
    member.liveness.step()
    session = member.liveness.session()
    assert session.id.instance != frozen.id.instance
    assert member.liveness.last_instance() == session.id.instance
    assert member.found(frozen.id) is not None


# ── giving it up ───────────────────────────────────────────────────────────────────────────────


def test_a_drain_is_seen_by_others_while_the_session_lives(member: Member) -> None:
    session = member.start()
    member.liveness.drain()
    instance = member.sessions.instances.get(member.store.snapshot(), session.id.instance)
    assert instance is not None and instance.draining
    assert member.liveness.session() is session


def test_a_release_deletes_the_session_and_makes_no_other(member: Member) -> None:
    session = member.start()
    member.liveness.release()
    assert member.found(session.id) is None
    assert session.done.is_set()
    assert member.liveness.step() is None
    assert list(member.sessions.list(member.store.snapshot())) == []


def test_drain_and_release_without_a_session_do_nothing(member: Member) -> None:
    member.liveness.drain()
    member.liveness.release()
    assert member.liveness.step() is None
