"""Interleavings of transactions, as transcripts: see `transcript` for how they are written.

UPDATE=1 writes what happened into the files instead of comparing.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from tenure.base.env import ManualEnv, SystemEnv
from tenure.storage.engine import Engine
from tenure.storage.postgres.postgres_engine import PostgresEngine
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.postgres_server import Server, drop_schema
from tests.scripts.transcript import Case, play, read_cases

FOLDER = Path(__file__).resolve().parent
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]

_tenants = count(1)
"""Cases share an engine and are apart as tenants are."""


@pytest.fixture(scope="module")
def sqlite_memory() -> Iterator[Engine]:
    engine = SqliteEngine(MEMORY, ManualEnv())
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = SqliteEngine(str(tmp_path_factory.mktemp("scripts") / "store.db"), ManualEnv())
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def postgres_engine(postgres: Server) -> Iterator[Engine]:
    schema = f"tenure_{uuid4().hex[:12]}"
    engine = PostgresEngine(postgres.dsn, SystemEnv(), schema=schema)
    yield engine
    engine.close()
    drop_schema(postgres, schema)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("engine_name", ["sqlite_memory", "sqlite_file", "postgres_engine"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}: {case.name}")
@pytest.mark.invariant("I2")
@pytest.mark.invariant("I4")
@pytest.mark.invariant("I5")
@pytest.mark.invariant("I7")
@pytest.mark.invariant("I8")
def test_what_happens_is_what_is_written(
    case: Case, engine_name: str, nodes: int, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(engine_name)
    played = play(case, engine, nodes=nodes, tenant=next(_tenants))
    if os.environ.get("UPDATE") and (engine_name, nodes) == ("sqlite_memory", 1):
        rewrite(case, played)
    else:
        assert played == list(case.lines)


def rewrite(case: Case, played: list[str]) -> None:
    lines = case.path.read_text(encoding="utf-8").splitlines()
    lines[case.first : case.first + len(played)] = played
    case.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
