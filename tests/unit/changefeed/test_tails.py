"""The tail of a node: what many feeds need is read once; nothing is lost when a feed leaves and joins it."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tenure.base.errors import CorruptData
from tenure.changefeed import tail as tails
from tenure.storage.engine import History, ReadResult, head_of
from tests.seeds import seeds
from tests.unit.changefeed.feeding import Feeding, SteppedFeed, after
from tests.unit.changefeed.random_work import RandomWork


class Reads:
    """The histories that are read, by head; some heads cannot be read."""

    def __init__(self, feeding: Feeding, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heads: list[bytes] = []
        self.broken: set[bytes] = set()
        self._read = feeding.node.store.engine.history
        self._keyspace = feeding.node.store.keyspace
        monkeypatch.setattr(feeding.node.store.engine, "history", self._history)

    def _history(self, history: History) -> ReadResult:
        self.heads.append(head_of(history.lo))
        if self.heads[-1] in self.broken:
            raise CorruptData("this head cannot be read")
        return self._read(history)

    def of(self, feeding: Feeding, name: str) -> int:
        return self.heads.count(self.head(feeding, name))

    def head(self, feeding: Feeding, name: str) -> bytes:
        table = feeding.table(name)
        return self._keyspace.head(table.id, table.primary)


@contextmanager
def feeds(feeding: Feeding, count: int, *names: str) -> Iterator[list[SteppedFeed]]:
    """Feeds that have joined the tail."""
    with ExitStack() as stack:
        found = [stack.enter_context(feeding.feed(*names)) for _ in range(count)]
        for feed in found:
            while feed.feed.step():
                pass
        yield found


def test_twenty_feeds_of_a_table_read_its_changes_once(
    feeding: Feeding, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with feeds(feeding, 20) as twenty:
        reads = Reads(feeding, monkeypatch)
        feeding.done("INSERT INTO t VALUES (1), (2)")
        for feed in twenty:
            assert after(feed.catch_up()) == [{"a": 1}, {"a": 2}]
        assert reads.of(feeding, "t") == 1


def test_tables_that_nobody_writes_to_are_not_read(feeding: Feeding, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"t{number}" for number in range(20)]
    for name in names:
        feeding.done(f"CREATE TABLE {name} (a int PRIMARY KEY)")
    with feeds(feeding, 1, *names) as (feed,):
        reads = Reads(feeding, monkeypatch)
        feeding.done("INSERT INTO t7 VALUES (1)")
        assert after(feed.catch_up()) == [{"a": 1}]
        assert reads.of(feeding, "t7") == 1
        assert sum(reads.of(feeding, name) for name in names) == 1


def test_a_head_that_cannot_be_read_concerns_its_own_feeds_alone(
    feeding: Feeding, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("t", "u"):
        feeding.done(f"CREATE TABLE {name} (a int PRIMARY KEY)")
    with feeds(feeding, 1, "t") as (good,), feeds(feeding, 1, "u") as (bad,):
        reads = Reads(feeding, monkeypatch)
        reads.broken.add(reads.head(feeding, "u"))
        feeding.done("INSERT INTO t VALUES (1)")
        feeding.done("INSERT INTO u VALUES (1)")
        assert after(good.catch_up()) == [{"a": 1}]
        with pytest.raises(CorruptData):
            bad.catch_up()
        reads.broken.clear()
        assert after(bad.catch_up()) == [{"a": 1}]


def test_a_feed_whose_sink_is_slow_leaves_the_tail_and_loses_nothing(
    feeding: Feeding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "QUEUE_BYTES", 2_000)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with feeds(feeding, 2) as (quick, slow):
        for number in range(30):
            feeding.done(f"INSERT INTO t VALUES ({number})")
            quick.catch_up()
            assert slow.feed.queued_bytes <= 2_000
        assert after(slow.catch_up()) == [{"a": number} for number in range(30)]
        feeding.done("INSERT INTO t VALUES (30)")
        assert after(slow.catch_up()) == [{"a": 30}]


def test_more_changes_than_a_look_takes_are_read_by_each_feed(
    feeding: Feeding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "LOOK_ROWS", 10)
    feeding.done("CREATE TABLE t (a int PRIMARY KEY)")
    with feeds(feeding, 2) as both:
        for number in range(30):
            feeding.done(f"INSERT INTO t VALUES ({number})")
        for feed in both:
            assert after(feed.catch_up()) == [{"a": number} for number in range(30)]


@pytest.mark.invariant("tail-complete")
@pytest.mark.parametrize("seed", seeds(12, few=3))
def test_feeds_that_leave_and_join_at_random_rebuild_the_table(
    feeding: Feeding, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(tails, "QUEUE_BYTES", 1_500)
    monkeypatch.setattr(tails, "LOOK_ROWS", 6)
    work = RandomWork(feeding, rng, with_lake=False)
    with feeds(feeding, 3, "t") as all:
        for _ in range(30):
            work.step()
            for feed in all:
                if rng.random() < 0.3:
                    feed.catch_up(restarts=rng.random() < 0.2)
                    feed.compare()
                elif rng.random() < 0.3:
                    feed.feed.step()
        for feed in all:
            feed.catch_up()
            feed.compare()
