"""Keys of whole columns against the keys of their rows, and their order against Python's."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.catalog.descriptors.definitions import TypeRef
from tenure.expr.types.datatype import Type
from tenure.kv.encoding import Descending, encode
from tenure.kv.keys import KEY_BYTES_MAX, Keyspace
from tenure.table.arrow import array
from tenure.table.compiled_index import CompiledIndex
from tenure.table.key_arrays import (
    Entries,
    KeyColumn,
    entry_arrays,
    key_array,
    key_columns,
    number_column,
    too_long,
)
from tenure.table.key_order import argsort, argsort_numbers, doubled, even, plain, reordered
from tenure.table.packing import pack
from tenure.table.rows import Layout
from tests.unit.expr.oracle import named
from tests.unit.expr.values import ARRAYS, MOODS, VALUES, mood
from tests.unit.table.tables import column, index, table

KINDS: dict[str, tuple[Type, st.SearchStrategy[Any]]] = {
    **{name: (named(name), values) for name, values in (VALUES | ARRAYS).items() if name != "json"},
    "mood": (mood(), MOODS),
}
UNEVEN = st.one_of(
    st.integers(0, 63).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1)),
    st.sampled_from([0, 1, -1, 255, 256, -255, -256, 2**63 - 1, -(2**63), 1 - 2**63]),
)
TEXTS = st.text("aé€\U0001f600\0\1", max_size=9)


def one_by_one(parts: list[KeyColumn], rows: list[tuple[Any, ...]]) -> list[bytes]:
    def element(part: KeyColumn, value: Any) -> Any:
        return Descending(part.type.key(value)) if part.is_descending else part.type.key(value)

    return [encode([element(*each) for each in zip(parts, row, strict=True)]) for row in rows]


def packed(kind: Type, values: list[Any]) -> Any:
    """Without what a decimal cannot hold."""
    if kind.family == "numeric" and kind.ref.modifiers:
        values = [None if each is None or not each.is_finite() else each for each in values]
    return array(kind, [kind.pack(each) for each in values])


@pytest.mark.invariant("key-arrays")
@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_a_column_of_keys_is_the_keys_of_its_values(name: str, data: st.DataObject) -> None:
    kind, strategy = KINDS[name]
    values = data.draw(st.lists(st.none() | strategy, max_size=12))
    part = KeyColumn(1, kind, data.draw(st.booleans()))
    made = key_array([part], {1: packed(kind, values)})
    assert made.to_pylist() == one_by_one([part], [(each,) for each in values])


@pytest.mark.invariant("key-arrays")
@given(st.lists(st.tuples(st.none() | UNEVEN, st.none() | TEXTS, st.binary(max_size=4))), st.booleans())
def test_keys_of_several_parts_are_joined_row_by_row(rows: list[tuple[Any, ...]], is_down: bool) -> None:
    kinds = [named("int8"), named("text"), named("bytea")]
    parts = [KeyColumn(id, kind, is_down) for id, kind in enumerate(kinds)]
    columns = {id: array(kind, [row[id] for row in rows]) for id, kind in enumerate(kinds)}
    assert key_array(parts, columns).to_pylist() == one_by_one(parts, rows)


def test_slices_and_chunks_give_the_keys_of_their_rows() -> None:
    part = KeyColumn(1, named("text"))
    whole = pa.array(["a\0", "b", None, "d"])
    keys = one_by_one([part], [("a\0",), ("b",), (None,), ("d",)])
    assert key_array([part], {1: whole.slice(1, 2)}).to_pylist() == keys[1:3]
    assert key_array([part], {1: pa.chunked_array([whole.slice(0, 1), whole.slice(1)])}).to_pylist() == keys
    down = KeyColumn(1, named("int8"), is_descending=True)
    numbers = pa.array([1, None, 300]).slice(1)
    assert key_array([down], {1: numbers}).to_pylist() == one_by_one([down], [(None,), (300,)])


def test_more_rows_than_a_block_have_their_own_keys() -> None:
    values = np.arange(-70_000, 70_000) * 3
    made = key_array([KeyColumn(1, named("int8"))], {1: pa.array(values)})
    assert made.to_pylist() == [encode([int(each)]) for each in values]


def test_a_value_that_arrow_cannot_hold_is_taken_from_the_rest() -> None:
    kind = named("numeric(5,2)")
    part, other = KeyColumn(1, kind), KeyColumn(2, named("date"))
    days = array(named("date"), [None, 0, 1])
    numbers = array(kind, [None, None, [2, 150]])
    rest = pa.array([pack({1: "NaN", 9: 0}), None, pack({9: 1})], pa.binary())
    made = key_array([part, other], {1: numbers, 2: days}, rest)
    rows = [
        (kind.parse("NaN"), None),
        (None, other.type.unpack(0)),
        (kind.parse("1.5"), other.type.unpack(1)),
    ]
    assert made.to_pylist() == one_by_one([part, other], rows)
    entries = entry_arrays([part], [other], {1: numbers, 2: days}, rest, is_unique=True)
    assert entries.keys[0].as_py() == encode([kind.parse("NaN")])


@pytest.mark.invariant("key-arrays")
@given(st.lists(st.tuples(UNEVEN, st.none() | TEXTS, st.none() | UNEVEN)), st.booleans())
def test_entries_of_secondary_indexes_are_those_of_the_rows(
    rows: list[tuple[Any, ...]], is_unique: bool
) -> None:
    layout = Layout(
        table(
            index(2, "t_b_a", 3, 2, unique=is_unique, descending=[2]),
            columns=[column(1, "id"), column(2, "a", TypeRef("text")), column(3, "b")],
        ),
        Keyspace(1),
    )
    secondary, primary = layout.indexes[2], layout.primary
    arrays = {1 + at: array(layout.columns[1 + at].type, [row[at] for row in rows]) for at in range(3)}
    made = entry_arrays(key_columns(secondary), key_columns(primary), arrays, is_unique=is_unique)
    expected = [_entry(secondary, primary, dict(zip((1, 2, 3), row, strict=True))) for row in rows]
    assert list(zip(*map(pa.Array.to_pylist, made), strict=True)) == expected
    assert isinstance(made, Entries)


def _entry(secondary: CompiledIndex, primary: CompiledIndex, values: dict[int, Any]) -> tuple[bytes, bytes]:
    stem, suffix = secondary.suffix(values), primary.suffix(values)
    is_stem = secondary.is_unique and not secondary.has_null(values)
    return (stem if is_stem else stem + suffix), suffix


@given(
    st.one_of(
        st.lists(st.tuples(UNEVEN)),
        st.lists(st.tuples(st.integers(0, 3), TEXTS)),
        st.lists(st.tuples(st.just("x" * 30), st.text("ab", max_size=80), st.integers(0, 1))),
    )
)
def test_argsort_orders_keys_as_bytes_and_keeps_equal_ones_in_place(rows: list[tuple[Any, ...]]) -> None:
    keys = [encode(row) for row in rows]
    expected = sorted(range(len(keys)), key=keys.__getitem__)
    assert argsort(pa.array(keys, pa.binary())).tolist() == expected


@pytest.mark.parametrize("name", ["int2", "int4", "int8", "date", "time", "timestamp", "timestamptz"])
@given(data=st.data())
def test_numbers_days_and_times_have_the_order_of_their_keys(name: str, data: st.DataObject) -> None:
    kind, strategy = KINDS[name]
    values = packed(kind, data.draw(st.lists(st.none() | strategy, max_size=12)) * 2)
    keys = key_array([KeyColumn(1, kind)], {1: values})
    assert argsort_numbers(values).tolist() == argsort(keys).tolist()
    layout = Layout(table(columns=[column(1, "id", kind.ref)]), Keyspace(1))
    assert number_column(layout.primary) == 1


@given(st.lists(UNEVEN, max_size=200))
def test_whole_numbers_of_any_size_have_the_order_of_their_keys(numbers: list[int]) -> None:
    expected = sorted(range(len(numbers)), key=numbers.__getitem__)
    assert argsort_numbers(pa.array([0, *numbers], pa.int64()).slice(1)).tolist() == expected


def test_keys_of_texts_of_several_columns_or_descending_are_not_in_the_order_of_numbers() -> None:
    columns = [column(1, "id"), column(2, "a"), column(3, "b", TypeRef("text"))]
    for key in ([3], [1, 2]):
        layout = Layout(table(columns=columns, key=key), Keyspace(1))
        assert number_column(layout.primary) is None
    others = [index(2, "down", 1, primary=2, descending=[1]), index(3, "t_a", 2)]
    indexes = Layout(table(*others, columns=columns), Keyspace(1)).indexes
    assert [number_column(indexes[id]) for id in (1, 2, 3)] == [1, None, None]


def test_too_long_finds_the_keys_that_an_index_would_refuse() -> None:
    most = KEY_BYTES_MAX - len(Keyspace(1).head(200, 1))
    assert too_long(pa.array([b"x" * most, b"x" * (most + 1), b""])).tolist() == [1]


def test_keys_of_one_length_become_values_of_fixed_size_and_back() -> None:
    keys = [bytes([7, each * 37 % 256, 1]) for each in range(40)]
    given = pa.array([b"cut off", *keys], pa.binary()).slice(1)
    made = even(given)
    assert made.type == pa.binary(3)
    assert plain(made).equals(given)
    order = sorted(range(5, 40), key=lambda row: keys[row])
    assert argsort(made.slice(5)).tolist() == [row - 5 for row in order]
    assert doubled(pa.array([b"a", b"b", b"b"], pa.binary(1))).tolist() == [2]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["aa", "bb", "cc", "dd"]).slice(1),
        pa.array(["a", "bbb", "cc", "d"]).slice(1),
        pa.array(["aa", None, "cc", "dd"]).slice(1),
        pa.array([b"", b"", b"", b""]).slice(1),
        pa.array([b"12", b"34", b"56", b"78"]).slice(1),
        pa.array([1, 2, None, 4]).slice(1),
        pa.array([b"12", b"34", b"56", b"78"], pa.binary(2)).slice(1),
    ],
)
def test_values_are_taken_as_they_are_whatever_their_length(column: Any) -> None:
    made = reordered(column, np.array([2, 0, 1]))
    made.validate(full=True)
    assert made.type == column.type
    values = column.to_pylist()
    assert made.to_pylist() == [values[2], values[0], values[1]]


@pytest.mark.parametrize("keys", [[b"a", b"bc"], [b""], []])
def test_keys_of_many_lengths_stay_as_they_are(keys: list[bytes]) -> None:
    given = pa.array(keys, pa.binary())
    assert even(given) is given


def test_doubled_finds_what_equals_the_key_before() -> None:
    assert doubled(pa.array([b"a", b"a", b"b", b"c", b"c", b"c"])).tolist() == [1, 4, 5]
    assert doubled(pa.array([b"a"])).tolist() == []
    assert doubled(pa.array([], pa.binary())).tolist() == []
