"""What every follower of the store keeps: a sweep of the heads that it follows leaves it with right state.

Each case lets something happen that a follower has to learn of, sweeps all heads of the system before the
follower has looked, and then lets it look: by the head clock, and where that cannot be trusted yet.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.base.env import ManualEnv
from tenure.base.interruptible import unchecked
from tenure.base.settings import DEFINITIONS, LEASE_HOLDER_GRACE, LIVENESS_TTL, Settings
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.catalog.leases.wait_records import AwaitedDescriptor
from tenure.cluster.cancels import INSTANCES, PIDS, Cancels, digest_of
from tenure.cluster.inquiries import Inquiries
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_waits import await_jobs
from tenure.cluster.jobs.runs import JobKind
from tenure.cluster.locks.lock_waits import LockOptions
from tenure.cluster.sessions.neighbours import Neighbours
from tenure.cluster.settings import ClusterSettings
from tenure.kv.keys import SESSIONS, USER_TABLES, ZONES
from tenure.kv.records import replace
from tenure.kv.store import Store
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tenure.pgwire.connection_slots import ConnectionSlots
from tenure.retention.tracking.tracker import Tracker
from tenure.storage.engine import EVERY_HEAD, Commit, Group, Removal, Removes
from tenure.storage.files import open_files
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.lake.bases import LakeBases
from tenure.table.lake.manifests import Manifest, Manifests
from tests.contract.lease_nodes import EXPIRING, MIXED, SCHEMA, TABLE, LeaseNode, renamed
from tests.unit.cluster.lockers import Locker
from tests.unit.cluster.members import Member, make_session
from tests.unit.cluster.works import Work

TABLE_HELD = 150


def sweep(store: Store) -> None:
    """Makes everything before now unreadable in all heads of the system, and removes what it was."""
    heads = [store.keyspace.head(table) for table in range(SESSIONS, USER_TABLES)]

    def publish(txn: Transaction) -> None:
        for head in heads:
            publish_threshold(txn, store.keyspace, head, txn.read_at)

    def remove(txn: Transaction) -> None:
        for head in heads:
            span = store.keyspace.head_span(head)
            txn.remove(Removal(span.lo, span.hi, Removes.GARBAGE, swept_at, 1_000))

    swept_at = store.snapshot().at
    store.transact(publish)
    store.transact(remove)


@pytest.fixture
def env() -> ManualEnv:
    return ManualEnv()


@pytest.fixture(params=["every span", "head clock"])
def engine(env: ManualEnv, request: pytest.FixtureRequest) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(MEMORY, env)
    if request.param == "head clock":
        engine.commit(Group(engine.open_lane(), 1, 1, 500_000, (Commit(0, moves=(EVERY_HEAD,)),)))
    yield engine
    engine.close()


@pytest.fixture
def member(engine: SqliteEngine, env: ManualEnv) -> Member:
    return Member(engine, env)


@pytest.fixture
def other(engine: SqliteEngine, env: ManualEnv) -> Member:
    return Member(engine, env)


# ── state ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant("settings-watched")
def test_settings(member: Member) -> None:
    store = member.store
    settings = ClusterSettings(store, Settings(DEFINITIONS))
    default = settings.current()[LIVENESS_TTL]
    store.transact(lambda txn: settings.set(txn, "liveness.ttl", "10s"))
    sweep(store)
    settings.follow()
    assert settings.current()[LIVENESS_TTL] == 10.0
    store.transact(lambda txn: settings.reset(txn, "liveness.ttl"))
    sweep(store)
    settings.follow()
    assert settings.current()[LIVENESS_TTL] == default


def test_neighbours(member: Member, other: Member) -> None:
    member.start()
    neighbours = Neighbours(member.store, member.sessions, member.liveness.session)
    other.start()
    sweep(member.store)
    neighbours.follow()
    assert not neighbours.is_alone()
    other.liveness.release()
    sweep(member.store)
    neighbours.follow()
    assert neighbours.is_alone()


def test_deaths(member: Member, env: ManualEnv) -> None:
    """What it missed it does not remember; those who act on deaths are told to look."""
    session = make_session(member)
    heard: list[str] = []
    member.deaths.on_death = lambda: heard.append("look")
    member.transact(lambda txn: member.sessions.release(txn, session))
    sweep(member.store)
    member.deaths.follow()
    assert heard == ["look"]
    assert not member.deaths.is_alive(session)


def test_the_job_runner(member: Member, env: ManualEnv) -> None:
    work = Work()
    member.start()
    runner = member.make_runner({"work": JobKind(work.run, work.revert)})
    runner.step()
    job = member.create_job()
    sweep(member.store)
    runner.step()
    assert [id for id, _ in work.runs] == [job.id]


def test_a_job_runner_forgets_what_has_ended(member: Member, other: Member) -> None:
    member.start()
    other.start()
    runner = member.make_runner({"work": JobKind(Work().run, Work().revert)})
    job = other.create_job()
    fence = other.claim(job)
    runner.step()
    assert runner._open.get(job.id) is not None
    other.transact(lambda txn: other.jobs.step(txn, fence, JobState.SUCCEEDED))
    sweep(member.store)
    runner.step()
    assert runner._open.get(job.id) is None


def test_table_holds(engine: SqliteEngine, env: ManualEnv) -> None:
    here, there = Locker(engine, env), Locker(engine, env)
    here.rows.tables.follow()
    owner = there.owner()
    assert there.rows.tables.hold(owner, [TABLE_HELD], LockOptions())
    sweep(here.store)
    here.rows.tables.follow()
    assert TABLE_HELD in here.rows.tables.held
    there.rows.tables.release([TABLE_HELD])
    there.rows.release(owner)
    there.settle()
    sweep(here.store)
    here.rows.tables.follow()
    assert TABLE_HELD not in here.rows.tables.held


def test_the_bases_of_the_lake(member: Member, tmp_path: Path) -> None:
    store, manifests = member.store, Manifests(member.store.keyspace)
    bases = LakeBases(store, manifests, open_files(str(tmp_path / "lake")), cache_bytes=1 << 20)
    gone, stays = (store.keyspace.head(table) for table in (USER_TABLES, USER_TABLES + 1))
    store.transact(lambda txn: manifests.put(txn, Manifest(USER_TABLES, 1, txn.read_at)))
    bases.load()
    store.transact(lambda txn: manifests.put(txn, Manifest(USER_TABLES + 1, 1, txn.read_at)))
    store.transact(lambda txn: manifests.delete(txn, USER_TABLES, 1))
    sweep(store)
    bases.follow()
    assert bases.of(gone) is None
    assert bases.of(stays) is not None
    store.transact(lambda txn: manifests.delete(txn, USER_TABLES + 1, 1))
    bases.follow()
    assert bases.of(stays) is None, "it follows no longer"
    bases.close()


def test_the_tracker_of_protections(member: Member) -> None:
    """Its wait is for the zones; a change of them is not missed below a threshold."""
    store = member.store
    tracker = Tracker(store, lambda: Settings(DEFINITIONS))
    tracker.step()
    read_at = tracker.state.read_at
    zone_key = store.keyspace.key(ZONES, [USER_TABLES, 1])
    store.transact(lambda txn: txn.put(zone_key, b"zone"))
    sweep(store)
    tracker.step()
    assert tracker.state.read_at > read_at
    tracker.close()


@pytest.mark.parametrize("scheme", [SCHEMA, EXPIRING, MIXED])
def test_leases(engine: SqliteEngine, env: ManualEnv, scheme: str) -> None:
    node, other = LeaseNode(engine, env, scheme), LeaseNode(engine, env, scheme)
    node.create()
    for each in (node, other):
        each.leases.renew()
        each.leases.step()
    other.version()  # leases it
    for version in (2, 3):
        node.publish(change=renamed(f"t{version}"), timeout=60.0)
        sweep(node.store)
        other.leases.step()
        other.leases.step()
        assert other.version() == version


# ── questions and requests ─────────────────────────────────────────────────────────────────────


def test_inquiries(member: Member, other: Member) -> None:
    asking, answering = _inquiries(member), _inquiries(other)
    answering.answer = lambda subject: [subject.encode()]
    answering.follow()

    def check() -> None:
        sweep(member.store)
        answering.follow()
        sweep(member.store)

    told = asking.ask("weather", check)
    assert told.items == {other.liveness.session().id.instance: [b"weather"]}
    assert not told.silent


def test_an_inquiry_is_answered_once(member: Member, other: Member) -> None:
    asking, answering = _inquiries(member), _inquiries(other)
    answers = iter([[b"first"], [b"second", b"second"]])
    answering.answer = lambda subject: next(answers)
    answering.follow()

    def check() -> None:
        answering.follow()
        sweep(member.store)
        answering.follow()

    told = asking.ask("weather", check)
    assert told.items == {other.liveness.session().id.instance: [b"first"]}


def _inquiries(member: Member) -> Inquiries:
    instance = member.start().id.instance
    record = member.sessions.instances.get(member.store.snapshot(), instance)
    assert record is not None
    member.transact(lambda txn: member.sessions.instances.put(txn, replace(record, has=("sql",))))
    return Inquiries(member.store, member.sessions, lambda: member.liveness.session().id, needs="sql")


def test_cancels(member: Member, other: Member) -> None:
    instance = member.start().id.instance
    here = Cancels(member.store, member.sessions, lambda: instance)
    there = Cancels(other.store, other.sessions, lambda: instance + 1)
    delivered: list[tuple[int, bytes]] = []
    here.deliver = lambda pid, digest: delivered.append((pid, digest))
    here.follow()
    pid = instance * PIDS + 1
    there.request(pid, b"secret")
    sweep(member.store)
    here.follow()
    assert delivered == [(pid, digest_of(b"secret"))]


def test_cancels_reach_an_instance_whose_id_is_beyond_the_pids(member: Member, other: Member) -> None:
    instance = member.start().id.instance
    record = member.sessions.instances.get(member.store.snapshot(), instance)
    assert record is not None
    far = replace(record, id=3 * INSTANCES + 7)
    member.transact(lambda txn: member.sessions.instances.put(txn, far))
    here = Cancels(member.store, member.sessions, lambda: far.id)
    there = Cancels(other.store, other.sessions, lambda: record.id)
    delivered: list[int] = []
    here.deliver = lambda pid, digest: delivered.append(pid)
    pid = ConnectionSlots(lambda: far.id).take("ann", unchecked, secret_bytes=4).pid
    here.follow()
    there.follow()
    there.request(pid, b"secret")
    sweep(member.store)
    there.follow()  # another instance's: it stays
    here.follow()
    assert delivered == [pid]


# ── waits ──────────────────────────────────────────────────────────────────────────────────────


def once(*steps: Callable[[], object]) -> Callable[[], None]:
    """For a wait's own check: does the steps when it is called first, while the wait has not looked again."""
    left = list(steps)

    def check() -> None:
        while left:
            left.pop(0)()

    return check


def test_waits_for_a_death() -> None:
    env = _BusyEnv()
    engine = SqliteEngine(MEMORY, env)
    member = Member(engine, env)
    session = make_session(member)
    env.meanwhile = once(
        lambda: member.transact(lambda txn: member.sessions.release(txn, session)),
        lambda: sweep(member.store),
    )
    assert member.deaths.await_death(session, timeout=10.0)
    engine.close()


class _BusyEnv(ManualEnv):
    """Something happens while somebody waits."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self.meanwhile()


def test_waits_for_jobs(member: Member) -> None:
    member.start()
    job = member.create_job()
    fence = member.claim(job)
    end = once(
        lambda: member.transact(lambda txn: member.jobs.step(txn, fence, JobState.SUCCEEDED)),
        lambda: sweep(member.store),
    )
    await_jobs(
        member.store,
        member.jobs,
        [job.id],
        lambda state: state is JobState.SUCCEEDED,
        check=end,
        look_seconds=1.0,
    )
    assert member.state(job) is JobState.SUCCEEDED


def test_waits_for_locks(engine: SqliteEngine, env: ManualEnv) -> None:
    here, there = Locker(engine, env), Locker(engine, env)
    owner, waiter = there.owner(), here.owner()
    there.rows.tables.hold(owner, [TABLE_HELD], LockOptions())
    end = once(lambda: there.rows.release(owner), there.settle, lambda: sweep(here.store))
    assert here.rows.tables.hold(waiter, [TABLE_HELD], LockOptions(canceled=end))


@pytest.mark.parametrize("scheme", [SCHEMA, MIXED])
def test_waits_for_leases(engine: SqliteEngine, env: ManualEnv, scheme: str) -> None:
    node, other = LeaseNode(engine, env, scheme), LeaseNode(engine, env, scheme)
    node.create()
    for each in (node, other):
        each.leases.renew()
        each.leases.step()
    use = other.pinned()
    node.publish(change=renamed("u"))
    end = once(use.close, other.leases.renew, other.leases.step, lambda: sweep(node.store))
    awaited = [AwaitedDescriptor(TABLE, node.stored().modified_at)]
    node.waits.await_gone(awaited, LeaseWaiter(node.store.clock.now(), check=end), timeout=60.0)


def test_the_eviction_of_holders(engine: SqliteEngine, env: ManualEnv) -> None:
    node, other = LeaseNode(engine, env, SCHEMA), LeaseNode(engine, env, SCHEMA)
    node.create()
    for each in (node, other):
        each.leases.renew()
        each.leases.step()
    use = other.pinned()
    other.holders.step()
    node.publish(change=renamed("u"))
    awaited = [AwaitedDescriptor(TABLE, node.stored().modified_at)]
    assert node.waits.record(awaited, LeaseWaiter(node.store.clock.now())) is not None
    sweep(node.store)
    other.holders.step()
    seconds = other.settings[LIVENESS_TTL] / 2
    for _ in range(round(other.settings[LEASE_HOLDER_GRACE] / seconds) + 1):
        env.advance(seconds)
        for each in (node, other):
            each.liveness.step()
    other.holders.step()
    assert "held up a schema change" in use.ended
