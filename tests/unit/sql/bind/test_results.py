"""What bound plans give, compared with PostgreSQL: correlation, LATERAL, grouping, windows, recursion."""

from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.postgres_server import Server
from tests.unit.sql.access.test_two_sides import comparable
from tests.unit.sql.bind.results import MEANINGS
from tests.unit.sql.two_sides import TwoSides

KEYS = {"a": "id", "b": "id", "p": "k, m", "e": "id"}
"""Primary keys, which decide what may stand beside GROUP BY."""


@pytest.fixture(scope="module")
def keyed(postgres: Server) -> Iterator[TwoSides]:
    env = ManualEnv()
    engine = SqliteEngine(MEMORY, env)
    two_sides = TwoSides(Store(engine, env), postgres)
    for name, columns in KEYS.items():
        two_sides.connection.execute(f"ALTER TABLE pg_temp.{name} ADD PRIMARY KEY ({columns})")
    yield two_sides
    two_sides.close()
    engine.close()


@pytest.mark.parametrize("statement", MEANINGS.strip().splitlines())
def test_a_bound_plan_gives_what_postgres_gives(keyed: TwoSides, statement: str) -> None:
    theirs = comparable(statement, keyed.theirs(statement))
    assert not isinstance(theirs, str) or theirs == "21000", f"PostgreSQL refuses it: {theirs}"
    assert comparable(statement, keyed.ours(statement, is_planned=False)) == theirs
