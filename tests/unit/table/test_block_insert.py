"""Rows inserted as columns, beside the same rows inserted one by one."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.base.errors import UniqueViolation
from tenure.catalog.descriptors.definitions import Index, TypeRef
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.block_insert import insert_block, takes_blocks
from tests.unit.table.tables import ID, NUMERIC, TEXT, A, B, Bench, column, index, table
from tests.unit.table.trees import above

C, D = 4, 5
COLUMNS = (
    column(ID, "id", is_nullable=False),
    column(A, "a"),
    column(B, "b", NUMERIC),
    column(C, "c", TEXT),
    column(D, "d", TypeRef("char", modifiers=(8,))),
)
ROWS = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**40),
        st.integers(-300, 300) | st.none(),
        st.sampled_from([Decimal("1.50"), Decimal(0), Decimal(1000), None]),
        st.sampled_from(["", "x", "y z ", None]),
        st.sampled_from(["        ", "abc     ", None]),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda row: row[0],
)


def _bench(*indexes: Index) -> Bench:
    env = ManualEnv()
    return Bench(Store(SqliteEngine(MEMORY, env), env), table(*indexes, columns=COLUMNS))


def _insert(bench: Bench, rows: list[tuple[object, ...]]) -> bool:
    writer = bench.writer()
    columns = dict(zip((ID, A, B, C, D), map(list, zip(*rows, strict=True)), strict=True))
    return bench.statement(writer, lambda txn: insert_block(txn, writer, columns, len(rows)))


@settings(max_examples=50)
@given(ROWS)
@pytest.mark.invariant("block-same")
def test_a_block_writes_what_its_rows_would(rows: list[tuple[object, ...]]) -> None:
    one_by_one, together = _bench(), _bench()
    for row in rows:
        one_by_one.insert(*row)
    assert _insert(together, rows)
    assert together.entries(1) == one_by_one.entries(1)


@pytest.mark.parametrize("id", [None, 1, 2])
def test_nothing_is_written_of_a_block_with_a_row_that_cannot_be(id: int | None) -> None:
    """A key that is NULL, one that is taken, one that is there twice."""
    bench = _bench()
    bench.insert(1, 1, None, None, None)
    assert not _insert(bench, [(2, 1, None, None, None), (id, 1, None, None, None)])
    assert len(bench.entries(1)) == 1


OTHERS = (index(2, "other", C, A), index(3, "unique", A, B, unique=True))


@settings(max_examples=50)
@given(ROWS)
@pytest.mark.invariant("block-same")
def test_entries_of_other_indexes_are_those_that_rows_would_have(rows: list[tuple[object, ...]]) -> None:
    one_by_one, together = _bench(*OTHERS), _bench(*OTHERS)
    try:
        for row in rows:
            one_by_one.insert(*row)
    except UniqueViolation:
        assert not _insert(together, rows)
        assert [together.entries(id) for id in (1, 2, 3)] == [{}] * 3
        return
    assert _insert(together, rows)
    for id in (1, 2, 3):
        assert together.entries(id) == one_by_one.entries(id)


def test_a_table_with_a_partial_index_takes_no_blocks() -> None:
    bench = _bench()
    assert takes_blocks(bench.layout())
    assert takes_blocks(bench.show(table(*OTHERS, columns=COLUMNS, version=2)))
    partial = index(4, "partial", A, predicate=above(A, 5))
    assert not takes_blocks(bench.show(table(partial, columns=COLUMNS, version=3)))
