"""EXPORT said to a node: what files come of it, and what is refused."""

import csv
import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import FenceLost, StoreError
from tenure.bulk.exporting import job as export_job
from tenure.bulk.exporting.kind import KIND
from tenure.bulk.exporting.records import ExportPayload, ExportProgress, Rows
from tenure.bulk.upkeep import Upkeep
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.cluster.jobs.job_records import JobProgress
from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.job_table import Job
from tenure.cluster.jobs.runs import Run
from tenure.front import Listen
from tenure.kv.records import pack, unpack
from tenure.node import Node, NodeOptions
from tenure.pipeline import scan
from tenure.pipeline.writing.formats import CSV, OutColumn, Writing
from tenure.sql.clients import exported_rows
from tenure.sql.text.redaction import without_secrets
from tests.pipeline.waiting import await_true
from tests.unit.sql.sessions import Said, Talk

ROWS = 40


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exporting")


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Node]:
    node = Node(
        NodeOptions(
            f"sqlite:{directory}/store.db",
            listen=Listen(port=0),
            lake=str(directory / "lake"),
            files=str(directory / "files"),
        ),
        SystemEnv(),
    )
    talk = Talk(node)
    for statement in (
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(10, 2), m mood, tags text[], "
        "at timestamptz)",
        "INSERT INTO t SELECT g, CASE g % 3 WHEN 0 THEN NULL WHEN 1 THEN 'a,\"b' ELSE '' END, g * 1.5, "
        f"'ok', ARRAY['x', NULL], '2024-01-01 00:00:00.5+00' FROM generate_series(1, {ROWS}) g",
        'CREATE TABLE "f*/x" (a int)',
        'INSERT INTO "f*/x" VALUES (1)',
        "CREATE VIEW v AS SELECT id, name FROM t WHERE id < 3",
        "CREATE SCHEMA other",
        "CREATE TABLE other.u (id int PRIMARY KEY, word text)",
        "INSERT INTO other.u VALUES (1, 'one'), (2, 'two')",
        'CREATE TABLE empty (id int PRIMARY KEY, "no,name" text)',
        "CREATE USER plain",
    ):
        said = talk.say(statement)
        assert not said.sqlstate, said
    yield node
    node.stop()


@pytest.fixture
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    yield talk
    talk.close()


def files(directory: Path, place: str) -> dict[str, bytes]:
    found = sorted((directory / "files" / place).glob("**/*"))
    return {path.name: path.read_bytes() for path in found if path.is_file()}


def exported(directory: Path, said: Said, place: str) -> bytes:
    """The files that a statement told of, one after the other; there are no others."""
    assert not said.sqlstate, said
    assert said.columns == ("filename", "rows", "bytes")
    found = files(directory, place)
    assert sorted(found) == sorted(str(name) for name, _, _ in said.rows)
    assert {str(name): int(size or 0) for name, _, size in said.rows} == {
        name: len(data) for name, data in found.items()
    }
    return b"".join(found[str(name)] for name, _, _ in said.rows)


def test_a_table_is_exported_whole_as_csv(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'whole' FROM TABLE t")
    assert said.tag == "EXPORT"
    lines = exported(directory, said, "whole").decode().splitlines()
    assert len(lines) == ROWS
    assert lines[:3] == [
        '1,"a,""b",1.50,ok,"{x,NULL}",2024-01-01 00:00:00.5+00',
        '2,"",3.00,ok,"{x,NULL}",2024-01-01 00:00:00.5+00',
        '3,,4.50,ok,"{x,NULL}",2024-01-01 00:00:00.5+00',
    ]
    ((name, rows, _),) = said.rows
    assert str(name).startswith("t-") and str(name).endswith("-0.0.csv")
    assert rows == str(ROWS)


def test_options_say_how_csv_is_written(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'options' WITH delimiter = '|', nullas = '-', header FROM TABLE v")
    assert exported(directory, said, "options") == b'id|name\n1|"a,""b"\n2|\n'


def test_a_query_across_schemas_is_exported(talk: Talk, directory: Path) -> None:
    said = talk.say(
        "EXPORT INTO NDJSON 'query' FROM SELECT t.id, word, price FROM t JOIN other.u USING (id) ORDER BY id"
    )
    lines = exported(directory, said, "query").decode().splitlines()
    assert lines == ['{"id":1,"word":"one","price":1.50}', '{"id":2,"word":"two","price":3.00}']
    assert str(said.rows[0][0]).startswith("query-")


def test_parquet_has_natural_types(talk: Talk, directory: Path) -> None:
    data = exported(directory, talk.say("EXPORT INTO PARQUET 'parquet' FROM TABLE t"), "parquet")
    table = pq.read_table(io.BytesIO(data))
    assert table.schema.field("price").type == pa.decimal128(10, 2)
    assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert table.column("m").to_pylist() == ["ok"] * ROWS
    assert table.column("tags")[0].as_py() == "{x,NULL}"
    assert table.column("id").to_pylist() == list(range(1, ROWS + 1))


def test_files_are_cut_after_so_many_rows(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'chunks' WITH chunk_rows = 15, header FROM SELECT id FROM t ORDER BY id")
    exported(directory, said, "chunks")
    assert [row for _, row, _ in said.rows] == ["15", "15", "10"]
    assert all(data.startswith(b"id\n") for data in files(directory, "chunks").values())


def test_files_are_compressed_if_asked_for(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'packed' WITH compression = gzip FROM TABLE t")
    assert str(said.rows[0][0]).endswith(".csv.gz")
    assert gzip.decompress(exported(directory, said, "packed")).count(b"\n") == ROWS


def test_a_table_without_rows_is_one_file(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'none' WITH header FROM TABLE empty")
    assert exported(directory, said, "none") == b'id,"no,name"\n'


def test_a_name_that_means_something_to_a_file_system_does_not_get_there(talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'odd' FROM TABLE \"f*/x\"")
    assert exported(directory, said, "odd") == b"1\n"
    assert str(said.rows[0][0]).startswith("f__x-")


def test_the_past_is_exported_as_it_was(talk: Talk, directory: Path) -> None:
    talk.say("CREATE TABLE changing (id int PRIMARY KEY, a text)")
    talk.say("INSERT INTO changing VALUES (1, 'before')")
    moment = talk.say("SELECT cluster_logical_timestamp()").rows[0][0]
    talk.say("UPDATE changing SET a = 'after'")
    talk.say("ALTER TABLE changing ADD COLUMN b int DEFAULT 7")
    said = talk.say(f"EXPORT INTO CSV 'then' FROM TABLE changing AS OF SYSTEM TIME '{moment}'")
    assert exported(directory, said, "then") == b"1,before\n"
    said = talk.say(f"EXPORT INTO CSV 'then2' FROM SELECT * FROM changing AS OF SYSTEM TIME '{moment}'")
    assert exported(directory, said, "then2") == b"1,before\n"
    assert exported(directory, talk.say("EXPORT INTO CSV 'now' FROM TABLE changing"), "now") == b"1,after,7\n"


def test_csv_comes_back_by_copy(talk: Talk, directory: Path) -> None:
    data = exported(directory, talk.say("EXPORT INTO CSV 'back' FROM TABLE t"), "back")
    read = list(csv.reader(io.StringIO(data.decode())))
    assert [row[0] for row in read] == [str(number) for number in range(1, ROWS + 1)]


@pytest.mark.invariant("S24")
def test_the_keys_of_an_object_store_are_shown_to_nobody(talk: Talk) -> None:
    keys = "AWS_ACCESS_KEY_ID=one&AWS_SECRET_ACCESS_KEY=hidden/word%26&AWS_SESSION_TOKEN=hidden"
    said = talk.say(f"EXPORT INTO CSV 's3://bucket/x?{keys}&AWS_ENDPOINT=https://nowhere' FROM TABLE t")
    assert said.sqlstate == "42501"
    assert "hidden" not in f"{said.message} {said.hint} {said.detail} {talk.session.state.activity.statement}"
    assert "hidden" not in without_secrets(f"EXPORT INTO CSV 's3://b/x?{keys}' FROM TABLE t")


@pytest.mark.parametrize("format", ["CSV", "NDJSON", "PARQUET"])
def test_what_is_exported_can_be_imported(talk: Talk, format: str) -> None:
    columns = (
        "id int PRIMARY KEY, a int8, b numeric, c numeric(12, 3), d text, e bool, f float8, g float4, "
        "h date, i timestamp, j timestamptz, k time, l uuid, m bytea, n jsonb, o int[], p interval, "
        "q char(4), r mood"
    )
    for name in ("made", "read"):
        assert not talk.say(f"CREATE TABLE {name}_{format} ({columns})").sqlstate
    said = talk.say(
        f"INSERT INTO made_{format} SELECT g, g * 10000000000, g / 7.0, g * 1.5, repeat('x\"y,', g), "
        "g % 2 = 0, g / 3.0::float8, g / 3.0::float4, date '2024-02-29' + g, "
        "timestamp '2024-01-01 10:00:00.25', "
        "timestamptz '2024-01-01 10:00:00.5+02', time '10:11:12.5', '00000000-0000-0000-0000-00000000000a', "
        "'\\x00ff', '{\"a\": [1.50, null]}', ARRAY[g, NULL], interval '1 mon 2 days 3.5 s', 'ab', 'sad' "
        "FROM generate_series(1, 5) g"
    )
    assert not said.sqlstate, said
    assert not talk.say(f"INSERT INTO made_{format} (id, d) VALUES (6, '')").sqlstate
    assert not talk.say(f"EXPORT INTO {format} 'trip/{format}' FROM TABLE made_{format}").sqlstate
    said = talk.say(f"IMPORT INTO read_{format} {format} DATA ('trip/{format}/*')")
    assert not said.sqlstate, said
    rows = [talk.say(f"SELECT * FROM {name}_{format} ORDER BY id").rows for name in ("made", "read")]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("EXPORT INTO CSV '../x' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV '/etc' FROM TABLE t", "42501"),
        ("EXPORT INTO CSV 'a/*' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 's3://bucket/x' FROM TABLE t", "22023"),
        ("EXPORT INTO XML 'x' FROM TABLE t", "42601"),
        ("EXPORT INTO CSV 'x' FROM TABLE missing", "42P01"),
        ("EXPORT INTO CSV 'x' FROM DELETE FROM t", "42601"),
        ("EXPORT INTO CSV 'x' FROM SELECT * FROM t FOR UPDATE", "0A000"),
        ("EXPORT INTO CSV 'x' FROM SELECT * FROM t WHERE id = $1", "0A000"),
        ("EXPORT INTO CSV 'x' WITH delimiter = 'ab' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH nullas = 'a,b' FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH chunk_rows = 0 FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH compression = rar FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x' WITH wings FROM TABLE t", "42601"),
        ("EXPORT INTO CSV 'x' WITH header, header FROM TABLE t", "42601"),
        ("EXPORT INTO PARQUET 'x' WITH header FROM TABLE t", "22023"),
        ("EXPORT INTO CSV 'x'", "42601"),
    ],
)
def test_what_is_wrong_is_refused_and_leaves_nothing(
    talk: Talk, directory: Path, statement: str, sqlstate: str
) -> None:
    before = talk.say("SELECT count(*) FROM tenure_internal.jobs").rows
    assert talk.say(statement).sqlstate == sqlstate
    assert talk.say("SELECT count(*) FROM tenure_internal.jobs").rows == before
    assert not files(directory, "x")


def test_only_superusers_export(node: Node, directory: Path) -> None:
    talk = Talk(node, user="plain")
    assert talk.say("EXPORT INTO CSV 'plain' FROM TABLE t").sqlstate == "42501"
    talk.close()
    assert not files(directory, "plain")


def test_it_does_not_belong_to_a_transaction(talk: Talk) -> None:
    talk.say("BEGIN")
    assert talk.say("EXPORT INTO CSV 'block' FROM TABLE t").sqlstate == "25001"
    talk.say("ROLLBACK")


def test_an_error_of_the_query_is_the_statements_and_leaves_no_file(talk: Talk, directory: Path) -> None:
    said = talk.say(
        "EXPORT INTO CSV 'fails' WITH chunk_rows = 5 FROM SELECT id, 10 / (30 - id) FROM t ORDER BY 1"
    )
    assert (said.sqlstate, said.message) == ("22012", "division by zero")
    assert not files(directory, "fails")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How often the rows of a query were asked for, and whether they were again; results are held in part."""
    monkeypatch.setattr("tenure.sql.duck.query_connection.RESULT_BYTES_MAX", 100_000)
    monkeypatch.setattr("tenure.sql.duck.query_connection.FETCH_ROWS", 200)
    asked: list[bool] = []

    def rows_of(*arguments: Any) -> Iterator[Rows]:
        asked.append(arguments[-1])
        return exported_rows.rows_of(*arguments)

    monkeypatch.setattr("tenure.composition.job_layer.rows_of", rows_of)
    return asked


@pytest.fixture(scope="module")
def long(node: Node) -> None:
    talk = Talk(node)
    talk.say("CREATE TABLE long (id int PRIMARY KEY, word text)")
    talk.say("INSERT INTO long SELECT g, repeat('a', 1000) FROM generate_series(1, 19999) g")
    talk.say("INSERT INTO long VALUES (20000, repeat('ß', 1000))")
    talk.close()


@pytest.mark.usefixtures("long")
def test_a_large_query_runs_once(talk: Talk, directory: Path, runs: list[bool]) -> None:
    duck = talk.session.state.services.duck
    assert duck is not None
    taken = duck.offloaded_count
    said = talk.say("EXPORT INTO CSV 'large' FROM SELECT id, word FROM long WHERE word <> 'b'")
    lines = exported(directory, said, "large").decode().splitlines()
    assert [len(line.partition(",")[2]) for line in lines] == [1000] * 20_000
    assert (runs, duck.offloaded_count - taken) == ([False], 1)


@pytest.mark.usefixtures("long")
def test_a_query_that_duckdb_gives_up_late_starts_over(talk: Talk, directory: Path, runs: list[bool]) -> None:
    said = talk.say(
        "EXPORT INTO CSV 'over' WITH chunk_rows = 5000 "
        "FROM SELECT id, upper(word) FROM long WHERE word <> 'b'"
    )
    lines = exported(directory, said, "over").decode().splitlines()
    assert [line.partition(",")[0] for line in lines] == [str(number) for number in range(1, 20_001)]
    assert runs == [False, True]


@pytest.mark.usefixtures("long")
def test_an_error_late_in_a_large_query_leaves_no_file(talk: Talk, directory: Path, runs: list[bool]) -> None:
    said = talk.say(
        "EXPORT INTO CSV 'late' WITH chunk_rows = 5000 "
        "FROM SELECT 1 / (20000 - id), word FROM long WHERE word <> 'b'"
    )
    assert (said.sqlstate, said.message) == ("22012", "division by zero")
    assert not files(directory, "late")
    assert runs == [False, True]


def test_a_detached_export_tells_its_job_and_goes_on(node: Node, talk: Talk, directory: Path) -> None:
    said = talk.say("EXPORT INTO CSV 'detached' WITH detached, header FROM TABLE t")
    assert (said.tag, said.columns) == ("EXPORT", ("job_id",))
    ((id,),) = said.rows
    assert not talk.say(f"SHOW JOB WHEN COMPLETE {id}").sqlstate
    ((name, data),) = files(directory, "detached").items()
    assert name.startswith(f"t-{id}-") and data.count(b"\n") == ROWS + 1


def test_a_value_that_parquet_cannot_hold_is_an_error(talk: Talk, directory: Path) -> None:
    talk.say("CREATE TABLE odd (id int PRIMARY KEY, a numeric(10, 2))")
    talk.say("INSERT INTO odd VALUES (1, 'NaN')")
    said = talk.say("EXPORT INTO PARQUET 'odd_parquet' FROM TABLE odd")
    assert said.sqlstate == "22003"
    assert not files(directory, "odd_parquet")
    assert exported(directory, talk.say("EXPORT INTO CSV 'odd_csv' FROM TABLE odd"), "odd_csv") == b"1,NaN\n"


def test_a_job_shows_no_secrets_and_how_far_it_came(talk: Talk) -> None:
    talk.say("EXPORT INTO CSV 'told' FROM TABLE t")
    said = talk.say(
        "SELECT description, status, running_status, fraction_completed FROM tenure_internal.jobs "
        "WHERE job_type = 'export' AND description LIKE '%told%'"
    )
    assert said.rows == (("EXPORT INTO CSV 'told' FROM t", "succeeded", f"{ROWS} rows in 1 files", "1"),)


def test_a_canceled_job_takes_its_files_away(
    node: Node, talk: Talk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 10)
    monkeypatch.setattr(scan, "CUT_ROWS", 10)
    kept = export_job.export_range

    def export_some(task: export_job.ExportTask, attempt: object) -> object:
        if task.number == 2:
            assert len(files(directory, "canceled")) == 2
            node.store.transact(lambda txn: node.jobs.request_cancel(txn, _newest(node)))
        return kept(task, attempt)  # type: ignore[arg-type]

    monkeypatch.setattr(export_job, "export_range", export_some)
    assert talk.say("EXPORT INTO CSV 'canceled' FROM TABLE t").sqlstate == "57014"
    assert not files(directory, "canceled")


def test_a_run_that_does_not_hear_of_the_cancel_takes_away_what_it_writes_after_it(
    node: Node, talk: Talk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 10)
    monkeypatch.setattr(scan, "CUT_ROWS", 10)
    kept, left = export_job.export_range, []

    def export_late(task: export_job.ExportTask, attempt: object) -> object:
        if task.number == 2:
            _cancel_elsewhere(node, _newest(node))
            left.append(len(files(directory, "unheard")))
        return kept(task, attempt)  # type: ignore[arg-type]

    monkeypatch.setattr(export_job, "export_range", export_late)
    assert talk.say("EXPORT INTO CSV 'unheard' FROM TABLE t").sqlstate == "57014"
    await_true(node.runner.is_idle)
    assert left == [0]
    assert not files(directory, "unheard")


def _cancel_elsewhere(node: Node, id: int) -> None:
    """As another process would: the job has ended, and the run that was under way does not know."""
    jobs, store, session = node.jobs, node.store, node.liveness.session().id
    store.transact(lambda txn: jobs.request_cancel(txn, id))
    fence = store.transact(lambda txn: jobs.claim(txn, id, session))
    assert fence is not None and node.lake is not None
    job, progress = jobs.get(store.snapshot(), id), jobs.progress(store.snapshot(), id)
    assert job is not None
    run = Run(store, jobs, job, progress, fence)
    reverting = store.transact(lambda txn: jobs.step(txn, run.fence, JobState.REVERTING))
    assert reverting is not None
    run.fence = reverting
    export_job.Export(node.lake, node.locations, run).revert()
    store.transact(lambda txn: jobs.step(txn, run.fence, JobState.CANCELED))


def _query_by_hand(node: Node, location: str) -> Job:
    """The job of an export that only the test runs."""
    store, jobs = node.store, node.jobs
    writing = Writing(CSV, (OutColumn("a", TypeRef("int8")),))
    payload = pack(ExportPayload(location, writing, store.snapshot().at, "query", query="SELECT 1"))
    job = store.transact(lambda txn: jobs.create(txn, kind=KIND, payload=payload, needs=["what nobody has"]))
    node.runner.reserve(job.id)  # to revert it, nothing is needed
    return job


def test_a_query_that_does_not_hear_of_the_cancel_takes_away_what_it_has_written(
    node: Node, directory: Path
) -> None:
    job = _query_by_hand(node, "unheard query")
    fence = node.store.transact(lambda txn: node.jobs.claim(txn, job.id, node.liveness.session().id))
    assert fence is not None and node.lake is not None
    run = Run(node.store, node.jobs, job, JobProgress(job.id), fence)

    def rows(*_: object) -> Iterator[Rows]:
        _cancel_elsewhere(node, job.id)
        yield [(1,)]

    with pytest.raises(FenceLost):
        export_job.Export(node.lake, node.locations, run).run(rows)
    assert not files(directory, "unheard query")


def test_a_run_of_a_query_that_comes_late_leaves_files_of_later_ones(node: Node, directory: Path) -> None:
    store, jobs = node.store, node.jobs
    job = _query_by_hand(node, "later")
    place = directory / "files" / "later"
    place.mkdir()
    for number in (1, 3):
        (place / f"query-{job.id}-{number}.0.csv").touch()
    for _ in range(2):
        fence = store.transact(lambda txn: jobs.claim(txn, job.id, node.liveness.session().id))
    assert fence is not None and node.lake is not None
    run = Run(store, jobs, job, JobProgress(job.id, data=pack(ExportProgress())), fence)
    export_job.Export(node.lake, node.locations, run).run(lambda payload, check, by_rows: iter([[(1,)]]))
    store.transact(lambda txn: jobs.step(txn, run.fence, JobState.SUCCEEDED))
    found = sorted(path.name for path in place.glob("*.csv"))
    assert found == [f"query-{job.id}-{number}.0.csv" for number in (2, 3)]


def test_what_a_killed_export_was_writing_goes_after_a_day(node: Node, directory: Path) -> None:
    assert node.lake is not None
    young, old = (directory / "files" / ".unfinished" / name for name in ("young", "old"))
    young.parent.mkdir(exist_ok=True)
    for path in (young, old):
        path.touch()
    os.utime(old, times=(0, 0))
    Upkeep(node.lake, node.locations).delete_strays()
    assert young.exists() and not old.exists()


def _newest(node: Node) -> int:
    return max(control.id for control in node.jobs.open(node.store.snapshot()) if control.kind == "export")


def test_a_run_that_comes_after_another_finds_its_files_and_leaves_them(
    node: Node, talk: Talk, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "TASK_ROWS", 10)
    monkeypatch.setattr(scan, "CUT_ROWS", 10)
    kept, failures = export_job.export_range, [1]

    def fail_once(task: export_job.ExportTask, attempt: object) -> object:
        made = kept(task, attempt)  # type: ignore[arg-type]
        if task.number == 1 and failures:
            failures.pop()
            raise StoreError("the connection broke")
        return made

    monkeypatch.setattr(export_job, "export_range", fail_once)
    said = talk.say("EXPORT INTO CSV 'again' FROM TABLE t")
    lines = exported(directory, said, "again").decode().splitlines()
    assert [line.partition(",")[0] for line in lines] == [str(number) for number in range(1, ROWS + 1)]
    control = node.jobs.control(node.store.snapshot(), int(str(said.rows[0][0]).split("-")[1]))
    assert control is not None and control.state is JobState.SUCCEEDED and control.run > 1
    job = node.jobs.get(node.store.begin(), control.id)
    assert job is not None and unpack(job.payload, ExportPayload).name == "t"
