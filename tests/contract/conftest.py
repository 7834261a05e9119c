"""The engines and file systems that keep their contracts; each test gets a fresh one."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from tenure.base.env import SystemEnv
from tenure.storage.engine import Engine
from tenure.storage.files import Files, open_files
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import SqliteEngine
from tests.contract.engine_client import Client
from tests.postgres_server import Server, drop_schema

OpenEngine = Callable[[], Engine]


@pytest.fixture(params=["sqlite_file", "sqlite_memory", "postgres"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "sqlite_memory":
        memory = SqliteEngine(":memory:", SystemEnv())
        yield memory
        memory.close()
    else:
        open_engine: OpenEngine = request.getfixturevalue(f"open_{request.param}")
        yield open_engine()


@pytest.fixture(params=["sqlite_file", "postgres"])
def open_engine(request: pytest.FixtureRequest) -> OpenEngine:
    """Opens one store as often as asked, as several processes would."""
    opener: OpenEngine = request.getfixturevalue(f"open_{request.param}")
    return opener


@pytest.fixture
def open_sqlite_file(tmp_path: Path) -> Iterator[OpenEngine]:
    opened: list[Engine] = []

    def open_one() -> Engine:
        opened.append(SqliteEngine(str(tmp_path / "store"), SystemEnv()))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


_schemas = count()


@pytest.fixture
def open_postgres(postgres: Server) -> Iterator[OpenEngine]:
    schema = f"tenure_{uuid4().hex[:12]}_{next(_schemas)}"
    opened: list[Engine] = []

    def open_one() -> Engine:
        opened.append(PostgresEngine(postgres.dsn, SystemEnv(), schema=schema))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()
    drop_schema(postgres, schema)


@pytest.fixture
def client(engine: Engine) -> Client:
    return Client(engine)


@pytest.fixture(params=["directory", "bucket"])
def lake_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "directory":
        return str(tmp_path / "lake")
    address: str = request.getfixturevalue("bucket_address")
    return address


@pytest.fixture
def files(lake_address: str) -> Files:
    return open_files(lake_address)
