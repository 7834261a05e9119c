"""Protections, zones and sweeps of two nodes over one engine: of two that conflict only one commits."""

from collections.abc import Callable
from functools import partial

import pytest

from tenure.base.env import ManualEnv
from tenure.base.errors import RetryError, SnapshotTooOld, UndefinedObject
from tenure.base.timestamp import Timestamp
from tenure.catalog.changes.zone_changes import configure
from tenure.kv.keys import Span
from tenure.kv.thresholds import publish_threshold
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode, Targets
from tenure.retention.tracking.tracker import Tracker
from tenure.storage.engine import Engine
from tests.unit.retention.protecting import OWNER, ProtectedStore

TABLE = 200


class Pair:
    """Two nodes with one table, which was created at `at`."""

    def __init__(self, engine: Engine) -> None:
        env = ManualEnv()
        self.here, self.there = ProtectedStore(engine, env), ProtectedStore(engine, env)
        self.at: Timestamp = self.here.create(TABLE)
        env.advance(5)
        self.here.create(201)

    def protect(self, txn: Transaction, node: ProtectedStore | None = None) -> bytes:
        head = self.here.head(TABLE)
        targets = Targets((TABLE,), (Span(head + b"a", head + b"b"),))
        return (node or self.here).protections.protect(txn, self.at, Mode.AFTER, *OWNER, targets)

    def configure(self, txn: Transaction) -> None:
        configure(txn, self.here.keyspace, (TABLE, 0), gc_ttl_seconds=1)

    def publish(self, txn: Transaction) -> None:
        """What a sweep's publication does, with the version of the meta record that it has read."""
        self.there.listing.metadata(txn)
        publish_threshold(txn, self.there.keyspace, self.there.head(TABLE), self.at + 1)


@pytest.fixture
def pair(engine: Engine) -> Pair:
    return Pair(engine)


@pytest.mark.invariant("I31")
def test_counters_of_two_nodes_are_exact(pair: Pair) -> None:
    ids = [node.transact(partial(pair.protect, node=node)) for node in (pair.here, pair.there)]
    meta = pair.here.meta()
    assert (meta.version, meta.records, meta.spans, meta.objects) == (2, 2, 2, 2)
    pair.there.release(ids[0])
    assert {each.id for each in pair.here.state().records} == {ids[1]}
    assert (pair.here.meta().version, pair.here.meta().records) == (3, 1)


@pytest.mark.invariant("I28")
@pytest.mark.invariant("zone-chain")
@pytest.mark.parametrize("other", ["protect", "configure", "publish"])
def test_of_a_protection_and_another_that_do_not_see_each_other_the_first_commits(
    pair: Pair, other: str
) -> None:
    run: Callable[[Transaction], object] = getattr(pair, other)
    for is_first in (True, False):
        mine, theirs = pair.here.store.begin(), pair.there.store.begin()
        pair.protect(mine)
        run(theirs)
        first, second = (mine, theirs) if is_first else (theirs, mine)
        first.commit()
        with pytest.raises(RetryError):
            second.commit()
        if is_first:
            pair.here.release(pair.here.state().records[0].id)
    assert pair.here.meta().records == (1 if other == "protect" else 0)


def test_what_was_refused_is_refused_again_for_a_reason(pair: Pair) -> None:
    pair.there.transact(pair.publish)
    with pytest.raises(SnapshotTooOld, match='"t200" cannot be protected'):
        pair.here.transact(pair.protect)


def test_a_savepoint_takes_a_protection_back(pair: Pair) -> None:
    def run(txn: Transaction) -> None:
        savepoint = txn.mark()
        pair.protect(txn)
        txn.back_to(savepoint)
        with pytest.raises(UndefinedObject):
            pair.here.protections.protect(txn, pair.at - 1, Mode.AT, *OWNER, Targets((TABLE,)))
        pair.protect(txn)

    pair.here.set_ttl(60)
    pair.here.transact(run)
    assert (pair.there.meta().version, pair.there.meta().records) == (1, 1)


@pytest.mark.invariant("I31")
def test_a_tracker_hears_of_what_another_node_protects(pair: Pair) -> None:
    tracker = Tracker(pair.there.store, lambda: pair.there.settings)
    assert tracker.refresh_now().records == ()
    id = pair.here.transact(pair.protect)
    state = tracker.refresh_now()
    assert [each.id for each in state.records_of([TABLE])] == [id]
    assert [each.id for each in state.records_over(*pair.here.keyspace.index_span(TABLE))] == [id]
    assert state.records == pair.here.listing.list_all(pair.here.store.snapshot(state.read_at)).records
    tracker.close()
