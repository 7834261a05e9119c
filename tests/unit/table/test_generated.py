"""Columns whose value follows from the row: on every write, in every state, and for rows that are there."""

from typing import Any

import pytest

from tenure.base.errors import CheckViolation, NotNullViolation, UniqueViolation
from tenure.catalog.descriptors.definitions import Check, Column
from tenure.kv.store import Store
from tenure.table.backfill import backfill_column
from tests.unit.table.tables import DELETE_ONLY, ID, WRITE_ONLY, A, B, Bench, column, index, table
from tests.unit.table.trees import CONTEXT, above, column_value

C = 4


def with_generated(**more: Any) -> tuple[Column, ...]:
    """id, a, b and c, which is always a."""
    plain = table().columns
    return (*plain, column(C, "c", generated=column_value(A), **more))


def test_it_is_computed_on_insert_and_on_every_update(store: Store) -> None:
    bench = Bench(store, table(columns=with_generated()))
    bench.insert(1, 10, 100)
    assert bench.rows() == [(1, 10, 100, 10)]
    bench.update(1, {A: 20})
    assert bench.rows() == [(1, 20, 100, 20)]
    bench.update(1, {B: 200})
    assert bench.rows() == [(1, 20, 200, 20)]


def test_its_index_follows(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_c_key", C, unique=True), columns=with_generated()))
    bench.insert(1, 10)
    with pytest.raises(UniqueViolation):
        bench.insert(2, 10)
    bench.update(1, {A: 11})
    bench.insert(2, 10)
    assert bench.wrong() == []


def test_checks_and_not_null_hold_for_what_comes_out(store: Store) -> None:
    check = Check(1, "c_small", above(C, 0))
    bench = Bench(store, table(columns=with_generated(is_nullable=False), checks=[check]))
    with pytest.raises(NotNullViolation):
        bench.insert(1, None)
    with pytest.raises(CheckViolation):
        bench.insert(1, -1)


def test_it_may_be_generated_from_a_column_that_is_just_being_computed(store: Store) -> None:
    new = column(5, "d", computed=column_value(B), state=WRITE_ONLY)
    generated = column(C, "c", generated=column_value(5), state=WRITE_ONLY)
    bench = Bench(store, table(columns=(*table().columns, generated, new)))
    assert bench.insert(1, 10, 100).values[C] == 100


def test_delete_only_it_has_no_value(store: Store) -> None:
    bench = Bench(store, table(columns=with_generated(state=DELETE_ONLY)))
    assert C in bench.insert(1, 10).absent


def test_rows_that_are_there_are_filled(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 10)
    bench.insert(2, None)
    layout = bench.show(table(columns=with_generated(state=WRITE_ONLY), version=2))
    snapshot = store.snapshot()
    bench.update(1, {A: 11})
    batch = backfill_column(store.transact, snapshot, layout, C, bench.layout, CONTEXT)
    assert batch.resume is None
    bench.show(table(columns=with_generated(), version=3))
    assert [(row[ID - 1], row[C - 1]) for row in bench.rows()] == [(1, 11), (2, None)]
