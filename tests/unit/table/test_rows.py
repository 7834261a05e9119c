"""Rows and entries as keys and values."""

from decimal import Decimal
from typing import Any

import pytest

from tenure.base.errors import CorruptData, LimitExceeded, NewerFormat
from tenure.catalog.descriptors.definitions import Table, replace
from tenure.expr.types.type_names import type_of
from tenure.kv.encoding import Descending, encode
from tenure.kv.store import Store
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import filled_with
from tenure.table.read import rows
from tenure.table.readers import FORMAT
from tenure.table.rows import Layouts
from tests.unit.table.tables import (
    DELETE_ONLY,
    ID,
    INT,
    NUMERIC,
    TEXT,
    WRITE_ONLY,
    A,
    B,
    Bench,
    column,
    index,
    table,
)
from tests.unit.table.trees import CONTEXT, above, constant

C = 4


def test_a_key_that_is_exact_is_not_repeated_in_the_value(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(7, 8, 9)
    assert list(bench.entries(1).items()) == [
        (store.keyspace.key(200, [7]), FORMAT + b"\x82\x02\x08\x03\x09"),
    ]


def test_a_key_that_is_not_exact_keeps_its_digits_in_the_value(store: Store) -> None:
    columns = (column(ID, "id", NUMERIC, is_nullable=False), column(A, "a"))
    bench = Bench(store, table(columns=columns))
    bench.insert(Decimal("1.00"), 5)
    assert [str(id) for id, _ in bench.rows()] == ["1.00"]


def test_a_descending_part_sorts_the_other_way_round(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_a", A, descending=[A])))
    for id, a in [(1, 10), (2, 30), (3, None)]:
        bench.insert(id, a)
    keys = [key[HEAD_BYTES:] for key in bench.entries(2)]
    assert keys == [encode([Descending(a), id]) for a, id in [(None, 3), (30, 2), (10, 1)]]


def test_entries_of_a_non_unique_index_end_in_the_primary_key(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_a", A)))
    bench.insert(1, 5)
    bench.insert(2, 5)
    assert [key[HEAD_BYTES:] for key in bench.entries(2)] == [encode([5, 1]), encode([5, 2])]


def test_equal_rows_of_a_unique_index_collide_on_one_key_and_nulls_do_not(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_a_key", A, unique=True)))
    for id, a in [(1, 5), (2, None), (3, None)]:
        bench.insert(id, a)
    assert [(key[HEAD_BYTES:], value) for key, value in bench.entries(2).items()] == [
        (encode([5]), FORMAT + encode([1])),
        (encode([None, 2]), FORMAT + encode([2])),
        (encode([None, 3]), FORMAT + encode([3])),
    ]


def test_a_partial_index_has_only_the_rows_of_its_predicate(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_a", A, predicate=above(B, 10))))
    bench.insert(1, 5, 11)
    bench.insert(2, 5, 10)
    bench.insert(3, 5, None)
    assert [key[HEAD_BYTES:] for key in bench.entries(2)] == [encode([5, 1])]
    bench.update(2, {B: 20})
    bench.update(1, {B: 0})
    assert [key[HEAD_BYTES:] for key in bench.entries(2)] == [encode([5, 2])]


def test_a_key_that_is_too_long_is_refused_by_the_name_of_its_index(store: Store) -> None:
    columns = (column(ID, "id", is_nullable=False), column(A, "a", TEXT))
    bench = Bench(store, table(index(2, "t_a", A), columns=columns))
    with pytest.raises(LimitExceeded, match='for index "t_a"') as raised:
        bench.insert(1, "x" * 3000)
    assert raised.value.sqlstate == "54000"
    assert bench.rows() == []


@pytest.mark.invariant("row-carry")
def test_a_writer_carries_over_columns_it_does_not_know(store: Store) -> None:
    older = table()
    newer = replace(
        older,
        version=2,
        columns=(*older.columns, column(C, "c", TEXT, default=constant("new", "text"), state=WRITE_ONLY)),
    )
    bench = Bench(store, newer)
    bench.insert(1, 5, 6)
    bench.update(1, {A: 7}, version=older)
    bench.update(1, {ID: 2}, version=older)
    [row] = rows(store.snapshot(), bench.layout())
    assert row.values == {ID: 2, A: 7, B: 6, C: "new"}


@pytest.mark.invariant("row-filled")
def test_rows_from_before_a_column_read_as_its_filled_value(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 5, 6)
    filled = filled_with(type_of(INT), 42)
    bench.show(_with_column(table(), default=constant(43), filled=filled))
    bench.insert(2, 5, 6)
    bench.insert(3, 5, 6, None)
    assert bench.rows() == [(1, 5, 6, 42), (2, 5, 6, 43), (3, 5, 6, None)]
    bench.update(1, {A: 0})
    assert bench.rows()[0] == (1, 0, 6, 42)


def test_a_column_that_is_gone_is_carried_along_and_not_seen(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 5, 6)
    bench.show(replace(table(), version=2, columns=table().columns[:2]))
    bench.update(1, {A: 7})
    assert bench.rows() == [(1, 7)]


@pytest.mark.parametrize(
    ("value", "error"), [(b"\x02\x80", NewerFormat), (b"", CorruptData), (FORMAT + b"\xff", CorruptData)]
)
def test_a_value_of_another_format_is_refused(store: Store, value: bytes, error: type[Exception]) -> None:
    bench = Bench(store, table())
    store.transact(lambda txn: txn.put(store.keyspace.key(200, [1]), value))
    with pytest.raises(error):
        bench.rows()


def test_layouts_are_kept_by_version_unless_the_table_or_its_enums_differ(store: Store) -> None:
    layouts = Layouts(store.keyspace)
    first = layouts.of(table())
    assert layouts.of(table()) is first
    assert layouts.of(table(index(2, "t_a", A))) is not first


def test_an_index_and_its_primary_may_be_in_any_order(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_ba", B, A, state=DELETE_ONLY)))
    row = bench.insert(1, 5, 6)
    layout = bench.layout()
    entry = layout.entry(layout.indexes[2], row, CONTEXT)
    assert entry is not None and entry.key[HEAD_BYTES:] == encode([6, 5, 1])


def _with_column(table: Table, **more: Any) -> Table:
    return replace(table, version=table.version + 1, columns=(*table.columns, column(C, "c", INT, **more)))
