"""Keys as bytes: the oracle is the order and equality of the values themselves."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from functools import cmp_to_key
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import CorruptData, InvalidParameter
from tenure.base.timestamp import MAX_AT
from tenure.kv.encoding import (
    ARRAY_DEPTH_MAX,
    AT_OFFSET,
    At,
    Descending,
    KeyValue,
    Value,
    decode,
    encode,
    encode_timestamp,
    prefix_end,
)

INT_MAX = 2**128 - 1


def plain(value: Any) -> Any:
    return value


def nan_last(value: Any) -> Any:
    is_nan = value.is_nan() if isinstance(value, Decimal) else math.isnan(value)
    return (1, 0) if is_nan else (0, value)


@dataclass(frozen=True)
class Kind:
    """A type of key values and, as oracle, what its values are ordered by."""

    values: st.SearchStrategy[Any]
    order: Callable[[Any], Any] = plain


OFFSETS = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(timezone)
SHORT_INTS = st.integers(-300, 300)
SHORT_TEXT = st.text(st.sampled_from("\0\1ab\u00ff\ud7ff\ue000\uffff\U00010000"), max_size=4)
DIGITS = st.integers(-1000, 1000)

KINDS = {
    "bool": Kind(st.booleans()),
    "int": Kind(st.integers(-INT_MAX, INT_MAX) | SHORT_INTS | st.integers(-70_000, 70_000)),
    "float": Kind(st.floats() | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan]), nan_last),
    "decimal": Kind(
        st.decimals() | st.builds(Decimal.scaleb, DIGITS.map(Decimal), st.integers(-5, 5)), nan_last
    ),
    "str": Kind(st.text(max_size=20) | SHORT_TEXT),
    "bytes": Kind(
        st.binary(max_size=20) | st.lists(st.sampled_from([0, 1, 254, 255]), max_size=4).map(bytes)
    ),
    "uuid": Kind(st.uuids()),
    "date": Kind(st.dates()),
    "time": Kind(st.times()),
    "datetime": Kind(st.datetimes()),
    "instant": Kind(
        st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=OFFSETS)
        | st.datetimes(datetime(2024, 1, 1), datetime(2024, 1, 2), timezones=OFFSETS)
    ),
    "timedelta": Kind(st.timedeltas() | st.timedeltas(timedelta(-1), timedelta(1))),
    "timestamp": Kind(st.integers(0, MAX_AT).map(At)),
    "array": Kind(st.lists(SHORT_INTS, max_size=4).map(tuple)),
    "array of str": Kind(st.lists(SHORT_TEXT, max_size=3)),
    "nested array": Kind(st.lists(st.lists(SHORT_INTS, max_size=2).map(tuple), max_size=3).map(tuple)),
}

by_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


@dataclass(frozen=True)
class Column:
    kind: Kind
    is_descending: bool

    def key_value(self, value: Any) -> KeyValue:
        return Descending(value) if self.is_descending else value

    def compare(self, left: Any, right: Any) -> int:
        """NULL is greatest; a descending column turns everything round."""
        a = (left is None, None if left is None else self.kind.order(left))
        b = (right is None, None if right is None else self.kind.order(right))
        sign = 0 if a == b else (-1 if a < b else 1)
        return -sign if self.is_descending else sign


COLUMNS = st.lists(st.builds(Column, st.sampled_from(list(KINDS.values())), st.booleans()), max_size=4)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[tuple[Any, ...]]]:
    columns = draw(COLUMNS)
    row = st.tuples(*[st.none() | column.kind.values for column in columns])
    return columns, draw(st.lists(row, min_size=2, max_size=5))


def key_of(columns: list[Column], row: tuple[Any, ...]) -> bytes:
    return encode(column.key_value(value) for column, value in zip(columns, row, strict=True))


def any_value() -> st.SearchStrategy[Any]:
    scalars = st.none() | st.one_of([kind.values for kind in KINDS.values()])
    return scalars | scalars.map(Descending)


def sign_of(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


@pytest.mark.invariant("key-order")
@by_kind
@given(data=st.data())
def test_bytes_order_as_values_do(kind: Kind, data: st.DataObject) -> None:
    left, right = data.draw(kind.values), data.draw(kind.values)
    expected = sign_of(kind.order(left), kind.order(right))
    assert sign_of(encode([left]), encode([right])) == expected
    assert sign_of(encode([Descending(right)]), encode([Descending(left)])) == expected


@pytest.mark.invariant("key-order")
@given(tables())
def test_rows_of_mixed_columns_sort_by_their_bytes(table: tuple[list[Column], list[tuple[Any, ...]]]) -> None:
    columns, rows = table

    def compare(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
        signs = (column.compare(a, b) for column, a, b in zip(columns, left, right, strict=True))
        return next((sign for sign in signs if sign), 0)

    by_value = sorted(rows, key=cmp_to_key(compare))
    assert [key_of(columns, row) for row in by_value] == sorted(key_of(columns, row) for row in rows)


@by_kind
@given(data=st.data())
def test_values_come_back_equal_and_of_the_same_type(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(kind.values)
    back, back_descending = decode(encode([value, Descending(value)]))
    assert type(back) is (tuple if isinstance(value, list) else type(value))
    if isinstance(value, list):
        value = tuple(value)
    assert kind.order(back) == kind.order(value)
    assert isinstance(back_descending, Descending)
    assert kind.order(back_descending.value) == kind.order(value)


@pytest.mark.invariant("key-prefix")
@given(st.lists(any_value(), max_size=4), st.lists(any_value(), max_size=4))
def test_a_key_is_put_together_element_by_element(first: list[KeyValue], second: list[KeyValue]) -> None:
    assert encode(first + second) == encode(first) + encode(second)
    assert len(decode(encode(first + second))) == len(first) + len(second)


@pytest.mark.invariant("key-order")
@given(any_value(), any_value())
def test_no_element_is_a_prefix_of_another(left: KeyValue, right: KeyValue) -> None:
    a, b = encode([left]), encode([right])
    assert a == b or not b.startswith(a)


@pytest.mark.invariant("key-prefix")
@given(
    st.lists(any_value(), min_size=1, max_size=3), st.lists(any_value(), max_size=3), st.binary(max_size=4)
)
def test_the_end_of_a_prefix_lies_above_all_keys_below_it(
    prefix: list[KeyValue], rest: list[KeyValue], other: bytes
) -> None:
    start = encode(prefix)
    end = prefix_end(start)
    assert start <= start + encode(rest) < end
    assert start + b"\xff" * 20 < end
    # Smallest: whatever is below the end and not below the start has the prefix.
    assert not start <= other < end or other.startswith(start)


@pytest.mark.parametrize(
    ("data", "end"),
    [(b"a", b"b"), (b"a\xff\xff", b"b"), (b"a\x00", b"a\x01"), (b"\xff\x01\xff", b"\xff\x02")],
)
def test_the_end_of_a_prefix_drops_trailing_ff_bytes(data: bytes, end: bytes) -> None:
    assert prefix_end(data) == end


@pytest.mark.parametrize("data", [b"", b"\xff", b"\xff\xff"])
def test_a_prefix_that_nothing_lies_above_has_no_end(data: bytes) -> None:
    with pytest.raises(ValueError, match="no key lies above"):
        prefix_end(data)


@given(st.lists(st.none() | SHORT_INTS, min_size=2))
def test_null_sorts_last_and_first_under_descending(values: list[int | None]) -> None:
    ascending = sorted(values, key=lambda value: encode([value]))
    descending = sorted(values, key=lambda value: encode([Descending(value)]))
    assert ascending == sorted(values, key=lambda value: (value is None, value or 0))
    assert descending == ascending[::-1]


@pytest.mark.invariant("key-order")
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (0.0, -0.0),
        (math.nan, -math.nan),
        (Decimal("1.0"), Decimal("1.00")),
        (Decimal("1E+2"), Decimal("100")),
        (Decimal("0.00"), Decimal("-0")),
        (Decimal("NaN"), Decimal("-sNaN123")),
        ((1, 2), [1, 2]),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))),
        (time(1, fold=0), time(1, fold=1)),
    ],
)
def test_equal_values_have_equal_bytes(left: KeyValue, right: KeyValue) -> None:
    assert encode([left]) == encode([right])


@pytest.mark.parametrize(
    "magnitude", [2 ** (8 * n) + d for n in range(17) for d in (-1, 0) if 8 * n + d < 128]
)
def test_integers_keep_their_order_where_their_length_changes(magnitude: int) -> None:
    around = sorted({-magnitude - 1, -magnitude, 1 - magnitude, magnitude - 1, magnitude, magnitude + 1})
    around = [value for value in around if abs(value) <= INT_MAX]
    keys = [encode([value]) for value in around]
    assert keys == sorted(keys)
    assert [decode(key) for key in keys] == [(value,) for value in around]


def test_decimals_keep_all_their_digits() -> None:
    value = Decimal("-" + "123456789" * 1000 + "." + "987654321" * 1000)
    assert decode(encode([value])) == (value,)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None], "7f"),
        ([False, True], "0203"),
        ([0, 1, 256, -1, -256], "18 1901 1a0100 17fe 16feff"),
        ([1.5, -1.5], "30bff8000000000000 304007ffffffffffff"),
        ([Decimal("-12.3"), Decimal("12.3"), Decimal(0)], "3102e6fef2e0ff 3104190 10d1f00 3103"),
        (["a\0b", b"\0"], "386100ff620001 3900ff0001"),
        ([UUID(int=1)], "3a" + "0" * 31 + "1"),
        ([date(1, 1, 1), time(0, 0, 1)], "40000001 4100000f4240"),
        ([datetime(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC)], "420000000000000000 430000000000000000"),
        ([timedelta(microseconds=-1)], "4417fe"),
        ([At(7)], "480000000000000007"),
        ([(1, None, ("a",))], "50 1901 7f 50 38610001 00 00"),
        ([Descending(1), Descending(None), Descending("a")], "e6fe 80 c79efffe"),
    ],
)
def test_stored_bytes_never_change(values: list[KeyValue], expected: str) -> None:
    assert encode(values).hex() == expected.replace(" ", "")
    assert encode(decode(encode(values))) == encode(values)


@given(st.integers(0, MAX_AT), st.integers(0, MAX_AT))
def test_a_commit_timestamp_can_be_put_into_a_key(placeholder_at: int, commit_at: int) -> None:
    key = encode(["lease", 4]) + encode_timestamp(placeholder_at) + encode(["rest"])
    offset = len(encode(["lease", 4])) + AT_OFFSET
    stamped = key[:offset] + commit_at.to_bytes(8, "big") + key[offset + 8 :]
    assert stamped == encode(["lease", 4, At(commit_at), "rest"])
    assert decode(stamped) == ("lease", 4, commit_at, "rest")


@pytest.mark.parametrize("at", [-1, MAX_AT + 1])
def test_a_timestamp_out_of_range_is_refused(at: int) -> None:
    with pytest.raises(InvalidParameter, match="outside the range of timestamps"):
        encode_timestamp(at)


class Colour(IntEnum):
    RED = 3


def test_a_subclass_is_encoded_as_its_base() -> None:
    assert encode([Colour.RED]) == encode([3])


def nested(depth: int) -> Value:
    value: Value = ()
    for _ in range(depth - 1):
        value = (value,)
    return value


def test_arrays_nest_as_deep_as_the_limit_says() -> None:
    value = nested(ARRAY_DEPTH_MAX)
    assert decode(encode([value])) == (value,)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\ud800", r"lone surrogate \(U\+D800 at character 1\)"),
        (2**128, "17 bytes is too great"),
        (-(2**128), "17 bytes is too great"),
        (time(1, tzinfo=UTC), "time with a time zone"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "out of range in UTC"),
        (datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-1))), "out of range in UTC"),
        (object(), 'type "object" cannot be part of a key'),
        (nested(ARRAY_DEPTH_MAX + 1), "nested more than 32 deep"),
        (Descending(Descending(1)), "made descending again"),  # type: ignore[arg-type]
        ((Descending(1),), "array cannot be descending"),
    ],
)
def test_what_no_key_can_hold_is_refused(value: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        encode([value])


@pytest.mark.parametrize(
    "text",
    [
        "00",
        "ff",
        "04",
        "19",  # an int without its byte
        "1900",  # an int in more bytes than it needs
        "17ff",
        "30 00",
        "30 7fffffffffffffff",  # -0.0
        "30 fff0000000000001",  # another NaN
        "31",
        "31 07",
        "31 04 18 0b",  # no end of the digits
        "31 04 18 00",  # no digits
        "31 04 18 0a00",  # a leading zero
        "31 04 18 0b0100",  # trailing zeros
        "31 04 18 6500",
        "31 04 03 0b00",
        "31 04 28" + "ff" * 16 + "0b00",  # an exponent of 39 digits
        "38 61",
        "38 6100",
        "38 61000001",
        "38 ff0001",
        "38 eda080 0001",  # a lone surrogate
        "3a 00",
        "40 000000",
        "40 ffffff",
        "41 ffffffffff",
        "42 ffffffffffffffff",
        "44",
        "44 7f",
        "44 28" + "ff" * 16,
        "48 ffffffffffffffff",
        "50",
        "50 1901",
        "50 e6fe 00",  # a descending element
        "50" * 10_000,
        "af" * 10_000,
    ],
)
@pytest.mark.invariant("key-canonical")
def test_bytes_that_no_value_encodes_to_are_corrupt(text: str) -> None:
    with pytest.raises(CorruptData, match=r"^key: "):
        decode(bytes.fromhex(text))


def decodes_to_itself_or_is_corrupt(data: bytes) -> None:
    try:
        values = decode(data)
    except CorruptData:
        return
    assert encode(values) == data


@pytest.mark.invariant("key-canonical")
@given(st.binary(max_size=40))
def test_random_bytes_are_canonical_or_corrupt(data: bytes) -> None:
    decodes_to_itself_or_is_corrupt(data)


@pytest.mark.invariant("key-canonical")
@given(st.lists(any_value(), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_damaged_keys_are_canonical_or_corrupt(values: list[KeyValue], rng: random.Random) -> None:
    data = bytearray(encode(values))
    for _ in range(8):
        data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)])
        decodes_to_itself_or_is_corrupt(bytes(data))
    decodes_to_itself_or_is_corrupt(bytes(data[: rng.randrange(len(data))]))
