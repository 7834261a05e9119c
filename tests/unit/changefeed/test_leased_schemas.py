"""The fast path: locked tables in the newest lease prove which schema rows are read with."""

import random

import pytest

from tenure.changefeed.leased_schema import FeedLeases, LeasedSchema
from tenure.changefeed.table_stream import FeedSources
from tests.seeds import seeds
from tests.unit.changefeed.feeding import Feeding, after
from tests.unit.changefeed.random_work import RandomWork

STEPS = 40


class LeasedFeeding(Feeding):
    """Its feeds ask the leases of the node; its table is locked by hand."""

    def sources(self) -> FeedSources:
        return super().sources()._replace(node=FeedLeases(self.node.leases, self.node.locks))

    def lock(self, name: str = "t") -> None:
        self.done(f"ALTER TABLE {name} SET (schema_locked = true)")
        self.until_locked(name)

    def until_locked(self, name: str = "t") -> None:
        """The table is locked, and this node's newest lease knows."""
        while not self.table(name).is_locked:
            self.node.locks.step()
        self.node.leases.renew()

    def schema_feed(self, name: str = "t") -> LeasedSchema:
        store, catalog = self.node.store, self.node.catalog
        node = FeedLeases(self.node.leases, self.node.locks)
        return LeasedSchema(store, catalog, self.table(name).id, self.now(), node)


@pytest.fixture
def leased(feeding: Feeding) -> LeasedFeeding:
    return LeasedFeeding(feeding.node)


@pytest.mark.invariant("I34")
def test_rows_of_a_locked_table_take_the_fast_path(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    leased.lock()
    with leased.feed(initial_scan="no") as feed:
        leased.done("INSERT INTO t VALUES (1), (2)")
        assert after(feed.catch_up()) == [{"a": 1}, {"a": 2}]
        assert (feed.feed.position.fast_rows, feed.feed.position.slow_rows) == (2, 0)


def test_rows_of_an_unlocked_table_take_the_slow_path(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    with leased.feed(initial_scan="no") as feed:
        leased.done("INSERT INTO t VALUES (1), (2)")
        assert after(feed.catch_up()) == [{"a": 1}, {"a": 2}]
        assert (feed.feed.position.fast_rows, feed.feed.position.slow_rows) == (0, 2)


@pytest.mark.invariant("I34")
def test_a_row_from_before_the_locked_version_is_not_proved_by_it(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    before_at = leased.now()
    schema = leased.schema_feed()
    leased.lock()
    schema.peek(before_at)
    assert not schema.is_fast
    schema.peek(leased.now())
    assert schema.is_fast


@pytest.mark.invariant("I34")
def test_rows_at_or_beyond_the_frontier_of_the_lease_are_not_proved_by_it(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    leased.lock()
    schema, lease = leased.schema_feed(), leased.node.leases.peek()
    assert lease is not None
    frontier_at = lease.frontier_at
    assert not leased.node.leases.was_good(lease, (leased.table("t").id,), frontier_at)
    assert schema._is_proved(leased.now())
    assert not schema._is_proved(frontier_at)


@pytest.mark.invariant("I34")
def test_a_table_that_a_publisher_here_has_closed_is_not_proved_by_the_lease(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    leased.lock()
    schema = leased.schema_feed()
    with leased.node.leases.hold([leased.table("t").id], timeout=0.0):
        schema.peek(leased.now())
        assert not schema.is_fast
    schema.peek(leased.now())
    assert schema.is_fast


def test_a_change_in_between_is_an_event_also_if_the_table_is_locked_again(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    leased.lock()
    schema = leased.schema_feed()
    leased.done("ALTER TABLE t ADD COLUMN b int")
    leased.until_locked()
    (event,) = schema.peek(leased.now())
    assert [each.name for each in event.after.table.columns] == ["a", "b"]
    schema.pop(event.at)
    schema.peek(leased.now())
    assert schema.is_fast


def test_a_new_label_of_a_type_is_an_event_also_if_the_table_is_locked_again(leased: LeasedFeeding) -> None:
    leased.done("CREATE TYPE mood AS ENUM ('sad')")
    leased.done("CREATE TABLE t (a int PRIMARY KEY, m mood)")
    leased.lock()
    schema = leased.schema_feed()
    leased.done("ALTER TYPE mood ADD VALUE 'glad'")
    leased.until_locked()
    events = schema.peek(leased.now())
    assert [each.label for each in events[-1].after.enums[0].members] == ["sad", "glad"]


def test_locks_owners_and_comments_are_no_events(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    schema = leased.schema_feed()
    leased.lock()
    leased.done("COMMENT ON TABLE t IS 'mine'")
    leased.done("CREATE VIEW v AS SELECT a FROM t")
    assert list(schema.peek(leased.now())) == []


@pytest.mark.invariant("I34")
@pytest.mark.parametrize("seed", seeds(12, few=3))
def test_the_table_rebuilt_by_the_fast_path_is_the_table(leased: LeasedFeeding, seed: int) -> None:
    rng = random.Random(seed)
    work = RandomWork(leased, rng)
    leased.lock()
    with leased.feed() as feed:
        for _ in range(STEPS):
            work.step()
            if rng.random() < 0.5:
                leased.node.locks.step()
            if rng.random() < 0.4:
                feed.catch_up(restarts=rng.random() < 0.3)
                feed.compare()
        feed.catch_up()
        feed.compare()


def test_a_changefeed_locks_its_table_and_shows_the_share_of_the_fast_path(leased: LeasedFeeding) -> None:
    leased.done("CREATE TABLE t (a int PRIMARY KEY)")
    options = "initial_scan = 'no', min_checkpoint_frequency = '50ms'"
    ((job,),) = leased.rows(f"CREATE CHANGEFEED FOR t INTO '{leased.schema}' WITH {options}")
    leased.until_locked()
    assert leased.table("t").watchers == (int(job or 0),)
    leased.done("INSERT INTO t VALUES (1)")
    query = f"SELECT fast_path_share FROM tenure_internal.changefeed_jobs WHERE job_id = {job}"
    while leased.rows(query) == [(None,)]:
        pass
    ((share,),) = leased.rows(query)
    assert 0 <= float(share or -1) <= 1
    leased.done(f"CANCEL JOB {job}")
