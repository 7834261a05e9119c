"""Entries made straight from stored rows, beside those that a whole row gives."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.base.env import ManualEnv
from tenure.catalog.descriptors.definitions import Index, TypeRef, replace
from tenure.expr.types.type_names import type_of
from tenure.kv.store import Store
from tenure.storage.sqlite.sqlite_engine import MEMORY, SqliteEngine
from tenure.table.columns import filled_with
from tenure.table.entry_makers import entry_maker, key_maker
from tenure.table.rows import IndexEntry
from tests.unit.table.tables import (
    DELETE_ONLY,
    ID,
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
from tests.unit.table.trees import CONTEXT, above

C, D, E = 4, 5, 6
CHAR = TypeRef("char", modifiers=(8,))
COLUMNS = (
    column(ID, "id", is_nullable=False),
    column(A, "a"),
    column(B, "b", NUMERIC),
    column(C, "c", TEXT),
    column(D, "d", CHAR),
)
LATER = (*COLUMNS, column(E, "e", filled=filled_with(type_of(TypeRef("int8")), 7)))
INDEXES = (
    index(2, "secondary", C, A, state=WRITE_ONLY, descending=[A]),
    index(3, "unique", A, unique=True, state=WRITE_ONLY),
    index(4, "primary", A, B, unique=True, state=WRITE_ONLY, primary=4),
    index(5, "of_char", D, E, unique=True, state=WRITE_ONLY, primary=5, descending=[D]),
)
ROWS = st.lists(
    st.tuples(
        st.integers(-300, 300) | st.none(),
        st.sampled_from([Decimal("1.50"), Decimal("-0"), Decimal("1E3"), None]),
        st.sampled_from(["", "x", "y z ", None]),
        st.sampled_from(["", "abc", "abc  ", None]),
    ),
    max_size=5,
)


@settings(max_examples=40)
@given(ROWS, ROWS, st.sampled_from(INDEXES), st.booleans())
@pytest.mark.invariant("maker-same")
def test_a_maker_gives_the_entry_of_the_whole_row(
    before: list[tuple[object, ...]], after: list[tuple[object, ...]], made: Index, is_leaving: bool
) -> None:
    env = ManualEnv()
    bench = Bench(Store(SqliteEngine(MEMORY, env), env), table(columns=COLUMNS))
    for id, row in enumerate(before):
        bench.insert(id, *row)
    bench.show(table(columns=LATER, version=2))
    for id, row in enumerate(after, len(before)):
        bench.insert(id, *row, id)
    # Rows written before a column came lack it; those of one that goes have what nobody writes any more.
    columns = [replace(each, state=DELETE_ONLY) if is_leaving and each.id == C else each for each in LATER]
    layout = bench.show(table(*(() if is_leaving and made.id == 2 else (made,)), columns=columns, version=3))
    keyed = layout.indexes.get(made.id)
    if keyed is None:
        return
    make = entry_maker(layout, keyed)
    assert make is not None
    stored = list(bench.store.snapshot().scan(layout.primary.span()))
    for (key, value), (entry, values) in zip(stored, make(stored).entries if stored else (), strict=True):
        row_of = layout.row(layout.primary, key, value)
        assert entry == layout.entry(keyed, row_of, CONTEXT)
        assert values == tuple(row_of.values[id] for id in keyed.columns)


def test_a_key_is_that_of_the_entry_where_nothing_is_null(store: Store) -> None:
    bench = Bench(store, table(columns=COLUMNS))
    bench.insert(1, 5, Decimal(2), "x", "y")
    layout = bench.show(table(*INDEXES[1:3], columns=COLUMNS, version=2))
    ((key, value),) = store.snapshot().scan(layout.primary.span())
    row = layout.row(layout.primary, key, value)
    for id in (3, 4):
        make, entry = key_maker(layout, layout.indexes[id]), layout.entry(layout.indexes[id], row, CONTEXT)
        assert make is not None and isinstance(entry, IndexEntry)
        assert [made for made, _ in make([(key, value)])] == [entry.key]


def test_an_index_that_needs_the_whole_row_has_no_maker(store: Store) -> None:
    partial = index(2, "partial", A, unique=True, state=WRITE_ONLY, predicate=above(A, 5))
    new = index(3, "new", A, unique=True, state=WRITE_ONLY, primary=3)
    into_new = index(4, "into_new", B, state=WRITE_ONLY, primary=3)
    layout = Bench(store, table(partial, new, into_new)).layout()
    assert entry_maker(layout, layout.indexes[2]) is None
    assert entry_maker(layout, layout.indexes[4]) is None
    assert entry_maker(layout, layout.primary) is None
    assert key_maker(layout, layout.indexes[2]) is None
    assert key_maker(layout, layout.indexes[4]) is None
