"""A walk of a change: over what bears its job alone, and no further than its waiter allows."""

from collections.abc import Callable

import pytest

from tenure.base.errors import SnapshotTooOld, UniqueViolation
from tenure.catalog.descriptors.definitions import ElementState, Index, KeyPart, Table, replace
from tenure.catalog.leases.lease_waits import LeaseWaiter
from tenure.kv.thresholds import publish_threshold
from tenure.schema_change.stages import Work, WorkKind
from tenure.schema_change.walk import RESTARTS_MAX, UntrackedProgress, Walk
from tenure.storage.engine import ReadResult, Scan
from tenure.table.backfill import BATCH_ROWS
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


def _publish_adding(node: SchemaNode, id: int, job: int, *, unique: bool = False) -> Table:
    """The table as a change with this job has left it when all writers keep its new index up."""
    table = node.table(id)
    index = Index(table.next_index, "t_a", (KeyPart(A),), unique, ElementState.WRITE_ONLY, primary=1)
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


class TrackedSteps(SavedSteps):
    def start_of(self, work: Work) -> bytes | None:
        return self.saved[-1] if self.saved else b""


def test_a_fill_whose_snapshot_falls_below_the_threshold_goes_on_where_it_was(node: SchemaNode) -> None:
    id = created(node)
    node.put_rows(id, *[(number, number, 100) for number in range(3 * BATCH_ROWS)])
    head = node.store.keyspace.head(id, _publish_adding(node, id, OWN_JOB).primary)
    progress = TrackedSteps()

    def stand_still() -> None:
        if len(progress.saved) == 1:
            node.put_rows(id, (-1, -1, 100))
            node.store.transact(
                lambda txn: publish_threshold(txn, node.store.keyspace, head, node.store.snapshot().at)
            )

    _walk(node, id, progress, stand_still).to_the_end()
    places = [place for place in progress.saved if place is not None]
    assert places == sorted(set(places)) and node.wrong_indexes(id) == []
    assert [each.name for each in node.table(id).indexes] == ["t_pkey", "t_a"]


def test_work_that_always_falls_below_the_threshold_ends_with_the_error(node: SchemaNode) -> None:
    id = created(node)
    node.put_rows(id, (1, 10, 100))
    _publish_adding(node, id, OWN_JOB)
    progress, attempts = TrackedSteps(), list[int]()

    def fall_below() -> None:
        attempts.append(len(attempts))
        raise SnapshotTooOld("history is gone")

    with pytest.raises(SnapshotTooOld):
        _walk(node, id, progress, fall_below).to_the_end()
    assert len(attempts) == RESTARTS_MAX + 1 and progress.saved == []


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


class AfterFill(SavedSteps):
    """Calls a function when an index has been filled, before it is proved unique."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def save(self, work: Work, following: bytes | None) -> None:
        super().save(work, following)
        if work.kind is WorkKind.FILL_INDEX and following is None:
            self._call()


def test_an_index_that_nobody_wrote_beside_is_unique_by_its_fill(
    node: SchemaNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = created(node)
    node.put_rows(id, *((number, 10 * number, 100) for number in range(9)))
    _publish_adding(node, id, OWN_JOB, unique=True)
    scan, scanned = node.wire.scan, list[bytes]()

    def noted(query: Scan) -> ReadResult:
        scanned.append(query.lo)
        return scan(query)

    monkeypatch.setattr(node.wire, "scan", noted)
    _walk(node, id, AfterFill(scanned.clear)).to_the_end()
    assert not [lo for lo in scanned if lo.startswith(node.store.keyspace.table_span(id).lo)]
    assert node.wrong_indexes(id) == []


def test_a_row_that_came_after_the_fill_is_among_those_that_are_proved(node: SchemaNode) -> None:
    """The fill has given each row its entry, but a later writer may have taken one over."""
    id = created(node)
    node.put_rows(id, (1, 10, 100), (2, 20, 200))
    _publish_adding(node, id, OWN_JOB, unique=True)

    def copy_row() -> None:
        """As of a writer that did not see the first row's entry."""
        rows = list(node.store.snapshot().scan(node.store.keyspace.index_span(id)))
        third = rows[1][0].replace(rows[1][0][-1:], b"\x03")
        node.store.transact(lambda txn: txn.put(third, rows[0][1]))

    with pytest.raises(UniqueViolation):
        _walk(node, id, AfterFill(copy_row)).to_the_end()
