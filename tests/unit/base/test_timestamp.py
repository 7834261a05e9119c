import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.timestamp import (
    LOGICAL_MAX,
    MAX_AT,
    ZERO_AT,
    add_seconds,
    from_bytes,
    from_micros,
    logical_of,
    micros_of,
    parse,
    seconds_between,
    to_bytes,
    to_text,
)

MICROS_MAX = 2**53 - 1
timestamps = st.integers(ZERO_AT, MAX_AT)


def test_text_is_microseconds_and_ten_digits_of_counter() -> None:
    assert to_text(from_micros(1763230000000000, 7)) == "1763230000000000.0000000007"
    assert to_text(ZERO_AT) == "0.0000000000"
    assert to_text(MAX_AT) == "9007199254740991.0000001023"


@given(timestamps)
def test_text_is_read_back_exactly(at: int) -> None:
    assert parse(to_text(at)) == at
    assert parse(f"  {to_text(at)}\n") == at


@given(timestamps, timestamps)
def test_texts_of_equal_length_sort_as_the_timestamps_do(left: int, right: int) -> None:
    a, b = to_text(left), to_text(right)
    if len(a) == len(b):
        assert (a < b) == (left < right)


@given(st.integers(10**15, MICROS_MAX - 1), st.integers(0, LOGICAL_MAX), st.integers(0, LOGICAL_MAX))
def test_the_counter_sorts_within_its_microsecond(micros: int, first: int, second: int) -> None:
    left, right = from_micros(micros, first), from_micros(micros, second)
    assert (to_text(left) < to_text(right)) == (left < right) == (first < second)
    assert left < from_micros(micros + 1)


def test_the_counter_may_be_left_out_of_the_text() -> None:
    assert parse("1763230000000000") == from_micros(1763230000000000)


@pytest.mark.parametrize(
    "text",
    ["", ".", "1.", "1.7", "1.00000000070", "-1", "+1", "1e6", "1_000", "0x1", "٣", "1 .0000000000", "now"],
)
def test_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a timestamp"):
        parse(text)


@pytest.mark.parametrize("text", ["1.0000001024", "9007199254740992", "9999999999999999.0000000000"])
def test_text_outside_the_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="outside the range of timestamps"):
        parse(text)


@given(timestamps)
def test_a_timestamp_is_its_microseconds_and_its_counter(at: int) -> None:
    assert from_micros(micros_of(at), logical_of(at)) == at


def test_the_next_timestamp_carries_a_full_counter_into_the_microseconds() -> None:
    assert from_micros(5, LOGICAL_MAX) + 1 == from_micros(6, 0)


@pytest.mark.parametrize(("micros", "logical"), [(-1, 0), (0, -1), (0, LOGICAL_MAX + 1), (MICROS_MAX + 1, 0)])
def test_parts_outside_the_range_are_refused(micros: int, logical: int) -> None:
    with pytest.raises(ValueError, match="outside the range"):
        from_micros(micros, logical)


def test_the_greatest_parts_make_the_greatest_timestamp() -> None:
    assert from_micros(MICROS_MAX, LOGICAL_MAX) == MAX_AT


def test_adding_seconds_keeps_the_counter() -> None:
    at = from_micros(1_000_000, 7)
    assert add_seconds(at, 2.5) == from_micros(3_500_000, 7)
    assert add_seconds(at, -0.000001) == from_micros(999_999, 7)


def test_adding_seconds_stays_within_the_range() -> None:
    assert add_seconds(from_micros(1_000_000), -2) == ZERO_AT
    assert add_seconds(MAX_AT, 1) == MAX_AT


@given(st.integers(10**15, 2 * 10**15), st.integers(0, LOGICAL_MAX), st.integers(-(10**14), 10**14))
def test_seconds_between_undoes_adding_seconds(micros: int, logical: int, moved_micros: int) -> None:
    at = from_micros(micros, logical)
    seconds = moved_micros / 1_000_000
    assert seconds_between(at, add_seconds(at, seconds)) == seconds


@given(timestamps, timestamps)
def test_eight_bytes_order_as_the_timestamps_do(left: int, right: int) -> None:
    assert len(to_bytes(left)) == 8
    assert from_bytes(to_bytes(left)) == left
    assert (to_bytes(left) < to_bytes(right)) == (left < right)
