"""Rows compared with the rows of a subquery by ANY and IN: right, and not once for each pair of rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.sql.served import Served, serving

ROWS = 5_000
"""Compared pair by pair these would take minutes."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(Path(tmp_path_factory.mktemp("rows"))) as served:
        served.tag("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
        served.tag("CREATE TABLE s (id int PRIMARY KEY, a int, b int)")
        numbers = f"generate_series(0, {ROWS - 1}) AS n"
        served.tag(f"INSERT INTO t SELECT n, n / 10, n % 10 FROM {numbers}")
        served.tag(f"INSERT INTO s SELECT n, n / 20, n % 7 FROM {numbers}")
        served.tag("SET statement_timeout = '30s'")
        yield served


T = [(n // 10, n % 10) for n in range(ROWS)]
S = [(n // 20, n % 7) for n in range(ROWS)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("(a, b) < ANY (SELECT a, b FROM s)", sum(row < max(S) for row in T)),
        ("(a, b) >= ALL (SELECT a, b FROM s)", sum(row >= max(S) for row in T)),
        ("(a, b) IN (SELECT a, b FROM s)", sum(row in set(S) for row in T)),
        ("(a, b) NOT IN (SELECT a, b FROM s)", sum(row not in set(S) for row in T)),
        ("(a, b) <> ANY (SELECT a, b FROM s)", len(T)),
    ],
)
def test_a_comparison_with_all_rows_of_a_subquery(served: Served, condition: str, expected: int) -> None:
    assert served.rows(f"SELECT count(*) FROM t WHERE {condition}") == [(expected,)]
