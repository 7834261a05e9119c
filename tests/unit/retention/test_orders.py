"""Events of retention in every order: what is promised is there, and what is not is refused."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations

import pytest

from tenure.kv.keys import Span
from tenure.retention.protections.protection_records import Mode, Targets
from tests.unit.retention.ordering import EVENTS, FOLLOWS, TABLE, OrderedStore
from tests.unit.retention.protecting import OWNER
from tests.unit.retention.sweeping import SweptStore

RACE = ("up", "down", "stale sweep", "slow commit", "quick protect")


def play(events: Sequence[str], mode: Mode, seen: Counter[str]) -> None:
    """Runs events on a store of their own; then the ttl is a second, and two sweeps follow."""
    store = OrderedStore(mode)
    for event in events:
        store.happen(event)
    store.configure(1)
    for _ in range(2):  # the first may end what the one before it has begun
        store.wait(20)
        store.sweep(TABLE)
        store.check()
    assert store.meta().records == len(store.state().records)
    seen.update(store.outcomes)
    store.engine.close()


@pytest.mark.invariant("I28")
@pytest.mark.invariant("publish-meta")
@pytest.mark.parametrize("mode", Mode)
def test_in_every_order_a_protection_that_commits_is_kept(mode: Mode) -> None:
    """A ttl that rises and falls, a sweep from an old state, protections slow and quick."""
    seen: Counter[str] = Counter()
    for events in permutations(RACE):
        play(events, mode, seen)
    # Each outcome that there can be has come up.
    assert {"slow commit", "slow commit: 40001", "quick protect", "quick protect: 72000"} <= set(seen)
    assert {"stale sweep: published", "stale sweep: stale"} <= set(seen)


def orders(length: int) -> Iterator[tuple[str, ...]]:
    """All orders of so many events, but for those in which an event has nothing to act on."""
    for events in permutations(EVENTS, length):
        before: set[str] = set()
        for event in events:
            if FOLLOWS.get(event, event) not in (*before, event):
                break
            before.add(event)
        else:
            yield events


@pytest.mark.invariant("I27")
@pytest.mark.invariant("I30")
def test_all_orders_of_three_events_keep_what_is_promised() -> None:
    seen: Counter[str] = Counter()
    for events in orders(3):
        play(events, Mode.AT, seen)
    # So short an order has no place for what comes of four events.
    assert {"undrop", "protect at: 72000", "protect after", "clean", "sweep goes on: replaced"} <= set(seen)


@pytest.mark.longer
@pytest.mark.invariant("I27")
@pytest.mark.invariant("I30")
@pytest.mark.parametrize("first", EVENTS)
def test_all_orders_of_four_events_keep_what_is_promised(first: str) -> None:
    seen: Counter[str] = Counter()
    for events in orders(4):
        if events[0] == first:
            play(events, Mode.AT, seen)
    assert seen.total() or first in FOLLOWS


@pytest.mark.parametrize("mode", Mode)
def test_a_protection_of_part_of_an_index_holds_all_of_it(mode: Mode) -> None:
    node = SweptStore()
    node.create(TABLE)
    for name in ("a", "m", "z"):
        node.put(TABLE, name, "old")
    at = node.now()
    for name in ("a", "m", "z"):
        node.put(TABLE, name, "new")
        node.put(TABLE, name, "newest")
    node.put(TABLE, "a", "other index", index=2)
    node.put(TABLE, "a", "newest", index=2)
    part = Span(node.key(TABLE, "m"), node.key(TABLE, "n"))
    id = node.transact(lambda txn: node.protections.protect(txn, at, mode, *OWNER, Targets((), (part,))))
    node.set_ttl(1)
    node.wait(60)
    node.sweep(TABLE)
    kept = ["old", "newest"] if mode is Mode.AT else ["old", "new", "newest"]
    assert [node.kept(TABLE, name) for name in ("a", "m", "z")] == [kept] * 3
    assert len(node.revisions(node.head(TABLE, 2))) == 1
    node.release(id)
    node.wait(60)
    node.sweep(TABLE)
    assert [node.kept(TABLE, name) for name in ("a", "m", "z")] == [["newest"]] * 3
    node.engine.close()
