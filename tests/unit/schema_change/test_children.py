"""Children of a transaction that changes a table: each is a commit under the fence of the change's job."""

import pytest

from tenure.base.errors import FenceLost
from tenure.cluster.jobs.job_table import Fence
from tenure.kv.transaction import Transaction
from tenure.schema_change.in_transaction import _Children
from tenure.schema_change.job import KIND
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.schema_change.declared import created


def _claimed(node: SchemaNode) -> Fence:
    def claim(txn: Transaction) -> Fence:
        job = node.jobs.create(txn, kind=KIND)
        fence = node.jobs.claim(txn, job.id, node.liveness.session().id)
        assert fence is not None
        return fence

    return node.store.transact(claim)


def _adopt(by: SchemaNode, fence: Fence) -> None:
    """The job's session has died and is buried; another node takes the job."""

    def take(txn: Transaction) -> None:
        by.sessions.release(txn, fence.session)
        assert by.jobs.claim(txn, fence.job, by.liveness.session().id) is not None

    by.store.transact(take)


@pytest.mark.invariant("I23")
def test_a_child_writes_nothing_once_the_job_was_adopted_elsewhere(
    node: SchemaNode, other: SchemaNode
) -> None:
    key = node.store.keyspace.key(created(node), (1,))
    fence, parent = _claimed(node), node.store.begin()
    children = _Children(parent, node.jobs, fence)
    children(lambda txn: txn.put(key, b"held"))
    _adopt(other, fence)
    with pytest.raises(FenceLost):
        children(lambda txn: txn.put(key, b"late"))
    parent.rollback()
    assert other.store.snapshot().get(key) == b"held"


@pytest.mark.invariant("I23")
def test_a_child_that_is_under_way_when_the_job_is_adopted_does_not_commit(
    node: SchemaNode, other: SchemaNode
) -> None:
    key = node.store.keyspace.key(created(node), (1,))
    fence, parent = _claimed(node), node.store.begin()

    def write(txn: Transaction) -> None:
        txn.put(key, b"late")
        _adopt(other, fence)

    with pytest.raises(FenceLost):
        _Children(parent, node.jobs, fence)(write)
    parent.rollback()
    assert other.store.snapshot().get(key) is None
