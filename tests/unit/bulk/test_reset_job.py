"""ALTER TABLE ... RESET TO of many rows: a job closes the table for writing and merges."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tenure.base.timestamp import Timestamp, parse
from tenure.bulk.flush import start as start_flush
from tenure.bulk.lakes import Lake
from tenure.bulk.resetting.job import reset_kind
from tenure.bulk.resetting.records import KIND, ResetPayload
from tenure.catalog.descriptors.definitions import Table
from tenure.catalog.descriptors.zones import Zone, zones
from tenure.cluster.jobs.job_errors import JobError
from tenure.cluster.jobs.job_states import JobState
from tenure.kv.records import pack
from tenure.kv.transaction import Transaction
from tenure.pipeline import remote_handles
from tenure.pipeline.scan import bounds, scanned, tasks
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.sql.statements.jobs import resetting
from tenure.table.lake.publishing import clean_some
from tests.postgres_server import Server
from tests.unit.bulk.crashes import NOBODY_HAS, ByHand
from tests.unit.bulk.fills import filling_node
from tests.unit.bulk.gates import held
from tests.unit.bulk.imports import Importing
from tests.unit.bulk.resets import Resetting
from tests.unit.bulk.test_import_jobs import Background
from tests.unit.lake_nodes import lake_node
from tests.unit.sql.sessions import Talk

RUNNING = "SELECT job_type FROM tenure_internal.jobs WHERE job_type = 'reset' AND status = 'running'"


@pytest.fixture(autouse=True)
def many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row is many."""
    monkeypatch.setattr(resetting, "TRANSACTION_ROWS_MAX", 0)


class LargeTable(Resetting):
    @property
    def table(self) -> Table:
        node = self.importing.node
        ((id,),) = self.rows("SELECT 't'::regclass::oid::int8")
        found = node.catalog.get(node.store.snapshot(), int(id or 0))
        assert isinstance(found, Table)
        return found

    def flush(self, *, cleans: bool) -> None:
        """Moves all indexes to the lake; with `cleans` the store has none of it any more."""
        lake, table = self.importing.node.lake, self.table
        assert lake is not None
        for index in table.indexes:
            self._flush(lake, index.id, cleans=cleans)

    def _flush(self, lake: Lake, index: int, *, cleans: bool) -> None:
        store, table = lake.store, self.table.id
        job = store.transact(lambda txn: start_flush(txn, lake, table, index, rows=1, name="t"))
        assert job is not None
        self.done(f"SHOW JOB WHEN COMPLETE {job.id}")
        base = lake.manifests.get(store.snapshot(), table, index)
        assert base is not None
        if cleans:
            store.transact(lambda txn: clean_some(txn, store.keyspace, base, base.flushed_at, limit=100_000))

    def changed_since(self, at: Timestamp) -> int:
        """How many rows have a revision after that."""
        node, table = self.importing.node, self.table
        lake = node.lake
        assert lake is not None
        now = node.store.snapshot()
        version = lake.version(now, table.id)
        assert version is not None
        cut = bounds(node.store, lake.bases.checked, table.id, table.primary, now.at)
        found = scanned(tasks(lake.place, version, now.at, cut.keys, since_at=at))
        return sum(len(batch) for batch in found)

    @contextmanager
    def resetting_to(self, at: str, kernel: str = "sort_range") -> Iterator[Background]:
        """What is done here is done while a reset waits at a kernel."""
        with held(self.importing.node, kernel) as gate:
            statement = Background(self.importing, f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'")
            gate.wait()
            yield statement

    def end_history(self) -> None:
        """All that is not protected goes."""
        self._set_ttl(0)
        self.done("RUN GC NOW")
        self._set_ttl(3_600)

    def _set_ttl(self, seconds: int) -> None:
        store = self.importing.node.store
        tables = self.rows(
            "SELECT c.oid::int8 FROM pg_class c WHERE relkind = 'r' AND relnamespace = 't'::regclass::oid"
        )
        ids = [self.table.id, *(int(id or 0) for (id,) in tables)]

        def work(txn: Transaction) -> None:
            for id in ids:
                zones(store.keyspace).put(txn, Zone(id, 0, seconds))

        store.transact(work)


@pytest.fixture
def t(importing: Importing) -> LargeTable:
    return LargeTable(importing)


@pytest.fixture
def two(t: LargeTable) -> tuple[LargeTable, str]:
    """A table with an index, and a time at which it had other rows."""
    t.done("CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE)")
    t.done("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    at = t.now()
    t.done("UPDATE t SET a = 'TWO' WHERE id = 2")
    t.done("DELETE FROM t WHERE id = 3")
    t.done("INSERT INTO t VALUES (4, 'four')")
    t.now()
    return t, at


@pytest.mark.invariant("reset-whole")
@pytest.mark.parametrize("seed", range(3))
def test_any_of_many_times_with_flushes_between(t: LargeTable, seed: int) -> None:
    rng = random.Random(seed)
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE, b text)")
    t.done("CREATE INDEX part ON t (b) WHERE a > 5")
    times = [t.now()]
    for _ in range(16):
        for _ in range(3):
            id, other = rng.randrange(8), rng.randrange(12)
            t.say(f"INSERT INTO t VALUES ({id}, {other}, 'x{other}')")
            t.say(f"UPDATE t SET a = {other}, b = 'y{id}' WHERE id = {other}")
            t.say(f"DELETE FROM t WHERE id = {rng.randrange(8)}")
        times.append(t.now())
        match rng.randrange(3):
            case 0:
                t.flush(cleans=rng.random() < 0.7)
            case 1:
                at = rng.choice(times)
                t.reset(at)
                assert t.rows() == t.history[at]
        times.append(t.now())
    t.check()


@pytest.mark.parametrize("rows_max", [0, 1_000])
def test_only_what_has_changed_gets_another_time(
    t: LargeTable, rows_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resetting, "TRANSACTION_ROWS_MAX", rows_max)
    t.done("CREATE TABLE t (id int PRIMARY KEY, f float8, n numeric, x text)")
    t.done("INSERT INTO t SELECT g, g, g, g::text FROM generate_series(1, 50) g")
    t.done("INSERT INTO t VALUES (51, 'NaN', 'NaN', NULL), (52, '-0', 1.0, '')")
    t.flush(cleans=True)
    at = t.now()
    t.done("UPDATE t SET x = 'other' WHERE id IN (3, 4)")
    t.done("UPDATE t SET x = '4' WHERE id = 4")
    t.done("UPDATE t SET f = 0, n = 1.00 WHERE id = 52")
    t.done("DELETE FROM t WHERE id = 7")
    t.flush(cleans=True)
    since = t.importing.node.store.snapshot().at
    t.reset(at)
    assert t.rows() == t.history[at]
    assert t.changed_since(since) == 3
    t.check()


def test_it_is_read_and_not_written_meanwhile(two: tuple[LargeTable, str]) -> None:
    t, at = two
    before = t.rows()
    t.done("CREATE TABLE other (id int PRIMARY KEY, r int REFERENCES t)")
    with t.resetting_to(at) as statement:
        assert t.rows() == before
        for text in (
            "INSERT INTO t VALUES (9, 'x')",
            "UPDATE t SET a = 'x'",
            "DELETE FROM t WHERE id = 1",
            "COPY t FROM STDIN",
            "INSERT INTO other VALUES (1, 1)",
        ):
            said = t.say(text)
            assert (said.sqlstate, said.message) == ("55000", 'table "t" is being reset'), text
        assert t.rows(f"{RUNNING} AND description LIKE '%{at}'") == [("reset",)]
        assert t.rows("SELECT meta_type FROM system.protected_ts_timestamps") == [("job",)]
    assert not statement.said().sqlstate
    assert t.rows() == t.history[at]
    t.done("INSERT INTO other VALUES (1, 1)")
    t.done("INSERT INTO t VALUES (9, 'x')")
    t.check()


def test_rows_that_the_former_rows_refer_to_do_not_go(t: LargeTable) -> None:
    t.done("CREATE TABLE target (id int PRIMARY KEY)")
    t.done("INSERT INTO target VALUES (1), (2)")
    t.done("CREATE TABLE t (id int PRIMARY KEY, r int REFERENCES target)")
    t.done("INSERT INTO t VALUES (1, 1)")
    at = t.now()
    t.done("DELETE FROM t")
    with t.resetting_to(at, "check_references") as statement:
        assert t.say("DELETE FROM target WHERE id = 1").sqlstate == "55000"
        t.done("INSERT INTO target VALUES (3)")
    assert not statement.said().sqlstate
    assert t.rows() == t.history[at]


def test_a_reset_that_is_canceled_changes_nothing(two: tuple[LargeTable, str]) -> None:
    t, at = two
    before = t.rows()
    with t.resetting_to(at, "merge_range") as statement:
        ((job,),) = t.rows(
            "SELECT job_id FROM tenure_internal.jobs WHERE job_type = 'reset' AND status = 'running'"
        )
        t.done(f"CANCEL JOB {job}")
    assert statement.said().sqlstate == "57014"
    t.done(f"SHOW JOB WHEN COMPLETE {job}")
    assert t.rows() == before
    t.done("INSERT INTO t VALUES (9, 'x')")
    assert t.rows("SELECT * FROM system.protected_ts_timestamps") == []
    t.check()


@pytest.mark.parametrize("kernel", ["sort_range", "merge_range", "check_references"])
def test_a_reset_that_takes_longer_than_history_is_kept(t: LargeTable, kernel: str) -> None:
    t.done("CREATE TABLE target (id int PRIMARY KEY, v int)")
    t.done("INSERT INTO target VALUES (1, 0)")
    t.done("CREATE TABLE t (id int PRIMARY KEY, r int REFERENCES target, a int)")
    t.done("INSERT INTO t VALUES (1, 1, 0), (2, 1, 0)")
    at = t.now()
    t.done("UPDATE t SET a = a + 1")
    with t.resetting_to(at, kernel) as statement:
        t.done("UPDATE target SET v = v + 1")
        t.end_history()
        assert t.say(f"SELECT * FROM t AS OF SYSTEM TIME '{at}'").sqlstate == "72000"
    assert not statement.said().sqlstate
    assert t.rows() == t.history[at]
    assert t.rows("SELECT * FROM system.protected_ts_timestamps") == []
    t.check_indexes()


@pytest.mark.parametrize("rows_max", [0, 1_000])
def test_a_snapshot_that_is_older_than_history_is_gone_back_to(
    two: tuple[LargeTable, str], rows_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, at = two
    monkeypatch.setattr(resetting, "TRANSACTION_ROWS_MAX", rows_max)
    name = f"shot_{t.importing.name}"
    t.done(f"CREATE SNAPSHOT {name} FOR TABLE t")
    kept = t.rows()
    t.done("UPDATE t SET a = a || '!'")
    t.done("DELETE FROM t WHERE id = 1")
    t.end_history()
    assert t.refused(at) == "72000"
    t.done(f"ALTER TABLE t RESET TO SNAPSHOT {name}")
    assert t.rows() == kept
    t.done(f"DROP SNAPSHOT {name}")
    t.check_indexes()


def test_an_import_of_a_table_that_refers_to_it_waits(two: tuple[LargeTable, str]) -> None:
    t, at = two
    t.done("CREATE TABLE other (id int PRIMARY KEY, r int REFERENCES t)")
    location = t.importing.file("other.csv", "1,1\n")
    with t.resetting_to(at) as statement:
        importing = Background(t.importing, f"IMPORT INTO other CSV DATA ('{location}')")
    assert not statement.said().sqlstate
    assert not importing.said().sqlstate
    assert t.rows("SELECT * FROM other") == [("1", "1")]


def test_a_table_that_is_imported_into_refuses_the_reset_of_its_target(two: tuple[LargeTable, str]) -> None:
    t, at = two
    t.done("CREATE TABLE other (id int PRIMARY KEY, r int REFERENCES t)")
    location = t.importing.file("other.csv", "1,4\n")
    with held(t.importing.node) as gate:
        importing = Background(t.importing, f"IMPORT INTO other CSV DATA ('{location}')")
        gate.wait()
        assert t.refused(at) == "55000"
    assert not importing.said().sqlstate
    assert t.refused(at) == "23503"
    assert t.say("INSERT INTO t VALUES (9, 'x')").sqlstate == ""


def test_many_rows_at_times_between(t: LargeTable) -> None:
    t.done("CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
    t.done("CREATE INDEX ON t (a)")
    t.done("INSERT INTO t SELECT g, g % 10, 'x' FROM generate_series(1, 30000) g")
    at = t.now()
    t.done("UPDATE t SET a = 77 WHERE id % 3 = 0")
    t.flush(cleans=True)
    t.done("DELETE FROM t WHERE id % 7 = 0")
    t.done("INSERT INTO t SELECT g, 1, 'new' FROM generate_series(30001, 30100) g")
    between = t.now()
    t.reset(at)
    after = t.now()
    assert t.rows() == t.history[at]
    t.check()
    for moment, rows in ((at, 30_000), (between, 30_100 - 30_000 // 7), (after, 30_000)):
        sums = f"SELECT count(*), sum(a), count(DISTINCT b) FROM t AS OF SYSTEM TIME '{moment}'"
        values = t.history[moment]
        a = sum(int(row[1]) for row in values)
        assert t.rows(sums) == [(str(rows), str(a), str(len({row[2] for row in values})))]
    t.flush(cleans=True)
    t.check()


def test_another_node_sees_it_at_once(two: tuple[LargeTable, str], directory: Path) -> None:
    t, at = two
    with lake_node(directory) as second:
        talk = Talk(second)
        name = t.importing.name
        assert talk.say(f"SELECT * FROM {name}.t ORDER BY 1").rows == tuple(t.rows())
        with held(t.importing.node, "sort_range") as gate, held(second, "sort_range") as other:
            statement = Background(t.importing, f"ALTER TABLE t RESET TO SYSTEM TIME '{at}'")
            gate.wait_with(other)
            assert talk.say(f"INSERT INTO {name}.t VALUES (9, 'x')").sqlstate == "55000"
            assert talk.say(f"SELECT * FROM {name}.t ORDER BY 1").rows == tuple(t.rows())
        assert not statement.said().sqlstate
        assert talk.say(f"SELECT * FROM {name}.t ORDER BY 1").rows == tuple(t.history[at])
        assert not talk.say(f"INSERT INTO {name}.t VALUES (9, 'x')").sqlstate
        assert not talk.say(f"ALTER TABLE {name}.t RESET TO SYSTEM TIME '{at}'").sqlstate
        assert t.rows() == t.history[at]
        talk.close()


def test_over_postgres(postgres: Server, tmp_path: Path) -> None:
    name = f"reset_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with filling_node(tmp_path, f"postgresql://postgres@127.0.0.1:{postgres.port}/{name}") as node:
        t = LargeTable(Importing(node, tmp_path))
        t.done("CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE)")
        t.done("INSERT INTO t SELECT g, g * 7 FROM generate_series(1, 100) g")
        at = t.now()
        t.done("UPDATE t SET a = -a WHERE id < 20")
        t.flush(cleans=True)
        t.done("DELETE FROM t WHERE id > 90")
        t.now()
        t.reset(at)
        assert t.rows() == t.history[at]
        t.check()
        t.importing.talk.close()
        assert node.lake is not None
        remote_handles.close(node.lake.place)


# ── crashes ────────────────────────────────────────────────────────────────────────────────────


class Reset(ByHand):
    def __init__(self, t: LargeTable, at: str) -> None:
        node, table = t.importing.node, t.table
        lake = node.lake
        assert lake is not None
        payload = ResetPayload(table.id, parse(at), user="root")
        span = node.store.keyspace.index_span(table.id, table.primary)

        def create(txn: Transaction) -> int:
            id = node.jobs.fresh_id(txn)
            lake.protections.protect(txn, id, payload.at, Mode.AT, Targets(spans=(span,)))
            node.jobs.create(txn, kind=KIND, id=id, payload=pack(payload), owner="root", needs=(NOBODY_HAS,))
            return id

        id = node.store.transact(create)
        job = node.jobs.get(node.store.snapshot(), id)
        assert job is not None
        node.runner.reserve(id)  # to revert it, nothing is needed
        super().__init__(node, reset_kind(lake, node.publisher), job)


@pytest.mark.invariant("reset-whole")
@pytest.mark.parametrize("is_after", [False, True])
def test_a_reset_goes_on_after_a_crash_at_any_commit(two: tuple[LargeTable, str], is_after: bool) -> None:
    t, at = two
    commit = 0
    has_crashed = True
    while has_crashed:
        commit += 1
        t.done("UPDATE t SET a = a || 'x'")
        t.done("INSERT INTO t VALUES (8, 'eight') ON CONFLICT DO NOTHING")
        t.now()
        by_hand = Reset(t, at)
        has_crashed = by_hand.crash(commit, is_after=is_after)
        if has_crashed:
            by_hand.step(by_hand.run(), JobState.SUCCEEDED)
        t.importing.node.leases.renew()
        assert t.rows() == t.history[at]
        t.check()
    assert commit > 3
    assert t.rows("SELECT * FROM system.protected_ts_timestamps") == []


@pytest.mark.invariant("reset-whole")
@pytest.mark.parametrize("is_after", [False, True])
def test_a_crashed_reset_is_taken_back_whole(two: tuple[LargeTable, str], is_after: bool) -> None:
    t, at = two
    commit = 0
    while True:
        commit += 1
        t.done("UPDATE t SET a = a || 'x'")
        changed = t.rows()
        by_hand = Reset(t, at)
        if not by_hand.crash(commit, is_after=is_after):
            break
        t.importing.node.leases.renew()
        if t.rows() == changed:
            run = by_hand.reverting(JobError("XX000", "by hand"))
            by_hand.kind.revert(run)
            by_hand.step(run, JobState.FAILED)
        else:
            by_hand.step(by_hand.run(), JobState.SUCCEEDED)
            changed = t.history[at]
        t.importing.node.leases.renew()
        assert t.rows() == changed
        t.check()
    assert commit > 3
