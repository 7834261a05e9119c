"""How many rows a batch of a sweep looks at, which heads share a commit, and how long the pauses are."""

from collections.abc import Iterator

import pytest

from tenure.cluster.jobs.runs import Run
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping.pace import PAUSE_SECONDS_MAX, SweepPace
from tenure.retention.sweeping.publication import Decisions, publish
from tenure.retention.sweeping.removal import (
    BATCH_ROWS,
    BATCH_ROWS_MAX,
    BATCH_ROWS_MIN,
    BUSY_SECONDS,
    QUIET_SECONDS,
    BatchRows,
    HeadRemoval,
    remove,
)
from tests.unit.retention.sweeping import TTL, SweptStore

T, U, V = 200, 201, 202


@pytest.fixture
def node() -> Iterator[SweptStore]:
    node = SweptStore()
    for table in (T, U, V):
        node.create(table)
    yield node
    node.engine.close()


def begin(node: SweptStore) -> Run:
    return node.claim(node.transact(lambda txn: gc.start(txn, node.services)))


def published(node: SweptStore, garbage: dict[int, int]) -> list[HeadRemoval]:
    """Removals of tables with so many older revisions each."""
    for table, revisions in garbage.items():
        for number in range(revisions + 1):
            node.put(table, "k", str(number))
    node.wait(TTL + 1)
    heads = [node.head(table) for table in garbage]
    decisions = Decisions(node.services, node.tracker.refresh_now())
    assert node.transact(lambda txn: publish(txn, node.services, decisions, heads))
    records = [node.record(head) for head in heads]
    return [HeadRemoval(node.services, record) for record in records if record is not None]


def test_heads_with_little_garbage_share_a_commit(node: SweptStore) -> None:
    removals = published(node, {T: 2, U: 0, V: 3})
    assert remove(begin(node), removals, 30) == 5
    assert all(each.is_finished for each in removals)
    assert [each.record.removed for each in removals] == [2, 0, 3]
    assert [len(node.kept(table, "k")) for table in (T, U, V)] == [1, 1, 1]


def test_of_heads_that_share_a_commit_those_behind_one_with_much_garbage_wait(node: SweptStore) -> None:
    run, removals = begin(node), published(node, {T: 2, U: 20, V: 3})
    assert remove(run, removals, 5) == 7
    assert [each.is_finished for each in removals] == [True, False, False]
    assert [bool(each.record.cursor) for each in removals] == [False, True, False]
    assert remove(run, removals[1:2], 100) == 15
    assert remove(run, removals[2:], 100) == 3
    assert [len(node.kept(table, "k")) for table in (T, U, V)] == [1, 1, 1]
    assert [each.record.removed for each in removals] == [2, 20, 3]


def test_a_head_whose_pair_was_replaced_does_not_stop_those_that_share_its_commit(node: SweptStore) -> None:
    run, removals = begin(node), published(node, {T: 2, U: 4, V: 3})
    decisions = Decisions(node.services, node.tracker.refresh_now())
    node.transact(lambda txn: publish(txn, node.services, decisions, [node.head(T)]))
    assert remove(run, removals, 30) == 7
    assert [each.is_finished for each in removals] == [False, True, True]
    assert [each.record.removed for each in removals] == [0, 4, 3]
    assert len(node.kept(T, "k")) == 3


@pytest.mark.parametrize(("is_busy", "seconds"), [(True, BUSY_SECONDS), (False, QUIET_SECONDS)])
def test_batches_become_as_large_as_their_time_allows(is_busy: bool, seconds: float) -> None:
    batch = BatchRows()
    for _ in range(20):
        batch.adapt(batch.rows * 1e-6, is_busy=is_busy)
    assert batch.rows == pytest.approx(min(BATCH_ROWS_MAX, seconds * 1e6), rel=0.01)


def test_a_large_batch_becomes_small_at_once_when_others_commit() -> None:
    batch = BatchRows()
    for _ in range(20):
        batch.adapt(batch.rows * 1e-6, is_busy=False)
    batch.adapt(0.1, is_busy=True)
    assert batch.rows < BATCH_ROWS
    batch.adapt(0.1, is_busy=True)
    assert batch.rows == BATCH_ROWS_MIN


def test_pauses_are_as_long_as_commits_while_others_commit(
    node: SweptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, pauses, comes = begin(node), list[float](), [True, False, False, True, False]

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if comes[len(pauses) - 1]:
            node.put(T, "k", "by another")

    monkeypatch.setattr(run, "sleep", sleep)
    pace, busy = SweepPace(node.store, run), []
    for _ in comes:
        with pace.commit():
            node.put(U, "k", "its own")
            node.env.advance(0.2)
        busy.append(pace.is_busy)
    assert busy == comes
    assert pauses == pytest.approx([0.2, 0.2, 0.02, 0.02, 0.2])


def test_no_pause_is_longer_than_its_limit(node: SweptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run, pauses = begin(node), list[float]()
    monkeypatch.setattr(run, "sleep", pauses.append)
    with SweepPace(node.store, run).commit():
        node.env.advance(10)
    assert pauses == [PAUSE_SECONDS_MAX]
