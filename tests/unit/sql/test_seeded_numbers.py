"""Random numbers that setseed() makes repeatable: as PostgreSQL's."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres_server import Server
from tests.unit.sql.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("random")) as node:
        yield node


@pytest.mark.parametrize("seed", ["0.5", "-1", "1", "0", "0.123456789"])
def test_seeded_numbers_are_those_of_postgres(served: Served, postgres: Server, seed: str) -> None:
    statements = [
        f"SELECT setseed({seed}), random(), random(1, 100), random(1::int8, 9223372036854775807), random()",
        "SELECT random(5, 5), random(-2147483648, 2147483647), random()",
        "SELECT random(0, 3) FROM generate_series(1, 20)",
    ]
    with psycopg.connect(postgres.dsn, autocommit=True) as theirs:
        expected = [theirs.execute(each).fetchall() for each in statements]
    assert [served.rows(each) for each in statements] == expected


def test_numbers_without_a_seed_differ(served: Served) -> None:
    with served.connect() as one, served.connect() as other:
        assert one.execute("SELECT random()").fetchall() != other.execute("SELECT random()").fetchall()


@pytest.mark.parametrize("seed", ["1.5", "-1.1", "'NaN'"])
def test_a_seed_out_of_range_is_refused(served: Served, seed: str) -> None:
    with pytest.raises(psycopg.Error, match="is out of allowed range") as error:
        served.rows(f"SELECT setseed({seed})")
    assert error.value.sqlstate == "22023"
