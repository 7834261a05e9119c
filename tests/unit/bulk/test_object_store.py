"""The lake in an object store, and files that statements read from one: the same answers, no keys told."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyarrow import fs

from tenure.base.errors import CorruptData, InputOutput, TenureError
from tenure.pipeline.tasks import Tasks
from tenure.storage.files import Files, open_files
from tenure.table.lake.checked_files import CheckedFiles
from tenure.table.lake.damage import damage_in
from tests.system_tables import described
from tests.unit.bulk.flushing import FlushingNode
from tests.unit.lake_nodes import lake_options

CANARY = "canary-1f3a"


@pytest.fixture
def served(tmp_path: Path, bucket_address: str, s3_endpoint: str) -> Iterator[FlushingNode]:
    served = InBucket(tmp_path, bucket_address, s3_endpoint)
    served.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    served.run("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 500) g")
    yield served
    served.close()


class InBucket(FlushingNode):
    """A node whose lake is in a bucket, and that lets statements name the same store."""

    def __init__(
        self, directory: Path, lake: str, endpoint: str, *, spark: Callable[[], Tasks] | None = None
    ) -> None:
        super().__init__(lake_options(directory, lake=lake, endpoints=(endpoint,), spark=spark))
        self.bucket = lake.removeprefix("s3://").partition("/")[0]
        self.endpoint = endpoint

    def location(self, name: str, secret: str = CANARY) -> str:
        keys = f"AWS_ACCESS_KEY_ID=key&AWS_SECRET_ACCESS_KEY={secret}&AWS_REGION=us-east-1"
        return f"s3://{self.bucket}/in/{name}?{keys}&AWS_ENDPOINT={self.endpoint}"

    def put(self, name: str, data: bytes) -> str:
        """A file beside the lake, and the location that leads to it."""
        host = self.endpoint.removeprefix("http://")
        store = fs.S3FileSystem(region="us-east-1", scheme="http", endpoint_override=host)
        with store.open_output_stream(f"{self.bucket}/in/{name}", compression=None) as output:
            output.write(data)
        return self.location(name)

    def written(self, directory: str) -> list[bytes]:
        """What files beside the lake contain, in the order of their names."""
        host = self.endpoint.removeprefix("http://")
        store = fs.S3FileSystem(region="us-east-1", scheme="http", endpoint_override=host)
        found = store.get_file_info(fs.FileSelector(f"{self.bucket}/in/{directory}"))
        data = []
        for each in sorted(found, key=lambda each: each.path):
            with store.open_input_file(each.path) as file:
                data.append(bytes(file.read()))
        return data

    def told(self) -> str:
        """All that system tables say to the one who may see everything."""
        return repr([self.run(f"SELECT * FROM {each.schema}.{each.name}") for each in described()])


def clean(served: FlushingNode) -> None:
    served.run("SET CLUSTER SETTING lake.clean_after = '0s'")
    ((id,),) = served.run("SELECT 't'::regclass::oid::int8")
    span = served.node.store.keyspace.index_span(id, 1)
    served.until(lambda: served.node.store.engine.spread(*span, 0, 1000).keys == 0)


def test_rows_are_read_from_a_bucket_once_they_have_left_the_store(served: InBucket) -> None:
    served.run("UPDATE t SET v = 'new' WHERE id <= 10")
    served.flush()
    clean(served)
    assert served.run("SELECT v FROM t WHERE id = 7") == [("new",)]
    assert served.run("SELECT v FROM t WHERE id = 501") == []
    assert served.run("SELECT id FROM t WHERE id BETWEEN 9 AND 12 ORDER BY id") == [(9,), (10,), (11,), (12,)]
    assert served.run("SELECT count(*), count(*) FILTER (WHERE v = 'new') FROM t") == [(500, 10)]


def test_aggregates_take_the_base_from_a_bucket_and_what_is_newer_from_the_store(served: InBucket) -> None:
    served.flush()
    clean(served)
    served.run("UPDATE t SET v = 'new' WHERE id <= 10")
    served.run("DELETE FROM t WHERE id > 400")
    query = "SELECT v = 'new' AS is_new, count(*), sum(id), max(v) FROM t GROUP BY 1 ORDER BY 1"
    assert served.run(query) == [(False, 390, 80145, "v99"), (True, 10, 55, "new")]


def test_rows_of_a_bucket_are_written_and_flushed_again(served: InBucket) -> None:
    served.flush()
    clean(served)
    served.run("DELETE FROM t WHERE id > 490")
    served.run("UPDATE t SET v = 'x' WHERE id = 5")
    served.flush()
    assert served.run("SELECT count(*), max(id) FROM t") == [(490, 490)]
    assert served.run("SELECT v FROM t WHERE id = 5") == [("x",)]


def test_a_node_that_starts_again_finds_its_lake_in_the_bucket(
    served: InBucket, tmp_path: Path, bucket_address: str
) -> None:
    served.flush()
    clean(served)
    other = InBucket(tmp_path, bucket_address, served.endpoint)
    try:
        assert other.run("SELECT count(*), min(v) FROM t") == [(500, "v1")]
        assert other.run("SELECT v FROM t WHERE id = 300") == [("v300",)]
    finally:
        other.close()


def test_files_of_a_bucket_are_deleted_after_newer_ones_took_their_place(served: InBucket) -> None:
    served.flush()
    former = served.files()
    served.run("UPDATE t SET v = 'x'")
    served.flush()
    assert former < served.files()
    served.run("SET CLUSTER SETTING lake.file_grace = '0s'")
    served.until(lambda: not (former & served.files()))
    assert served.run("SELECT count(*) FROM t WHERE v = 'x'") == [(500,)]


def test_what_nobody_names_is_deleted_from_a_bucket(served: InBucket) -> None:
    from tenure.bulk.upkeep import Upkeep

    job = served.flush()
    tenant = served.lake.place.tenant
    stray = f"{tenant}/104/1/j{job}-r1-0-abc-live-0.parquet"
    with served.lake.files.create(stray) as output:
        output.write(b"left over")
    assert Upkeep(served.lake).delete_strays() == [stray]
    assert stray not in served.files() and served.run("SELECT count(*) FROM t") == [(500,)]


def test_a_file_that_goes_while_it_is_read_is_missing(served: InBucket) -> None:
    served.flush()
    (file,) = served.manifest().live
    files = _Fleeting(served.lake.files, file.name)
    with pytest.raises(CorruptData, match=f'file "{file.name}" of table "t", index "t_pkey" is missing'):
        CheckedFiles(files, damage_in(served.node.store)).footer(file)  # type: ignore[arg-type]


class _Fleeting:
    """Files of which one is deleted as soon as it is open."""

    def __init__(self, files: Files, name: str) -> None:
        self.arrow = self
        self.reading, self.exists = files.reading, files.exists
        self._files, self._name = files, name

    def open_input_file(self, name: str) -> Any:
        source = self._files.arrow.open_input_file(name)
        self._files.delete([self._name])
        return source


def test_a_lake_that_does_not_answer_is_an_error_of_the_store(served: InBucket) -> None:
    served.flush()
    files = open_files("s3://bucket/x?AWS_REGION=us-east-1&AWS_ENDPOINT=http://127.0.0.1:9")
    with pytest.raises(InputOutput, match="the object store answers NETWORK_CONNECTION"):
        CheckedFiles(files, damage_in(served.node.store)).footer(served.manifest().live[0])


def test_a_lost_file_of_a_bucket_is_told_as_one_of_a_directory(served: InBucket) -> None:
    served.flush()
    clean(served)
    served.lake.files.delete(served.files())
    for query in ("SELECT v FROM t WHERE id = 7", "SELECT v, count(*) FROM t GROUP BY v"):
        with pytest.raises(psycopg.Error, match=r'index "t_pkey" is missing'):
            served.run(query)


def test_files_of_a_bucket_are_imported_into_a_lake_in_a_bucket(served: InBucket) -> None:
    served.put("a.csv", b"1001,one\n1002,two\n")
    served.put("b.csv", b"1003,three\n")
    ((_, rows, *_),) = served.run(f"IMPORT INTO t CSV DATA ('{served.location('*.csv')}')")
    assert rows == 3
    assert served.run("SELECT v FROM t WHERE id >= 1000 ORDER BY id") == [("one",), ("two",), ("three",)]
    assert served.run("SELECT count(*) FROM t") == [(503,)]


def test_rejects_of_an_import_are_written_to_a_bucket(served: InBucket) -> None:
    location = served.put("a.csv", b"1001,one\nno number,two\n")
    rejects = served.location("bad", CANARY)
    served.run(f"IMPORT INTO t CSV DATA ('{location}') WITH max_bad_rows = '1', rejects = '{rejects}'")
    assert b"no number" in _written(served, "bad")


def _written(served: InBucket, directory: str) -> bytes:
    (data,) = served.written(directory)
    return data


@pytest.mark.parametrize("source", ["TABLE t", "SELECT * FROM t WHERE id <> 1 ORDER BY id"])
def test_rows_of_a_bucket_are_exported_to_a_bucket(served: InBucket, source: str) -> None:
    served.flush()
    clean(served)
    served.run("DELETE FROM t WHERE id = 1")
    served.run(f"EXPORT INTO CSV '{served.location('out')}' FROM {source}")
    assert _written(served, "out").splitlines()[:2] == [b"2,v2", b"3,v3"]


@pytest.mark.invariant("S24-jobs")
def test_an_export_tells_nobody_the_keys_of_its_location(
    served: InBucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    location = served.location("out")
    told = repr(served.run(f"EXPORT INTO CSV '{location}' FROM TABLE t"))
    told += repr(served.run(f"EXPORT INTO CSV '{location}' FROM SELECT 1"))
    with pytest.raises(psycopg.Error) as failed:
        served.run(f"EXPORT INTO CSV '{location}' FROM SELECT 1 / (id - 1) FROM t")
    told += repr(served.run("SHOW JOBS")) + served.told() + caplog.text + repr(vars(failed.value.diag))
    assert "/out" in told and CANARY not in told
    assert not any(
        CANARY.encode() in path.read_bytes() for path in tmp_path.glob("store.db*") if path.is_file()
    )


@pytest.mark.invariant("S24-jobs")
def test_an_import_tells_nobody_the_keys_of_its_location(
    served: InBucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    location = served.put("a.csv", b"1001,one\nno number,two\n")
    with pytest.raises(psycopg.Error) as failed:
        served.run(f"IMPORT INTO t CSV DATA ('{location}')")
    with served.connect() as other, pytest.raises(psycopg.Error) as missing:
        other.execute(f"IMPORT INTO t CSV DATA ('{served.location('none.csv')}')")
    with served.connect() as other, pytest.raises(psycopg.Error) as explained:
        other.execute(f"EXPLAIN IMPORT INTO t CSV DATA ('{location}')")
    rejects = served.location("bad")
    served.run(f"IMPORT INTO t CSV DATA ('{location}') WITH max_bad_rows = '1', rejects = '{rejects}'")
    errors = repr([vars(each.value.diag) for each in (failed, missing, explained)]) + str(failed.value)
    shown = repr(served.run("SHOW JOBS")) + served.told() + errors + caplog.text
    assert "a.csv" in shown and CANARY not in shown
    written = [path.read_bytes() for path in tmp_path.glob("store.db*") if path.is_file()]
    assert written and not any(CANARY.encode() in data for data in written)


@pytest.mark.invariant("S24")
def test_a_statement_that_runs_shows_no_keys(served: InBucket) -> None:
    location = served.put("a.csv", b"1001,one\n")
    with served.connect() as other:
        other.execute(f"IMPORT INTO t CSV DATA ('{location}')")
        statements = repr(served.run("SELECT statement FROM tenure_internal.sessions"))
    assert "IMPORT INTO t" in statements and CANARY not in statements


def test_an_endpoint_that_the_operator_does_not_allow_is_refused(served: InBucket) -> None:
    location = served.location("a.csv").replace(served.endpoint, "http://127.0.0.1:9")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"endpoint .* is not allowed"):
        served.run(f"IMPORT INTO t CSV DATA ('{location}')")


@pytest.mark.parametrize("address", ["s3://no-such-bucket/x", "s3://B/x"])
def test_a_lake_that_cannot_be_had_is_an_error_without_its_keys(address: str, s3_endpoint: str) -> None:
    keys = f"AWS_ACCESS_KEY_ID=key&AWS_SECRET_ACCESS_KEY={CANARY}&AWS_ENDPOINT={s3_endpoint}"
    with pytest.raises(TenureError) as refused, open_files(f"{address}?{keys}").create("1/a") as output:
        output.write(b"x")
    assert CANARY not in str(refused.value)


def test_the_place_of_a_lake_shows_no_keys(bucket_address: str) -> None:
    files = open_files(f"{bucket_address}&AWS_ACCESS_KEY_ID=key&AWS_SECRET_ACCESS_KEY={CANARY}")
    assert CANARY not in files.address and CANARY not in repr(files.credentials)


def test_a_damaged_file_of_a_bucket_is_told_as_one_of_a_directory(served: InBucket) -> None:
    served.flush()
    clean(served)
    (file,) = served.manifest().live
    chunks = served.lake.bases.checked.footer(file).chunks
    (number,) = chunks.numbers([0], ["c2"])
    data = bytearray(served.lake.files.read(file.name, bytes_max=file.size))
    data[chunks.starts[number] + chunks.sizes[number] // 2] ^= 1
    served.lake.files.delete([file.name])
    with served.lake.files.create(file.name) as output:
        output.write(data)
    served.lake.bases.checked.forget()
    for query in ("SELECT v FROM t WHERE id = 7", "SELECT v, count(*) FROM t GROUP BY v"):
        with pytest.raises(
            psycopg.errors.DataCorrupted, match=r'"t_pkey" has other bytes .* column "v", row'
        ):
            served.run(query)
