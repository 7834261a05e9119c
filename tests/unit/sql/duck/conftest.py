"""A lake beside a store, on either engine, and DuckDB over both; queries by rows and by DuckDB."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tenure.sql.duck.offload import Duck
from tests.postgres_server import Server
from tests.unit.pipeline.lakes import Lake
from tests.unit.sql.duck.asked_tables import duck_table
from tests.unit.sql.duck.both_executors import BothExecutors


@pytest.fixture(params=["sqlite", "postgres"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "sqlite":
        lake = Lake(tmp_path, duck_table())
        yield lake
        lake.close()
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"lake_{uuid4().hex[:12]}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        lake = Lake(tmp_path, duck_table(), address=f"postgresql://postgres@127.0.0.1:{server.port}/{name}")
        yield lake
        lake.close()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def duck(lake: Lake) -> Iterator[Duck]:
    duck = Duck(lake.store, lake=lake.files)
    yield duck
    duck.close()


@pytest.fixture(scope="module")
def executors() -> Iterator[BothExecutors]:
    executors = BothExecutors()
    yield executors
    executors.close()
