"""Labels of an enum and the bytes that rows hold for them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.errors import UserError
from tenure.base.timestamp import ZERO_AT
from tenure.catalog.descriptors.definitions import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    ROOT,
    DescriptorState,
    ElementState,
    EnumType,
)
from tenure.catalog.descriptors.enum_members import added, between, enum_members, renamed, spread
from tenure.catalog.descriptors.validation import problems


def mood(*labels: str) -> EnumType:
    return EnumType(
        300,
        1,
        ZERO_AT,
        "mood",
        ROOT,
        DescriptorState.PUBLIC,
        (),
        (),
        database=DEFAULT_DATABASE,
        schema=DEFAULT_SCHEMA,
        members=enum_members(labels),
    )


def add(type_: EnumType, label: str, *, before: str | None = None, after: str | None = None) -> EnumType:
    return added(type_, label, before=before, after=after, is_seen=False)


def labels(type_: EnumType) -> list[str]:
    return [member.label for member in type_.members]


@pytest.mark.invariant("enum-order")
@given(st.lists(st.integers(0, 300), max_size=300), st.integers(0, 300))
def test_labels_added_anywhere_are_held_in_their_order(positions: list[int], count: int) -> None:
    held = spread(count)
    for position in positions:
        at = position % (len(held) + 1)
        lower = held[at - 1] if at else b""
        upper = held[at] if at < len(held) else None
        new = between(lower, upper)
        assert lower < new and (upper is None or new < upper)
        assert not new.endswith(b"\0")
        held.insert(at, new)
    assert held == sorted(set(held))


@pytest.mark.parametrize("neighbour", ["before", "after"])
def test_a_thousand_labels_fit_beside_the_same_neighbour(neighbour: str) -> None:
    lower, upper = spread(2)
    for _ in range(1000):
        new = between(lower, upper)
        assert lower < new < upper
        lower, upper = (lower, new) if neighbour == "after" else (new, upper)


def test_labels_stand_where_they_were_asked_for() -> None:
    type_ = add(add(add(mood("low", "high"), "mid", after="low"), "top"), "bottom", before="low")
    assert labels(type_) == ["bottom", "low", "mid", "high", "top"]
    assert problems(type_) == []


def test_a_label_that_others_must_learn_to_read_is_on_its_way_first() -> None:
    type_ = added(mood("low"), "high", before=None, after=None, is_seen=True)
    assert [member.state for member in type_.members] == [ElementState.PUBLIC, ElementState.WRITE_ONLY]


def test_a_renamed_label_is_held_as_before() -> None:
    type_ = renamed(mood("low", "high"), "low", "mid")
    assert labels(type_) == ["mid", "high"]
    assert [each.physical for each in type_.members] == [each.physical for each in mood("a", "b").members]


@pytest.mark.parametrize(
    ("wrong", "sqlstate", "message"),
    [
        (lambda: add(mood("low"), "low"), "42710", 'enum label "low" already exists'),
        (lambda: add(mood("low"), "x", before="y"), "22023", '"y" is not an existing enum label'),
        (lambda: add(mood("low"), "x", after="y"), "22023", '"y" is not an existing enum label'),
        (lambda: renamed(mood("low"), "y", "z"), "22023", '"y" is not an existing enum label'),
        (lambda: renamed(mood("a", "b"), "a", "b"), "42710", 'enum label "b" already exists'),
        (lambda: add(mood("low"), "x" * 64), "42602", f'invalid enum label "{"x" * 64}"'),
        (lambda: mood("a", "a"), "42710", 'enum label "a" is used more than once'),
    ],
)
def test_labels_are_checked(wrong: Callable[[], object], sqlstate: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        wrong()
    assert (caught.value.sqlstate, str(caught.value)) == (sqlstate, message)
