"""Who may publish a base, and what a manifest may name."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tenure.base.errors import BelowMark, RetryError
from tenure.base.timestamp import to_bytes
from tenure.kv.transaction import Transaction
from tenure.storage.engine import Revision
from tenure.table.lake.format import write
from tenure.table.lake.manifests import AS_PUBLISHED, File, FileShape, Manifest, WrittenFile, no_base
from tenure.table.lake.publishing import ManifestEdit, publish
from tenure.table.lake.tables import IndexFormat, of_revisions
from tenure.table.read import at, rows
from tenure.table.rows import Row
from tests.unit.pipeline.lakes import Lake
from tests.unit.table.tables import ID, A, B, table
from tests.unit.table.trees import CONTEXT


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path, table())
    yield lake
    lake.close()


def _insert(lake: Lake, *ids: int) -> None:
    writer = lake.writer()

    def work(txn: Transaction) -> None:
        for id in ids:
            writer.insert(txn, {ID: id, A: id, B: id})

    lake.write(work)


def _file(name: str, first: bytes, last: bytes, at: int = 0) -> File:
    return File(name, first, last, 1, 1, b"", 0, published_at=at, first_at=at)


@pytest.mark.invariant("manifest-order")
def test_live_files_that_overlap_are_refused(lake: Lake) -> None:
    files = (_file("a", b"1", b"5"), _file("b", b"5", b"9"))
    manifest = Manifest(200, 1, 7, (FileShape(()),), files)
    with pytest.raises(AssertionError, match="overlap"):
        lake.manifests.put(lake.store.begin(), manifest)


@pytest.mark.invariant("one-merge")
def test_a_merge_that_began_with_an_older_base_is_refused(lake: Lake) -> None:
    _insert(lake, 1)
    lake.flush()
    replaced = ManifestEdit((), (WrittenFile(_file("x", b"1", b"1"), FileShape(())),))
    txn = lake.store.begin()
    with pytest.raises(RetryError, match="has changed"):
        publish(txn, lake.store.keyspace, lake.manifests, no_base(200, 1), replaced, txn.read_at)


@pytest.mark.invariant("I40")
def test_a_manifest_names_what_tasks_returned_and_nothing_else(lake: Lake) -> None:
    _insert(lake, 1, 2)
    with lake.files.create("1/200/1/j1-r1-0000-live-0.parquet") as output:
        output.write(b"of a task that was tried again")
    manifest = lake.flush()
    assert "1/200/1/j1-r1-0000-live-0.parquet" not in {file.name for file in manifest.files}
    assert all(lake.files.exists(file.name) for file in manifest.files)


def test_files_that_are_replaced_are_remembered_with_the_time_they_were(lake: Lake) -> None:
    _insert(lake, 1)
    before = lake.flush()
    _insert(lake, 2)
    lake.flush()
    dropped = list(lake.manifests.dropped(lake.store.snapshot()))
    assert [file.name for file in dropped] == [file.name for file in before.live]
    assert dropped[0].dropped_at > before.flushed_at


def test_a_file_that_no_change_falls_into_is_kept(lake: Lake) -> None:
    _insert(lake, 1)
    before = lake.flush()
    after = lake.flush()
    assert after.live == before.live
    assert after.flushed_at >= before.flushed_at


def _publish_input(lake: Lake) -> Manifest:
    """As an import does: a file whose rows have the time at which it is published."""
    began_with = lake.manifest()
    written = WrittenFile(_file("x", b"1", b"1", AS_PUBLISHED), FileShape(()))

    def work(txn: Transaction) -> None:
        publish(txn, lake.store.keyspace, lake.manifests, began_with, ManifestEdit((), (written,)), None)

    lake.store.transact(work)
    return lake.manifest()


def test_rows_of_an_input_have_the_time_at_which_they_were_published(lake: Lake) -> None:
    before_at = lake.store.snapshot().at
    manifest = _publish_input(lake)
    assert manifest.flushed_at > before_at
    assert manifest.live[0].published_at == manifest.live[0].first_at == manifest.flushed_at


def test_a_merge_with_input_counts_as_a_write_of_the_whole_span(lake: Lake) -> None:
    _insert(lake, 1)
    txn = lake.store.begin()
    assert [*txn.scan(lake.store.keyspace.index_span(200, 1))]
    txn.put(lake.store.keyspace.key(300, [1]), b"x")
    _publish_input(lake)
    with pytest.raises(BelowMark):
        txn.commit()


def test_a_flush_is_no_conflict(lake: Lake) -> None:
    _insert(lake, 1)
    txn = lake.store.begin()
    assert [*txn.scan(lake.store.keyspace.index_span(200, 1))]
    txn.put(lake.store.keyspace.key(300, [1]), b"x")
    lake.flush()
    txn.commit()


def test_the_mark_of_an_input_is_its_commit(lake: Lake) -> None:
    manifest = _publish_input(lake)
    head = lake.store.keyspace.head(200, 1)
    assert lake.store.snapshot().get(lake.store.keyspace.cleaned_key(head)) == to_bytes(manifest.flushed_at)


def test_what_was_deleted_and_then_merged_in_is_there(lake: Lake) -> None:
    """The tombstone lies below the mark: the store must not be believed there."""
    _insert(lake, 1, 2)
    layout = lake.layout
    lake.write(lambda txn: lake.writer().delete(txn, _row(txn, lake, 1)))
    began_with, key = lake.manifest(), layout.key({ID: 1})
    format = IndexFormat.of(layout, 1)
    entry = layout.entry(layout.primary, Row(key, {ID: 1, A: 7, B: 7}), CONTEXT)
    assert entry is not None
    made = of_revisions(format, [Revision(key, 1, entry.value)])
    made = made.set_column(1, "at", pa.nulls(1, pa.int64()))
    written = write(lake.files, "1/200/1/input.parquet", format.shape, made)

    def work(txn: Transaction) -> None:
        publish(txn, lake.store.keyspace, lake.manifests, began_with, ManifestEdit((), (written,)), None)

    lake.store.transact(work)
    txn = lake.store.begin()
    txn.read_ahead([key])
    assert [row.values[B] for row in rows(txn, layout)] == [7]
    assert _row(txn, lake, 1).values[B] == 7
    assert at(lake.store.snapshot(), layout, key) is not None
    assert at(lake.store.snapshot(lake.manifest().flushed_at - 1), layout, key) is None


def _row(txn: Transaction, lake: Lake, id: int) -> Row:
    found = at(txn, lake.layout, lake.layout.key({ID: id}))
    assert found is not None
    return found
