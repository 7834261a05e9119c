"""New indexes of large tables are filled in the lake: whole, whatever is written meanwhile."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.timestamp import Timestamp
from tenure.node import Node
from tests.unit.bulk.fills import Filling, Statement, filling_node

ROWS = 300


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Node]:
    with filling_node(directory) as node:
        yield node


@pytest.fixture
def filling(node: Node, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filling]:
    # So few rows would be changed in the statement's own transaction.
    monkeypatch.setattr("tenure.schema_change.changer.ALONE_ROWS_MAX", 0)
    made = Filling(node, directory)
    made.done("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
    yield made
    made.talk.close()


@pytest.fixture
def t(filling: Filling) -> Filling:
    filling.done("CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
    filling.done(
        f"INSERT INTO t SELECT g, g * 7919 % {ROWS}, 'text ' || g % 10 FROM generate_series(1, {ROWS}) g"
    )
    return filling


@pytest.mark.invariant("fill-whole")
@pytest.mark.parametrize(
    ("index", "rows"),
    [
        ("INDEX ON t (a)", ROWS),
        ("INDEX ON t (b DESC, a)", ROWS),
        ("UNIQUE INDEX ON t (a)", ROWS),
        ("INDEX ON t (b) WHERE a < 100", 100),
        ("INDEX ON t (b) WHERE a % 3 = 0", ROWS // 3),
        ("UNIQUE INDEX ON t (b, a) WHERE a < 0", 0),
    ],
)
@pytest.mark.parametrize("is_flushed", [False, True], ids=["delta", "base"])
def test_an_index_is_filled_in_the_lake(t: Filling, index: str, rows: int, is_flushed: bool) -> None:
    if is_flushed:
        t.flush(cleans=True)
        t.done("UPDATE t SET b = 'other' WHERE id < 10")
    t.done(f"CREATE {index}")
    assert t.filled_rows() == [rows]
    assert t.wrong() == []


def test_keys_of_any_type_are_filled(filling: Filling) -> None:
    t = filling
    t.done("CREATE TYPE mood AS ENUM ('well', 'ill')")
    t.done(
        "CREATE TABLE t (id uuid PRIMARY KEY, n numeric, m numeric(10, 2), d date, s timestamptz, f float8,"
        " e mood, j int[], x text)"
    )
    t.done(
        "INSERT INTO t SELECT md5(g::text)::uuid, g / 7.0, CASE WHEN g % 5 = 0 THEN 'NaN' ELSE g * 1.25 END,"
        " date '2024-01-01' + g, timestamptz '2024-01-01 00:00+00' + g * interval '1 hour', g / 3.0,"
        " CASE WHEN g % 3 = 0 THEN NULL WHEN g % 3 = 1 THEN 'well' ELSE 'ill' END::mood, ARRAY[g, NULL],"
        " repeat('x', g)"
        " FROM generate_series(1, 60) g"
    )
    t.done("INSERT INTO t (id, n) VALUES (gen_random_uuid(), 'NaN')")
    for columns in ("n, m", "m DESC, e", "d, s", "f, e DESC", "j", "x DESC, d"):
        t.done(f"CREATE INDEX ON t ({columns})")
    t.done("CREATE UNIQUE INDEX ON t (m, n, d)")
    t.done("CREATE UNIQUE INDEX ON t (e, x)")
    assert t.filled_rows() == [61] * 8
    assert t.wrong() == []


def test_an_index_of_a_new_column_is_filled_with_it(t: Filling) -> None:
    t.done("ALTER TABLE t ADD COLUMN c int GENERATED ALWAYS AS (a + 1) STORED UNIQUE")
    assert t.filled_rows() == [ROWS]
    assert t.rows("SELECT id FROM t WHERE c = 1") == [(str(ROWS),)]
    assert t.wrong() == []


def test_a_table_without_a_primary_key(filling: Filling) -> None:
    filling.done("CREATE TABLE t (a int)")
    filling.done("INSERT INTO t SELECT g % 7 FROM generate_series(1, 100) g")
    filling.done("CREATE INDEX ON t (a)")
    assert filling.filled_rows() == [100]
    assert filling.wrong() == []


def test_a_smaller_table_is_filled_by_transactions(t: Filling) -> None:
    t.done(f"SET CLUSTER SETTING pipeline.spark_min_rows = {ROWS}")
    t.done("CREATE UNIQUE INDEX ON t (a)")
    assert t.manifests() == {}
    assert t.wrong() == []
    t.done("INSERT INTO t VALUES (0, -1, '')")
    t.done("CREATE INDEX ON t (b)")
    assert t.filled_rows() == [ROWS + 1]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many: tasks, runs and their batches of a handful."""
    monkeypatch.setattr("tenure.pipeline.scan.TASK_ROWS", 40)
    monkeypatch.setattr("tenure.pipeline.scan.CUT_ROWS", 20)
    monkeypatch.setattr("tenure.table.lake.scanning.DELTA_ROWS", 15)
    monkeypatch.setattr("tenure.table.lake.scanning.PAGE_KEYS", 7)
    monkeypatch.setattr("tenure.pipeline.runs.BATCH_ROWS", 8)
    monkeypatch.setattr("tenure.bulk.filling.entries.CHUNK_BYTES", 500)
    monkeypatch.setattr("tenure.pipeline.merge.RUN_ROWS", 30)
    monkeypatch.setattr("tenure.bulk.filling.job.PAGE_KEYS", 5)
    monkeypatch.setattr("tenure.bulk.filling.job.BATCH_ROWS", 3)


@pytest.mark.parametrize("index", ["INDEX ON t (b, a)", "UNIQUE INDEX ON t (a)"])
def test_many_tasks_make_one_index(t: Filling, small: None, index: str) -> None:
    with t.during(f"CREATE {index}") as statement:
        for write in WRITES:
            t.done(write)
    assert not statement.said().sqlstate
    (manifest,) = t.manifests().values()
    assert len(manifest.live) > 5
    assert t.wrong() == []


def test_equal_rows_of_two_tasks_are_found(t: Filling, small: None) -> None:
    t.done("INSERT INTO t VALUES (1000, 119, '')")
    _assert_refused(t, Statement(t, "CREATE UNIQUE INDEX i ON t (a)"), "119")


def test_show_jobs_says_how_far_it_is(t: Filling) -> None:
    with t.during("CREATE INDEX ON t (a)") as statement:
        ((status, fraction),) = t.rows(
            f"SELECT running_status, fraction_completed FROM tenure_internal.jobs WHERE job_id = {t.job()}"
        )
        assert status is not None and status.endswith("reading, process: 1 of 1 tasks")
        assert fraction is not None and 0 < float(fraction) < 1
    assert not statement.said().sqlstate


# ── written meanwhile ──────────────────────────────────────────────────────────────────────────────

WRITES = (
    f"INSERT INTO t VALUES ({ROWS + 1}, {ROWS + 1}, 'new')",
    "UPDATE t SET a = a + 1000 WHERE id % 5 = 0",
    "UPDATE t SET b = 'changed' WHERE id % 5 = 1",
    "DELETE FROM t WHERE id % 5 = 2",
    "INSERT INTO t SELECT id + 2000, a + 2000, b FROM t WHERE id % 5 = 3",
    "UPDATE t SET id = id + 10000 WHERE id % 5 = 3 AND id < 1000",
    "DELETE FROM t WHERE id = 4",
    "INSERT INTO t VALUES (4, 4 * 7919 % 300, 'back')",
)


@pytest.mark.parametrize(
    "index", ["INDEX ON t (b, a)", "UNIQUE INDEX ON t (a)", "INDEX ON t (a) WHERE b > 'd'"]
)
@pytest.mark.parametrize("kernel", ["project_range", "merge_range"])
def test_what_is_written_meanwhile_lies_on_top(t: Filling, index: str, kernel: str) -> None:
    with t.during(f"CREATE {index}", kernel) as statement:
        for write in WRITES:
            t.done(write)
    assert not statement.said().sqlstate
    times: list[Timestamp] = [t.node.store.snapshot().at]
    for write in ("UPDATE t SET a = -a", "DELETE FROM t WHERE id % 2 = 0", "UPDATE t SET b = b || 'x'"):
        t.done(write)
        times.append(t.node.store.snapshot().at)
    assert [t.wrong(at) for at in times] == [[]] * 4
    t.flush(cleans=True)
    assert [t.wrong(at) for at in times] == [[]] * 4


def test_writers_that_never_stop(t: Filling) -> None:
    """Each keeps to rows of its own and to values that no other has."""
    stop = threading.Event()
    faults: list[str] = []

    def write(number: int) -> None:
        rng, talk = random.Random(number), t.session()
        while not stop.is_set():
            id, value = 3 * rng.randrange(ROWS) + number, 3 * rng.randrange(100_000) + number
            said = talk.say(
                rng.choice(
                    (
                        f"INSERT INTO t VALUES ({id}, {100_000 + value}, 'w') ON CONFLICT DO NOTHING",
                        f"UPDATE t SET a = {500_000 + value} WHERE id = {id}",
                        f"DELETE FROM t WHERE id = {id}",
                    )
                )
            )
            if said.sqlstate not in ("", "23505", "40001"):
                faults.append(f"{said.sqlstate} {said.message}")
        talk.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        said = [
            t.say(f"CREATE {kind} INDEX i{n} ON t (a)") for n, kind in enumerate(["UNIQUE", "", "UNIQUE"])
        ]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []
    assert {each.sqlstate for each in said} <= {"", "23505"}
    assert t.wrong() == []


# ── uniqueness ─────────────────────────────────────────────────────────────────────────────────────


def _assert_refused(t: Filling, statement: Statement, key: str) -> None:
    said = statement.said()
    assert (said.sqlstate, said.message) == ("23505", 'could not create unique index "i"')
    assert said.detail == f"Key (a)=({key}) is duplicated."
    assert [index.name for index in t.table().indexes] == ["t_pkey"]
    _assert_no_trace(t)


def _assert_no_trace(t: Filling) -> None:
    assert t.wrong() == []
    assert t.filled_rows() in ([], [0])
    assert t.node.lake is not None
    claims = t.node.lake.merges.all(t.node.store.begin())
    assert [claim for claim in claims if claim.table == t.table().id] == []
    assert t.table().job == 0


def test_two_equal_rows_of_the_table(t: Filling) -> None:
    t.done("INSERT INTO t VALUES (1000, 7919 % 300, '')")
    _assert_refused(t, Statement(t, "CREATE UNIQUE INDEX i ON t (a)"), "119")
    t.done("DELETE FROM t WHERE id = 1000")
    t.done("ALTER TABLE t ADD CONSTRAINT i UNIQUE (a)")
    assert t.wrong() == []


def test_a_row_of_the_table_and_one_written_meanwhile(t: Filling) -> None:
    with t.during("CREATE UNIQUE INDEX i ON t (a)") as statement:
        t.done("INSERT INTO t VALUES (1000, 119, '')")
    _assert_refused(t, statement, "119")
    assert t.node.lake is not None
    dropped = t.node.lake.manifests.dropped(t.node.store.snapshot())
    assert [file.table for file in dropped if file.table == t.table().id]
    t.done("INSERT INTO t VALUES (1001, 119, '')")


def test_two_rows_written_meanwhile(t: Filling) -> None:
    with t.during("CREATE UNIQUE INDEX i ON t (a)") as statement:
        t.done("INSERT INTO t VALUES (1000, 5000, '')")
        said = t.say("INSERT INTO t VALUES (1001, 5000, '')")
    assert said.sqlstate == "23505"
    assert not statement.said().sqlstate
    assert t.wrong() == []


def test_an_equal_row_that_came_and_went_meanwhile(t: Filling) -> None:
    """Its entry hid another's, and took that with it."""
    with t.during("CREATE UNIQUE INDEX i ON t (a)") as statement:
        t.done("INSERT INTO t VALUES (1000, 119, '')")
        t.done("DELETE FROM t WHERE id = 1000")
    assert not statement.said().sqlstate
    assert t.wrong() == []
    assert t.rows("SELECT id FROM t WHERE a = 119") == [("1",)]


def test_an_equal_row_whose_other_went_meanwhile(t: Filling) -> None:
    with t.during("CREATE UNIQUE INDEX i ON t (a)") as statement:
        t.done("INSERT INTO t VALUES (1000, 119, '')")
        t.done("DELETE FROM t WHERE id = 1")
    assert not statement.said().sqlstate
    assert t.wrong() == []
    assert t.rows("SELECT id FROM t WHERE a = 119") == [("1000",)]


def test_a_transaction_that_looked_before_does_not_commit_after(t: Filling) -> None:
    with t.during("CREATE UNIQUE INDEX i ON t (a)") as statement:
        writer = t.session()
        assert not writer.say("BEGIN").sqlstate
        assert not writer.say("INSERT INTO t VALUES (1000, 119, '')").sqlstate
    assert not statement.said().sqlstate
    assert writer.say("COMMIT").sqlstate == "40001"
    writer.close()
    assert t.wrong() == []


def test_a_key_that_is_too_long(t: Filling) -> None:
    t.done("INSERT INTO t VALUES (1000, 1000, repeat('x', 5000))")
    said = t.say("CREATE INDEX i ON t (b)")
    assert said.sqlstate == "54000" and 'for index "i"' in said.message
    _assert_no_trace(t)


# ── ends ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kernel", ["project_range", "merge_range"])
def test_a_canceled_change_leaves_nothing(t: Filling, kernel: str) -> None:
    with t.during("CREATE INDEX i ON t (a)", kernel) as statement:
        t.done(f"CANCEL JOB {t.job()}")
        said = statement.said()
    assert said.sqlstate == "57014"
    assert [index.name for index in t.table().indexes] == ["t_pkey"]
    _assert_no_trace(t)


def test_an_index_that_is_being_filled_is_not_flushed(t: Filling) -> None:
    from tenure.bulk import flush

    lake = t.node.lake
    assert lake is not None
    with t.during("CREATE INDEX i ON t (a)") as statement:
        table = t.table()
        job = t.node.store.transact(lambda txn: flush.start(txn, lake, table.id, 2, rows=0, name="t"))
        assert job is None
    assert not statement.said().sqlstate
    t.flush()


def test_a_filled_index_is_imported_into_and_referred_to(t: Filling) -> None:
    with t.during("CREATE UNIQUE INDEX i ON t (a)") as statement:
        t.done("UPDATE t SET a = a + 1000 WHERE id < 10")
    assert not statement.said().sqlstate
    assert not t.csv("1000,5000,new\n1001,5001,newer\n").sqlstate
    assert t.csv("1002,1119,equal\n").sqlstate == "23505"
    t.done("CREATE TABLE child (a int REFERENCES t (a))")
    assert not t.csv("5000\n1119\n0\n", "child").sqlstate
    assert t.csv("119\n", "child").sqlstate == "23503"
    assert t.wrong() == []


def test_dropping_an_index_of_the_lake_costs_nothing_for_its_entries(t: Filling) -> None:
    t.done("CREATE INDEX ON t (a)")
    ((id, filled),) = t.manifests().items()
    store = t.node.store
    ((time,),) = t.rows("SELECT cluster_logical_timestamp()")
    t.done("DROP INDEX t_a_idx")
    assert t.manifests()[id] == filled
    span = store.keyspace.index_span(t.table().id, id)
    assert store.engine.spread(span.lo, span.hi, 0, 1 << 40).keys == 0
    assert t.rows(f"SELECT count(*) FROM t AS OF SYSTEM TIME '{time}' WHERE a = 7") == [("1",)]
    t.done("CREATE INDEX ON t (a)")
    assert t.wrong() == []


def test_many_entries_of_a_former_primary_key_are_left_for_readers_of_the_past(
    filling: Filling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.bulk.filling.job.EMPTIED_ROWS_MAX", 5)
    t = filling
    t.done("CREATE TABLE t (id int NOT NULL, a text)")
    t.done("INSERT INTO t SELECT g, 'text ' || g FROM generate_series(1, 20) g")
    store, former = t.node.store, t.table()
    ((time,),) = t.rows("SELECT cluster_logical_timestamp()")
    t.done("ALTER TABLE t ADD PRIMARY KEY (id)")
    span = store.keyspace.index_span(former.id, former.primary)
    assert len(list(store.snapshot().scan(span))) == 20
    assert t.rows("SELECT count(*), min(a) FROM t WHERE id > 0") == [("20", "text 1")]
    assert t.rows(f"SELECT count(*) FROM t AS OF SYSTEM TIME '{time}'") == [("20",)]
    t.done("UPDATE t SET a = 'other' WHERE id = 7")
    assert t.rows("SELECT a FROM t WHERE id = 7") == [("other",)]


def test_few_entries_of_an_index_that_goes_are_removed(t: Filling) -> None:
    t.done("SET CLUSTER SETTING pipeline.spark_min_rows = 100000")
    t.done("CREATE INDEX ON t (a)")
    ((index,),) = [[each.id for each in t.table().indexes if each.name == "t_a_idx"]]
    t.done("DROP INDEX t_a_idx")
    span = t.node.store.keyspace.index_span(t.table().id, index)
    assert list(t.node.store.snapshot().scan(span)) == []
    assert t.wrong() == []
