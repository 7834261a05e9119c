"""Spark over a lake in an object store: rows come from a bucket, are kept in one, and go to one."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tenure.cluster.jobs.job_states import JobState
from tenure.pipeline.tasks import SPARK
from tenure.processes import LAKE_VARIABLE
from tests.security.node_process import running
from tests.spark_sessions import SparkSessions
from tests.unit.bulk.test_object_store import CANARY, InBucket, clean

ROWS = 12_000
FILES = 4


@pytest.fixture
def served(
    tmp_path: Path, bucket_address: str, s3_endpoint: str, spark_sessions: SparkSessions
) -> Iterator[InBucket]:
    keys = f"AWS_ACCESS_KEY_ID=key&AWS_SECRET_ACCESS_KEY={CANARY}"
    served = InBucket(tmp_path, f"{bucket_address}&{keys}", s3_endpoint, spark=spark_sessions.tasks)
    served.run("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
    served.run("CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE, n int)")
    served.run("CREATE INDEX by_n ON t (n)")
    yield served
    served.close()


def _put_rows(served: InBucket, first: int = 0) -> str:
    for number in range(FILES):
        ids = range(first + number, first + ROWS, FILES)
        served.put(f"rows-{first}-{number}.csv", "".join(f"{id},a{id},{id % 7}\n" for id in ids).encode())
    return served.location(f"rows-{first}-*.csv")


def _import(served: InBucket, first: int = 0) -> None:
    ((_, rows, entries, _, rejected),) = served.run(f"IMPORT INTO t CSV DATA ('{_put_rows(served, first)}')")
    assert (rows, entries, rejected) == (ROWS, 2 * ROWS, 0)


def _ran_on_spark(served: InBucket, kind: str) -> bool:
    """Whether the newest job of a kind did: it needs what only Spark has, and has succeeded."""
    newest = f"WHERE job_type = '{kind}' ORDER BY created DESC LIMIT 1"
    ((id,),) = served.run(f"SELECT job_id FROM tenure_internal.jobs {newest}")
    control = served.node.jobs.control(served.node.store.snapshot(), id)
    return control is not None and SPARK in control.needs and control.state is JobState.SUCCEEDED


def test_rows_of_a_bucket_are_imported_on_spark_and_read(served: InBucket) -> None:
    _import(served)
    assert _ran_on_spark(served, "import")
    assert served.run("SELECT a, n FROM t WHERE id = 11") == [("a11", 4)]
    assert served.run("SELECT id FROM t WHERE a = 'a4711'") == [(4711,)]
    assert served.run("SELECT id FROM t WHERE id BETWEEN 98 AND 101 ORDER BY id") == [
        (98,),
        (99,),
        (100,),
        (101,),
    ]
    served.run("SET tenure.executor = duckdb")
    assert served.run("SELECT count(*), sum(id) FROM t WHERE n < 7") == [(ROWS, ROWS * (ROWS - 1) // 2)]


def test_rows_are_flushed_to_a_bucket_on_spark(served: InBucket) -> None:
    _import(served)
    served.run("UPDATE t SET a = 'new' || id WHERE id < 500")
    served.run("DELETE FROM t WHERE id >= 11000")
    for index in (1, 2, 3):
        served.flush(index=index)
        assert _ran_on_spark(served, "flush")
    clean(served)
    for how in ("rows", "duckdb"):
        served.run(f"SET tenure.executor = {how}")
        found = served.run("SELECT count(*), count(*) FILTER (WHERE a LIKE 'new%'), max(id) FROM t")
        assert found == [(11_000, 500, 10_999)]
    assert served.run("SELECT id FROM t WHERE a = 'new42'") == [(42,)]
    assert served.run("SELECT id FROM t WHERE a = 'a42'") == []


def test_an_import_on_spark_that_meets_rows_of_the_bucket_changes_nothing(served: InBucket) -> None:
    _import(served)
    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        served.run(f"IMPORT INTO t CSV DATA ('{_put_rows(served, ROWS - 1)}')")
    assert "rows-11999-0.csv" in str(refused.value) and CANARY not in str(refused.value)
    assert served.run("SELECT count(*), max(id) FROM t") == [(ROWS, ROWS - 1)]
    _import(served, ROWS)
    assert served.run("SELECT count(*), max(id) FROM t") == [(2 * ROWS, 2 * ROWS - 1)]


def test_rows_of_a_bucket_are_exported_to_a_bucket_on_spark(served: InBucket) -> None:
    _import(served)
    served.run("DELETE FROM t WHERE id = 5")
    served.run(f"EXPORT INTO CSV '{served.location('out')}' FROM TABLE t")
    assert _ran_on_spark(served, "export")
    lines = b"".join(served.written("out")).splitlines()
    assert sorted(lines) == sorted(f"{id},a{id},{id % 7}".encode() for id in range(ROWS) if id != 5)
    told = served.told()
    assert "out" in told and CANARY not in told


def test_a_worker_that_a_node_starts_has_the_keys_of_the_lake_and_tells_nobody(
    tmp_path: Path, bucket_address: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / "tenure-data" / "files").mkdir(parents=True)
    (tmp_path / "tenure-data" / "files" / "a.csv").write_text("".join(f"{id},v{id}\n" for id in range(2_000)))
    lake = f"{bucket_address}&AWS_ACCESS_KEY_ID=key&AWS_SECRET_ACCESS_KEY={CANARY}"
    with running(tmp_path, "--insecure", environment={LAKE_VARIABLE: lake}) as node:
        with node.connect() as client:
            client.execute("SET CLUSTER SETTING pipeline.spark_min_rows = 0")
            client.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
            client.execute("IMPORT INTO t CSV DATA ('a.csv')")
            assert client.execute("SELECT count(*), max(v) FROM t").fetchall() == [(2_000, "v999")]
            assert client.execute("SELECT v FROM t WHERE id = 77").fetchall() == [("v77",)]
            jobs = client.execute("SELECT running_status FROM tenure_internal.jobs").fetchall()
        arguments = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert jobs == [("spark: 2000 rows",)]
    assert CANARY not in arguments
    assert CANARY not in node.log.read_text()
