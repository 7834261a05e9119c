"""Rows of a result that is computed again: each is given as often as it is there, whatever the order."""

import random

import pyarrow as pa
import pytest

from tenure.base.errors import StoreError
from tenure.sql.duck.delivered_rows import DeliveredRows


def _batch(*values: int) -> pa.RecordBatch:
    """Rows of one number, whose marks are few: so numbers share some."""
    marks = pa.array([value // 10 for value in values], pa.uint64())
    return pa.record_batch([pa.array(values, pa.int64()), marks], ["c0", "mark"])


def _given(given: DeliveredRows, *values: int) -> list[int]:
    found: list[int] = given.new(_batch(*values)).column(0).to_pylist()
    return found


def test_what_was_not_given_before_is_given_at_once() -> None:
    given = DeliveredRows()
    assert _given(given, 10, 10, 20) == [10, 10, 20]
    assert _given(given) == []
    given.require_all()


def test_what_was_given_is_not_given_again_in_another_order() -> None:
    given = DeliveredRows()
    _given(given, 10, 20, 10)
    given.start_over()
    assert _given(given, 30, 10) == [30]
    assert _given(given, 10, 10, 20, 40) == [10, 40]
    given.require_all()


def test_a_result_can_start_over_more_than_once() -> None:
    given = DeliveredRows()
    given.start_over()
    _given(given, 10, 20)
    given.start_over()
    assert _given(given, 20, 30) == [30]
    given.start_over()
    assert _given(given, 30, 20, 10, 40) == [40]
    given.require_all()


def test_a_row_that_was_given_and_does_not_come_again_is_an_error() -> None:
    given = DeliveredRows()
    _given(given, 10, 20)
    given.start_over()
    assert _given(given, 20) == []
    with pytest.raises(StoreError, match="not the same now"):
        given.require_all()


@pytest.mark.parametrize("seed", range(20))
def test_in_all_every_row_is_given_as_often_as_it_is_there(seed: int) -> None:
    rng = random.Random(seed)
    rows = [10 * rng.randrange(8) for _ in range(40)]
    given, found = DeliveredRows(), list[int]()
    for stop in (rng.randrange(40), rng.randrange(40), 40):
        rng.shuffle(rows)
        left = rows[:stop]
        while left:
            cut = rng.randint(1, 9)
            found += _given(given, *left[:cut])
            left = left[cut:]
        if stop < 40:
            given.start_over()
    given.require_all()
    assert sorted(found) == sorted(rows)


def test_of_more_rows_than_are_marked_none_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.sql.duck.delivered_rows.MARKS_MAX", 3)
    given = DeliveredRows()
    assert _given(given, 1, 2) == [1, 2]
    assert _given(given, 3, 4) == [3, 4]
    with pytest.raises(StoreError, match="too many rows had been given"):
        given.start_over()
