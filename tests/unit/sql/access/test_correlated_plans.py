"""Correlated subqueries: looked up by index for few outer rows, joined for many; tables held if neither."""

from collections.abc import Iterator

import pytest

from tenure.base.env import ManualEnv
from tenure.base.memory import Account, lone_account
from tenure.kv.store import Store
from tenure.sql.access.planner import with_access
from tenure.sql.bind.binder import bind_query
from tenure.sql.bind.parameters import Parameters
from tenure.sql.plans.plan import Aggregate, Join, Query, walk
from tenure.sql.rows.run import Rows
from tenure.sql.rows.runner import compile
from tenure.sql.text.parse import one
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tests.unit.sql.plans import Desk
from tests.unit.sql.two_sides import TABLES, Names, rows_of


def _query(text: str) -> Query:
    statement = one(text)
    assert statement is not None
    return with_access(bind_query(statement.tree, Names(), Parameters(), text=text))


def _is_joined(text: str) -> bool:
    """Whether the groups of the subquery are a side of a join."""
    joins = [node for node in walk(_query(text).plan) if isinstance(node, Join)]
    return any(isinstance(node, Aggregate) for join in joins for node in walk(join.right))


SUM = "(SELECT sum(i.id) FROM b AS i WHERE i.a_id = a.id)"
"""There is an index on b.a_id."""


def test_a_filter_of_many_rows_joins_the_groups_even_if_an_index_leads_to_them() -> None:
    assert _is_joined(f"SELECT id FROM a WHERE y < {SUM}")


def test_a_filter_of_rows_that_are_read_by_key_looks_them_up() -> None:
    assert not _is_joined(f"SELECT id FROM a WHERE id = 5 AND y < {SUM}")


def test_a_select_list_looks_them_up() -> None:
    assert not _is_joined(f"SELECT id, {SUM} FROM a ORDER BY id LIMIT 3")


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    env = ManualEnv()
    engine = SqliteEngine(MEMORY, env)
    desk = Desk(Store(engine, env), *TABLES.values())
    for each in TABLES.values():
        for row in rows_of(each.name):
            desk.insert(*row, id=each.id)
    yield desk
    engine.close()


REPEATED = "SELECT id, (SELECT string_agg(i.s, ',' ORDER BY i.id) FROM a AS i WHERE i.y = a.y) FROM a"
"""No join, and no index on y."""


def _scanned(desk: Desk, memory: Account) -> tuple[list[tuple[object, ...]], int]:
    """The answer, and how many rows of the inner table were read of the store."""
    read = 0
    source = desk.run(memory=memory)
    original = source.source.scan

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(source.source, name)

        def scan(self, *arguments: object, **named: object) -> Rows:
            nonlocal read
            for each in original(*arguments, **named):  # type: ignore[arg-type]
                read += 1
                yield each

    source.source = Counting()  # type: ignore[assignment]
    return list(compile(_query(REPEATED)).rows(source)), read


def test_a_table_that_is_scanned_for_each_outer_value_is_held_after_its_first_scan(desk: Desk) -> None:
    rows, read = _scanned(desk, lone_account(1 << 30))
    assert len(rows) == 60
    assert read == 3 * 60  # the outer table, and the inner one twice


def test_what_does_not_fit_into_memory_is_read_each_time(desk: Desk) -> None:
    held, _ = _scanned(desk, lone_account(1 << 30))
    rows, read = _scanned(desk, lone_account(6_000))
    assert rows == held
    assert read > 3 * 60
