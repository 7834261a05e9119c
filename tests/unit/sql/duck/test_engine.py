"""DuckDB shut in: what it can reach, and when it is there at all."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tenure.base.env import SystemEnv
from tenure.base.errors import RowsIncomplete
from tenure.base.memory import lone_account
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.type_names import type_of
from tenure.sql.duck.duck_types import Value, shape_of
from tenure.sql.duck.engine import DuckEngine
from tenure.sql.duck.query_connection import BINDS_ONCE, FETCH_ROWS, reader
from tenure.sql.duck.rendering import Rendered
from tenure.table.columnar import Columns

TEXT = type_of(TypeRef("text"))


@pytest.fixture
def engine() -> Iterator[DuckEngine]:
    engine = DuckEngine(SystemEnv(), memory_bytes=64 << 20, threads=1)
    yield engine
    engine.close()


def test_an_engine_tells_what_it_has_allocated(engine: DuckEngine) -> None:
    before = engine.used_bytes()
    engine._database.execute("CREATE TEMP TABLE t AS SELECT range AS g FROM range(1000000)")
    assert before + (2 << 20) < engine.used_bytes() < 64 << 20
    engine.close()
    assert engine.used_bytes() == 0


def test_a_query_beyond_the_engines_memory_is_left_to_the_rows_executor(engine: DuckEngine) -> None:
    """Whose memory is charged to its statement."""
    long = "SELECT string_agg(range::text || repeat('x', 100), '') AS x FROM range(3000000)"
    sql = f"SELECT max(x) FROM ({long})"
    assert engine.run(_rendered(sql), dict, lambda: None, account=lone_account(1 << 30)) is None


def _rendered(sql: str) -> Rendered:
    return Rendered(sql, (), {}, (Value("", TEXT, shape_of(TEXT)),))


def _answer(engine: DuckEngine, sql: str) -> list[tuple[object, ...]] | None:
    rows = engine.run(_rendered(sql), dict, lambda: None, account=lone_account(1 << 30))
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


@pytest.mark.parametrize("binds_once", sorted({False, BINDS_ONCE}))
def test_rows_are_the_same_however_often_a_query_is_bound(binds_once: bool) -> None:
    with duckdb.connect(":memory:") as connection:
        sql = "SELECT i AS c0, octet_length($b) AS c1 FROM range(50_000) AS t(i)"
        batches = list(reader(connection.cursor(), sql, {"b": b"123"}, binds_once=binds_once))
        assert [each.num_rows for each in batches] == [FETCH_ROWS, FETCH_ROWS, 10_000]
        assert batches[2].to_pylist()[-1] == {"c0": 49_999, "c1": 3}
        (lone,) = reader(connection.cursor(), "SELECT 1 AS c0", {}, binds_once=binds_once)
        assert lone.to_pylist() == [{"c0": 1}]


def test_rows_come_as_they_are_made() -> None:
    with duckdb.connect(":memory:", config={"memory_limit": "64MB", "temp_directory": ""}) as connection:
        first = next(iter(reader(connection.cursor(), "SELECT * FROM range(1_000_000_000)", {})))
        assert first.num_rows == FETCH_ROWS


def test_a_query_beyond_its_memory_is_given_up(engine: DuckEngine) -> None:
    sql = "SELECT CAST(count(*) AS VARCHAR) AS c0 FROM (SELECT i FROM range(20000000) t(i) GROUP BY i)"
    assert _answer(engine, sql) is None
    assert _answer(engine, "SELECT 'still here' AS c0") == [("still here",)]


LARGE = "SELECT CAST(i AS VARCHAR) || repeat('x', 1000) AS c0 FROM range(20000) t(i)"
FAILS_LATE = LARGE.replace("repeat", "CASE WHEN i = 19999 THEN error('late') ELSE '' END || repeat")


@pytest.fixture
def small_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.sql.duck.query_connection.RESULT_BYTES_MAX", 1_000_000)
    monkeypatch.setattr("tenure.sql.duck.query_connection.FETCH_ROWS", 2_000)


@pytest.mark.usefixtures("small_results")
@pytest.mark.parametrize(("is_once", "times"), [(False, 2), (True, 1)])
def test_a_large_result_is_computed_once_for_whoever_can_start_over(
    engine: DuckEngine, is_once: bool, times: int
) -> None:
    opened: list[None] = []

    def open() -> dict[int, Columns]:
        opened.append(None)
        return {}

    rows = engine.run(_rendered(LARGE), open, lambda: None, account=lone_account(1 << 30), is_once=is_once)
    assert rows is not None
    assert [text.rstrip("x") for (text,) in rows] == [str(number) for number in range(20_000)]
    assert len(opened) == times


@pytest.mark.invariant("duck-error")
@pytest.mark.usefixtures("small_results")
def test_who_can_start_over_is_told_when_he_has_to(engine: DuckEngine) -> None:
    rows = engine.run(_rendered(FAILS_LATE), dict, lambda: None, account=lone_account(1 << 30), is_once=True)
    assert rows is not None and next(rows)[0].rstrip("x") == "0"
    with pytest.raises(RowsIncomplete):
        list(rows)
    assert engine.run(_rendered(FAILS_LATE), dict, lambda: None, account=lone_account(1 << 30)) is None


@pytest.mark.usefixtures("small_results")
def test_a_result_that_comes_as_it_is_made_can_be_canceled(engine: DuckEngine) -> None:
    class Canceled(Exception):
        pass

    is_canceled = False

    def check() -> None:
        if is_canceled:
            raise Canceled

    slow = LARGE.replace("20000", "20000000")
    rows = engine.run(_rendered(slow), dict, check, account=lone_account(1 << 30), is_once=True)
    assert rows is not None
    next(rows)
    is_canceled = True
    with pytest.raises(Canceled):
        list(rows)


def test_a_node_that_runs_no_analytical_query_has_no_need_of_the_libraries() -> None:
    code = "import sys, tenure.node; print(*({'duckdb', 'pyarrow', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
