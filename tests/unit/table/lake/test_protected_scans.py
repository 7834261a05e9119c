"""Scans of the lake and the store in the name of a protection, below the threshold."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tenure.base.errors import SnapshotTooOld
from tenure.base.timestamp import Timestamp
from tenure.kv.keys import PROTECTIONS
from tenure.kv.protected_reads import ProtectedRead
from tenure.kv.thresholds import publish_threshold
from tenure.pipeline import scan
from tenure.pipeline.remote_handles import TableVersion
from tenure.storage.engine import Removal, Removes
from tenure.table.lake.keep import Keep
from tests.unit.pipeline.lakes import Lake
from tests.unit.table.tables import ID, A, B, table


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path, table(), cache_bytes=1)
    yield lake
    lake.close()


def insert(lake: Lake, *ids: int) -> Timestamp:
    writer = lake.writer()
    return lake.write(lambda txn: [writer.insert(txn, {ID: id, A: id, B: id}) for id in ids])


def delete_all(lake: Lake) -> Timestamp:
    span = lake.store.keyspace.index_span(lake.table.id)
    return lake.write(lambda txn: [txn.delete(key) for key, _ in list(txn.scan(span))])


def protect(lake: Lake, at: Timestamp) -> ProtectedRead:
    key = lake.store.keyspace.key(PROTECTIONS, [b"%016d" % at])
    lake.write(lambda txn: txn.put(key, b"protection"))
    head = lake.store.keyspace.head(lake.table.id)
    return ProtectedRead(at, key, lambda other: other == head)


def publish(lake: Lake) -> Timestamp:
    at, keyspace = lake.store.engine.clock_at(), lake.store.keyspace
    lake.write(lambda txn: publish_threshold(txn, keyspace, keyspace.head(lake.table.id), at))
    return at


def scanned(
    lake: Lake, at: Timestamp, protected: Sequence[ProtectedRead], since_at: Timestamp | None = None
) -> list[tuple[object, ...]]:
    span = lake.store.keyspace.index_span(lake.table.id)
    version = TableVersion(lake.table, ())
    tasks = scan.tasks(lake.place, version, at, span, columns=[ID], since_at=since_at, protected=protected)
    names = [f"c{ID}", "deleted"] if since_at is not None else [f"c{ID}"]
    return [tuple(row[name] for name in names) for batch in scan.scanned(tasks) for row in batch.to_pylist()]


@pytest.mark.invariant("protected-read")
def test_the_lake_alone_answers_below_the_threshold_while_the_record_is_there(lake: Lake) -> None:
    at = insert(lake, 1, 2)
    protected = protect(lake, at)
    delete_all(lake)
    insert(lake, 3)
    lake.flush(keep=Keep(publish(lake), (at,)))
    lake.clean()
    assert scanned(lake, at, [protected]) == [(1,), (2,)]
    with pytest.raises(SnapshotTooOld):
        scanned(lake, at, [])
    lake.write(lambda txn: txn.delete(protected.record_key))
    with pytest.raises(SnapshotTooOld):
        scanned(lake, at, [protected])


@pytest.mark.invariant("protected-read")
def test_base_and_delta_answer_below_the_threshold_while_the_record_is_there(lake: Lake) -> None:
    insert(lake, 1)
    lake.flush()
    at = insert(lake, 2)
    protected = protect(lake, at)
    delete_all(lake)
    span = lake.store.keyspace.index_span(lake.table.id)
    removal = Removal(span.lo, span.hi, Removes.SUPERSEDED, publish(lake), 100, (at,))
    lake.write(lambda txn: txn.remove(removal))
    assert scanned(lake, at, [protected]) == [(1,), (2,)]
    lake.write(lambda txn: txn.delete(protected.record_key))
    with pytest.raises(SnapshotTooOld):
        scanned(lake, at, [protected])


@pytest.mark.invariant("protected-read")
def test_changes_since_a_time_below_the_threshold_are_scanned_in_the_name_of_that_time(lake: Lake) -> None:
    since_at = insert(lake, 1, 2)
    protected = protect(lake, since_at)
    delete_all(lake)
    at = insert(lake, 3)
    end = protect(lake, at)
    delete_all(lake)
    lake.flush(keep=Keep(publish(lake), (since_at, at)))
    lake.clean()
    assert sorted(scanned(lake, at, [protected, end], since_at)) == [
        (1, True),
        (2, True),
        (3, False),
    ]
    with pytest.raises(SnapshotTooOld):
        scanned(lake, at, [protected], since_at)


def test_tasks_do_not_read_in_the_name_of_a_protection_of_another_index(lake: Lake) -> None:
    at = insert(lake, 1)
    protected = protect(lake, at)._replace(covers=lambda head: False)
    insert(lake, 2)
    publish(lake)
    with pytest.raises(SnapshotTooOld):
        scanned(lake, at, [protected])
