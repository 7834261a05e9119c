"""Products of decimals that are declared wider than what they hold are DuckDB's, and exact in any case."""

from collections.abc import Iterator

import pytest

from tenure.node import Node
from tenure.sql.duck.duck_types import decimal
from tenure.sql.duck.numbers import cast_to
from tests.unit.sql.sessions import Talk

REVENUE = "SELECT sum(price * (1 - discount) * (1 + tax)) FROM lines"


@pytest.fixture(scope="module")
def talk(node: Node) -> Iterator[Talk]:
    talk = Talk(node)
    numbers = "price numeric(15, 2), discount numeric(15, 2), tax numeric(15, 2)"
    talk.say(f"CREATE TABLE lines (id int PRIMARY KEY, {numbers})")
    talk.say(
        "INSERT INTO lines SELECT n, n, (n % 10) / 100.0, (n % 8) / 100.0 FROM generate_series(1, 3000) n"
    )
    yield talk
    talk.close()


def answered(talk: Talk, executor: str) -> object:
    talk.say(f"SET tenure.executor = '{executor}'")
    said = talk.say(REVENUE)
    assert not said.sqlstate
    return said.rows


def test_a_product_of_more_than_38_declared_digits_runs_in_duckdb(talk: Talk) -> None:
    plan = [line for (line,) in talk.say(f"EXPLAIN {REVENUE}").rows]
    assert any("in DuckDB" in (line or "") for line in plan)
    assert answered(talk, "duckdb") == answered(talk, "rows")


def test_values_that_are_that_wide_are_answered_exactly_too(talk: Talk) -> None:
    widest = "9999999999999.99"
    talk.say(f"INSERT INTO lines VALUES (-1, {widest}, {widest}, {widest})")
    assert answered(talk, "duckdb") == answered(talk, "rows")
    assert answered(talk, "auto") == answered(talk, "rows")


@pytest.mark.parametrize(
    ("sql", "cast"),
    [
        ("CAST('1' AS DECIMAL(1,0))", "CAST('1' AS DECIMAL(15,2))"),
        ("CAST('-0.05' AS DECIMAL(2,2))", "CAST('-0.05' AS DECIMAL(15,2))"),
        ("CAST('0.055' AS DECIMAL(3,3))", "CAST(CAST('0.055' AS DECIMAL(3,3)) AS DECIMAL(15,2))"),
        ("CAST(t1.c2 AS DECIMAL(3,1))", "CAST(CAST(t1.c2 AS DECIMAL(3,1)) AS DECIMAL(15,2))"),
    ],
)
def test_a_number_that_keeps_its_digits_is_cast_once(sql: str, cast: str) -> None:
    assert cast_to(sql, decimal(15, 2)) == cast
