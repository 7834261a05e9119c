"""What is handed to DuckDB, and how its rows come back."""

import random

import pytest

from tenure.base.errors import TenureError
from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.type_names import _MAKERS, type_of
from tenure.sql.duck.duck_types import shape_of
from tenure.sql.duck.expressions import either
from tenure.sql.duck.offload import Duck
from tenure.sql.duck.rendering import render
from tenure.sql.rows.runner import compile
from tenure.table.arrow import is_opaque
from tenure.table.rows import Row
from tests.unit.sql.duck.both_executors import NAMES, BothExecutors, bound, row_of, table_named
from tests.unit.table.trees import CONTEXT


def test_own_uncommitted_rows_are_seen(executors: BothExecutors) -> None:
    query = executors.query("SELECT count(*), sum(age) FROM people")
    table = table_named("people")
    layout = executors.layouts.of(table, NAMES.enum)
    txn = executors.store.begin()
    for at in (3, 1000):
        values = dict(row_of("people", random.Random(at), at))
        row = {column.id: values.get(column.name) for column in table.columns}
        entry = layout.entry(layout.primary, Row(layout.key(row), row), CONTEXT)
        assert entry is not None
        txn.put(*entry)
    txn.delete(layout.key({column.id: 5 if column.name == "id" else None for column in table.columns}))
    found = executors.by_duck(query, txn)
    assert found == executors.by_rows(query, txn)
    assert found != executors.by_rows(query)
    txn.rollback()


@pytest.mark.parametrize(
    ("text", "is_first"),
    [
        ("SELECT name FROM people WHERE age > 3 ORDER BY age + 1 DESC, id LIMIT 5", True),
        (
            "SELECT age FROM (SELECT age, id FROM people) AS t WHERE id > 2 ORDER BY age LIMIT 5 OFFSET 2",
            True,
        ),
        ("SELECT name FROM people ORDER BY age", False),
        ("SELECT city, count(*) FROM people GROUP BY city ORDER BY 2 LIMIT 5", False),
        ("SELECT p.id FROM people p JOIN orders o ON o.person = p.id ORDER BY o.amount LIMIT 5", False),
    ],
)
def test_it_is_known_whether_only_the_first_rows_of_a_table_are_wanted(text: str, is_first: bool) -> None:
    query = bound(text)
    rendered = render(query, query.plan, CONTEXT, NAMES.enum)
    assert rendered is not None
    assert rendered.is_first == is_first


@pytest.mark.parametrize(
    ("alternatives", "sql"),
    [
        ([["a", "b"], ["a", "c", "d"]], "a AND (b OR (c AND d))"),
        ([["b", "a"], ["c", "a"]], "a AND (b OR c)"),
        ([["a"], ["a", "b"]], "a"),
        ([["a", "b"], ["c"]], "(a AND b) OR c"),
    ],
)
def test_what_all_alternatives_share_comes_first(alternatives: list[list[str]], sql: str) -> None:
    assert either(alternatives) == sql


def test_joins_and_columns_in_another_order_need_no_select_of_their_own() -> None:
    query = bound("SELECT t.b, p.id FROM people p JOIN orders o ON o.person = p.id JOIN t ON t.a = o.id")
    rendered = render(query, query.plan, CONTEXT, NAMES.enum)
    assert rendered is not None
    assert rendered.select.count("SELECT") == 1


def test_few_rows_are_left_to_the_rows(executors: BothExecutors) -> None:
    before = executors.duck.offloaded_count
    executors.by_duck(executors.query("SELECT city, count(*) FROM people GROUP BY city"), is_forced=False)
    assert executors.duck.offloaded_count == before


def test_a_query_that_is_canceled_ends(executors: BothExecutors) -> None:
    query = executors.query("SELECT count(*) FROM generate_series(1, 10000000000) g WHERE g % 7 = 3")
    run = executors.run()
    checks = 0

    class Canceled(TenureError):
        sqlstate = "57014"

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks > 3:
            raise Canceled("canceling statement due to user request")

    run.check = check
    run.instead = executors.duck.taking(NAMES.enum, is_forced=True)
    with pytest.raises(Canceled):
        list(compile(query, NAMES.enum).rows(run))


def test_a_result_too_large_to_hold_is_streamed(
    executors: BothExecutors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.sql.duck.query_connection.RESULT_BYTES_MAX", 100)
    query = executors.query("SELECT id, name FROM people WHERE age IS NOT NULL")
    assert sorted(executors.by_duck(query)) == sorted(executors.by_rows(query))
    failing = executors.query("SELECT id, 100 / (id - 50) FROM people WHERE id >= 0")
    assert executors.by_duck(failing) == "22012"


def test_tables_too_large_to_hold_are_streamed() -> None:
    executors = BothExecutors()
    executors.duck.close()
    executors.duck = Duck(executors.store, cache_bytes=100)
    for text in (
        "SELECT city, count(*) FROM people GROUP BY city",
        "SELECT a.id, b.id FROM people a JOIN people b ON a.age = b.age",
    ):
        query = executors.query(text)
        assert sorted(executors.by_duck(query)) == sorted(executors.by_rows(query))
    assert executors.duck.failed_count == 0
    taken = executors.duck.offloaded_count
    passing = executors.query("SELECT id FROM people WHERE age > 3")
    executors.by_duck(passing, is_forced=False)
    assert executors.duck.offloaded_count == taken, "rows can stream as well"
    executors.close()


@pytest.mark.parametrize("name", _MAKERS)
def test_arrow_and_duckdb_agree_on_what_is_opaque(name: str) -> None:
    modifiers: dict[str, tuple[tuple[int, ...], ...]] = {
        "numeric": ((), (10, 2), (50, 2)),
        "char": ((), (5,)),
    }
    for each in modifiers.get(name, ((),)):
        kind = type_of(TypeRef(name, each))
        assert is_opaque(kind) is not shape_of(kind).is_plain
