"""A walk of a change: over what bears its job alone, and no further than its waiter allows."""

from collections.abc import Callable

import pytest

from tenure.catalog.descriptors.definitions import ElementState, Index, KeyPart, Table, replace
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.schema_change.stages import Work
from tenure.schema_change.walk import UntrackedProgress, Walk
from tests.unit.schema_change.clusters import SchemaNode
from tests.unit.schema_change.declared import A, created

OWN_JOB, OTHER_JOB = 7, 8


class Canceled(Exception):
    pass


class SavedSteps(UntrackedProgress):
    def __init__(self) -> None:
        self.saved: list[bytes | None] = []

    def save(self, work: Work, following: bytes | None) -> None:
        self.saved.append(following)


def _publish_adding(node: SchemaNode, id: int, job: int) -> Table:
    """The table as a change with this job has left it when all writers keep its new index up."""
    table = node.table(id)
    index = Index(table.next_index, "t_a", (KeyPart(A),), False, ElementState.WRITE_ONLY, primary=1)
    adding = replace(
        table,
        version=table.version + 1,
        indexes=(*table.indexes, index),
        next_index=index.id + 1,
        job=job,
    )
    node.store.transact(lambda txn: node.catalog.put(txn, adding))
    node.step_leases()
    return node.table(id)


def _walk(
    node: SchemaNode, id: int, progress: UntrackedProgress, check: Callable[[], None] = lambda: None
) -> Walk:
    waiter = LeaseWaiter(node.store.clock.now(), check=check)
    return node.changer.walk(
        [id], job=OWN_JOB, transact=node.store.transact, waiter=waiter, progress=progress
    )


def test_a_walk_leaves_alone_what_another_change_is_at(node: SchemaNode) -> None:
    id = created(node)
    node.put_rows(id, (1, 10, 100))
    before = _publish_adding(node, id, OTHER_JOB)
    progress = SavedSteps()
    _walk(node, id, progress).to_the_end()
    _walk(node, id, progress).until_prepared()
    assert node.table(id) == before and progress.saved == []


def test_a_walk_ends_between_two_batches_when_its_waiter_shall(node: SchemaNode) -> None:
    id = created(node)
    node.put_rows(id, (1, 10, 100))
    before = _publish_adding(node, id, OWN_JOB)
    progress = SavedSteps()

    def cancel() -> None:
        raise Canceled

    with pytest.raises(Canceled):
        _walk(node, id, progress, cancel).to_the_end()
    assert node.table(id) == before and progress.saved == []
    _walk(node, id, progress).to_the_end()
    assert [each.name for each in node.table(id).indexes] == ["t_pkey", "t_a"]
    assert progress.saved and node.wrong_indexes(id) == []
