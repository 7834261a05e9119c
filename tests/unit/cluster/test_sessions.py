"""Sessions as records: made once, extended, frozen, observed, deleted once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.base.errors import RetryError, SessionLost, TooEarly
from tenure.base.timestamp import MAX_AT, add_seconds
from tenure.cluster.sessions.session_records import INSTANCES_SEARCHED, SessionId, parse_session_id
from tenure.kv.encoding import At, encode
from tenure.kv.keys import EXPIRATIONS, FREEZES, INSTANCES, SESSIONS
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.cluster.members import TTL_SECONDS, Member, expire, make_session
from tests.unit.kv.breaking import BreakingEngine


def extend(member: Member, session: SessionId, *, ttl_seconds: float = TTL_SECONDS) -> int:
    txn = member.store.begin()
    member.sessions.extend(txn, session, ttl_seconds=ttl_seconds)
    return txn.commit()


def delete_expired(member: Member, session: SessionId) -> int:
    txn = member.store.begin()
    member.sessions.delete_expired(txn, session)
    return txn.commit()


def freeze(member: Member, session: SessionId) -> None:
    member.transact(lambda txn: member.sessions.freeze(txn, session, "test"))


def rows(member: Member, *tables: int) -> int:
    snapshot, keyspace = member.store.snapshot(), member.store.keyspace
    return sum(len(list(snapshot.scan(keyspace.table_span(table)))) for table in tables)


@given(st.integers(1, 1 << 60), st.integers(0, MAX_AT))
def test_an_id_survives_its_bytes(instance: int, epoch_at: int) -> None:
    session = SessionId(instance, epoch_at)
    assert parse_session_id(session.to_bytes()) == session


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"any bytes at all",
        encode((1,)),
        encode((1, 2)),
        encode(("1", At(2))),
        encode((True, At(2))),
        encode((At(1), At(2))),
        encode((1, At(2), 3)),
        SessionId(1, 2).to_bytes()[:-1],
        SessionId(1, 2).to_bytes() + b"\x00",
    ],
)
def test_bytes_of_another_shape_name_no_session(data: bytes) -> None:
    assert parse_session_id(data) is None


def test_an_id_is_shown_with_its_instance_first() -> None:
    assert str(SessionId(3, 1 << 10)) == "3@1.0000000000"


# ── making ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I14")
def test_the_epoch_is_the_commit_timestamp_of_the_insert(member: Member) -> None:
    session = make_session(member)
    revisions = member.store.history(member.sessions.span(), since_at=0).revisions
    assert [revision.at for revision in revisions] == [session.epoch_at]
    assert member.sessions.id_of(revisions[0].key) == session
    instance = member.sessions.instances.get(member.store.snapshot(), session.instance)
    assert instance is not None and instance.epoch_at == session.epoch_at


def test_until_its_first_heartbeat_it_expires_one_ttl_after_its_epoch(member: Member) -> None:
    session = make_session(member)
    assert member.expires_at(session) == add_seconds(session.epoch_at, TTL_SECONDS)


def test_an_instance_has_all_that_is_shown_of_it(member: Member) -> None:
    txn = member.store.begin()
    instance = member.sessions.create(
        txn, ttl_seconds=1.0, lanes=(), address="host:26257", started_at=7, version=2
    )
    session = SessionId(instance, txn.commit())
    (shown,) = member.sessions.instances.scan(member.store.snapshot())
    assert (shown.id, shown.address, shown.started_at, shown.version) == (instance, "host:26257", 7, 2)
    assert SessionId(shown.id, shown.epoch_at) == session
    assert not shown.draining


def test_an_instance_goes_with_its_session_and_with_no_other(member: Member, env: ManualEnv) -> None:
    dead, present = make_session(member, ttl_seconds=1), make_session(member)
    env.advance(2)
    delete_expired(member, dead)
    assert [each.id for each in member.sessions.instances.scan(member.store.snapshot())] == [present.instance]
    successor = make_session(member)
    assert successor.instance == dead.instance
    member.transact(lambda txn: member.sessions.release(txn, dead))
    assert rows(member, INSTANCES) == 2


def test_a_fresh_instance_id_is_the_smallest_without_a_session(member: Member) -> None:
    first, second, third = (make_session(member) for _ in range(3))
    assert [each.instance for each in (first, second, third)] == [1, 2, 3]
    member.transact(lambda txn: member.sessions.release(txn, second))
    assert make_session(member).instance == 2


def test_a_wanted_instance_id_is_given_if_it_is_free(member: Member) -> None:
    assert make_session(member, wanted=7).instance == 7
    assert make_session(member, wanted=7).instance == 1


@pytest.mark.parametrize("wanted", [None, 1, 3, INSTANCES_SEARCHED + 9])
@pytest.mark.parametrize(
    "present", [0, 2, INSTANCES_SEARCHED - 1, INSTANCES_SEARCHED, INSTANCES_SEARCHED + 5]
)
def test_two_creators_at_once_do_not_get_one_instance_id(
    member: Member, present: int, wanted: int | None
) -> None:
    for _ in range(present):
        make_session(member)
    txns = [member.store.begin(), member.store.begin()]
    drawn = {
        member.sessions.create(
            txn, ttl_seconds=1.0, lanes=(), address="", started_at=0, version=1, wanted=wanted
        )
        for txn in txns
    }
    assert len(drawn) == 1
    txns[0].commit()
    with pytest.raises(RetryError):
        txns[1].commit()
    assert len(list(member.sessions.list(member.store.snapshot()))) == present + 1


@given(st.sets(st.integers(1, INSTANCES_SEARCHED + 8)))
def test_an_instance_id_that_is_drawn_is_free(taken: set[int]) -> None:
    env = ManualEnv()
    member = Member(SqliteEngine(MEMORY, env), env)
    for number in sorted(taken):
        make_session(member, wanted=number)
    drawn = member.sessions.free_instance(member.store.begin())
    assert drawn not in taken
    if len(taken) < INSTANCES_SEARCHED:
        assert drawn == min(set(range(1, len(taken) + 2)) - taken)


def test_drawing_an_instance_id_costs_the_same_with_few_and_with_many(
    member: Member, engine: BreakingEngine
) -> None:
    for _ in range(200):
        make_session(member)
    engine.scans.clear()
    assert make_session(member).instance == 201
    assert len(engine.scans) == 2
    assert sum(scan.limit or 1_000_000 for scan in engine.scans) <= INSTANCES_SEARCHED + 1


@pytest.mark.invariant("I14")
def test_a_recycled_instance_id_gets_a_later_epoch_and_a_later_expiration(
    member: Member, env: ManualEnv
) -> None:
    former = make_session(member)
    last_at = member.expires_at(former)
    expire(env)
    delete_expired(member, former)
    session = make_session(member)
    assert session.instance == former.instance
    assert session.epoch_at > former.epoch_at
    assert member.expires_at(session) > last_at
    assert member.found(former) is None


# ── extending ──────────────────────────────────────────────────────────────────────────────────


def test_a_heartbeat_moves_the_expiration_one_ttl_past_its_commit(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    env.advance(5)
    commit_at = extend(member, session)
    assert member.expires_at(session) == add_seconds(commit_at, TTL_SECONDS)


@pytest.mark.invariant("I14")
def test_the_expiration_does_not_fall_when_the_ttl_is_lowered(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    expires_at = member.expires_at(session)
    with pytest.raises(TooEarly):
        extend(member, session, ttl_seconds=10)
    assert member.expires_at(session) == expires_at
    env.advance(TTL_SECONDS - 10)
    extend(member, session, ttl_seconds=10)
    assert member.expires_at(session) >= expires_at


@pytest.mark.invariant("I20")
@pytest.mark.parametrize("beats", [0, 1, 2])
def test_a_heartbeat_in_flight_does_not_revive_a_deleted_session(
    member: Member, env: ManualEnv, beats: int
) -> None:
    session = make_session(member)
    for _ in range(beats):
        env.advance(1)
        extend(member, session)
    expire(env)
    heartbeat = member.store.begin()
    member.sessions.extend(heartbeat, session, ttl_seconds=TTL_SECONDS)
    delete_expired(member, session)
    with pytest.raises(RetryError):
        heartbeat.commit()
    assert rows(member, SESSIONS, EXPIRATIONS) == 0


@pytest.mark.invariant("I20")
@pytest.mark.parametrize("beats", [0, 1, 2])
def test_a_heartbeat_after_the_deletion_finds_the_session_lost(
    member: Member, env: ManualEnv, beats: int
) -> None:
    session = make_session(member)
    for _ in range(beats):
        env.advance(1)
        extend(member, session)
    expire(env)
    delete_expired(member, session)
    with pytest.raises(SessionLost):
        extend(member, session)
    assert rows(member, SESSIONS, EXPIRATIONS) == 0


# ── freezing ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I14")
def test_a_frozen_session_cannot_be_extended(member: Member) -> None:
    session = make_session(member)
    expires_at = member.expires_at(session)
    freeze(member, session)
    with pytest.raises(SessionLost, match="frozen"):
        extend(member, session)
    assert member.expires_at(session) == expires_at


@pytest.mark.invariant("I14")
def test_a_heartbeat_in_flight_does_not_pass_a_freeze(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    expires_at = member.expires_at(session)
    env.advance(5)
    heartbeat = member.store.begin()
    member.sessions.extend(heartbeat, session, ttl_seconds=TTL_SECONDS)
    freeze(member, session)
    with pytest.raises(RetryError):
        heartbeat.commit()
    assert member.expires_at(session) == expires_at


def test_a_frozen_session_is_observable_until_it_dies_within_its_ttl(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    freeze(member, session)
    member.transact(lambda txn: member.sessions.observe(txn, session))
    expire(env)
    delete_expired(member, session)
    assert rows(member, SESSIONS, EXPIRATIONS, FREEZES, INSTANCES) == 0


def test_freezing_a_session_that_is_gone_leaves_no_mark(member: Member) -> None:
    session = make_session(member)
    member.transact(lambda txn: member.sessions.release(txn, session))
    freeze(member, session)
    assert rows(member, FREEZES) == 0


# ── observing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I21")
def test_an_expired_session_that_nobody_deleted_is_observable(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    expire(env)
    txn = member.store.begin()
    member.sessions.observe(txn, session)
    txn.put(member.store.keyspace.key(100, ["effect"]), b"1")
    assert txn.commit() > member.expires_at(session)


def test_a_transaction_that_observes_is_not_disturbed_by_heartbeats(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    txn = member.store.begin()
    member.sessions.observe(txn, session)
    for _ in range(5):
        env.advance(5)
        extend(member, session)
    txn.put(member.store.keyspace.key(100, ["effect"]), b"1")
    txn.commit()


def test_a_transaction_that_observed_a_session_deleted_since_does_not_commit(
    member: Member, env: ManualEnv
) -> None:
    session = make_session(member)
    expire(env)
    txn = member.store.begin()
    member.sessions.observe(txn, session)
    txn.put(member.store.keyspace.key(100, ["effect"]), b"1")
    delete_expired(member, session)
    with pytest.raises(RetryError):
        txn.commit()


def test_a_session_that_is_gone_cannot_be_observed(member: Member) -> None:
    with pytest.raises(SessionLost):
        member.sessions.observe(member.store.begin(), SessionId(1, 1))


# ── deleting ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("I21")
def test_a_session_is_deleted_only_after_its_expiration(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    env.advance(TTL_SECONDS)
    with pytest.raises(TooEarly):
        delete_expired(member, session)
    assert member.found(session) is not None
    env.advance(0.000_001)
    assert delete_expired(member, session) > add_seconds(session.epoch_at, TTL_SECONDS)
    assert member.found(session) is None


@pytest.mark.invariant("I21")
def test_a_deleter_that_lost_to_a_heartbeat_deletes_nothing(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    expire(env)
    deleter = member.store.begin()
    member.sessions.delete_expired(deleter, session)
    extend(member, session)
    with pytest.raises(RetryError):
        deleter.commit()
    assert member.found(session) is not None


def test_a_release_leaves_nothing_behind(member: Member, env: ManualEnv) -> None:
    session = make_session(member)
    env.advance(1)
    extend(member, session)
    freeze(member, session)
    member.transact(lambda txn: member.sessions.release(txn, session))
    assert rows(member, SESSIONS, EXPIRATIONS, FREEZES, INSTANCES) == 0


def test_a_draining_mark_is_for_the_session_that_asked(member: Member) -> None:
    session = make_session(member)
    stale = session._replace(epoch_at=session.epoch_at - 1)
    for asked, is_draining in ((stale, False), (session, True)):
        txn = member.store.begin()
        member.sessions.mark_draining(txn, asked)
        txn.commit()
        instance = member.sessions.instances.get(member.store.snapshot(), session.instance)
        assert instance is not None and instance.draining is is_draining
