"""Lanes of the dead: whoever dies while burying them, somebody closes them, and nothing lands late."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.base.errors import SessionLost
from tenure.kv.keys import DEAD_LANES
from tenure.storage.engine import Commit, Engine, Group, Outcome, Write
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.postgres_server import drop_schema
from tests.unit.cluster.members import Member, expire
from tests.unit.kv.breaking import BreakingEngine

BURIAL = ("commit", "close lane", "close lane", "commit")
"""What a burial asks of the engine, in this order."""


class PowerCut(BaseException):
    """The process is gone: nothing that it would have done happens any more."""


class MortalEngine(BreakingEngine):
    """One process's way to an engine: its power is cut before the call of this number."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.calls: list[str] = []
        self.dies_at: int | None = None

    def commit(self, group: Group) -> list[Outcome]:
        self._call("commit")
        return super().commit(group)

    def close_lane(self, lane: bytes) -> None:
        self._call("close lane")
        super().close_lane(lane)

    def _call(self, name: str) -> None:
        if self.dies_at is not None and len(self.calls) >= self.dies_at:
            raise PowerCut
        self.calls.append(name)


@pytest.fixture(params=["memory", "postgres"])
def engine(request: pytest.FixtureRequest, env: ManualEnv) -> Iterator[Engine]:
    if request.param == "memory":
        memory = SqliteEngine(MEMORY, env)
        yield memory
        memory.close()
        return
    server, schema = request.getfixturevalue("postgres"), f"tenure_{uuid4().hex[:12]}"
    postgres = PostgresEngine(server.dsn, SystemEnv(), schema=schema)
    yield postgres
    postgres.close()
    drop_schema(server, schema)


@pytest.fixture
def burier(engine: Engine, env: ManualEnv) -> Member:
    """Another process: it may die, the engine does not."""
    return Member(MortalEngine(engine), env)


@pytest.fixture
def witness(engine: Engine, env: ManualEnv) -> Member:
    return Member(engine, env)


def mortal(member: Member) -> MortalEngine:
    assert isinstance(member.store.engine, MortalEngine)
    member.store.engine.calls.clear()
    return member.store.engine


def noted(member: Member) -> list[bytes]:
    return [lane for _, lanes in member.sessions.dead_lanes(member.store.snapshot()) for lane in lanes]


def is_open(member: Member, lane: bytes) -> bool:
    """Whether a group that is still on its way there would land."""
    key = member.store.keyspace.key(100, ["late"])
    late = Commit(0, writes=(Write(key, b"1"),))
    try:
        member.store.engine.commit(Group(lane, 1 << 40, 0, 1, (late,)))
        return True
    except SessionLost:
        return False


def test_a_burial_leaves_no_lane_and_no_note(
    member: Member, burier: Member, witness: Member, env: ManualEnv
) -> None:
    session = member.start().id
    expire(env)
    engine = mortal(burier)
    assert burier.deaths.bury(session)
    assert tuple(engine.calls) == BURIAL
    assert not any(is_open(witness, lane) for lane in member.store.lanes())
    assert noted(witness) == []


@pytest.mark.invariant("dead-lanes")
@pytest.mark.parametrize("dies_at", range(1, len(BURIAL)))
def test_a_burial_that_is_broken_off_is_ended_by_another(
    dies_at: int, member: Member, burier: Member, witness: Member, env: ManualEnv
) -> None:
    session, lanes = member.start().id, member.store.lanes()
    expire(env)
    mortal(burier).dies_at = dies_at
    with pytest.raises(PowerCut):
        burier.deaths.bury(session)
    assert witness.found(session) is None
    assert noted(witness) == list(lanes)
    witness.deaths.reap()
    assert not any(is_open(witness, lane) for lane in lanes)
    assert noted(witness) == []


def test_a_burial_that_is_broken_off_at_its_start_changes_nothing(
    member: Member, burier: Member, witness: Member, env: ManualEnv
) -> None:
    session = member.start().id
    expire(env)
    mortal(burier).dies_at = 0
    with pytest.raises(PowerCut):
        burier.deaths.bury(session)
    assert noted(witness) == []
    member.liveness.step()
    assert member.liveness.session().id == session
    assert member.create_job()


@pytest.mark.parametrize("dies_at", range(len(BURIAL) - 1))
def test_ending_a_burial_can_be_broken_off_as_well(
    dies_at: int, member: Member, burier: Member, witness: Member, env: ManualEnv
) -> None:
    session, lanes = member.start().id, member.store.lanes()
    expire(env)
    mortal(burier).dies_at = 1
    with pytest.raises(PowerCut):
        burier.deaths.bury(session)
    second = Member(MortalEngine(witness.store.engine), env)
    mortal(second).dies_at = dies_at
    with pytest.raises(PowerCut):
        second.deaths.reap()
    assert noted(witness) == list(lanes)
    witness.deaths.reap()
    assert not any(is_open(witness, lane) for lane in lanes)
    assert noted(witness) == []


@pytest.mark.invariant("dead-lanes")
def test_a_node_that_dies_between_its_release_and_its_end_leaves_no_lane(
    member: Member, witness: Member
) -> None:
    member.start()
    lanes = member.store.lanes()
    member.liveness.release()
    assert noted(witness) == list(lanes)
    witness.deaths.reap()
    assert not any(is_open(witness, lane) for lane in lanes)
    assert noted(witness) == []


def test_two_who_end_one_burial_do_not_disturb_each_other(
    member: Member, burier: Member, witness: Member, env: ManualEnv
) -> None:
    session = member.start().id
    expire(env)
    mortal(burier).dies_at = 1
    with pytest.raises(PowerCut):
        burier.deaths.bury(session)
    (note,) = witness.sessions.dead_lanes(witness.store.snapshot())
    witness.deaths.reap()
    witness.deaths._close_lanes(*note)
    span = witness.store.keyspace.table_span(DEAD_LANES)
    revisions = witness.store.history(span, since_at=0).revisions
    assert [revision.value is None for revision in revisions] == [False, True]
