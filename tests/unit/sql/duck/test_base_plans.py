"""How DuckDB goes about a query over a base and a delta: what reaches the files, and what EXPLAIN says."""

from pathlib import Path
from typing import Any

import pytest

from tenure.base.memory import lone_account
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.duck.offload import Duck
from tenure.sql.duck.rendering import Rendered
from tenure.sql.explain import plan_text
from tenure.sql.rows.run import QueryRun
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tenure.table.lake import format
from tests.unit.pipeline.lakes import Lake
from tests.unit.sql import schema
from tests.unit.sql.duck.asked_tables import AskedTable, change_row, insert_rows
from tests.unit.table.tables import ID, B
from tests.unit.table.trees import CONTEXT


@pytest.fixture
def plans(duck: Duck, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How DuckDB went about each query."""
    engine, _ = duck._engine_and_columns()
    plans: list[str] = []
    execute = type(engine)._connection

    def connection(self: Any, rendered: Rendered, tables: Any) -> Any:
        made = execute(self, rendered, tables)
        sql, bitmaps, copies = made._query
        for copy in copies:
            made._cursor.execute(copy)
        plans.append(made._cursor.sql(f"EXPLAIN ANALYZE {sql}", params=bitmaps).fetchall()[0][1])
        plans[-1] += made._cursor.sql(f"EXPLAIN {sql}", params=bitmaps).fetchall()[0][1]
        return made

    monkeypatch.setattr(type(engine), "_connection", connection)
    return plans


def test_filters_and_columns_reach_the_files_before_the_bitmap(
    lake: Lake, duck: Duck, plans: list[str]
) -> None:
    insert_rows(lake, *range(50))
    lake.flush()
    lake.bases.load()
    change_row(lake, 7, "changed")
    assert AskedTable(lake, duck).by_duck(lake.store.snapshot(), ID, where=" WHERE t.c1 > 47") is not None
    (plan,) = plans
    scan = plan[plan.index("Read Parquet") :]
    assert "c1 > 47" in scan
    assert "get_bit" in plan and "get_bit" not in scan, "the bitmap is for what the filters have left"


def test_first_rows_are_those_of_one_scan_of_all_files_with_hidden_rows(
    lake: Lake, duck: Duck, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 20)
    monkeypatch.setattr(format, "GROUP_ROWS", 5)
    insert_rows(lake, *range(100))
    assert len(lake.flush().live) == 5
    lake.bases.load()
    # A row of the first group and one of the last, all rows of a group, all of a file, none of the last one.
    for id in (0, 19, *range(25, 30), *range(40, 60), 77):
        change_row(lake, id, "changed")
    asked, source = AskedTable(lake, duck), lake.store.snapshot()
    assert asked.agree_first(source, 3) and asked.agree_first(source, 70) and asked.agree_first(source, 200)
    assert plans[0].count("Total Files Read: 4") == plans[0].count("Total Files Read: 1") == 1
    assert asked.agree(source, ID, B)
    assert plans[-1].count("Total Files Read: 1") == 5


def test_first_rows_of_very_many_files_are_those_of_several_scans(
    lake: Lake, duck: Duck, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.table.lake.merging.FILE_ROWS", 10)
    monkeypatch.setattr("tenure.sql.duck.base_scan_sql.TOGETHER_FILES_MAX", 2)
    insert_rows(lake, *range(50))
    assert len(lake.flush().live) == 5
    lake.bases.load()
    for id in range(0, 50, 10):
        change_row(lake, id, "changed")
    assert AskedTable(lake, duck).agree_first(lake.store.snapshot(), 45)
    assert plans[0].count("Total Files Read: 2") == 2


def test_of_a_file_with_hidden_rows_many_are_expected(lake: Lake, duck: Duck, plans: list[str]) -> None:
    insert_rows(lake, *range(50))
    lake.flush()
    lake.bases.load()
    change_row(lake, 7, "changed")
    assert AskedTable(lake, duck).by_duck(lake.store.snapshot(), ID, is_joined=True) is not None
    scan = plans[0][plans[0].index("Read Parquet") :]
    assert "~10 rows" in scan  # a fifth: what DuckDB takes for granted of a condition it knows nothing of


def test_a_join_knows_the_bounds_of_base_and_delta(lake: Lake, duck: Duck, plans: list[str]) -> None:
    insert_rows(lake, *range(50))
    lake.flush()
    lake.bases.load()
    change_row(lake, 7, "changed")
    assert AskedTable(lake, duck).agree(lake.store.snapshot(), ID)
    assert AskedTable(lake, duck).agree_joined(lake.store.snapshot(), ID)
    name = f"n{lake.table.id}"
    assert name not in plans[0] and name in plans[1]  # a table of DuckDB's own, of which it knows them


def test_a_delta_that_is_not_small_is_joined_as_it_is(
    lake: Lake, duck: Duck, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_rows(lake, *range(50))
    lake.flush()
    lake.bases.load()
    change_row(lake, 7, "changed")
    engine, _ = duck._engine_and_columns()
    monkeypatch.setattr(engine, "_copied_bytes_max", 10)
    assert AskedTable(lake, duck).agree_joined(lake.store.snapshot(), ID, B)
    assert f"n{lake.table.id}" not in plans[0]


def test_explain_says_where_the_rows_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sales = schema.table(300, "sales", "id bigint; qty int", ["id"])
    monkeypatch.setitem(schema.TABLES, "sales", sales)
    lake = Lake(tmp_path, sales)
    duck = Duck(lake.store, lake=lake.files)
    lake.write(lambda txn: [lake.writer().insert(txn, {1: id, 2: id}) for id in range(3)])
    lake.flush()
    lake.bases.load()
    lake.write(lambda txn: lake.writer().insert(txn, {1: 9, 2: 9}))
    statement = one("SELECT sum(qty) FROM sales WHERE qty > 1")
    assert statement is not None
    query = with_access(bind_query(statement.tree, schema.KnownNames(), Parameters(())))
    source = lake.store.snapshot()
    run = QueryRun(
        CONTEXT, source, lake._layouts.of, lambda key, sought: (), lambda: None, lone_account(1 << 30)
    )
    run.instead = duck.taking(is_forced=True)
    assert any('Base of "sales": 1 files, 3 rows' in line for line in plan_text.lines(query, run))
    shown = list(plan_text.analyzed(query, compile(query), run, lake.env.monotonic))
    assert any('Base of "sales": 1 files, 3 rows; delta: 1 rows' in line for line in shown)
    duck.close()
    lake.close()
