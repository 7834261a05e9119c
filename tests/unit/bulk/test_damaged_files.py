"""A damaged file of the lake as clients and jobs meet it: what is said, and what goes on working."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.bulk import flush_pauses
from tenure.bulk.flush_pauses import FlushPauses
from tenure.cluster.jobs.job_states import JobState
from tenure.front import Listen
from tenure.node import Node, NodeOptions
from tenure.sql.duck import offload
from tenure.table.lake import format
from tenure.table.lake.base import LakeBase
from tests.unit.bulk.flushing import FlushingNode
from tests.unit.lake_nodes import lake_options

ROWS = 400

READS = {
    "by key": "SELECT v FROM t WHERE id = 350",
    "a range": "SELECT id, v FROM t WHERE id BETWEEN 340 AND 360 ORDER BY id",
    "an aggregate": "SELECT n % 3, sum(n), min(v) FROM t GROUP BY 1 ORDER BY 1",
    "a join": "SELECT count(*), sum(t.n + u.id) FROM t JOIN u ON t.n = u.id",
    "by an index": "SELECT id FROM t WHERE n = 350",
    "in the past": "SELECT sum(n) FROM t AS OF SYSTEM TIME {past}",
    "in the past, by key": "SELECT v FROM t AS OF SYSTEM TIME {past} WHERE id = 350",
    "a view": "SELECT * FROM seen",
    "a cursor": "COPY (SELECT id, n FROM t) TO STDOUT",
}


class Damaging(FlushingNode):
    """Tables t and u, flushed and cleaned; t has a past and an index."""

    def __init__(self, directory: Path) -> None:
        super().__init__(lake_options(directory))
        self.directory = directory
        self.run("CREATE TABLE t (id int PRIMARY KEY, n int, v text)")
        self.run("CREATE TABLE u (id int PRIMARY KEY, v text)")
        self.run("CREATE VIEW seen AS SELECT sum(n) AS sum FROM t")
        self.run(f"INSERT INTO t SELECT g, g, 'v' || g FROM generate_series(1, {ROWS}) g")
        self.run(f"INSERT INTO u SELECT g, 'u' || g FROM generate_series(1, {ROWS}) g")
        self.flush("t")
        self.flush("u")
        ((self.past,),) = self.run("SELECT cluster_logical_timestamp()")
        self.run("UPDATE t SET v = 'new', n = n + 1000 WHERE id % 7 = 0")
        self.flush("t")
        self.run("CREATE INDEX by_n ON t (n)")
        self.run("SET CLUSTER SETTING lake.clean_after = '0s'")
        self.until(lambda: not self.stored())
        self.run("SET CLUSTER SETTING lake.clean_after = '1h'")
        self.answers = {name: self.run_read(name) for name in READS}

    def stored(self) -> int:
        """Rows of t's primary index that are in the store."""
        span = self.node.store.keyspace.index_span(self.table("t"), 1)
        return self.node.store.engine.spread(*span, 0, 1000).keys

    def table(self, name: str) -> int:
        ((id,),) = self.run(f"SELECT '{name}'::regclass::oid::int8")
        assert isinstance(id, int)
        return id

    def run_read(self, name: str) -> object:
        query = READS[name].format(past=self.past)
        if not query.startswith("COPY"):
            return self.run(query)
        with self.root.cursor().copy(query) as copy:
            return b"".join(bytes(each) for each in copy)

    def wrong(self, name: str) -> psycopg.Error | None:
        """The error of a read, which otherwise gives what it should."""
        try:
            found = self.run_read(name)
        except psycopg.Error as error:
            return error
        assert found == self.answers[name], name
        return None

    def path(self, table: str = "t", *, is_live: bool = True) -> Path:
        """Of the last file of a table's primary index."""
        manifest = self.lake.manifests.get(self.node.store.snapshot(), self.table(table), 1)
        assert manifest is not None
        return self.directory / "lake" / (manifest.live if is_live else manifest.past)[-1].name

    def forget(self) -> None:
        """As a node does that has just been started."""
        for base in self.lake.bases.bases():
            assert isinstance(base, LakeBase)
            base.groups.forget()

    def damage(self, path: Path, place: int) -> None:
        data = bytearray(path.read_bytes())
        data[place] ^= 4
        path.write_bytes(data)
        self.forget()

    def damage_column(self, path: Path, column: str) -> None:
        """The last chunk of one."""
        (file,) = [
            file
            for manifest in self.lake.manifests.all(self.node.store.snapshot())
            for file in manifest.files
            if file.name.endswith(path.name)
        ]
        chunks = self.lake.bases.checked.footer(file).chunks
        (*_, number) = [each for each in range(len(chunks.sums)) if chunks.name(each)[0] == column]
        self.damage(path, chunks.starts[number] + chunks.sizes[number] // 2)

    def refused(self, statement: str) -> psycopg.Error:
        """The error of a statement that meets the damage."""
        with pytest.raises(psycopg.Error) as caught:
            self.run(statement)
        assert caught.value.sqlstate == "XX001", caught.value
        return caught.value


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Damaging]:
    monkeypatch.setattr(format, "GROUP_ROWS", 100)
    monkeypatch.setattr(offload, "ROWS_MIN", 50)
    served = Damaging(tmp_path)
    yield served
    served.close()


def test_reads_over_the_wire_are_right_or_name_table_index_and_file(served: Damaging) -> None:
    met = set()
    for is_live in (True, False):
        path = served.path(is_live=is_live)
        right = path.read_bytes()
        for place in range(5, len(right), 149):
            served.damage(path, place)
            for name in READS:
                error = served.wrong(name)
                if error is not None:
                    met.add(name)
                    assert error.sqlstate == "XX001", (name, place, error)
                    assert f'{path.name}" of table "t", index "t_pkey" has ' in str(error), (name, place)
            path.write_bytes(right)
        served.forget()
        assert {name: served.run_read(name) for name in READS} == served.answers
    assert met >= set(READS) - {"by an index"}


@pytest.mark.parametrize("is_missing", [False, True])
def test_other_tables_are_unharmed_and_the_damaged_one_can_be_dropped(
    served: Damaging, is_missing: bool
) -> None:
    path = served.path()
    path.unlink() if is_missing else served.damage_column(path, "c3")
    served.forget()
    error = served.refused("SELECT count(v), sum(n) FROM t")
    assert error.diag.message_detail is not None and "is in the store." in error.diag.message_detail
    assert error.diag.message_hint is not None and "DROP TABLE work" in error.diag.message_hint
    assert served.run("SELECT count(*), min(v) FROM u") == [(ROWS, "u1")]
    served.run("INSERT INTO u VALUES (1000, 'more')")
    served.flush("u")
    served.run("DROP VIEW seen")
    served.run("DROP TABLE t")
    served.run("CREATE TABLE t (id int PRIMARY KEY)")
    assert served.run("SELECT count(*) FROM t") == [(0,)]


def test_a_damaged_table_is_dropped_while_another_node_is_there(served: Damaging) -> None:
    served.damage_column(served.path(), "c3")
    other = Node(
        NodeOptions(f"sqlite:{served.directory}/store.db", lake=str(served.directory / "lake")), SystemEnv()
    )
    try:
        served.run("DROP TABLE t CASCADE")
        with pytest.raises(psycopg.errors.UndefinedTable):
            served.run("SELECT * FROM t")
    finally:
        other.stop()


@pytest.fixture(params=["alone", "with another"])
def beside(request: pytest.FixtureRequest, served: Damaging) -> Iterator[None]:
    if request.param == "alone":
        yield
        return
    other = Node(
        NodeOptions(f"sqlite:{served.directory}/store.db", lake=str(served.directory / "lake")), SystemEnv()
    )
    yield
    other.stop()


@pytest.mark.parametrize("is_missing", [False, True])
def test_a_damaged_table_is_truncated_and_filled_again(
    served: Damaging, beside: None, is_missing: bool
) -> None:
    path = served.path()
    right = path.read_bytes()
    path.unlink() if is_missing else served.damage_column(path, "c3")
    served.forget()
    served.refused("SELECT count(v), sum(n) FROM t")
    served.run("TRUNCATE t")
    assert served.run("SELECT count(v), sum(n) FROM t") == [(0, None)]
    served.run("INSERT INTO t VALUES (350, 350, 'new')")
    served.flush("t", 3)
    assert served.run("SELECT id, v FROM t WHERE n = 350") == [(350, "new")]
    path.write_bytes(right)
    served.forget()
    for name in ("in the past", "in the past, by key"):
        assert served.run_read(name) == served.answers[name]


def test_a_damaged_table_is_truncated_in_a_block_that_wrote_it(served: Damaging, beside: None) -> None:
    served.damage_column(served.path(), "c3")
    with served.root.transaction():
        served.run("INSERT INTO t VALUES (9000, 1, 'gone')")
        served.run("TRUNCATE t")
        served.run("INSERT INTO t VALUES (1, 1, 'kept')")
    assert served.run("SELECT * FROM t") == [(1, 1, "kept")]


def test_a_damaged_index_is_dropped(served: Damaging, beside: None) -> None:
    served.flush("t", 2)
    served.run("SET CLUSTER SETTING lake.clean_after = '0s'")
    span = served.node.store.keyspace.index_span(served.table("t"), 2)
    served.until(lambda: not served.node.store.engine.spread(*span, 0, 1000).keys)
    manifest = served.lake.manifests.get(served.node.store.snapshot(), served.table("t"), 2)
    assert manifest is not None
    served.directory.joinpath("lake", manifest.live[-1].name).unlink()
    served.forget()
    served.refused("SELECT id FROM t WHERE n = 1350")
    served.run("DROP INDEX by_n")
    assert served.run("SELECT id FROM t WHERE n = 1350") == [(350,)]
    served.run("CREATE INDEX by_n ON t (n)")
    assert served.run("SELECT id FROM t WHERE n = 1350") == [(350,)]


def test_damage_ends_a_block_up_to_its_savepoint_only(served: Damaging) -> None:
    served.damage_column(served.path(), "c3")
    with served.root.transaction():
        served.run("INSERT INTO u VALUES (2000, 'kept')")
        with pytest.raises(psycopg.Error) as caught, served.root.transaction():
            served.run("SELECT sum(id), sum(n), min(v) FROM t")
        assert caught.value.sqlstate == "XX001"
    assert served.run("SELECT v FROM u WHERE id = 2000") == [("kept",)]


def test_another_node_finds_the_damage_too(served: Damaging) -> None:
    path = served.path()
    served.damage_column(path, "c3")
    node = Node(
        NodeOptions(
            f"sqlite:{served.directory}/store.db", listen=Listen(port=0), lake=str(served.directory / "lake")
        ),
        SystemEnv(),
    )
    try:
        assert node.front is not None
        where = {"host": node.front.host, "port": node.front.port, "user": "root", "dbname": "defaultdb"}
        with psycopg.connect(**where, autocommit=True) as client:  # type: ignore[arg-type]
            with pytest.raises(psycopg.Error, match=path.name):
                client.execute("SELECT sum(id), sum(n), min(v) FROM t")
            assert client.execute("SELECT count(*) FROM u").fetchall() == [(ROWS,)]
    finally:
        node.stop()


# ── jobs ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_missing", [False, True])
def test_a_flush_of_a_damaged_table_fails_and_says_why(served: Damaging, is_missing: bool) -> None:
    path = served.path()
    right = path.read_bytes()
    path.unlink() if is_missing else served.damage_column(path, "c3")
    served.forget()
    served.run("INSERT INTO t SELECT 1000 + g, g, 'late' FROM generate_series(1, 5) g")
    before = served.lake.manifests.get(served.node.store.snapshot(), served.table("t"), 1)
    job = served.flush("t")
    control = served.node.jobs.control(served.node.store.snapshot(), job)
    assert control is not None and control.state is JobState.FAILED
    assert control.error_text.startswith("XX001 ") and path.name in control.error_text
    assert served.lake.manifests.get(served.node.store.snapshot(), served.table("t"), 1) == before
    served.flush("u")
    path.write_bytes(right)
    job = served.flush("t")
    control = served.node.jobs.control(served.node.store.snapshot(), job)
    assert control is not None and control.state is JobState.SUCCEEDED
    assert served.run("SELECT count(*) FROM t WHERE v = 'late'") == [(5,)]


@pytest.mark.parametrize(
    "statement",
    [
        "EXPORT INTO CSV 'out' FROM TABLE t",
        "EXPORT INTO NDJSON 'out' FROM SELECT * FROM t WHERE n > 0",
        "CREATE INDEX by_v ON t (v)",
        "ALTER TABLE t ADD COLUMN w int DEFAULT 7 + random()::int",
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0)",
        "CREATE TABLE copied AS SELECT * FROM t",
        "UPDATE t SET v = v || '!'",
        "DELETE FROM t WHERE n > 3",
        "IMPORT INTO t CSV DATA ('in.csv')",
    ],
)
def test_statements_that_read_all_of_it_are_refused(served: Damaging, statement: str) -> None:
    served.directory.joinpath("files").mkdir(exist_ok=True)
    served.directory.joinpath("files", "in.csv").write_text("5000,5000,five\n")
    path = served.path()
    right = path.read_bytes()
    served.damage_column(path, "c2" if "n > " in statement else "c3")
    assert f'{path.name}" of table "t", index "t_pkey" has' in str(served.refused(statement))
    path.write_bytes(right)
    served.forget()
    assert {name: served.run_read(name) for name in READS} == served.answers


# ── pauses ─────────────────────────────────────────────────────────────────────────────────────


def test_upkeep_waits_longer_and_longer_after_flushes_that_failed(
    served: Damaging,
) -> None:
    served.damage_column(served.path(), "c3")
    env, store = ManualEnv(), served.node.store
    pauses = FlushPauses(env, store, served.node.jobs)
    head = store.keyspace.head(served.table("t"), 1)
    served.run("INSERT INTO t VALUES (9000, 1, 'late')")
    due = []
    for _ in range(3):
        assert pauses.may_try(head)
        pauses.started(head, served.flush("t"))
        assert not pauses.may_try(head) and not list(pauses.due())
        while not pauses.may_try(head):
            env.advance(flush_pauses.PAUSE_SECONDS / 2)
        assert list(pauses.due()) == [head]
        due.append(env.monotonic() / flush_pauses.PAUSE_SECONDS)
    assert due == [1, 3, 7]


def test_a_flush_that_succeeds_ends_the_pauses(served: Damaging) -> None:
    pauses = FlushPauses(ManualEnv(), served.node.store, served.node.jobs)
    head = served.node.store.keyspace.head(served.table("t"), 1)
    served.run("INSERT INTO t VALUES (9000, 1, 'late')")
    pauses.started(head, served.flush("t"))
    assert pauses.may_try(head) and not list(pauses.due())
