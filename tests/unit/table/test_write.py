"""What a writer does for each element in each state."""

from typing import Any

import pytest

from tenure.base.errors import CheckViolation, NotNullViolation, UniqueViolation, UnsafeNewValue
from tenure.catalog.descriptors.definitions import Check, EnumMember, Goal, Table, TypeRef, replace
from tenure.kv.encoding import encode
from tenure.kv.store import Store
from tenure.kv.transaction import Transaction
from tenure.storage.engine import HEAD_BYTES
from tenure.table.columns import Values
from tenure.table.read import rows
from tenure.table.rows import Row
from tests.unit.table.tables import (
    DELETE_ONLY,
    ID,
    PUBLIC,
    WRITE_ONLY,
    A,
    B,
    Bench,
    column,
    enum,
    found,
    index,
    table,
    with_states,
)
from tests.unit.table.trees import above, column_value, constant, row_id

C = 4
UNIQUE_A = index(2, "t_a_key", A, unique=True)


# ── columns ────────────────────────────────────────────────────────────────────────────────────────


def test_a_public_column_gets_its_default_unless_given_a_value(store: Store) -> None:
    bench = Bench(store, _with_c(default=constant(9)))
    bench.insert(1, 5, 6)
    bench.insert(2, 5, 6, 7)
    bench.insert(3, 5, 6, None)
    assert [row[-1] for row in bench.rows()] == [9, 7, None]


def test_a_write_only_column_gets_its_default_and_is_carried_over(store: Store) -> None:
    bench = Bench(store, _with_c(default=constant(9), state=WRITE_ONLY))
    bench.insert(1, 5, 6)
    bench.update(1, {A: 7})
    assert bench.rows() == [(1, 7, 6)]
    assert _stored(bench, 1)[C] == 9


def test_a_write_only_column_that_is_computed_follows_the_row(store: Store) -> None:
    bench = Bench(store, _with_c(computed=column_value(A), state=WRITE_ONLY))
    bench.insert(1, 5, 6)
    assert _stored(bench, 1)[C] == 5
    bench.update(1, {A: 8})
    assert _stored(bench, 1)[C] == 8


def test_a_public_column_is_no_longer_computed(store: Store) -> None:
    bench = Bench(store, _with_c(computed=column_value(A)))
    bench.insert(1, 5, 6, 100)
    bench.update(1, {A: 8})
    assert bench.rows() == [(1, 8, 6, 100)]


@pytest.mark.invariant("delete-only")
def test_a_delete_only_column_is_not_written_and_its_value_dropped(store: Store) -> None:
    bench = Bench(store, _with_c(default=constant(9), state=WRITE_ONLY))
    bench.insert(1, 5, 6)
    bench.show(_with_c(default=constant(9), state=DELETE_ONLY))
    bench.insert(2, 5, 6)
    bench.update(1, {A: 7})
    assert [C in row.absent for row in rows(store.snapshot(), bench.layout())] == [True, True]


def test_not_null_is_enforced_with_the_failing_row(store: Store) -> None:
    bench = Bench(store, _with_c(is_nullable=False))
    with pytest.raises(NotNullViolation) as raised:
        bench.insert(1, None, 6)
    error = raised.value
    assert str(error) == 'null value in column "c" of relation "t" violates not-null constraint'
    assert (error.sqlstate, error.detail) == ("23502", "Failing row contains (1, null, 6, null).")
    assert (error.table, error.column, error.schema_id) == ("t", "c", 101)


def test_not_null_of_a_write_only_column_is_enforced_unless_it_is_on_its_way_out(store: Store) -> None:
    bench = Bench(store, _with_c(is_nullable=False, state=WRITE_ONLY))
    with pytest.raises(NotNullViolation):
        bench.insert(1, 5, 6)
    bench.show(_with_c(is_nullable=False, state=WRITE_ONLY, goal=Goal.ABSENT))
    bench.insert(1, 5, 6)
    assert bench.rows() == [(1, 5, 6)]


def test_defaults_are_evaluated_for_each_row(store: Store) -> None:
    columns = (column(ID, "rowid", default=row_id(), is_hidden=True, is_nullable=False), column(A, "a"))
    bench = Bench(store, table(columns=columns))
    writer = bench.writer()
    ids = [bench.statement(writer, lambda txn: writer.insert(txn, {A: 1})).values[ID] for _ in range(2)]
    assert ids[0] != ids[1]


# ── enum members ───────────────────────────────────────────────────────────────────────────────────


def test_an_enum_member_on_its_way_may_be_kept_but_not_written(store: Store) -> None:
    sad, happy = EnumMember("sad", b"\x40"), EnumMember("happy", b"\x80")
    columns = (
        column(ID, "id", is_nullable=False),
        column(A, "mood", TypeRef("mood", enum=300)),
        column(B, "b"),
    )
    bench = Bench(store, table(columns=columns), enums=[enum(sad, happy)])
    bench.insert(1, "happy")
    bench.enums[300] = enum(sad, replace(happy, state=WRITE_ONLY))
    assert bench.rows() == [(1, "happy", None)]
    bench.update(1, {B: 1})
    assert bench.rows() == [(1, "happy", 1)]
    with pytest.raises(UnsafeNewValue):
        bench.insert(2, "happy")
    with pytest.raises(UnsafeNewValue):
        bench.update(1, {A: "happy"})


# ── checks ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
def test_a_check_is_enforced_from_write_only_on_whatever_its_goal(
    store: Store, state: object, goal: Goal
) -> None:
    check = Check(1, "a_positive", above(A, 0), state=state, goal=goal)  # type: ignore[arg-type]
    bench = Bench(store, table(checks=[check]))
    bench.insert(1, None, 6)
    with pytest.raises(CheckViolation) as raised:
        bench.insert(2, 0, 6)
    error = raised.value
    assert str(error) == 'new row for relation "t" violates check constraint "a_positive"'
    assert (error.sqlstate, error.detail) == ("23514", "Failing row contains (2, 0, 6).")
    assert error.constraint == "a_positive"
    with pytest.raises(CheckViolation):
        bench.update(1, {A: -1})


def test_a_delete_only_check_is_not_enforced(store: Store) -> None:
    bench = Bench(store, table(checks=[Check(1, "a_positive", above(A, 0), state=DELETE_ONLY)]))
    bench.insert(1, 0, 6)


def test_a_column_becoming_not_null_is_enforced_through_its_check(store: Store) -> None:
    becoming = Check(1, "a_not_null", above(A, 0), state=WRITE_ONLY, not_null=A)
    bench = Bench(store, table(checks=[becoming]))
    with pytest.raises(NotNullViolation, match='null value in column "a"'):
        bench.insert(1, None, 6)
    bench.insert(1, -5, 6)


# ── indexes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
def test_a_unique_index_is_enforced_in_postgresqls_words(store: Store, state: object) -> None:
    bench = Bench(store, table(index(2, "t_a_b_key", A, B, unique=True, state=state)))  # type: ignore[arg-type]
    bench.insert(1, 5, 6)
    with pytest.raises(UniqueViolation) as raised:
        bench.insert(2, 5, 6)
    error = raised.value
    assert str(error) == 'duplicate key value violates unique constraint "t_a_b_key"'
    assert (error.sqlstate, error.detail) == ("23505", "Key (a, b)=(5, 6) already exists.")
    assert (error.table, error.constraint) == ("t", "t_a_b_key")
    bench.insert(2, 5, None)
    bench.insert(3, 5, None)
    assert bench.wrong(2) == []


def test_the_primary_key_is_unique(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 5, 6)
    with pytest.raises(UniqueViolation, match='"t_pkey"') as raised:
        bench.insert(1, 7, 8)
    assert raised.value.detail == "Key (id)=(1) already exists."


@pytest.mark.invariant("delete-only")
def test_nothing_is_added_to_a_delete_only_index(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_a", A, state=DELETE_ONLY)))
    bench.insert(1, 5, 6)
    bench.update(1, {A: 7})
    bench.update(1, {ID: 2})
    assert bench.entries(2) == {}


def test_a_delete_only_index_loses_the_entries_of_what_changes(store: Store) -> None:
    filled = table(index(2, "t_a", A))
    bench = Bench(store, filled)
    for id in (1, 2, 3):
        bench.insert(id, 5, 6)
    bench.show(with_states(filled, DELETE_ONLY, 2))
    bench.update(1, {A: 7})
    bench.update(2, {B: 7})
    bench.delete(3)
    assert [key[HEAD_BYTES:] for key in bench.entries(2)] == [encode([5, 2])]
    assert bench.wrong() == []


@pytest.mark.parametrize("state", [DELETE_ONLY, WRITE_ONLY])
def test_a_row_takes_no_entry_of_another_that_is_equal_to_it(store: Store, state: object) -> None:
    plain = table()
    bench = Bench(store, plain)
    bench.insert(1, 5, 6)
    bench.insert(2, 5, 6)
    with_index = table(replace(UNIQUE_A, state=WRITE_ONLY), version=2)
    bench.show(with_index)
    bench.insert(3, 5, 6)
    bench.show(with_states(with_index, state, 2))  # type: ignore[arg-type]
    bench.delete(1)
    bench.update(2, {A: 9})
    assert encode([5]) in [key[HEAD_BYTES:] for key in bench.entries(2)]
    bench.delete(3)
    assert encode([5]) not in [key[HEAD_BYTES:] for key in bench.entries(2)]


def test_an_update_of_other_columns_does_not_meet_a_duplicate_that_was_there_before(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 5, 6)
    bench.insert(2, 5, 6)
    bench.show(table(replace(UNIQUE_A, state=WRITE_ONLY), version=2))
    bench.update(1, {B: 7})
    bench.update(2, {B: 7})
    bench.insert(3, 5, 0)
    with pytest.raises(UniqueViolation):
        bench.insert(4, 5, 0)


def test_a_row_that_moves_takes_no_key_from_another_that_is_equal_to_it(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 5, 6)
    bench.show(table(replace(UNIQUE_A, state=WRITE_ONLY), version=2))
    bench.insert(3, 5, 6)
    with pytest.raises(UniqueViolation, match='"t_a_key"'):
        bench.update(1, {ID: 4})


def test_rows_that_are_equal_in_a_new_primary_key_take_no_entries_from_each_other(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 5, 6)
    for state in (WRITE_ONLY, PUBLIC):
        new_key = index(2, "t_pkey_new", A, unique=True, primary=2, state=state)
        bench.show(table(new_key, index(3, "t_b_new", B, primary=2, state=state), version=2))
        if state is WRITE_ONLY:
            bench.insert(3, 5, 6)
            bench.delete(1)
    assert bench.wrong() == []


def test_a_removed_entry_leaves_a_tombstone_even_where_there_was_none(store: Store) -> None:
    bench = Bench(store, table())
    bench.insert(1, 5, 6)
    bench.show(table(replace(UNIQUE_A, state=WRITE_ONLY), index(3, "t_b", B, state=WRITE_ONLY), version=2))
    since_at = store.snapshot().at
    bench.delete(1)
    found = store.snapshot().diff(store.keyspace.table_span(200), since_at=since_at)
    assert len(found) == 3
    assert all(revision.value is None for revision in found)


def test_a_change_of_primary_key_moves_the_row_in_every_index(store: Store) -> None:
    bench = Bench(store, table(UNIQUE_A, index(3, "t_b", B)))
    bench.insert(1, 5, 6)
    bench.update(1, {ID: 2})
    assert bench.rows() == [(2, 5, 6)]
    assert bench.wrong() == []
    bench.insert(1, 7, 6)
    with pytest.raises(UniqueViolation, match='"t_pkey"'):
        bench.update(1, {ID: 2})


def test_a_primary_index_that_is_being_built_holds_whole_rows(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_pkey_new", A, unique=True, primary=2, state=WRITE_ONLY)))
    bench.insert(1, 5, 6)
    bench.update(1, {B: 7})
    layout = bench.layout()
    [(key, value)] = bench.entries(2).items()
    assert layout.row(layout.indexes[2], key, value).values == {ID: 1, A: 5, B: 7}
    assert bench.wrong(2) == []
    with pytest.raises(UniqueViolation, match='"t_pkey_new"'):
        bench.insert(2, 5, 8)
    with pytest.raises(NotNullViolation, match='"a"'):
        bench.insert(2, None, 8)


def test_secondary_indexes_follow_the_primary_index_they_point_into(store: Store) -> None:
    bench = Bench(
        store,
        table(
            index(2, "t_pkey_new", A, unique=True, primary=2, state=WRITE_ONLY),
            index(3, "t_b", B),
            index(4, "t_b_new", B, primary=2, state=WRITE_ONLY),
        ),
    )
    bench.insert(1, 5, 6)
    assert [key[HEAD_BYTES:] for key in bench.entries(3)] == [encode([6, 1])]
    assert [key[HEAD_BYTES:] for key in bench.entries(4)] == [encode([6, 5])]


@pytest.mark.invariant("write-all")
def test_a_row_that_fails_leaves_nothing_in_the_transaction(store: Store) -> None:
    bench = Bench(store, table(index(2, "t_b", B), index(3, "t_a_key", A, unique=True)))
    bench.insert(1, 5, 6)
    writer = bench.writer()

    def fail_twice(txn: Transaction) -> None:
        with pytest.raises(UniqueViolation):
            writer.insert(txn, {ID: 2, A: 5, B: 7})
        writer.insert(txn, {ID: 3, A: 8, B: 8})
        with pytest.raises(UniqueViolation):
            writer.update(txn, found(txn, writer.layout, 3), {A: 5, B: 9})

    bench.statement(writer, fail_twice)
    assert bench.rows() == [(1, 5, 6), (3, 8, 8)]
    assert bench.wrong() == []


# ── upsert ─────────────────────────────────────────────────────────────────────────────────────────


def test_upsert_inserts_or_changes_the_row_in_the_way(store: Store) -> None:
    bench = Bench(store, table(UNIQUE_A))
    writer = bench.writer()

    def add(there: Row, proposed: Row) -> Values:
        return {B: there.values[B] + proposed.values[B]}

    def upsert_all(txn: Transaction) -> None:
        for id, a, b in [(1, 5, 1), (2, 5, 10), (1, 7, 100)]:
            writer.upsert(txn, {ID: id, A: a, B: b}, add)

    bench.statement(writer, upsert_all)
    assert bench.rows() == [(1, 5, 111)]


@pytest.mark.parametrize("state", [WRITE_ONLY, PUBLIC])
def test_upsert_finds_what_is_in_the_way_on_an_index_that_is_being_built(store: Store, state: Any) -> None:
    bench = Bench(store, with_states(table(UNIQUE_A), state, 2))
    bench.insert(1, 5, 0)
    writer = bench.writer()

    def upsert(txn: Transaction) -> Row | None:
        return writer.upsert(txn, {ID: 2, A: 5, B: 0}, lambda there, proposed: None)

    assert bench.statement(writer, upsert) is None
    assert bench.rows() == [(1, 5, 0)]


def test_upsert_looks_only_at_its_arbiters_and_may_leave_the_row(store: Store) -> None:
    bench = Bench(store, table(UNIQUE_A))
    bench.insert(1, 5, 6)
    writer = bench.writer()

    def upsert(txn: Transaction) -> Row | None:
        return writer.upsert(txn, {ID: 2, A: 5, B: 0}, lambda there, proposed: None, arbiters=[2])

    assert bench.statement(writer, upsert) is None
    with pytest.raises(UniqueViolation, match="t_a_key"):
        bench.statement(
            writer,
            lambda txn: writer.upsert(txn, {ID: 2, A: 5, B: 0}, lambda there, proposed: None, arbiters=[1]),
        )


def _with_c(**more: Any) -> Table:
    return table(columns=(*table().columns, column(C, "c", **more)))


def _stored(bench: Bench, key: int) -> Values:
    return found(bench.store.begin(), bench.layout(), key).values
