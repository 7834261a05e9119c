"""Thresholds and kept points, against the sentences of the design and against a naive oracle."""

import random

import pytest

from tenure.base.timestamp import Timestamp, add_seconds, from_micros
from tenure.catalog.descriptors.definitions import (
    DescriptorState,
    Index,
    NameKey,
    Schema,
    Table,
)
from tenure.retention.thresholds import (
    Decision,
    HeadHold,
    end_of,
    index_end_of,
    may_collect,
    of_catalog,
    of_index,
)
from tenure.table.lake.keep import Keep


def second(number: float) -> Timestamp:
    return from_micros(round(number * 1_000_000))


def after(seconds: float, protection: bytes = b"") -> HeadHold:
    return HeadHold(second(seconds), True, protection)


def at(seconds: float, protection: bytes = b"") -> HeadHold:
    return HeadHold(second(seconds), False, protection)


def index_at(*holds: HeadHold, now: float = 100, ttl: float = 40, previous: float = 0) -> Decision:
    return of_index(now_at=second(now), ttl_seconds=ttl, previous_at=second(previous), holds=holds)


def pair(threshold: float, *points: float) -> Keep:
    return Keep(second(threshold), tuple(map(second, points)))


CASES = {
    "the ttl alone": (index_at(), Decision(pair(60))),
    "a protect_after below it holds the threshold back": (
        index_at(after(30, b"p")),
        Decision(pair(30), b"p"),
    ),
    "the oldest protect_after decides": (
        index_at(after(50, b"q"), after(30, b"p"), after(40, b"r")),
        Decision(pair(30), b"p"),
    ),
    "a protect_after above it holds nothing back": (index_at(after(60)), Decision(pair(60))),
    "a protect_at below it is a kept point": (index_at(at(30)), Decision(pair(60, 30))),
    "a protect_at at the threshold is readable anyway": (index_at(at(60)), Decision(pair(60))),
    "kept points are in order, each once": (index_at(at(50), at(30), at(50)), Decision(pair(60, 30, 50))),
    "a protect_at below a protect_after is still a point": (
        index_at(after(50, b"p"), at(30)),
        Decision(pair(50, 30), b"p"),
    ),
    "it never goes back: a raised ttl": (index_at(ttl=90, previous=60), Decision(pair(60))),
    "it never goes back: the clock": (index_at(now=50, previous=60), Decision(pair(60))),
    "it never goes back: a protection of another time": (
        index_at(after(20), previous=70),
        Decision(pair(70)),
    ),
    "an index that a merge filled begins with its publication": (index_at(previous=80), Decision(pair(80))),
    "a protect_after from before it holds from its publication on": (
        index_at(after(30, b"p"), previous=80, now=200),
        Decision(pair(80), b"p"),
    ),
    "a ttl longer than all of time keeps everything": (index_at(ttl=1000), Decision(pair(0))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_pair_of_an_index(name: str) -> None:
    decision, expected = CASES[name]
    assert decision == expected


def test_a_ttl_counts_in_wall_time() -> None:
    now_at = second(100) + 7
    decision = of_index(now_at=now_at, ttl_seconds=1.5, previous_at=0)
    assert decision.keep.threshold == add_seconds(now_at, -1.5)


def catalog_at(*holds: HeadHold, ttls: tuple[float, ...] = (40,), previous: float = 0) -> Decision:
    return of_catalog(now_at=second(100), ttls_seconds=ttls, previous_at=second(previous), holds=holds)


def test_the_catalog_is_kept_for_the_longest_ttl_in_force() -> None:
    assert catalog_at(ttls=(40, 70, 1)) == Decision(pair(30))


def test_the_catalog_is_kept_for_every_protection_of_either_mode() -> None:
    assert catalog_at(at(20, b"p"), after(30)) == Decision(pair(20), b"p")
    assert catalog_at(after(20, b"p"), at(30)) == Decision(pair(20), b"p")


def test_the_threshold_of_the_catalog_never_goes_back() -> None:
    assert catalog_at(at(20), previous=50) == Decision(pair(50))
    assert catalog_at(ttls=(90,), previous=50) == Decision(pair(50))


@pytest.mark.invariant("I29")
def test_what_a_sweep_leaves_answers_every_promised_time_and_nothing_more_stays() -> None:
    """A naive oracle: a time is promised if the ttl, an earlier threshold or a protection says so."""
    rng = random.Random(15)
    for _ in range(2_000):
        now, ttl = rng.randrange(5, 40), rng.randrange(1, 20)
        previous = rng.randrange(0, 10)
        holds = [
            HeadHold(second(rng.randrange(previous, 40)), rng.random() < 0.4) for _ in range(rng.randrange(4))
        ]
        decision = of_index(now_at=second(now), ttl_seconds=ttl, previous_at=second(previous), holds=holds)
        keep = decision.keep
        assert keep.threshold >= second(previous)
        first_after = min((hold.at for hold in holds if hold.is_after), default=second(10**6))
        for time in map(second, range(previous, 60)):
            is_promised = (
                time >= max(second(previous), second(now - ttl) if now > ttl else 0)
                or any(hold.at == time for hold in holds)
                or time >= first_after
            )
            is_readable = time >= keep.threshold or time in keep.points
            assert is_readable == is_promised, (now, ttl, previous, holds, decision, time)


# ── ends ────────────────────────────────────────────────────────────────────────────────────────

DRAINS = (NameKey(100, 101, "t"),)


def table(
    modified: int, *indexes: int, state: DescriptorState = DescriptorState.PUBLIC, drains: bool = False
) -> Table:
    return Table(
        200,
        modified,
        second(modified),
        "t",
        "root",
        state,
        (),
        DRAINS if drains else (),
        database=100,
        schema=101,
        columns=(),
        primary=1,
        indexes=tuple(Index(id, f"i{id}", ()) for id in indexes),
    )


DROPPED, COLLECTED = DescriptorState.DROPPED, DescriptorState.COLLECTED


def test_a_dropped_object_ends_at_its_first_version_without_draining_names() -> None:
    versions = [table(1), table(2, state=DROPPED, drains=True), table(3, state=DROPPED)]
    assert end_of(versions) == second(3)
    assert end_of(versions[:2]) is None
    assert end_of(versions[:1]) is None


def test_a_collected_object_ended_when_its_names_were_gone() -> None:
    versions = [table(2, state=DROPPED, drains=True), table(3, state=DROPPED), table(9, state=COLLECTED)]
    assert end_of(versions) == second(3)


def test_what_was_brought_back_and_dropped_again_ended_the_second_time() -> None:
    first = [table(2, state=DROPPED, drains=True), table(3, state=DROPPED), table(4)]
    assert end_of(first) is None
    assert end_of([*first, table(5, state=DROPPED, drains=True), table(6, state=DROPPED)]) == second(6)


def test_a_schema_ends_as_a_table_does() -> None:
    schema = Schema(110, 3, second(3), "s", "root", DROPPED, (), (), database=100)
    assert end_of([schema]) == second(3)


def test_an_index_ends_with_the_first_version_of_its_table_without_it() -> None:
    versions = [table(1, 1, 2), table(2, 1, 2), table(3, 1), table(4, 1)]
    assert index_end_of(versions, 2) == second(3)
    assert index_end_of(versions, 1) is None
    assert index_end_of(versions[-1:], 2) == second(4)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([pair(10)], True),
        ([pair(9)], False),
        ([pair(20, 9)], False),
        ([pair(20, 12)], True),
        ([pair(10), pair(9)], False),
        ([], True),
    ],
)
def test_an_object_is_collected_when_no_readable_time_lies_before_its_end(
    pairs: list[Keep], expected: bool
) -> None:
    assert may_collect(second(10), pairs) is expected
