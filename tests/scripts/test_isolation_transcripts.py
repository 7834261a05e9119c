"""READ COMMITTED as PostgreSQL documents it: see `isolation_transcript`.

Each case is played on a node over each engine, and on PostgreSQL itself. UPDATE=1 writes what happened on a
node into the files instead of comparing.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.postgres_server import Server, fresh_database
from tests.scripts.isolation_transcript import play
from tests.scripts.test_transcripts import rewrite
from tests.scripts.transcript import Case, read_cases
from tests.unit.sql.served import Served, serving

FOLDER = Path(__file__).resolve().parent / "isolation"
CASES = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]

_schemas = count(1)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("isolation")) as served:
        yield served


@pytest.fixture(scope="module")
def over_postgres(tmp_path_factory: pytest.TempPathFactory, postgres: Server) -> Iterator[Served]:
    with (
        fresh_database(postgres) as store,
        serving(tmp_path_factory.mktemp("isolation"), store=store) as served,
    ):
        yield served


@pytest.mark.parametrize("where", ["sqlite", "over_postgres"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}: {case.name}")
@pytest.mark.invariant("statement-proofs")
def test_what_happens_is_what_is_written(case: Case, where: str, request: pytest.FixtureRequest) -> None:
    served: Served = request.getfixturevalue(where)
    played = play(case, served.connect, schema=f"s{next(_schemas)}", is_postgres=False)
    if os.environ.get("UPDATE") and where == "sqlite":
        rewrite(case, played)
    else:
        assert played == list(case.lines)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}: {case.name}")
def test_postgres_does_what_is_written(case: Case, postgres: Server) -> None:
    def connect() -> "psycopg.Connection[Any]":
        return psycopg.connect(postgres.dsn, autocommit=True)

    played = play(case, connect, schema=f"isolation_{uuid4().hex[:12]}", is_postgres=True)
    assert played == list(case.lines)
