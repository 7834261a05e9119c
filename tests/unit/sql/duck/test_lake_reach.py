"""DuckDB reaches the files of the lake and no others, in a directory and in a bucket."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from tenure.base.memory import lone_account
from tenure.sql.duck.duck_types import Value, shape_of
from tenure.sql.duck.offload import Duck
from tenure.sql.duck.rendering import Rendered
from tests import s3_server
from tests.unit.pipeline.lakes import Lake
from tests.unit.sql.duck.asked_tables import duck_table, insert_rows
from tests.unit.table.tables import B


def test_nothing_but_the_lake_is_reached(tmp_path: Path) -> None:
    lake = Lake(tmp_path, duck_table())
    duck = Duck(lake.store, lake=lake.files)
    outside = tmp_path / "outside.parquet"
    insert_rows(lake, 1)
    (file,) = lake.flush().live
    outside.write_bytes(Path(lake.files.duck_path(file.name)).read_bytes())
    engine, _ = duck._engine_and_columns()
    kind = lake.layout.columns[B].type
    for path, is_reached in ((lake.files.duck_path(file.name), True), (str(outside), False)):
        rendered = Rendered(
            f"SELECT c3 AS c0 FROM read_parquet('{path}')", (), {}, (Value("", kind, shape_of(kind)),)
        )
        assert (
            engine.run(rendered, dict, lambda: None, account=lone_account(1 << 30)) is not None
        ) == is_reached
    duck.close()
    lake.close()


class Shut:
    """DuckDB over a lake in a bucket, with files around it that it must not reach."""

    def __init__(self, directory: Path, address: str, endpoint: str) -> None:
        self.lake = Lake(directory, duck_table(), lake=address)
        self.duck = Duck(self.lake.store, lake=self.lake.files)
        self.bucket = address.removeprefix("s3://").partition("/")[0]
        self.endpoint = endpoint
        insert_rows(self.lake, 1)
        (self.file,) = self.lake.flush().live
        host = endpoint.removeprefix("http://")
        self.store = fs.S3FileSystem(region="us-east-1", scheme="http", endpoint_override=host)
        s3_server.make_bucket(endpoint, f"{self.bucket}-other")
        with self.lake.files.open_input(self.file.name) as file:
            data = file.read()
        (directory / "x.parquet").write_bytes(data)
        for path in ("some/x.parquet", "some/where-else/x.parquet", "x.parquet"):
            self._put(f"{self.bucket}/{path}", data)
        self._put(f"{self.bucket}-other/x.parquet", data)

    def _put(self, path: str, data: bytes) -> None:
        with self.store.open_output_stream(path, compression=None) as output:
            output.write(data)

    def answers(self, sql: str) -> bool:
        engine, _ = self.duck._engine_and_columns()
        kind = self.lake.layout.columns[B].type
        rendered = Rendered(sql, (), {}, (Value("", kind, shape_of(kind)),))
        return engine.run(rendered, dict, lambda: None, account=lone_account(1 << 30)) is not None

    def objects(self) -> dict[str, int]:
        """All that is in both buckets, and when it was changed."""
        buckets = (self.bucket, f"{self.bucket}-other")
        found = [
            each
            for name in buckets
            for each in self.store.get_file_info(fs.FileSelector(name, recursive=True))
        ]
        return {each.path: each.mtime_ns for each in found}

    def close(self) -> None:
        self.duck.close()
        self.lake.close()


@pytest.fixture
def shut(tmp_path: Path, bucket_address: str, s3_endpoint: str) -> Iterator[Shut]:
    shut = Shut(tmp_path, bucket_address, s3_endpoint)
    yield shut
    shut.close()


def test_nothing_but_the_lake_in_a_bucket_is_read(shut: Shut, tmp_path: Path) -> None:
    def reads(path: str) -> bool:
        return shut.answers(f"SELECT c3 AS c0 FROM read_parquet('{path}')")

    assert reads(shut.lake.files.duck_path(shut.file.name))
    root = shut.lake.files.duck_root
    for path in (
        f"{root}../x.parquet",
        f"{root}1/../../x.parquet",
        f"{root}../where-else/x.parquet",
        f"{root}../../x.parquet",
        f"{root}../../../{shut.bucket}-other/x.parquet",
        f"{root}%2e%2e/x.parquet",
        f"{root}./../x.parquet",
        f"{root}/x.parquet",
        f"{root}../*.parquet",
        f"s3://{shut.bucket}/x.parquet",
        f"{shut.endpoint}/{shut.bucket}/x.parquet",
        str(tmp_path / "x.parquet"),
        f"file://{tmp_path}/x.parquet",
        f"{root}{tmp_path}/x.parquet",
    ):
        assert not reads(path), path
    assert not shut.answers(f"SELECT file AS c0 FROM glob('{root}../*')")


def test_nothing_is_written_to_a_bucket(shut: Shut) -> None:
    before = shut.objects()
    root = shut.lake.files.duck_root
    for target in ("new.parquet", shut.file.name, "../new.parquet", "../x.parquet"):
        assert not shut.answers(f"COPY (SELECT 'x' AS c0) TO '{root}{target}'"), target
    assert not shut.answers(f"ATTACH '{root}db.duckdb'")
    assert shut.objects() == before
