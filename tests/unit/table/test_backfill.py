"""Filling and emptying elements, and proving that rows obey them."""

import pytest

from tenure.base.errors import CorruptData, LimitExceeded, NotNullViolation, UniqueViolation
from tenure.catalog.descriptors.definitions import Check, ForeignKey, Inbound, replace
from tenure.kv.store import Store
from tenure.table.backfill import FillBatch, backfill_column, backfill_index, remove_index
from tenure.table.read import rows
from tenure.table.validate import validate_check, validate_foreign_key, validate_unique
from tests.unit.table.tables import (
    DELETE_ONLY,
    ID,
    TEXT,
    WRITE_ONLY,
    A,
    B,
    Bench,
    column,
    index,
    table,
    with_states,
)
from tests.unit.table.trees import CONTEXT, above, column_value, constant, row_id

C = 4
NEW = index(2, "t_a_key", A, unique=True, state=WRITE_ONLY)


@pytest.fixture
def bench(store: Store) -> Bench:
    bench = Bench(store, table())
    for id in range(1, 6):
        bench.insert(id, 10 * id, id)
    return bench


def test_an_index_is_filled_in_batches_that_can_be_stopped_and_repeated(bench: Bench) -> None:
    bench.show(table(NEW, version=2))
    snapshot = bench.store.snapshot()
    resume: bytes | None = b""
    written = []
    while resume is not None:
        for _ in range(2):
            batch = _fill(bench, 2, snapshot=snapshot, resume=resume)
            written.append(batch.rows)
        resume = batch.resume
    assert written == [2, 0, 2, 0, 1, 0]
    assert bench.wrong(2) == []


def test_a_newer_write_wins_and_a_row_that_is_gone_gets_no_entry(bench: Bench) -> None:
    bench.show(table(NEW, index(3, "t_b", B, state=WRITE_ONLY), version=2))
    snapshot = bench.store.snapshot()
    bench.update(1, {A: 99})
    bench.delete(2)
    bench.update(3, {ID: 30})
    for id in (2, 3):
        assert _fill(bench, id, snapshot=snapshot, rows_max=100).resume is None
    assert bench.wrong(2, 3) == []


def test_equal_rows_stop_a_unique_index_in_postgresqls_words(bench: Bench) -> None:
    bench.update(5, {A: 10})
    bench.show(table(NEW, version=2))
    with pytest.raises(UniqueViolation, match='could not create unique index "t_a_key"') as raised:
        _fill(bench, 2, rows_max=100)
    assert raised.value.detail == "Key (a)=(10) is duplicated."


def test_a_null_stops_a_new_primary_index(bench: Bench) -> None:
    bench.update(5, {A: None})
    bench.show(table(replace(NEW, primary=2), version=2))
    with pytest.raises(NotNullViolation, match='column "a" of relation "t" contains null values'):
        _fill(bench, 2, rows_max=100)


def test_a_key_that_is_too_long_stops_the_index(store: Store) -> None:
    columns = (column(ID, "id", is_nullable=False), column(A, "a", TEXT))
    bench = Bench(store, table(columns=columns))
    bench.insert(1, "x" * 3000)
    bench.show(table(index(2, "t_a", A, state=WRITE_ONLY), columns=columns, version=2))
    with pytest.raises(LimitExceeded):
        _fill(bench, 2)
    bench.update(1, {A: "y" * 10})
    assert bench.wrong(2) == []


def test_indexes_into_a_new_primary_index_are_filled_after_it(bench: Bench) -> None:
    bench.show(table(replace(NEW, primary=2), index(3, "t_b", B, primary=2, state=WRITE_ONLY), version=2))
    with pytest.raises(AssertionError, match='"t_a_key" is filled before "t_b"'):
        _fill(bench, 3)
    for id in (2, 3):
        _fill(bench, id, rows_max=100)
    assert bench.wrong(2, 3) == []


def test_a_computed_column_is_filled_with_what_follows_from_the_row(bench: Bench) -> None:
    added = column(C, "c", computed=column_value(A), state=WRITE_ONLY)
    bench.show(table(index(2, "t_c", C, state=WRITE_ONLY), columns=[*table().columns, added], version=2))
    snapshot = bench.store.snapshot()
    bench.update(1, {A: 7})
    assert _fill_column(bench, snapshot=snapshot).rows == 4
    assert _fill_column(bench).rows == 0
    assert [row.values[C] for row in rows(bench.store.snapshot(), bench.layout())] == [7, 20, 30, 40, 50]
    assert bench.wrong(2) == []


def test_a_column_with_a_default_per_row_is_filled_where_it_has_no_value(bench: Bench) -> None:
    added = column(C, "c", default=row_id(), state=WRITE_ONLY)
    bench.show(table(columns=[*table().columns, added], version=2))
    given = bench.insert(6, 60, 6).values[C]
    assert _fill_column(bench).rows == 5
    values = [row.values[C] for row in rows(bench.store.snapshot(), bench.layout())]
    assert values[-1] == given
    assert len(set(values)) == 6


def test_filling_a_column_obeys_its_checks(bench: Bench) -> None:
    added = column(C, "c", default=constant(None), is_nullable=False, state=WRITE_ONLY)
    bench.show(table(columns=[*table().columns, added], version=2))
    with pytest.raises(NotNullViolation):
        _fill_column(bench)


def test_a_transaction_completes_its_own_rows_for_a_new_index(bench: Bench) -> None:
    txn, writer = bench.store.begin(), bench.writer()
    writer.insert(txn, {ID: 6, A: 60, B: 6})
    layout = bench.show(table(NEW, version=2))
    assert backfill_index(lambda run: run(txn), txn, layout, 2, CONTEXT) == (6, None)
    txn.commit()
    assert bench.wrong(2) == []


def test_an_index_is_removed_in_batches(bench: Bench) -> None:
    bench.show(table(NEW, version=2))
    _fill(bench, 2, rows_max=100)
    bench.show(with_states(bench.tables[200], DELETE_ONLY, 2))
    keyspace = bench.store.keyspace
    counts, resume = [], b""
    while resume is not None:
        batch = remove_index(bench.store.transact, keyspace, 200, 2, resume=resume, rows_max=2)
        counts.append(batch.rows)
        resume = batch.resume  # type: ignore[assignment]
    assert counts == [2, 2, 1]
    bench.show(table(version=4))
    assert bench.wrong() == []


# ── proofs ─────────────────────────────────────────────────────────────────────────────────────────


def test_validate_unique_gives_the_first_row_whose_key_is_anothers(bench: Bench) -> None:
    bench.show(table(NEW, version=2))
    _fill(bench, 2, rows_max=100)
    assert validate_unique(bench.store.snapshot(), bench.layout(), 2, CONTEXT) is None
    bench.update(5, {A: 10}, version=table())
    offence = validate_unique(bench.store.snapshot(), bench.layout(), 2, CONTEXT)
    assert offence is not None and offence.row.values[ID] == 5
    assert offence.error.detail == "Key (a)=(10) is duplicated."


def test_validate_unique_lets_nulls_be_equal_and_leaves_out_rows_of_others(bench: Bench) -> None:
    bench.show(table(NEW, version=2))
    _fill(bench, 2, rows_max=100)
    for id in (2, 3):
        bench.update(id, {A: None})
    assert validate_unique(bench.store.snapshot(), bench.layout(), 2, CONTEXT) is None
    bench.update(5, {A: 10}, version=table())
    layout = bench.layout()
    without = {layout.primary.prefix((5,))}
    assert validate_unique(bench.store.snapshot(), layout, 2, CONTEXT, without=without) is None


def test_validate_unique_tells_the_same_of_a_transactions_own_rows(bench: Bench) -> None:
    bench.show(table(NEW, version=2))
    _fill(bench, 2, rows_max=100)
    bench.update(5, {A: 10}, version=table())
    for source in (bench.store.snapshot(), bench.store.begin()):
        offence = validate_unique(source, bench.layout(), 2, CONTEXT)
        assert offence is not None and offence.row.values[ID] == 5


def test_validate_unique_needs_an_index_that_is_filled(bench: Bench) -> None:
    bench.show(table(NEW, version=2))
    with pytest.raises(CorruptData, match="lacks a row"):
        validate_unique(bench.store.snapshot(), bench.layout(), 2, CONTEXT)


def test_validate_check_gives_the_first_row_that_breaks_it(bench: Bench) -> None:
    bench.show(table(checks=[Check(1, "a_big", above(A, 20), state=WRITE_ONLY)], version=2))
    offence = validate_check(bench.store.snapshot(), bench.layout(), 1, CONTEXT)
    assert offence is not None and offence.row.values[ID] == 1
    assert str(offence.error) == 'check constraint "a_big" of relation "t" is violated by some row'
    assert offence.error.sqlstate == "23514"
    bench.show(table(checks=[Check(1, "a_big", above(A, 0), state=WRITE_ONLY)], version=3))
    assert validate_check(bench.store.snapshot(), bench.layout(), 1, CONTEXT) is None


def test_validate_check_speaks_of_nulls_where_a_column_becomes_not_null(bench: Bench) -> None:
    bench.update(3, {A: None})
    bench.show(table(checks=[Check(1, "x", above(A, 0), state=WRITE_ONLY, not_null=A)], version=2))
    offence = validate_check(bench.store.snapshot(), bench.layout(), 1, CONTEXT)
    assert offence is not None and offence.row.values[ID] == 3
    assert str(offence.error) == 'column "a" of relation "t" contains null values'
    assert (offence.error.sqlstate, offence.error.column) == ("23502", "a")


def test_validate_foreign_key_gives_the_first_row_without_its_target(bench: Bench) -> None:
    bench.show(table(id=201, name="parent", inbound=[Inbound(200, 1)]))
    for id in (10, 20, 30, 40):
        bench.insert(id, id=201)
    bench.update(1, {A: None})
    key = ForeignKey(1, "t_a_fkey", (A,), 201, (ID,), state=WRITE_ONLY)
    bench.show(table(foreign_keys=[key], version=2))
    offence = validate_foreign_key(bench.store.snapshot(), bench.layout(), 1, bench.layout(201))
    assert offence is not None and offence.row.values[ID] == 5
    assert offence.error.detail == 'Key (a)=(50) is not present in table "parent".'
    bench.delete(5)
    assert validate_foreign_key(bench.store.snapshot(), bench.layout(), 1, bench.layout(201)) is None


def _fill(bench: Bench, id: int, *, rows_max: int = 2, **more: object) -> FillBatch:
    snapshot = more.pop("snapshot", None) or bench.store.snapshot()
    return backfill_index(
        bench.store.transact,
        snapshot,  # type: ignore[arg-type]
        bench.layout(),
        id,
        CONTEXT,
        rows_max=rows_max,
        **more,  # type: ignore[arg-type]
    )


def _fill_column(bench: Bench, **more: object) -> FillBatch:
    snapshot = more.pop("snapshot", None) or bench.store.snapshot()
    return backfill_column(bench.store.transact, snapshot, bench.layout(), C, bench.layout, CONTEXT)  # type: ignore[arg-type]
