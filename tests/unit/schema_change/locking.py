"""Tables that are watched and locked, and what their versions must be like."""

from itertools import pairwise

from tenure.catalog.descriptors.definitions import Table
from tenure.catalog.descriptors.equal_versions import row_of
from tenure.cluster.jobs.job_states import JobState
from tenure.kv.keys import Span
from tenure.node import Node
from tests.unit.schema_change.clusters import SchemaNode

NO_KIND = "nobody runs it"


def watch(node: SchemaNode, id: int) -> int:
    """A job that watches a table, as the job of a changefeed would; the table is locked for it."""
    job = node.transact(lambda txn: node.jobs.create(txn, kind=NO_KIND)).id
    node.locks.want(id, job)
    lock(node)
    assert node.table(id).is_locked
    return job


def lock(node: SchemaNode) -> None:
    """All that this node has learned of so far, and may lock, is locked."""
    node.step_leases()
    node.locks.step()
    node.store.env.advance(1.0)  # type: ignore[attr-defined]
    node.locks.step()
    node.step_leases()


def end(node: SchemaNode, job: int) -> None:
    """The changefeed is over."""

    def end(txn: object) -> None:
        fence = node.jobs.claim(txn, job, node.liveness.session().id)  # type: ignore[arg-type]
        assert fence is not None
        node.jobs.step(txn, fence, JobState.SUCCEEDED)  # type: ignore[arg-type]

    node.transact(end)


def versions(node: SchemaNode | Node, id: int) -> list[Table]:
    """All versions of a table, the oldest first."""
    key = node.catalog.key(id)
    page = node.store.history(Span(key, key + b"\0"), since_at=0, until_at=node.store.snapshot().at)
    found = [node.catalog.decode(each.value) for each in page.revisions if each.value is not None]
    return [each for each in found if isinstance(each, Table)]


def broken_locks(listed: list[Table], *, alone: bool = False) -> list[str]:
    """Where a locked version has a neighbour with another `row`; `alone`: its successor may have one."""
    wrong = []
    for before, after in pairwise(listed):
        is_equal = row_of(before) == row_of(after)
        if after.is_locked and not is_equal:
            wrong.append(f"v{after.version} changes and is locked")
        if before.is_locked and not is_equal and not alone:
            wrong.append(f"v{after.version} changes a locked version")
    return wrong
