"""The keyspace: spans, tenants that cannot meet, and guards that are exact at span borders."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kv.encoding import KeyValue, prefix_end
from tenure.kv.keys import (
    INDEX_MAX,
    TABLE_MAX,
    TENANT_MAX,
    USER_TABLES,
    Keyspace,
    Span,
    disjoint,
)
from tenure.storage.engine import HEAD_BYTES, Guard

KEYS = Keyspace(7)
SMALL = st.sampled_from([1, 2, 254, 255, 256, 257, 65534])
TENANTS = SMALL | st.integers(1, TENANT_MAX)
TABLES = SMALL | st.integers(1, TABLE_MAX)
INDEXES = SMALL | st.integers(1, INDEX_MAX)
COLUMNS = st.lists(st.integers(-(2**63), 2**63) | st.text(max_size=3) | st.binary(max_size=3), max_size=3)


def test_a_key_is_tenant_table_index_and_columns() -> None:
    key = KEYS.key(USER_TABLES, ["a"], index=2)
    assert key[:HEAD_BYTES] == bytes.fromhex("00000007 00000064 0002")
    assert key == KEYS.head(USER_TABLES, 2) + KEYS.key(USER_TABLES, ["a"])[HEAD_BYTES:]


@pytest.mark.parametrize("tenant", [0, -1, TENANT_MAX + 1])
def test_a_tenant_out_of_range_is_a_bug(tenant: int) -> None:
    with pytest.raises(AssertionError):
        Keyspace(tenant)


@pytest.mark.parametrize(("table", "index"), [(0, 1), (TABLE_MAX + 1, 1), (1, 0), (1, INDEX_MAX + 1)])
def test_an_index_out_of_range_is_a_bug(table: int, index: int) -> None:
    with pytest.raises(AssertionError):
        KEYS.head(table, index)


@given(TABLES, INDEXES, COLUMNS)
def test_a_key_lies_in_the_spans_of_its_index_its_table_and_its_tenant(
    table: int, index: int, columns: list[KeyValue]
) -> None:
    key = KEYS.key(table, columns, index)
    for span in (KEYS.index_span(table, index), KEYS.table_span(table), KEYS.all()):
        assert span.lo <= key < span.hi


@given(TABLES, INDEXES, COLUMNS, COLUMNS)
def test_a_prefix_span_has_exactly_the_keys_that_begin_with_it(
    table: int, index: int, prefix: list[KeyValue], columns: list[KeyValue]
) -> None:
    span = KEYS.prefix_span(table, prefix, index)
    inside = KEYS.key(table, prefix + columns, index)
    other = KEYS.key(table, columns, index)
    assert span.lo <= inside < span.hi
    assert (span.lo <= other < span.hi) == other.startswith(span.lo)


@given(TENANTS, TENANTS, TABLES, INDEXES, COLUMNS)
def test_no_tenant_can_form_a_key_or_a_span_of_another(
    ours: int, theirs: int, table: int, index: int, columns: list[KeyValue]
) -> None:
    mine, other = Keyspace(ours), Keyspace(theirs)
    head = mine.head(table, index)
    keys = [mine.key(table, columns, index), mine.threshold_key(head), mine.cleaned_key(head)]
    for key in keys:
        assert mine.owns(key)
        assert other.owns(key) == (ours == theirs)
    for span in spans_of(mine, table, index, columns):
        assert not overlaps(span, other.all()) or ours == theirs
        assert mine.all().lo <= span.lo <= span.hi <= mine.all().hi


def spans_of(keyspace: Keyspace, table: int, index: int, columns: list[KeyValue]) -> Iterator[Span]:
    yield keyspace.all()
    yield keyspace.table_span(table)
    yield keyspace.index_span(table, index)
    yield keyspace.prefix_span(table, columns, index)
    guard = keyspace.guard(keyspace.table_span(table))
    yield Span(guard.threshold_first, guard.threshold_last)
    yield Span(guard.cleaned_first, guard.cleaned_last)


def overlaps(one: Span, other: Span) -> bool:
    return max(one.lo, other.lo) < min(one.hi, other.hi)


def guards(guard: Guard, head: bytes) -> tuple[bool, bool]:
    """Whether the threshold and the cleaned mark of an index lie in a guard's intervals."""
    return (
        guard.threshold_first <= KEYS.threshold_key(head) <= guard.threshold_last,
        guard.cleaned_first <= KEYS.cleaned_key(head) <= guard.cleaned_last,
    )


NEIGHBOURS = [
    KEYS.head(table, index)
    for table in (99, 100, 101, 255, 256)
    for index in (1, 2, 3, 254, 255, 256, 257, INDEX_MAX)
]


@pytest.mark.parametrize("head", NEIGHBOURS)
def test_an_index_span_is_guarded_by_its_own_marks_alone(head: bytes) -> None:
    guard = KEYS.guard(KEYS.head_span(head))
    assert [each for each in NEIGHBOURS if guards(guard, each) != (False, False)] == [head]
    assert guards(guard, head) == (True, True)


@pytest.mark.parametrize("head", NEIGHBOURS)
def test_a_point_is_guarded_by_the_marks_of_its_index_alone(head: bytes) -> None:
    guard = KEYS.point_guard(head + b"\x38a\x00\x01")
    assert [each for each in NEIGHBOURS if guards(guard, each) != (False, False)] == [head]


BORDERS = st.sampled_from(NEIGHBOURS).flatmap(
    lambda head: st.sampled_from([head, prefix_end(head), head + b"\0", head + b"\xff", head[:8], head[:9]])
)


@given(BORDERS, BORDERS, st.sampled_from(NEIGHBOURS))
def test_a_span_is_guarded_by_the_marks_of_exactly_the_indexes_it_touches(
    one: bytes, other: bytes, head: bytes
) -> None:
    span = Span(min(one, other), max(one, other))
    if span.lo == span.hi:
        return
    touches = overlaps(span, KEYS.head_span(head))
    assert guards(KEYS.guard(span), head) == (touches, touches)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=8))
def test_joined_spans_cover_the_same_keys_and_do_not_touch(pieces: list[tuple[int, int]]) -> None:
    spans = [Span(bytes([lo]), bytes([lo + length])) for lo, length in pieces]
    joined = disjoint(spans)
    for number in range(60):
        key = bytes([number])
        assert any(lo <= key < hi for lo, hi in joined) == any(lo <= key < hi for lo, hi in spans)
    assert all(left.hi < right.lo for left, right in pairwise(joined))
