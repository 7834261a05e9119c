"""Who is dead: never said too early, remembered within bounds, waited for without trust in signals."""

from collections.abc import Callable

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import SessionLost
from tenure.base.timestamp import Timestamp, add_seconds
from tenure.cluster.sessions import deaths
from tenure.cluster.sessions.session_records import SessionId
from tenure.kv.keys import EXPIRATIONS, SESSIONS
from tenure.kv.thresholds import publish_threshold
from tenure.storage.engine import Group, Guard, Outcome, ReadResult
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.cluster.members import TTL_SECONDS, Member, expire, make_session
from tests.unit.kv.breaking import BreakingEngine, Deliver

NEVER_MADE = SessionId(99, 12345)


class AlarmEnv(ManualEnv):
    """A manual clock on which things happen at set times."""

    def __init__(self) -> None:
        super().__init__()
        self.alarms: list[tuple[float, Callable[[], object]]] = []

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        due = [alarm for alarm in self.alarms if alarm[0] <= self.monotonic()]
        self.alarms = [alarm for alarm in self.alarms if alarm not in due]
        for _, ring in due:
            ring()


def release(member: Member, session: SessionId) -> None:
    member.transact(lambda txn: member.sessions.release(txn, session))


def follow(member: Member) -> None:
    member.deaths.follow()


# ── asking ─────────────────────────────────────────────────────────────────────────────────────


def test_a_present_session_is_alive(member: Member, other: Member) -> None:
    session = member.start().id
    assert other.deaths.is_alive(session)
    assert not other.deaths.is_dead(session)


@pytest.mark.invariant("I21")
def test_an_expired_session_that_is_still_there_is_not_dead(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    expire(env)
    follow(member)
    assert member.deaths.is_alive(session)
    assert not member.deaths.is_dead(session)
    assert member.deaths.expiry(session) == member.expires_at(session)


def test_a_deleted_session_is_found_dead_and_remembered(member: Member, other: Member) -> None:
    session = make_session(member)
    release(member, session)
    assert not other.deaths.is_dead(session)
    assert not other.deaths.is_alive(session)
    assert other.deaths.is_dead(session)
    assert other.deaths.expiry(session) is None


def test_a_session_that_never_was_is_dead(member: Member) -> None:
    assert not member.deaths.is_alive(NEVER_MADE)
    assert member.deaths.await_death(NEVER_MADE)
    assert member.deaths.bury(NEVER_MADE)


def test_a_recycled_instance_id_does_not_make_the_former_session_alive(member: Member) -> None:
    former = make_session(member)
    release(member, former)
    session = make_session(member)
    assert session.instance == former.instance
    assert member.deaths.is_alive(session)
    assert not member.deaths.is_alive(former)


def test_asking_after_a_known_death_reads_nothing(member: Member, engine: BreakingEngine) -> None:
    session = make_session(member)
    release(member, session)
    assert not member.deaths.is_alive(session)
    engine.close()
    assert not member.deaths.is_alive(session)
    assert member.deaths.is_dead(session)


# ── following ──────────────────────────────────────────────────────────────────────────────────


def test_deaths_are_learned_as_they_happen(member: Member, other: Member) -> None:
    sessions = [make_session(member) for _ in range(3)]
    release(member, sessions[0])
    release(member, sessions[2])
    follow(other)
    assert [other.deaths.is_dead(each) for each in sessions] == [True, False, True]


def test_a_death_is_learned_although_its_notification_was_lost(
    engine: BreakingEngine, env: ManualEnv, member: Member
) -> None:
    engine.loses_signals = True
    deaf = Member(engine, env)
    session = make_session(member)
    release(member, session)
    follow(deaf)
    assert deaf.deaths.is_dead(session)


def test_a_follower_that_fell_behind_the_threshold_goes_on(member: Member) -> None:
    missed, later = make_session(member), make_session(member)
    release(member, missed)
    keyspace = member.store.keyspace
    at = member.store.snapshot().at
    member.transact(lambda txn: publish_threshold(txn, keyspace, keyspace.head(SESSIONS), at))
    follow(member)
    release(member, later)
    follow(member)
    assert member.deaths.is_dead(later)
    assert not member.deaths.is_alive(missed)


def test_more_deaths_than_are_remembered_change_no_answer(
    member: Member, other: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deaths, "DEATHS_MAX", 5)
    sessions = [make_session(member) for _ in range(12)]
    for session in sessions:
        release(member, session)
    follow(other)
    assert [other.deaths.is_dead(each) for each in sessions] == [False] * 7 + [True] * 5
    assert not any(other.deaths.is_alive(each) for each in sessions)
    assert all(other.deaths.await_death(each, timeout=0) for each in sessions)


# ── waiting ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I21")
def test_a_wait_ends_with_the_session_deleted_after_its_expiration(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    expires_at = member.expires_at(session)
    assert member.deaths.await_death(session, timeout=10 * TTL_SECONDS)
    assert member.found(session) is None
    assert member.store.snapshot().at > expires_at
    assert env.monotonic() == pytest.approx(TTL_SECONDS, abs=2 * deaths.PAUSE_SECONDS)


def test_a_wait_without_any_notification_ends_as_well(engine: BreakingEngine, env: ManualEnv) -> None:
    engine.loses_signals = True
    deaf = Member(engine, env)
    session = make_session(deaf)
    assert deaf.deaths.await_death(session)
    assert env.monotonic() == pytest.approx(TTL_SECONDS, abs=2 * deaths.PAUSE_SECONDS)


def test_a_wait_gives_up_after_its_timeout(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    assert not member.deaths.await_death(session, timeout=10)
    assert env.monotonic() == pytest.approx(10)
    assert member.found(session) is not None


def test_a_wait_goes_on_while_heartbeats_come() -> None:
    env = AlarmEnv()
    member = Member(SqliteEngine(MEMORY, env), env)
    session = make_session(member)

    def beat() -> None:
        member.transact(lambda txn: member.sessions.extend(txn, session, ttl_seconds=TTL_SECONDS))

    env.alarms = [(30.0, beat), (60.0, beat)]
    assert member.deaths.await_death(session)
    assert env.monotonic() >= 60 + TTL_SECONDS


def test_a_wait_ends_early_when_the_session_is_released() -> None:
    env = AlarmEnv()
    member = Member(SqliteEngine(MEMORY, env), env)
    session = make_session(member)
    env.alarms = [(7.0, lambda: release(member, session))]
    assert member.deaths.await_death(session)
    assert env.monotonic() < 10


def test_a_wait_that_fell_behind_the_threshold_starts_over() -> None:
    env = AlarmEnv()
    member = Member(SqliteEngine(MEMORY, env), env)
    session, keyspace = make_session(member), member.store.keyspace

    def collect() -> None:
        release(member, make_session(member))
        at = member.store.snapshot().at
        member.transact(lambda txn: publish_threshold(txn, keyspace, keyspace.head(SESSIONS), at))

    env.alarms = [(7.0, collect), (14.0, collect)]
    assert member.deaths.await_death(session)
    assert env.alarms == []
    assert member.found(session) is None
    assert env.monotonic() == pytest.approx(TTL_SECONDS, abs=2 * deaths.PAUSE_SECONDS)


def test_asking_while_history_is_collected_gets_an_answer(
    member: Member, engine: BreakingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, keyspace, read = make_session(member), member.store.keyspace, engine.get

    def collect_first(key: bytes, guard: Guard, at: Timestamp | None = None) -> ReadResult:
        if key.startswith(keyspace.head(EXPIRATIONS)):
            monkeypatch.setattr(engine, "get", read)
            release(member, make_session(member))
            member.transact(
                lambda txn: publish_threshold(txn, keyspace, keyspace.head(EXPIRATIONS), txn.read_at)
            )
        return read(key, guard, at)

    monkeypatch.setattr(engine, "get", collect_first)
    assert member.deaths.expiry(session) == add_seconds(session.epoch_at, TTL_SECONDS)
    assert engine.get == read


# ── deleting ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I21")
def test_a_session_is_not_buried_before_it_has_expired(member: Member) -> None:
    session = make_session(member)
    assert not member.deaths.bury(session)
    assert member.deaths.is_alive(session)
    assert not member.deaths.is_dead(session)


@pytest.mark.invariant("I21")
def test_a_burial_that_lost_to_a_heartbeat_says_so(
    member: Member, other: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start().id
    expire(env)

    def heartbeat_first(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        member.liveness.step()
        return deliver(group)

    engine.on_commit = heartbeat_first
    assert not other.deaths.bury(session)
    assert not other.deaths.is_dead(session)
    assert member.liveness.session().id == session


def test_a_commit_of_the_dead_that_is_in_flight_does_not_land(
    member: Member, other: Member, env: ManualEnv, engine: BreakingEngine
) -> None:
    session = member.start().id
    expire(env)
    key = member.store.keyspace.key(100, ["late"])

    def bury_first(group: Group, deliver: Deliver) -> list[Outcome]:
        engine.on_commit = None
        assert other.deaths.bury(session)
        return deliver(group)

    engine.on_commit = bury_first
    with pytest.raises(SessionLost):
        member.transact(lambda txn: txn.put(key, b"1"))
    assert other.store.snapshot().get(key) is None


def test_after_a_burial_too_early_the_lanes_are_still_open(member: Member, other: Member) -> None:
    session = member.start().id
    assert not other.deaths.bury(session)
    member.liveness.step()
    member.create_job()
    assert member.liveness.session().id == session


def test_reaping_deletes_the_expired_and_nothing_else(member: Member, env: ManualEnv) -> None:
    expired = [make_session(member, ttl_seconds=1) for _ in range(3)]
    present = make_session(member)
    env.advance(2)
    member.deaths.reap()
    assert [each.id for each in member.sessions.list(member.store.snapshot())] == [present]
    assert all(member.deaths.is_dead(each) for each in expired)


def test_a_node_does_not_reap_its_own_session_which_a_late_heartbeat_extends(
    member: Member, other: Member, env: ManualEnv
) -> None:
    session = member.start().id
    expire(env)
    member.deaths.reap(member.liveness.session_id())
    member.liveness.step()
    assert member.liveness.session_id() == session
    expire(env)
    other.deaths.reap(other.liveness.session_id())
    member.liveness.step()
    assert member.liveness.session_id() is None


# ── tenants ────────────────────────────────────────────────────────────────────────────────────


def test_tenants_see_and_reap_none_of_each_others_sessions(engine: BreakingEngine, env: ManualEnv) -> None:
    first, second = (Member(engine, env, tenant=number) for number in (1, 2))
    session = make_session(first)
    other_session = make_session(second)
    assert session.instance == other_session.instance == 1
    assert not second.deaths.is_alive(session)
    expire(env)
    second.deaths.reap()
    assert first.found(session) is not None
    assert second.found(other_session) is None
    follow(first)
    assert not first.deaths.is_dead(session)
