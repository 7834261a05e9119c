"""An object store that answers nothing: statements end when they must, and all goes on when it comes back."""

from collections.abc import Iterator
from threading import Timer
from time import monotonic

import psycopg
import pytest

from tests import s3_server
from tests.s3_server import S3Server
from tests.unit.bulk.test_object_store import InBucket, clean

ROWS = 20_000
ENDS_SECONDS_MAX = 0.3 + 5.0
"""A time-out, or a cancel, comes after 0.3 s and is heeded within a second on a quiet machine. A statement
that did not heed it would wait for the answer of the object store, for 20 s and longer."""

QUERY, SELECT, UPDATE, REFERENCE = "a query of DuckDB's", "a lookup", "an update", "a foreign key"
IMPORT, EXPORT = "an import", "an export"
KINDS = [QUERY, SELECT, UPDATE, REFERENCE, IMPORT, EXPORT]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server.stoppable() as server:
        yield server


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, s3: S3Server) -> Iterator[InBucket]:
    """Its rows are in the bucket alone."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")  # nothing is asked beyond loopback
        s3_server.make_bucket(s3.endpoint, "bucket")
        lake = f"s3://bucket/lake?AWS_REGION=us-east-1&AWS_ENDPOINT={s3.endpoint}"
        served = InBucket(tmp_path_factory.mktemp("node"), lake, s3.endpoint)
        served.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
        served.run(f"INSERT INTO t SELECT n, 0 FROM generate_series(1, {ROWS}) AS n")
        served.run("CREATE TABLE lines (id int PRIMARY KEY, t int REFERENCES t)")
        served.put("in.csv", b"1,2\n")
        served.flush()
        clean(served)
        yield served
        served.close()


@pytest.fixture
def served(node: InBucket) -> InBucket:
    """Nothing of what is in the bucket is held in memory."""
    for base in node.lake.bases.bases():
        base.groups.forget()
    node.run("RESET statement_timeout")
    return node


def _statement(served: InBucket, kind: str) -> str:
    return {
        QUERY: "SELECT sum(v), count(*) FROM t",
        SELECT: "SELECT v FROM t WHERE id = 3",
        UPDATE: "UPDATE t SET v = 1 WHERE id = 3",
        REFERENCE: "INSERT INTO lines VALUES (1, 3)",
        IMPORT: f"IMPORT INTO t CSV DATA ('{served.location('in*')}')",
        EXPORT: f"EXPORT INTO CSV '{served.location('out')}' FROM TABLE t",
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_ends_when_its_time_is_up(served: InBucket, s3: S3Server, kind: str) -> None:
    statement = _statement(served, kind)
    served.run("SET statement_timeout = '300ms'")
    with s3.hanging():
        began = monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled, match="timeout"):
            served.run(statement)
        assert monotonic() - began < ENDS_SECONDS_MAX
    served.run("RESET statement_timeout")
    assert served.run("SELECT count(*) FROM t") == [(ROWS,)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_can_be_canceled(served: InBucket, s3: S3Server, kind: str) -> None:
    statement = _statement(served, kind)
    with s3.hanging():
        cancel = Timer(0.3, served.root.cancel_safe)
        cancel.start()
        began = monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            served.run(statement)
        assert monotonic() - began < ENDS_SECONDS_MAX
        cancel.join()
    assert served.run("SELECT count(*) FROM t") == [(ROWS,)]


def test_a_canceled_export_says_that_its_job_is_not_at_its_end(served: InBucket, s3: S3Server) -> None:
    served.run("SET statement_timeout = '300ms'")
    with s3.hanging(), pytest.raises(psycopg.errors.QueryCanceled) as ended:
        served.run(_statement(served, EXPORT))
    assert "is still taking back what it did" in (ended.value.diag.message_detail or "")
