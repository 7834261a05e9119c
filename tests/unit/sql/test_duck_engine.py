"""DuckDB shut in: what it can reach, and when it is there at all."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.base.env import SystemEnv
from tenure.catalog.descriptors import TypeRef
from tenure.expr.types import type_of
from tenure.sql.duck.engine import DuckEngine
from tenure.sql.duck.rendering import Rendered
from tenure.sql.duck.shapes import Value, shape_of

TEXT = type_of(TypeRef("text"))


@pytest.fixture
def engine() -> Iterator[DuckEngine]:
    engine = DuckEngine(SystemEnv(), memory_bytes=64 << 20, threads=1)
    yield engine
    engine.close()


def _answer(engine: DuckEngine, sql: str) -> list[tuple[object, ...]] | None:
    rendered = Rendered(sql, (), {}, (Value("", TEXT, shape_of(TEXT)),))
    rows = engine.run(rendered, dict, lambda: None)
    return None if rows is None else list(rows)


def test_it_answers(engine: DuckEngine) -> None:
    assert _answer(engine, "SELECT 'a' AS c0") == [("a",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "COPY (SELECT 1) TO '{file}'",
        "ATTACH '{file}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '10GB'",
        "SELECT * FROM engine",
    ],
)
def test_it_reaches_nothing_outside(engine: DuckEngine, sql: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("secret", encoding="utf-8")
    assert _answer(engine, sql.format(file=file)) is None
    assert file.read_text(encoding="utf-8") == "secret"


def test_a_query_beyond_its_memory_is_given_up(engine: DuckEngine) -> None:
    sql = "SELECT CAST(count(*) AS VARCHAR) AS c0 FROM (SELECT i FROM range(20000000) t(i) GROUP BY i)"
    assert _answer(engine, sql) is None
    assert _answer(engine, "SELECT 'still here' AS c0") == [("still here",)]


def test_a_node_that_runs_no_analytical_query_has_no_need_of_the_libraries() -> None:
    code = "import sys, tenure.node; print(*({'duckdb', 'pyarrow', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
