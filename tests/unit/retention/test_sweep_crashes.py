"""A sweep that dies before or after any of its commits: the next one does the rest, and nothing is lost."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from tenure.cluster.jobs.job_states import JobState
from tenure.cluster.jobs.runs import Run
from tenure.kv.transaction import Transaction
from tenure.retention.protections.protection_records import Mode
from tenure.retention.sweeping import job as gc
from tenure.retention.sweeping import removal, rounds
from tests.unit.retention.sweeping import TTL, SweptStore

T = TypeVar("T")

KEPT, DROPPED = 200, 201
COMMITS_MAX = 60
"""No round of this test has more."""


class Crash(BaseException):
    """The process ends here."""


class CrashingRun(Run):
    left, is_after = 0, False

    def transact(self, work: Callable[[Transaction], T]) -> T:
        self.left -= 1
        if self.left == 0 and not self.is_after:
            raise Crash
        result = super().transact(work)
        if self.left == 0:
            raise Crash
        return result


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[SweptStore]:
    monkeypatch.setattr(removal, "BATCH_ROWS", 3)
    monkeypatch.setattr(removal, "CURSOR_BATCHES", 2)
    node = SweptStore()
    # Neither the catalog nor system heads are due, so that each round has the same commits.
    monkeypatch.setattr(rounds, "system_heads", lambda keyspace: iter(()))
    node.set_ttl(10_000_000 * TTL, 9_999)
    yield node
    node.engine.close()


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_a_sweep_goes_on_after_a_crash_at_any_commit(node: SweptStore, is_after: bool) -> None:
    """One history after the other, each with a crash one commit later, until a sweep runs to its end."""
    for commit in range(1, COMMITS_MAX):
        table, dropped = KEPT + 10 * commit, DROPPED + 10 * commit
        point_at = _write(node, table, dropped)
        is_over = _crash(node, commit, is_after=is_after)
        node.sweep()
        assert node.kept(table, "k") == ["0", "5"], commit
        assert node.kept(table, "gone") == []
        assert node.revisions(node.head(dropped)) == []
        assert node.catalog.get(node.store.snapshot(), dropped) is None
        assert node.threshold(node.head(table)) > point_at
        if is_over:
            return
    raise AssertionError("a sweep has more commits than the test thinks")


def _write(node: SweptStore, table: int, dropped: int) -> int:
    node.create(table)
    node.create(dropped)
    point_at = node.put(table, "k", "0")
    node.protect(point_at, Mode.AT, table)
    for number in range(1, 6):
        node.put(table, "k", str(number))
        node.put(dropped, str(number), "x")
    node.put(table, "gone", "x")
    node.put(table, "gone", None)
    node.drop(dropped)
    node.wait(TTL + 60)
    node.transact(lambda txn: txn.put(node.key(99, "tick"), b""))
    return point_at


def _crash(node: SweptStore, commit: int, *, is_after: bool) -> bool:
    """Lets a sweep die at its n-th commit; whether it came to its end instead."""
    job = node.transact(lambda txn: gc.start(txn, node.services))
    run = node.claim(job)
    dying = CrashingRun(node.store, node.jobs, job, run.progress, run.fence)
    dying.left, dying.is_after = commit, is_after
    try:
        gc.sweep(node.services, dying)
        is_over = True
    except Crash:
        is_over = False
    node.transact(lambda txn: node.jobs.step(txn, run.fence, JobState.SUCCEEDED))
    return is_over
